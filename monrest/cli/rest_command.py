"""``monrest r``: fetch, check, print (docs/spec/cli.md)."""

from __future__ import annotations

import json
import re
import shlex
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from monrest.cli import data, output
from monrest.cli.calls import Invocation, UrlCall, read
from monrest.cli.client_settings import settings
from monrest.cli.command_line import ArgumentWithOptions, Pairs
from monrest.cli.hints import hints
from monrest.cli.output import FAILED, UNKNOWN, UsageError
from monrest.cli.plugin import (
    Fetched,
    NoValueError,
    ThresholdError,
    fill_earlier,
    is_earlier,
    performance_data,
    render,
    state,
    summed,
)
from monrest.cli.requester import Requester
from monrest.cli.terminal import TerminalStyle, written
from monrest.client.exchange import ClientError, plain, query_of, segment
from monrest.client.http_connection import BlockingReply

_BODILESS = frozenset({"GET", "HEAD"})
_JSON = "application/json"
_READ = frozenset({"text", "human"})
_COLUMNS = re.compile(r"[?&]columns=")


class _RefusedError(Exception):
    """A request was answered with an error: its body is all that is printed."""

    def __init__(self, body: bytes, kind: str) -> None:
        super().__init__()
        self.body = body
        self.kind = kind


class _Body(NamedTuple):
    """An answer with its media type."""

    body: bytes
    kind: str


def run(parts: Sequence[ArgumentWithOptions], given: Pairs) -> int:
    """Do what follows ``monrest r`` and return the exit status.

    ``given`` are options of the connection in front of the subcommand. Raises ClientError.
    """
    try:
        asked = read(parts)
    except ThresholdError as error:
        return _message(error)
    client = Requester(settings((*given, *asked.options)), keep=1 if asked.watch else 0)
    if not asked.watch:
        return _once(asked, client)
    while True:
        _begin_again(asked)
        try:
            _once(asked, client)
        except UsageError:
            raise
        except ClientError as problem:
            # The daemon may be back the next time.
            output.write_text(f"{problem}\n")
        output.flush()
        time.sleep(asked.watch)


def _begin_again(asked: Invocation) -> None:
    """Clear the terminal; in a pipe one answer follows the other."""
    if not sys.stdout.isatty():
        return
    words = " ".join(shlex.quote(call.source) for call in asked.calls)
    line = f"every {asked.watch:g} s: {words}  {time.strftime('%H:%M:%S')}"
    output.write_text(f"\x1b[H\x1b[2J{asked.style.paint('faint', line)}\n\n")


def _once(asked: Invocation, client: Requester) -> int:
    plugin = asked.template is not None or asked.checks
    try:
        return _run(asked, client)
    except _RefusedError as failed:
        _print(written(failed.body, failed.kind, asked.style))
        return UNKNOWN if plugin else FAILED
    except UsageError:
        raise
    except ClientError as problem:
        # A monitoring core reads standard output only, and so a message belongs there.
        if not plugin:
            raise
        return _message(problem)


def _message(error: Exception) -> int:
    output.write_text(f"{error}\n")
    return UNKNOWN


def _run(asked: Invocation, client: Requester) -> int:
    results: list[Fetched] = []
    texts: list[bytes] = []
    worst = 0
    streams = asked.template is None and not asked.checks
    for number, given in enumerate(asked.calls, 1):
        call = _with_earlier(given, results)
        style = _style(call, asked.style)
        if streams and number == len(asked.calls) and not (style.pretty or style.table):
            _stream(call, client, texts)
            return 0
        whole = asked.checks and not call.partial_ok
        fetched = _fetched(call, client, whole=whole)
        result = _renamed(_decoded(fetched.body, call), call)
        results.append(result)
        texts.append(written(result.body, fetched.kind, style))
        worst = max(worst, state(call.thresholds, result.data))
    if asked.template is None:
        _print(b"".join(texts))
        return worst
    total = summed(result.data for result in results)
    thresholds = [threshold for call in asked.calls for threshold in call.thresholds]
    text, worst = render(asked.template, total, results, worst)
    if numbers := performance_data(total, thresholds, asked.units, asked.filters):
        text += f"|{numbers}"
    output.write_text(f"{text}\n")
    return worst


def _style(call: UrlCall, style: TerminalStyle) -> TerminalStyle:
    """The style of the answer of a call: a table to read is one in a pipe too."""
    chosen = isinstance(call.data, dict) and "columns" in call.data
    full = style.full or chosen or _COLUMNS.search(call.source) is not None
    return style._replace(full=full, table=call.format in _READ and not full)


def _with_earlier(call: UrlCall, results: Sequence[Fetched]) -> UrlCall:
    """``call`` with what earlier answers say in the place of ``{N:…}``."""
    if call.kind in ("file", "json"):
        return call
    # What is a whole path, such as the one of a job's result, needs no quotes.
    whole = call.kind == "text" or is_earlier(call.source)
    quoted: Callable[[str], str] = str if whole else segment
    if call.kind == "command":
        quoted = shlex.quote
    try:
        return call._replace(source=fill_earlier(call.source, results, quoted))
    except NoValueError as error:
        raise ClientError(f"{call.source}: {error}") from None


