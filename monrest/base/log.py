"""Log lines: text or JSON, one observer for everything, with the id of the request at hand.

Lines of finished requests are collected for a moment and written together, because a write call
for each would be a noticeable part of a small request; every other line is written at once and
takes the collected ones with it, so that the order stays.
"""

from __future__ import annotations

import io
import json
from collections.abc import Iterable, Iterator
from contextvars import ContextVar
from datetime import UTC, datetime
from typing import Any, TextIO

import orjson
from attrs import define, field
from twisted.internet.interfaces import IDelayedCall, IReactorTime
from twisted.logger import ILogObserver, LogEvent, LogLevel, formatEvent
from zope.interface import implementer

REQUEST_ID: ContextVar[str] = ContextVar("request_id", default="")
"""The id of the request that the present coroutine works for; empty outside requests."""

ACCESS = "access"
"""Key of an event's mapping of access-log fields; its presence makes the event an access line."""

AUDIT = "audit"
"""Key of an event's mapping of audit fields; its presence makes the event an audit line."""

_LEVELS = {
    LogLevel.debug: "debug",
    LogLevel.info: "info",
    LogLevel.warn: "warning",
    LogLevel.error: "error",
    LogLevel.critical: "critical",
}
_RANKS = {level: rank for rank, level in enumerate(_LEVELS)}
_NAMED = {name: rank for rank, name in enumerate(_LEVELS.values())}
_INFO = _NAMED["info"]
_PRIORITIES = {"debug": 7, "info": 6, "notice": 5, "warning": 4, "error": 3, "critical": 2}
"""What the journal calls our levels; audit lines are its notices."""
_PLAIN_FIELDS = 14
_COLLECT_SECONDS = 0.2
_ONE_PIECE = 4096
_OWN = "monrest"
_SHORT = {"\n": "\\n", "\r": "\\r"}


@implementer(ILogObserver)
@define(eq=False)
class LineObserver:
    """Writes each event as one line to ``stream`` (a failure's traceback follows in text).

    ``as_json``: one JSON object per line, whatever ``configure`` says. ``clock`` delays access
    lines by a fifth of a second; without one they are written at once. ``journal``: lines begin
    with their priority, as the journal of systemd takes it. Information from other libraries is
    left out unless everything is written, warnings and failures are not.
    """

    stream: TextIO
    as_json: bool = False
    clock: IReactorTime | None = None
    journal: bool = False
    _always_json: bool = field(init=False)
    _least: int = field(default=_INFO, init=False)
    _accesses: bool = field(default=True, init=False)
    _worker: int = field(default=0, init=False)
    _lines: list[str] = field(factory=list, init=False)
    _later: IDelayedCall | None = field(default=None, init=False)
    _second: int = field(default=-1, init=False)
    _stamp: str = field(default="", init=False)

    def __attrs_post_init__(self) -> None:
        self._always_json = self.as_json

    def configure(self, level: str, *, as_json: bool, access: bool) -> None:
        """Write lines from ``level`` on, and those of requests (level info) only with ``access``.

        Audit lines are always written.
        """
        self._least = _NAMED[level]
        self._accesses = access and self._least <= _INFO
        self.as_json = as_json or self._always_json

    def name_worker(self, number: int) -> None:
        """Say in each line which worker wrote it, since others write into the same stream."""
        self._worker = number

    def __call__(self, event: LogEvent) -> None:
        """Take one event; never raises because of what is in it."""
        access = event.get(ACCESS)
        if access is not None:
            self.access(access, event.get("log_time", 0.0), event.get("log_namespace", ""))
            return
        level = event.get("log_level", LogLevel.info)
        if (fields := event.get(AUDIT)) is not None:
            line = self._audit_line(fields, event.get("log_time", 0.0))
            self._lines.append(self._ranked(line, "notice"))
        elif self._writes(level, event.get("log_namespace", "")):
            line = self._json_line(event) if self.as_json else self._text_line(event)
            self._lines.append(self._ranked(line, _LEVELS.get(level, "info")))
        else:
            return
        self.flush()

    def _writes(self, level: Any, namespace: str) -> bool:
        rank = _RANKS.get(level, _INFO)
        return rank >= self._least and (
            rank > _INFO or self._least < _INFO or namespace.startswith(_OWN)
        )

    def _ranked(self, line: str, level: str) -> str:
        """Put the priority in front of a line, and of those that follow it."""
        if not self.journal:
            return line
        mark = f"<{_PRIORITIES[level]}>"
        return mark + line[:-1].replace("\n", f"\n{mark}") + line[-1:]

    def access(self, fields: dict[str, Any], seconds: float, namespace: str) -> None:
        """Take the fields of one access line, which was written at ``seconds``."""
        if not self._accesses:
            return
        time = self._time(seconds)
        if self.as_json:
            head = {"time": time, "level": "info", "logger": namespace, "message": "request"}
            line = _json({**head, **fields, **self._which()})
        else:
            line = f"{time} access {text_of_access(fields)}{self._suffix()}\n"
        self._lines.append(self._ranked(line, "info") if self.journal else line)
        if self.clock is None:
            self.flush()
        elif self._later is None:
            self._later = self.clock.callLater(_COLLECT_SECONDS, self.flush)

    def flush(self) -> None:
        """Write what was collected."""
        if self._later is not None:
            if self._later.active():
                self._later.cancel()
            self._later = None
        lines, self._lines = self._lines, []
        for text in _together(lines) if self._worker else ("".join(lines),):
            if text:
                self.stream.write(text)
                self.stream.flush()

    def _which(self) -> dict[str, int]:
        return {"worker": self._worker} if self._worker else {}

    def _suffix(self) -> str:
        return f" worker={self._worker}" if self._worker else ""

    def _time(self, seconds: float) -> str:
        whole = int(seconds)
        if whole != self._second:
            moment = datetime.fromtimestamp(whole, UTC)
            self._second, self._stamp = whole, moment.strftime("%Y-%m-%dT%H:%M:%S")
        return f"{self._stamp}.{int((seconds - whole) * 1000):03d}Z"

    def _text_line(self, event: LogEvent) -> str:
        message = _printable(formatEvent(event))
        request_id = REQUEST_ID.get()
        suffix = f" request_id={request_id}" if request_id else ""
        level = _LEVELS.get(event.get("log_level", LogLevel.info), "info")
        time, namespace = self._time(event.get("log_time", 0.0)), event.get("log_namespace", "")
        line = f"{time} {level} {namespace}: {message}{suffix}{self._suffix()}\n"
        return line + _traceback(event)

    def _audit_line(self, fields: dict[str, Any], seconds: float) -> str:
        time, request_id = self._time(seconds), REQUEST_ID.get()
        fields = {**fields, "request_id": request_id} if request_id else fields
        if self.as_json:
            head = {"time": time, "level": "info", "logger": AUDIT}
            return _json({**head, **fields, **self._which()})
        return f"{time} audit {text_of(fields)}{self._suffix()}\n"

    def _json_line(self, event: LogEvent) -> str:
        document: dict[str, Any] = {
            "time": self._time(event.get("log_time", 0.0)),
            "level": _LEVELS.get(event.get("log_level", LogLevel.info), "info"),
            "logger": event.get("log_namespace", ""),
        }
        document["message"] = formatEvent(event)
        if request_id := REQUEST_ID.get():
            document["request_id"] = request_id
        if traceback := _traceback(event):
            document["traceback"] = traceback
        return _json(document | self._which())


