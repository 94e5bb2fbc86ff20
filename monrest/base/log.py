"""Log lines: text or JSON, one observer for everything, with the id of the request at hand."""

from __future__ import annotations

import io
import json
from contextvars import ContextVar
from datetime import UTC, datetime
from typing import Any, TextIO

import orjson
from attrs import define, field
from twisted.logger import ILogObserver, LogEvent, LogLevel, formatEvent
from zope.interface import implementer

REQUEST_ID: ContextVar[str] = ContextVar("request_id", default="")
"""The id of the request that the present coroutine works for; empty outside requests."""

ACCESS = "access"
"""Key of an event's mapping of access-log fields; its presence makes the event an access line."""

AUDIT = "audit"
"""Key of an event's mapping of audit fields; its presence makes the event an audit line."""

_NAMES = ("debug", "info", "warning", "error", "critical")
"""Levels by their ranks."""
_RANKS: dict[Any, int] = {
    LogLevel.debug: 0,
    LogLevel.info: 1,
    LogLevel.warn: 2,
    LogLevel.error: 3,
    LogLevel.critical: 4,
}
_INFO = 1
_PRIORITIES = {"debug": 7, "info": 6, "notice": 5, "warning": 4, "error": 3, "critical": 2}
"""The priorities of the journal for our levels; audit lines are notices."""
_OWN = "monrest"
_SHORT = {"\n": "\\n", "\r": "\\r"}


@implementer(ILogObserver)
@define(eq=False)
class LineObserver:
    """Writes each event as one line to ``stream`` (a failure's traceback follows in text).

    ``as_json``: one JSON object per line, also after ``configure``. ``journal``: lines begin
    with their priority, as the journal of systemd takes it. Information from other libraries is
    left out unless everything is written, warnings and failures are not.
    """

    stream: TextIO
    as_json: bool = False
    journal: bool = False
    _always_json: bool = field(init=False)
    _least: int = field(default=_INFO, init=False)
    _accesses: bool = field(default=True, init=False)
    _worker: int = field(default=0, init=False)
    _second: int = field(default=-1, init=False)
    _stamp: str = field(default="", init=False)

    def __attrs_post_init__(self) -> None:
        self._always_json = self.as_json

    def configure(self, level: str, *, as_json: bool, access: bool) -> None:
        """Write lines from ``level`` on, and those of requests (level info) only with ``access``.

        Audit lines are always written.
        """
        self._least = _NAMES.index(level)
        self._accesses = access and self._least <= _INFO
        self.as_json = as_json or self._always_json

    def name_worker(self, number: int) -> None:
        """Name in each line the worker that wrote it, since others write into the same stream."""
        self._worker = number

    def __call__(self, event: LogEvent) -> None:
        """Take one event; never raises because of what is in it."""
        seconds, namespace = event.get("log_time", 0.0), event.get("log_namespace", "")
        access, audit = event.get(ACCESS), event.get(AUDIT)
        if access is not None:
            self.access(access, seconds, namespace)
            return
        if audit is not None:
            level, line = "notice", self._audit_line(audit, self._time(seconds))
        else:
            rank = _RANKS.get(event.get("log_level"), _INFO)
            foreign = not namespace.startswith(_OWN)
            if rank < self._least or (rank == self._least == _INFO and foreign):
                return
            level = _NAMES[rank]
            line = self._event_line(event, self._time(seconds), level, namespace)
        self._write(line, level)

    def _write(self, line: str, level: str) -> None:
        if self.journal:
            mark = f"<{_PRIORITIES[level]}>"
            # Also in front of the lines of a traceback.
            line = mark + line[:-1].replace("\n", f"\n{mark}") + line[-1:]
        self.stream.write(line)
        self.stream.flush()

    def access(self, fields: dict[str, Any], seconds: float, namespace: str) -> None:
        """Take the fields of one access line, which was written at ``seconds``."""
        if not self._accesses:
            return
        time = self._time(seconds)
        if self.as_json:
            head = {"time": time, "level": "info", "logger": namespace, "message": "request"}
            line = _json({**head, **fields, **self._which()})
        else:
            line = f"{time} access {text_of(fields)}{self._suffix()}\n"
        self._write(line, "info")

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

    def _audit_line(self, fields: dict[str, Any], time: str) -> str:
        request_id = REQUEST_ID.get()
        fields = {**fields, "request_id": request_id} if request_id else fields
        if self.as_json:
            head = {"time": time, "level": "info", "logger": AUDIT}
            return _json({**head, **fields, **self._which()})
        return f"{time} audit {text_of(fields)}{self._suffix()}\n"

    def _event_line(self, event: LogEvent, time: str, level: str, namespace: str) -> str:
        message, request_id, traceback = formatEvent(event), REQUEST_ID.get(), ""
        if (failure := event.get("log_failure")) is not None:
            text = io.StringIO()
            failure.printTraceback(file=text)
            traceback = text.getvalue()
        if not self.as_json:
            suffix = f" request_id={request_id}" if request_id else ""
            head = f"{time} {level} {namespace}: {_printable(message)}"
            return f"{head}{suffix}{self._suffix()}\n{traceback}"
        document = {"time": time, "level": level, "logger": namespace, "message": message}
        if request_id:
            document["request_id"] = request_id
        if traceback:
            document["traceback"] = traceback
        return _json(document | self._which())


def _json(document: dict[str, Any]) -> str:
    try:
        line = orjson.dumps(document, default=str).decode()
    except TypeError:  # surrogates without their other half
        line = json.dumps(document, default=str)
    if not line.isprintable():
        line = "".join(
            letter if letter.isprintable() else json.dumps(letter)[1:-1] for letter in line
        )
    return f"{line}\n"


def _printable(text: str) -> str:
    """Spell out everything that ends a line somewhere, steers a terminal or has no shape."""
    if text.isprintable():
        return text
    return "".join(letter if letter.isprintable() else _escaped(letter) for letter in text)


def _escaped(text: str) -> str:
    if text in _SHORT:
        return _SHORT[text]
    return f"\\x{ord(text):02x}" if text.isascii() else ascii(text)[1:-1]


def text_of(fields: dict[str, Any]) -> str:
    """Return fields as ``key=value``, texts with spaces, quotes or nothing in them in quotes."""
    return " ".join(f"{key}={_value(value)}" for key, value in fields.items())


def _value(value: Any) -> str:
    if isinstance(value, str):
        text = _printable(value)
        if not text or " " in text or '"' in text or "\\" in text:
            return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
        return text
    if isinstance(value, (list, tuple)):
        return ",".join(_value(item) for item in value) or "-"
    return str(value)