def _stream(call: UrlCall, client: Requester, before: Sequence[bytes]) -> None:
    """Print the answers before, then the last one as it comes."""
    reply = None
    if call.kind in ("api", "url") and not call.postprocess:
        reply = _asked(call, client)
        refuse_for_terminal(reply)
    _print(b"".join(before), ends=False)
    if reply is None:
        _print(_fetched(call, client).body)
        return
    last = b""
    for chunk in reply.pieces():
        output.write(chunk)
        last = chunk or last
    _end_line(last)


def _fetched(call: UrlCall, client: Requester, *, whole: bool = False) -> _Body:
    """The body for a call; ``whole``: raise ClientError when sites are missing in it."""
    timeout = client.settings.timeout
    kind = "text/x-local"
    if call.kind in ("json", "text"):
        body = call.source.encode("utf-8", "surrogateescape")
        kind = _JSON if call.kind == "json" else kind
    elif call.kind == "command":
        body = _output_of(call.source, timeout)
    elif call.kind == "file":
        body, kind = _file(call.source), _JSON
    else:
        reply = _asked(call, client)
        if whole and call.kind == "api" and (missing := _missing(client, reply)):
            raise ClientError(f"UNKNOWN - incomplete, {missing}")
        refuse_for_terminal(reply)
        body, kind = reply.read(), reply.headers.get("Content-Type", "")
    if call.postprocess:
        body, kind = _output_of(call.postprocess, timeout, body), "text/x-local"
    return _Body(body, kind)


def _output_of(command: str, timeout: float, given: bytes | None = None) -> bytes:
    """The output of a shell command; ``given`` is its standard input, None: nothing.

    Raises ClientError when it ends with another status than 0, or not within ``timeout`` seconds.
    """
    import subprocess

    try:
        ran = subprocess.run(  # noqa: S603  the user's own command
            ["/bin/sh", "-c", command],
            input=b"" if given is None else given,
            capture_output=True,
            timeout=timeout,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise ClientError(f"{command}: did not end within {timeout:g} seconds") from None
    except (OSError, ValueError) as error:
        raise ClientError(f"{command}: {error}") from None
    if ran.returncode:
        errors = plain(ran.stderr.decode("utf-8", "replace")).strip()
        raise ClientError(
            f"{command}: ended with status {ran.returncode}{': ' if errors else ''}{errors}"
        )
    return ran.stdout


def _file(path: str) -> bytes:
    try:
        with open(path, "rb") as file:  # noqa: PTH123  pathlib costs 8 ms
            return file.read()
    except OSError as error:
        raise ClientError(f"{path}: {error.strerror}") from None


def _asked(call: UrlCall, client: Requester) -> BlockingReply:
    """Send the request; raises _RefusedError with the body of an answer that is no success."""
    parameters, body = call.data, None
    if call.kind == "url":
        if parameters and call.method not in _BODILESS:
            body = data.body(parameters)
        source = call.source
        if parameters and body is None:
            source += ("&" if "?" in source else "?") + query_of(_mapping(parameters))
        reply = client.url(source, call.method, body, dict(call.headers))
    else:
        query = "background=1" if call.background else ""
        if parameters and call.method in _BODILESS:
            query = "&".join(part for part in (query_of(_mapping(parameters)), query) if part)
        elif parameters:
            body = data.body(parameters)
        reply = client.api(
            call.source,
            method=call.method,
            query=query,
            body=body,
            prefix=call.format,
            strict=call.strict,
        )
        if call.background and reply.good:
            from monrest.cli.jobs import follow

            reply = follow(client, reply)
    if not reply.good:
        failed = reply.read()
        for line in hints(client, call.source, reply, failed, api=call.kind == "api"):
            client.settings.hint(line)
        raise _RefusedError(failed, reply.headers.get("Content-Type", ""))
    if call.kind == "api":
        for warning in reply.warnings(client.settings.address.app):
            client.settings.hint(f"monrest: {warning}")
        if missing := _missing(client, reply):
            client.settings.hint(f"monrest: the answer is incomplete, {missing}")
    return reply


def _missing(client: Requester, reply: BlockingReply) -> str:
    """The sites that have not answered; empty when all have."""
    sites = reply.failed_sites(client.settings.address.app)
    return f"no answer from {', '.join(sites)}" if sites else ""


def _mapping(parameters: dict[str, Any] | list[Any]) -> dict[str, Any]:
    assert isinstance(parameters, dict), "a list goes with POST, which was checked"
    return parameters


def _decoded(body: bytes, call: UrlCall) -> Fetched:
    """A result; texts of commands and the like have their number or text as ``value``."""
    local = bool(call.kind in ("text", "command") or call.postprocess)
    try:
        document = json.loads(body, parse_constant=lambda _: None)
    except (ValueError, RecursionError):
        document = body.decode("utf-8", "surrogateescape").strip() if local else None
    if local and not isinstance(document, (dict, list)):
        document = {"value": document}
    return Fetched(body, document)


def _renamed(result: Fetched, call: UrlCall) -> Fetched:
    if not call.renames or not isinstance(result.data, dict):
        return result
    names = dict(call.renames)
    return Fetched(result.body, {names.get(key, key): value for key, value in result.data.items()})


def refuse_for_terminal(reply: BlockingReply) -> None:
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
