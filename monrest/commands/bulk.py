"""A list of commands in one request: all or nothing until the first one is sent.

The body of ``POST /cmd`` is a JSON list of objects with the parameters of one ``/cmd`` each. If
any of them is malformed, forbidden or unknown, nothing is sent and the error names all of those.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import orjson

from monrest.api.endpoint import Context
from monrest.base.errors import BadRequest, Forbidden, RestError
from monrest.base.values import Answer, Document, RestRequest, SiteProblem
from monrest.commands.arguments import COMMON
from monrest.commands.asked import (
    AskedCommand,
    collected,
    command_of,
    manner,
    named_sites,
    sites_of,
    target_of,
)
from monrest.commands.orders import EFFORT
from monrest.commands.outcome import CommandOutcome
from monrest.commands.submit import submit
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
