"""From when to when hosts and services were out (docs/spec/availability.md, "Outages").

Pure like ``availability``: events in the order of time go in, outages of every object come out.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from attrs import define, field, frozen

from monrest.availability.account import Downtimes, Rules, words_of
from monrest.logs.state_events import DowntimeEvent, LogEvent, ObjectKey, StateEvent

_HOST_OUT = frozenset({1, 2})
_SERVICE_OUT = frozenset({2, 3})


@frozen
class Outage:
    """One outage; ``state``, ``type`` and ``output`` are those of its latest line."""

    start: int
    end: int
    state: int
    type: str
    output: str


@define(eq=False)
class _Running:
    start: int
    latest: StateEvent


@define(eq=False)
class _Object:
    """One object while the log goes by; ``seen`` counts the changes of the time period."""

    key: ObjectKey
    line: StateEvent | None = None
    inside: bool = True
    seen: int = 0
    running: _Running | None = None
    outages: list[Outage] = field(factory=list)


@define(eq=False)
class Outages:
    """The outages of ``keys`` while events are taken.

    ``with_downtimes``: also what happens in downtimes of an object or its host is an outage.
    """

    keys: Iterable[ObjectKey]
    rules: Rules
    with_downtimes: bool = True
    _downtimes: Downtimes[_Object] = field(init=False)
    _objects: Mapping[ObjectKey, _Object] = field(init=False)

    def __attrs_post_init__(self) -> None:
        self._objects = {key: _Object(key) for key in self.keys}
        self._downtimes = Downtimes(self._objects)

    def take(self, event: LogEvent) -> None:
        """Follow one event; times must not go back. Starts and stops of cores change nothing.

        Nothing that happens at the end of the report or later counts.
        """
        if event.time >= self.rules.span.end:
            return
        if isinstance(event, StateEvent):
            outage = self._objects.get(event.key)
            if outage is None or (event.passing and not self.rules.soft):
                return
            self._turn(outage, event.time)
            outage.line = event
            self._judge(outage, event.time)
            if outage.running is not None:
                outage.running.latest = event
        elif isinstance(event, DowntimeEvent):
            concerned = self._downtimes.concerned(event)
            for outage in concerned:
                self._turn(outage, event.time)
            if concerned:
                self._downtimes.follow(event)
            for outage in concerned:
                self._judge(outage, event.time)

    def of(self, key: ObjectKey) -> list[Outage]:
        """The outages of one object, the newest first, after the last event."""
        outage = self._objects[key]
        self._turn(outage, self.rules.span.end)
        if outage.running is not None:
            self._close(outage, self.rules.span.end)
        return outage.outages[::-1]

    def _turn(self, outage: _Object, time: int) -> None:
        """Follow the changes of the time period up to a moment."""
        changes = self.rules.period.changes
        while outage.seen < len(changes) and changes[outage.seen][0] <= time:
            moment, outage.inside = changes[outage.seen]
            outage.seen += 1
            self._judge(outage, moment)

    def _judge(self, outage: _Object, time: int) -> None:
        """Open or close an outage if it is one now, or is none any more."""
        line = outage.line
        out = (
            line is not None
            and line.state in (_SERVICE_OUT if outage.key[1] else _HOST_OUT)
            and outage.inside
            and (self.with_downtimes or not self._downtimes.covers(outage.key))
        )
        if not out:
            if outage.running is not None:
                self._close(outage, time)
        elif outage.running is None and line is not None:
            outage.running = _Running(time, line)

    def _close(self, outage: _Object, time: int) -> None:
        running, outage.running = outage.running, None
        assert running is not None
        span = self.rules.span
        start, end = max(running.start, span.start), min(time, span.end)
        if end > start:
            line = running.latest
            kind = "SERVICE" if line.key[1] else "HOST"
            text = f"{kind} {words_of(line.key)[line.state].upper()}"
            if not line.soft:
                text += " (HARD)"
            outage.outages.append(Outage(start, end, line.state, text, line.output))


def row(key: ObjectKey, outage: Outage) -> dict[str, Any]:
    """The fields of an outage; ``service`` only where there is one."""
    values: dict[str, Any] = {
        "class": words_of(key)[outage.state],
        "type": outage.type,
        "start": outage.start,
        "end": outage.end,
        "duration": outage.end - outage.start,
        "host": key[0],
        "plugin_output": outage.output,
    }
    if key[1]:
        values["service"] = key[1]
    return values
