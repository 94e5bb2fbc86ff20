"""External commands: every path under which one can be sent (docs/spec/commands.md).

The object comes from the path, or for ``/cmd`` from parameters. All else is the same: ``orders``
prepares what each site gets, ``submit`` sends it, ``readback`` looks for the effect.

The body of ``POST /cmd`` may be a JSON list of objects with the parameters of one ``/cmd`` each. If
any of them is malformed, forbidden or unknown, nothing is sent and the error names all of those.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import orjson
from attrs import evolve

from monrest.api.endpoint import (
    SITE_PARAMETERS,
    Context,
    Endpoint,
    Handler,
    Parameter,
    declared,
)
from monrest.api.family import Family, Served
from monrest.api.visibility import visibility
from monrest.base.errors import BadRequest, Forbidden, NotFound, RestError, SitesFailed
from monrest.base.values import Answer, Column, Document, RestRequest, SiteProblem
from monrest.commands import listing
from monrest.commands.arguments import COMMON, LARGEST, Given
from monrest.commands.asked import (
    TEST_ONLY,
    WAIT,
    AskedCommand,
    collected,
    command_of,
    manner,
    named_sites,
    sites_of,
    target_of,
)
from monrest.commands.fill import LONGEST_ARGUMENTS
from monrest.commands.lookups import owners
from monrest.commands.orders import EFFORT, LONGEST_NAME
from monrest.commands.outcome import CommandOutcome
from monrest.commands.submit import submit
from monrest.livestatus.command import Target
from monrest.objectconfig.site_commands import FORCE
from monrest.query.limit import Limit

MOST_COMMANDS = 10_000
"""Entries of one list."""

_MOST_PARAMETERS = 1000
"""Parameters of one command, and values of one parameter."""

_ORDER = ("index", "code", "message", "commands", "error")
_NOT_IN_ENTRIES = ("wait", "test_only", "force", "background")


async def bulk(context: Context, request: RestRequest) -> Answer:
    """Send the commands of a list; one result each, in their order."""
    given = collected(request.parameters)
    how = manner(given, context.config.server)
    if further := sorted(given.keys() - COMMON):
        raise BadRequest(
            "unknown parameter",
            f"{further[0]}: expected in the entries of the list, beside them only backends, "
            "test_only, force and wait",
        )
    sites = sites_of(context, request.sites, given)
    entries = request.document
    if not entries:
        raise BadRequest("empty list", "request body: expected a list with at least one command")
    if len(entries) > MOST_COMMANDS:
        raise BadRequest(
            "too many commands",
            f"request body: expected at most {MOST_COMMANDS} commands, got {len(entries)}",
        )
    asked: list[AskedCommand] = []
    problems: dict[int, RestError] = {}
    named = bool(named_sites(request.sites, given))

    def read(_: Limit) -> None:
        for index, entry in enumerate(entries):
            try:
                given = _given(entry)
                command = command_of(given)
                target, left = target_of(given)
                chosen, by_name = sites, named
                if "backend" in given or "backends" in given:
                    chosen, by_name = sites_of(context, request.sites, given), True
                asked.append(
                    AskedCommand(
                        index=index,
                        command=command,
                        target=target,
                        given=left,
                        sites=chosen,
                        named=by_name,
                    )
                )
            except RestError as error:
                # Its frames hold the list of commands and this dictionary, which holds the error.
                problems[index] = error.with_traceback(None)

    await context.compute(read, len(entries) * EFFORT)
    outcomes = await submit(context, request, asked, how, problems)
    if problems:
        effort = len(problems) * EFFORT
        raise await context.compute(lambda _: problem_of(problems, len(entries)), effort)
    return await context.compute(lambda _: _answer(outcomes), len(outcomes) * EFFORT)


def _answer(outcomes: Sequence[CommandOutcome]) -> Document:
    failed: dict[str, SiteProblem] = {}
    for outcome in outcomes:
        failed.update((problem.site, problem) for problem in outcome.failed)
    results = [outcome.result() for outcome in outcomes]
    return Document(value=results, order=_ORDER, failed_sites=tuple(failed.values()))


def _given(entry: Any) -> dict[str, tuple[str, ...]]:
    """An entry as parameters: null is absent, true is 1."""
    if not isinstance(entry, dict):
        raise BadRequest("invalid command", "expected an object with cmd and its parameters")
    if len(entry) > _MOST_PARAMETERS:
        raise BadRequest("invalid command", f"expected at most {_MOST_PARAMETERS} parameters")
    given: dict[str, tuple[str, ...]] = {}
    for name, value in entry.items():
        if name in _NOT_IN_ENTRIES:
            raise BadRequest(
                "invalid command", f"{name}: expected in the query string, for the whole request"
            )
        values = value if isinstance(value, list) else (value,)
        if len(values) > _MOST_PARAMETERS:
            raise BadRequest(
                "invalid command", f"{name[:200]}: expected at most {_MOST_PARAMETERS} values"
            )
        texts = tuple(_text(name, value) for value in values if value is not None)
        if texts:
            given[name] = texts
    return given


def _text(name: str, value: Any) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "1" if value else "0"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        return orjson.dumps(value).decode()
    raise BadRequest("invalid command", f"{name}: expected a text, number, boolean or null")


def problem_of(problems: Mapping[int, RestError], count: int) -> RestError:
    """One error for a whole list: 403 if every problem is one, else 400; all are named.

    ``help`` is that of the first.
    """
    kind = (
        Forbidden
        if all(problem.code == Forbidden.code for problem in problems.values())
        else BadRequest
    )
    named = [
        {
            "index": index,
            "code": problems[index].code,
            "message": problems[index].message,
            "description": problems[index].description,
        }
        for index in sorted(problems)
    ]
    first = named[0]
    extra = {"problems": named}
    if help_ := problems[min(problems)].extra.get("help"):
        extra["help"] = help_
    return kind(
        f"nothing was sent, because {len(named)} of {count} commands cannot be sent",
        f"index {first['index']}: {first['message']}: {first['description']}".rstrip(": "),
        extra=extra,
    )


_LIST_BYTES = 4_194_304
"""Bytes of a list of commands: some hundred for each."""

MANNER_PARAMETERS = (WAIT, TEST_ONLY, FORCE, *SITE_PARAMETERS)
"""The parameters of every path of commands beside the arguments of the command."""

COMMAND_PARAMETERS = (
    Parameter(
        name="<argument>",
        description="arguments of the command, see its line below",
        limit=f"{LONGEST_ARGUMENTS} bytes together",
    ),
    *MANNER_PARAMETERS,
)
"""The parameters of every path that names a command."""


def _named(name: str, description: str) -> Parameter:
    return Parameter(name=name, description=description, limit=f"{LONGEST_NAME} characters")


_OBJECT_PARAMETERS = (
    Parameter(name="cmd", description="name of the command", required=True),
    _named("host", "host, also that of a service"),
    _named("service", "service, together with its host"),
    _named("hostgroup", "host group"),
    _named("servicegroup", "service group"),
    _named("contact", "contact"),
    _named("contactgroup", "contact group"),
)

_COLUMNS = (
    Column("message", "string", "", "what became of the command"),
    Column("commands", "string", "", "the lines that were sent, one for each command and site"),
    Column(
        "effect",
        "string",
        "",
        "with `wait`: seen, not seen within N seconds, nothing matched, or nothing to read back "
        "and why; of several sites the least good one",
    ),
    Column("effects", "object", "", "with `wait`: effect by site id"),
    Column(
        "warnings",
        "array_of_strings",
        "",
        "arguments that only other commands take, and sites without the comment or downtime",
    ),
    Column("failed_sites", "array_of_strings", "", "objects with site, name and reason"),
    Column("accepted_sites", "array_of_strings", "", "beside failed sites: those that took it"),
)


_command = partial(
    Endpoint, methods=("POST",), shape="object", parameters=COMMAND_PARAMETERS, columns=_COLUMNS
)


async def _send_one(
    context: Context, request: RestRequest, command: str, target: Target, given: Given
) -> Answer:
    asked = AskedCommand(
        command=command,
        target=target,
        given=given,
        sites=sites_of(context, request.sites, given),
        named=bool(named_sites(request.sites, given)),
    )
    problems: dict[int, RestError] = {}
    how = manner(given, context.config.server)
    outcomes = await submit(context, request, (asked,), how, problems)
    if problems:
        raise problems[asked.index]
    return outcomes[0].answer()


def _sends(target: Callable[[tuple[str, ...]], Target]) -> Handler:
    """A handler for paths that name the object; the last segment is the command."""

    async def handler(context: Context, request: RestRequest, names: tuple[str, ...]) -> Answer:
        given = collected(request.parameters)
        return await _send_one(context, request, names[-1], target(names), given)

    return handler


def _of_kind(kind: str, word: str) -> Endpoint:
    return _command(
        path=f"/{kind}/<name>/cmd/<command>",
        description=f"sends a command for a {word}",
        handler=_sends(lambda names: Target(kind, names[0])),
    )


OF_OBJECTS: tuple[Endpoint, ...] = (
    _of_kind("hosts", "host"),
    _command(
        path="/services/<host>/<service>/cmd/<command>",
        description="sends a command for a service",
        handler=_sends(lambda names: Target("services", names[0], names[1])),
    ),
    _of_kind("hostgroups", "host group"),
    _of_kind("servicegroups", "service group"),
    _of_kind("contacts", "contact"),
    _of_kind("contactgroups", "contact group"),
    *(
        _command(
            path=f"/{word}/cmd/<command>",
            description="sends a command for whole cores",
            handler=_sends(lambda _: Target("sites")),
        )
        for word in ("system", "core")
    ),
)


@_command(
    path="/cmd/<command>",
    description="behind a selection of sites, as in `/sites/a,b/cmd/enable_notifications`: sends a "
    "command for the cores of these sites",
)
async def send_to_selected_sites(
    context: Context, request: RestRequest, names: tuple[str, ...]
) -> Answer:
    # /sites/LIST/cmd/<command>: the list has become the selection of the request.
    if not request.sites:
        raise NotFound(
            f"unknown rest path: {request.path}",
            "expected /sites/<list>/cmd/<command> or, for all sites, /system/cmd/<command>",
        )
    given = collected(request.parameters)
    return await _send_one(context, request, names[0], Target("sites"), given)


@_command(
    path="/cmd",
    description="sends any command, or a list of them",
    text="Without an object the command is one for whole cores. A JSON list as body holds one "
    f"object with these parameters for each command, up to {MOST_COMMANDS:,} of them; "
    "`wait` and `test_only` are for the whole list and go into the query string. If any "
    "entry is malformed, forbidden or unknown, nothing is sent and the error names all "
    "of them in `problems`. Otherwise the answer is a list with one result for each entry: "
    "`index`, `code`, `message`, `commands`, and `error` where a core refused it.",
    parameters=(*_OBJECT_PARAMETERS, *COMMAND_PARAMETERS),
    structured=True,
    body_limit=_LIST_BYTES,
)
async def send_any(context: Context, request: RestRequest, _: tuple[str, ...]) -> Answer:
    if isinstance(request.document, list):
        return await bulk(context, request)
    if request.structured:
        raise BadRequest(
            "failed to parse json data argument",
            f"parameter {request.structured[:80]}: expected a text, number, boolean or null",
        )
    given = collected(request.parameters)
    command = command_of(given)
    target, left = target_of(given)
    return await _send_one(context, request, command, target, left)


_removal = partial(
    Endpoint,
    methods=("DELETE",),
    text="Sends the command that deletes it for its host or service, to each selected site "
    "that has this id and shows it to the user. Ids of sites are independent of each other, "
    "so name the site where there are several.",
    shape="object",
    parameters=MANNER_PARAMETERS,
    columns=_COLUMNS,
)


@_removal(path="/comments/<id>", description="deletes a comment")
async def delete_comment(context: Context, request: RestRequest, names: tuple[str, ...]) -> Answer:
    return await _delete(context, request, "comment", names[0])


@_removal(path="/downtimes/<id>", description="deletes a downtime")
async def delete_downtime(context: Context, request: RestRequest, names: tuple[str, ...]) -> Answer:
    return await _delete(context, request, "downtime", names[0])


async def _delete(context: Context, request: RestRequest, word: str, id_: str) -> Answer:
    """Delete a comment or downtime by its id alone: the command for its object, on each site."""
    number = int(id_[:20]) if id_.isascii() and id_.isdigit() else 0
    if not 0 < number <= LARGEST:
        raise BadRequest(f"invalid {word} id", f"{word} id: expected a number from 1 to {LARGEST}")
    given = collected(request.parameters)
    how = manner(given, context.config.server)
    sites = sites_of(context, request.sites, given)
    table, strict = f"{word}s", context.config.auth.strict_host_authorization
    visible = visibility(request.identity, table, strict)
    owner_sites = await owners(table, sites, number, visible, context.clock)
    if not owner_sites.sites:
        if owner_sites.problems:
            raise SitesFailed(tuple(owner_sites.problems.values()))
        raise NotFound(f"no such {word}", f"no selected site has a {word} {number} for you")
    asked = [
        AskedCommand(
            index=index,
            command=f"del_{word}",
            target=target,
            given={f"{word}_id": (str(number),)},
            sites=tuple(site for site in sites if site.id in having),
        )
        for index, (target, having) in enumerate(owner_sites.sites.items())
    ]
    problems: dict[int, RestError] = {}
    outcomes = await submit(context, request, asked, how, problems)
    if problems:
        raise problems[min(problems)]
    answers = [outcome.answer() for outcome in sorted(outcomes, key=lambda outcome: -outcome.code)]
    failed = dict(owner_sites.problems)
    failed |= {problem.site: problem for answer in answers for problem in answer.failed_sites}
    lines = "\n".join(answer.value["commands"] for answer in answers)
    return evolve(
        answers[0],
        value={**answers[0].value, "commands": lines},
        failed_sites=tuple(failed.values()),
    )


FAMILY = Family(
    served=(
        Served((*OF_OBJECTS, *declared(sys.modules[__name__]))),
        Served((*declared(listing), *listing.DESCRIPTIONS)),
    ),
)
