"""External commands: every path under which one can be sent (docs/spec/commands.md).

The object comes from the path, or for ``/cmd`` from parameters; everything else goes the same
way: ``orders`` finds out what each site is told, ``submit`` tells it, ``readback`` looks what came
of it.
"""

from __future__ import annotations

from collections.abc import Callable

from monrest.api.endpoint import SITE_PARAMETERS, Context, Endpoint, Handler, Parameter
from monrest.base.errors import BadRequest, NotFound
from monrest.base.values import Answer, Column, RestRequest
from monrest.commands.asked import (
    TEST_ONLY,
    WAIT,
    AskedCommand,
    Given,
    arguments,
    collected,
    command_of,
    manner,
    named_sites,
    sites_of,
    target_of,
)
from monrest.commands.bulk import MOST_COMMANDS, bulk
from monrest.commands.fill import LONGEST_ARGUMENTS
from monrest.commands.orders import LONGEST_NAME
from monrest.commands.submit import submit_one
from monrest.livestatus.command import Target
from monrest.objectconfig.site_commands import FORCE

_LIST_BYTES = 4_194_304
"""Bytes of a list of commands: some hundred for each."""

MANNER_PARAMETERS = (
    WAIT,
    TEST_ONLY,
    FORCE,
    *SITE_PARAMETERS,
)
"""What every path of commands takes beside the arguments of the command."""

COMMAND_PARAMETERS = (
    Parameter(
        name="<argument>",
        description="arguments of the command, see its line below",
        limit=f"{LONGEST_ARGUMENTS} bytes together",
    ),
    *MANNER_PARAMETERS,
)
"""What every path takes that names a command."""


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

COLUMNS = (
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


def _sends(target: Callable[[tuple[str, ...]], Target]) -> Handler:
    """A handler for paths that name the object; the last segment is the command."""

    async def handler(context: Context, request: RestRequest, names: tuple[str, ...]) -> Answer:
        return await _single(
            context, request, names[-1], target(names), collected(request.parameters)
        )

    return handler


async def _single(
    context: Context, request: RestRequest, command: str, target: Target, given: Given
) -> Answer:
    how = manner(given, context.config.server)
    asked = AskedCommand(
        command=command,
        target=target,
        given=arguments(given),
        sites=sites_of(context, request.sites, given),
        named=bool(named_sites(request.sites, given)),
    )
    return await submit_one(context, request, asked, how)


async def _of_selected_sites(
    context: Context, request: RestRequest, names: tuple[str, ...]
) -> Answer:
    """``/sites/LIST/cmd/<command>``: the list has become the selection of the request."""
    if not request.sites:
        raise NotFound(
            f"unknown rest path: {request.path}",
            "expected /sites/<list>/cmd/<command> or, for all sites, /system/cmd/<command>",
        )
    return await _single(context, request, names[0], Target("sites"), collected(request.parameters))


async def _any(context: Context, request: RestRequest, _: tuple[str, ...]) -> Answer:
    """``/cmd``: one command from parameters, or a list of them."""
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
    return await _single(context, request, command, target, left)


def _endpoint(path: str, description: str, handler: Handler) -> Endpoint:
    return Endpoint(
        path=path,
        description=description,
        handler=handler,
        methods=("POST",),
        shape="object",
        parameters=COMMAND_PARAMETERS,
        columns=COLUMNS,
    )


def _of_kind(kind: str, word: str) -> Endpoint:
    return _endpoint(
        f"/{kind}/<name>/cmd/<command>",
        f"sends a command for a {word}",
        _sends(lambda names: Target(kind, names[0])),
    )


ENDPOINTS: tuple[Endpoint, ...] = (
    _of_kind("hosts", "host"),
    _endpoint(
        "/services/<host>/<service>/cmd/<command>",
        "sends a command for a service",
        _sends(lambda names: Target("services", names[0], names[1])),
    ),
    _of_kind("hostgroups", "host group"),
    _of_kind("servicegroups", "service group"),
    _of_kind("contacts", "contact"),
    _of_kind("contactgroups", "contact group"),
    *(
        _endpoint(
            f"/{word}/cmd/<command>",
            "sends a command for whole cores",
            _sends(lambda _: Target("sites")),
        )
        for word in ("system", "core")
    ),
    _endpoint(
        "/cmd/<command>",
        "behind a selection of sites, as in `/sites/a,b/cmd/enable_notifications`: sends a "
        "command for the cores of these sites",
        _of_selected_sites,
    ),
    Endpoint(
        path="/cmd",
        description="sends any command, or a list of them",
        text=(
            "Without an object the command is one for whole cores. A JSON list as body holds one "
            f"object with these parameters for each command, up to {MOST_COMMANDS:,} of them; "
            "`wait` and `test_only` are for the whole list and go into the query string. If any "
            "entry is malformed, forbidden or unknown, nothing is sent and the error names all "
            "of them in `problems`. Otherwise the answer is a list with one result for each entry: "
            "`index`, `code`, `message`, `commands`, and `error` where a core refused it."
        ),
        handler=_any,
        methods=("POST",),
        shape="object",
        parameters=(*_OBJECT_PARAMETERS, *COMMAND_PARAMETERS),
        columns=COLUMNS,
        structured=True,
        body_limit=_LIST_BYTES,
    ),
)
