"""``monrest r``: fetch, check, print (docs/spec/cli.md)."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from typing import Any

from monrest.cli import data, output
from monrest.cli.calls import Invocation, UrlCall, read
from monrest.cli.client import Client, Reply
from monrest.cli.client_errors import USAGE, ClientError, UsageError
from monrest.cli.client_settings import settings
from monrest.cli.command_line import ArgumentWithOptions, Pairs
from monrest.cli.hints import hints
from monrest.cli.lookup import summed
from monrest.cli.plugin_perfdata import performance_data
from monrest.cli.template import Fetched, render
from monrest.cli.thresholds import ThresholdError, state

_BODILESS = frozenset({"GET", "HEAD"})


class _RefusedError(Exception):
    """A request was answered with an error: its body is all that is printed."""

    def __init__(self, body: bytes) -> None:
        super().__init__()
        self.body = body


def run(parts: Sequence[ArgumentWithOptions], given: Pairs) -> int:
    """Do what follows ``monrest r`` and return the exit status.

    ``given`` are options of the connection in front of the subcommand. Raises ClientError.
    """
    try:
        asked = read(parts)
    except ThresholdError as error:
        return _message(error)
    client = Client(settings((*given, *asked.options)))
    try:
        return _run(asked, client)
    except _RefusedError as failed:
        _print(failed.body)
        return USAGE
    except UsageError:
        raise
    except ClientError as problem:
        # A monitoring core reads standard output only, and so a message belongs there.
        if asked.template is None and not asked.checks:
            raise
        return _message(problem)


def _message(error: Exception) -> int:
    output.write_text(f"{error}\n")
    return USAGE


def _run(asked: Invocation, client: Client) -> int:
    results: list[Fetched] = []
    worst = 0
    streams = asked.template is None and not asked.checks
    for number, call in enumerate(asked.calls, 1):
        if streams and number == len(asked.calls):
            _stream(call, client, results)
            return 0
        whole = asked.checks and not call.partial_ok
        result = _renamed(_decoded(_fetched(call, client, whole=whole)), call)
        results.append(result)
        worst = max(worst, state(call.thresholds, result.data))
    if asked.template is None:
        _print(b"".join(result.body for result in results))
        return worst
    total = summed(result.data for result in results)
    thresholds = [one for call in asked.calls for one in call.thresholds]
    text = render(asked.template, total, results, worst)
    if numbers := performance_data(total, thresholds, asked.units, asked.filters):
        text += f"|{numbers}"
    output.write_text(f"{text}\n")
    return worst


# -------------------------------------------------------------------- fetching


def _stream(call: UrlCall, client: Client, before: Sequence[Fetched]) -> None:
    """Print the answers before, then the last one as it comes."""
    reply = None
    if call.kind in ("api", "url"):
        reply = _asked(call, client)
        refuse_for_terminal(reply)
    _print(b"".join(result.body for result in before), ends=False)
    if reply is None:
        _print(_fetched(call, client))
        return
    last = b""
    for chunk in reply.chunks():
        output.write(chunk)
        last = chunk or last
    _end_line(last)


def _fetched(call: UrlCall, client: Client, *, whole: bool = False) -> bytes:
    """The body for a call; ``whole``: raise ClientError when sites are missing in it."""
    if call.kind == "json":
        return call.source.encode("utf-8", "surrogateescape")
    if call.kind == "file":
        try:
            with open(call.source, "rb") as file:  # noqa: PTH123  pathlib costs 8 ms
                return file.read()
        except OSError as error:
            raise ClientError(f"{call.source}: {error.strerror}") from None
    reply = _asked(call, client)
    if whole and call.kind == "api" and (missing := _missing(client, reply)):
        raise ClientError(f"UNKNOWN - incomplete, {missing}")
    return reply.read()


def _asked(call: UrlCall, client: Client) -> Reply:
    """Send the request; raises _RefusedError with the body of an answer that is no success."""
    parameters, body = call.data, None
    if call.kind == "url":
        if parameters and call.method not in _BODILESS:
            body = data.body(parameters)
        source = call.source
        if parameters and body is None:
            source += ("&" if "?" in source else "?") + data.query(_mapping(parameters))
        reply = client.url(source, call.method, body, dict(call.headers))
    else:
        query = "background=1" if call.background else ""
        if parameters and call.method in _BODILESS:
            query = "&".join(part for part in (data.query(_mapping(parameters)), query) if part)
        elif parameters:
            body = data.body(parameters)
        reply = client.api(
            call.source, method=call.method, query=query, body=body, prefix=call.format
        )
        if call.background and reply.good:
            from monrest.cli.jobs import follow

            reply = follow(client, reply)
    if not reply.good:
        failed = reply.read()
        for line in hints(client, call.source, reply, failed, api=call.kind == "api"):
            client.settings.hint(line)
        raise _RefusedError(failed)
    if call.kind == "api":
        for warning in reply.warnings(client.settings.address.app):
            client.settings.hint(f"monrest: {warning}")
        if missing := _missing(client, reply):
            client.settings.hint(f"monrest: the answer is incomplete, {missing}")
    return reply


def _missing(client: Client, reply: Reply) -> str:
    """Which sites have not answered; empty when all have."""
    sites = reply.failed_sites(client.settings.address.app)
    return f"no answer from {', '.join(sites)}" if sites else ""


def _mapping(parameters: dict[str, Any] | list[Any]) -> dict[str, Any]:
    assert isinstance(parameters, dict), "a list goes with POST, which was checked"
    return parameters


def _decoded(body: bytes) -> Fetched:
    try:
        return Fetched(body, json.loads(body, parse_constant=lambda _: None))
    except (ValueError, RecursionError):
        return Fetched(body, None)


def _renamed(result: Fetched, call: UrlCall) -> Fetched:
    if not call.renames or not isinstance(result.data, dict):
        return result
    names = dict(call.renames)
    return Fetched(result.body, {names.get(key, key): value for key, value in result.data.items()})


# -------------------------------------------------------------------- printing


def refuse_for_terminal(reply: Reply) -> None:
    """Raise ClientError when an Excel file would be written to a terminal."""
    kind = reply.headers.get("Content-Type", "")
    if ("spreadsheet" in kind or "ms-excel" in kind) and sys.stdout.isatty():
        raise ClientError("an Excel file is nothing for a terminal: redirect it, > FILE.xlsx")


def _print(body: bytes, *, ends: bool = True) -> None:
    output.write(body)
    if ends:
        _end_line(body)


def _end_line(body: bytes) -> None:
    """Begin a new line on a terminal; elsewhere what was fetched is what is printed."""
    if body and not body.endswith(b"\n") and sys.stdout.isatty():
        output.write(b"\n")