def _together(lines: Iterable[str]) -> Iterator[str]:
    """Join lines to what the system writes in one piece, whatever the stream is."""
    joined, size = "", 0
    for line in lines:
        length = len(line.encode("utf-8", "replace"))
        if size + length > _ONE_PIECE:
            yield joined
            joined, size = "", 0
        joined, size = joined + line, size + length
    yield joined


def _json(document: dict[str, Any]) -> str:
    try:
        line = orjson.dumps(document, default=str).decode()
    except TypeError:  # surrogates without their other half
        line = json.dumps(document, default=str)
    if not line.isprintable():
        line = "".join(one if one.isprintable() else json.dumps(one)[1:-1] for one in line)
    return f"{line}\n"


def _printable(text: str) -> str:
    """Spell out everything that ends a line somewhere, steers a terminal or has no shape."""
    if text.isprintable():
        return text
    return "".join(one if one.isprintable() else _escaped(one) for one in text)


def _escaped(one: str) -> str:
    if one in _SHORT:
        return _SHORT[one]
    return f"\\x{ord(one):02x}" if one.isascii() else ascii(one)[1:-1]


def _traceback(event: LogEvent) -> str:
    failure = event.get("log_failure")
    if failure is None:
        return ""
    text = io.StringIO()
    failure.printTraceback(file=text)
    return text.getvalue()


def text_of_access(access: dict[str, Any]) -> str:
    """Give the fields of an access line as ``key=value``, texts with spaces in quotes."""
    if len(access) == _PLAIN_FIELDS:
        # One line for every request: spelled out this costs a third of the loop.
        return (
            f"method={access['method']} path={_value(access['path'])} "
            f"query={_value(access['query'])} status={access['status']} "
            f"bytes={access['bytes']} ms={access['ms']} backend_ms={access['backend_ms']} "
            f"rows={access['rows']} user={_value(access['user'])} "
            f"failed_sites={_value(access['failed_sites'])} "
            f"request_id={_value(access['request_id'])} client={access['client']} "
            f"key={access['key']} agent={_value(access['agent'])}"
        )
    return text_of(access)


def text_of(fields: dict[str, Any]) -> str:
    """Give fields as ``key=value``, texts with spaces, quotes or nothing in them in quotes."""
    return " ".join(f"{key}={_value(value)}" for key, value in fields.items())


def _value(value: Any) -> str:
    if isinstance(value, str):
        text = _printable(value)
        if not text or " " in text or '"' in text or "\\" in text:
            return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
        return text
    if isinstance(value, (list, tuple)):
        return ",".join(_value(one) for one in value) or "-"
    return str(value)
