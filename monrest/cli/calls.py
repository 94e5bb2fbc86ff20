"""The command line of ``monrest r`` as values: one call per URL, and the options for all."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

from monrest.cli import data
from monrest.cli.command_line import ArgumentWithOptions
from monrest.cli.options import CHECK, REQUEST
from monrest.cli.output import UsageError
from monrest.cli.plugin import LEVELS, Threshold, Unit, label_filter, threshold, unit
from monrest.cli.terminal import TerminalStyle, style
from monrest.client.exchange import SAFE

Kind = Literal["api", "url", "file", "json", "text", "command"]

_FORMATS = {
    "json": "json",
    "csv": "csv",
    "ndjson": "ndjson",
    "xls": "xls",
    "text": "text",
    "human": "human",
}
_PLACEHOLDER = re.compile(r"\{[0-9]{1,9}:")
_METHOD = re.compile(r"[A-Za-z]{1,20}\Z")
_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+\Z")
_OWN = frozenset(option.key for group in (REQUEST, CHECK) for option in group.options)
_SENDS = frozenset({"method", "data", "rawdata", "background"})
_API_ONLY = frozenset({"background", "no-strict", *_FORMATS})
_LOCAL: tuple[tuple[str, Kind], ...] = (("string", "text"), ("command", "command"))
_SHORTEST_PAUSE = 0.1
_LONGEST_PAUSE = 86400.0
MULTIPLE = "multiple -o/--output parameter are not supported."


class UrlCall(NamedTuple):
    """One URL with its own options.

    ``method`` and ``data`` are those of ``-m`` and ``-d`` (None: no data at all); ``format`` is a
    path prefix; ``strict``: unknown columns are errors; ``partial_ok``: thresholds look at an
    answer without all sites too; ``renames`` are (old, new). ``postprocess`` is a shell command
    that makes the result of the answer.
    """

    source: str
    kind: Kind
    method: str = "GET"
    data: dict[str, Any] | list[Any] | None = None
    format: str = ""
    headers: tuple[tuple[str, str], ...] = ()
    background: bool = False
    strict: bool = True
    thresholds: tuple[Threshold, ...] = ()
    partial_ok: bool = False
    renames: tuple[tuple[str, str], ...] = ()
    postprocess: str = ""


class Invocation(NamedTuple):
    """A whole command line; ``options`` are those of the connection.

    ``watch``: seconds after which everything is asked again, 0: never.
    """

    calls: tuple[UrlCall, ...]
    options: tuple[tuple[str, str], ...]
    template: str | None
    units: tuple[Unit, ...]
    filters: tuple[re.Pattern[str], ...]
    style: TerminalStyle = TerminalStyle()
    watch: float = 0.0

    @property
    def checks(self) -> bool:
        """Whether the exit status depends on what the answers say."""
        return any(call.thresholds for call in self.calls)


def read(parts: Sequence[ArgumentWithOptions]) -> Invocation:
    """Read what follows ``monrest r``, with at least one URL; raises UsageError."""
    *given, last = parts
    shared = tuple(pair for call in (*given, last) for pair in call.options if pair[0] not in _OWN)
    given[-1] = ArgumentWithOptions((*given[-1].options, *last.options), given[-1].argument)
    templates = [value for name, value in shared if name == "output"]
    if len(templates) > 1:
        raise UsageError(MULTIPLE)
    calls = tuple(_call(call) for call in given)
    named = dict(shared)
    if "watch" in named and any(call.method not in SAFE or call.background for call in calls):
        raise UsageError("--watch: goes with requests that change nothing")
    return Invocation(
        calls=calls,
        options=shared,
        template=templates[0] if templates else None,
        units=tuple(unit(value) for name, value in shared if name == "perfunit"),
        filters=tuple(label_filter(value) for name, value in shared if name == "perffilter"),
        style=style(named.get("color", ""), full="full" in named),
        watch=_pause(named["watch"]) if "watch" in named else 0.0,
    )


def _call(given: ArgumentWithOptions) -> UrlCall:
    own = tuple(pair for pair in given.options if pair[0] in _OWN)
    names = {name for name, _ in own}
    source = given.argument or ""
    kind = _kind(source, names)
    _check(kind, names, source)
    sent = [pair for pair in own if pair[0] in ("data", "rawdata")]
    method = dict(own).get("method", "POST" if sent else "GET")
    if not _METHOD.match(method):
        raise UsageError(f"--method: expected a word such as GET or POST, got {method!r}")
    formats = [name for name, _ in own if name in _FORMATS]
    if len({_FORMATS[name] for name in formats}) > 1:
        raise UsageError(f"{source}: expected one output format, got {', '.join(formats)}")
    parameters = data.parameters(sent) if sent else None
    if isinstance(parameters, list) and method.upper() in ("GET", "HEAD"):
        raise UsageError("--data: a JSON list goes with POST")
    return UrlCall(
        source=source,
        kind=kind,
        method=method.upper(),
        data=parameters,
        format=_FORMATS[formats[0]] if formats else "",
        headers=tuple(_header(value) for name, value in own if name == "header"),
        background="background" in names,
        strict="no-strict" not in names,
        thresholds=tuple(threshold(name, value) for name, value in own if name in LEVELS),
        partial_ok="partial-ok" in names,
        renames=tuple(_rename(value) for name, value in own if name == "rename"),
        postprocess=dict(own).get("postprocess", ""),
    )


def _kind(source: str, names: set[str]) -> Kind:
    """The kind of a URL; a file of that name counts only if nothing is sent."""
    local = [kind for option, kind in _LOCAL if option in names]
    if len(local) > 1:
        raise UsageError("expected --string or --command, not both")
    if local:
        return local[0]
    if source.lower().startswith(("http://", "https://")):
        return "url"
    if source.startswith(("{", "[")) and not _PLACEHOLDER.match(source) and _is_json(source):
        return "json"
    sends = names & (_SENDS | _API_ONLY)
    # Not pathlib, for the time of the start.
    if not sends and os.path.exists(source) and not os.path.isdir(source):  # noqa: PTH110,PTH112
        return "file"
    return "api"


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{text[:80]}: expected JSON: {error}") from None
    return True


def _check(kind: Kind, names: set[str], source: str) -> None:
    """Refuse options that would have no effect on this kind of URL."""
    wrong: set[str] = set()
    if kind == "url":
        wrong = names & _API_ONLY
    elif kind in ("json", "text", "command"):
        wrong = names & (_SENDS | _API_ONLY)
    if kind != "url":
        wrong |= names & {"header"}
    if wrong:
        where = "URLs with http:// or https://" if "header" in wrong else "paths of the API"
        raise UsageError(f"--{min(wrong)}: goes with {where}, not with {source[:80]}")


def _pause(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not _SHORTEST_PAUSE <= seconds <= _LONGEST_PAUSE:
        raise UsageError(
            f"--watch: expected {_SHORTEST_PAUSE:g} to {_LONGEST_PAUSE:g} seconds, got {text!r}"
        )
    return seconds


def _header(text: str) -> tuple[str, str]:
    name, colon, value = text.partition(":")
    if not colon or not _NAME.match(name) or not value.isprintable():
        raise UsageError(f"--header: expected 'NAME: VALUE', got {text!r}")
    return name, value.strip()


def _rename(text: str) -> tuple[str, str]:
    old, colon, new = text.partition(":")
    if not colon or not old or not new:
        raise UsageError(f"--rename: expected OLD:NEW, got {text!r}")
    return old, new
