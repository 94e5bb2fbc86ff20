"""How long hosts and services were in which state (docs/spec/availability.md).

Pure: events in the order of time go in, seconds for every object come out. Nothing is kept of an
event, so the memory is that of the objects, however long the log is.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import inf
from typing import Generic, TypeVar

from attrs import Factory, define, field, frozen

from monrest.availability.periods import Span
from monrest.logs.state_events import DowntimeEvent, LogEvent, ObjectKey, StateEvent


@define(eq=False)
class DayParts:
    """Seconds by bucket, and those of them in downtime, part by part.

    ``bounds`` are the moments where a part begins, in order; ``buckets`` is how many states there
    are. Times come only when something changes, so that a part more costs next to no time; it
    costs 16 bytes a bucket.
    """

    bounds: Sequence[int]
    buckets: int
    _seconds: array[int] = field(init=False)
    _scheduled: array[int] = field(init=False)

    def __attrs_post_init__(self) -> None:
        empty = bytes(8 * self.buckets * len(self.bounds))
        self._seconds, self._scheduled = array("q", empty), array("q", empty)

    def __iter__(self) -> Iterator[tuple[Sequence[int], Sequence[int]]]:
        """Seconds and seconds in downtime of each part, by bucket."""
        for at in range(0, len(self._seconds), self.buckets):
            end = at + self.buckets
            yield self._seconds[at:end], self._scheduled[at:end]

    def add(self, bucket: int, since: int, until: int, *, planned: bool) -> None:
        """Count a time that does not begin before the first part; ``planned``: in downtime."""
        bounds = self.bounds
        at = bisect_right(bounds, since) - 1
        while since < until:
            end = min(bounds[at + 1], until) if at + 1 < len(bounds) else until
            self._seconds[at * self.buckets + bucket] += end - since
            if planned:
                self._scheduled[at * self.buckets + bucket] += end - since
            since, at = end, at + 1


T = TypeVar("T")


@define(eq=False)
class Downtimes(Generic[T]):
    """Which objects are in downtime; ``objects`` are what a report knows of each, by key."""

    objects: Mapping[ObjectKey, T]
    _of_host: dict[str, list[T]] = field(init=False, factory=dict)
    _present: set[ObjectKey] = field(init=False, factory=set)

    def __attrs_post_init__(self) -> None:
        for key, known in self.objects.items():
            self._of_host.setdefault(key[0], []).append(known)

    def covers(self, key: ObjectKey) -> bool:
        """Whether an object is in a downtime of its own or of its host."""
        present = self._present
        return bool(present) and (key in present or (key[0], "") in present)

    def concerned(self, event: DowntimeEvent) -> Sequence[T]:
        """Return the objects whose downtime it is: that of a host is one of its services too."""
        host, service = event.key
        if not service:
            return self._of_host.get(host, ())
        return (self.objects[event.key],) if event.key in self.objects else ()

    def follow(self, event: DowntimeEvent) -> None:
        if event.started:
            self._present.add(event.key)
        else:
            self._present.discard(event.key)


NODATA, NOTRUNNING, OUTSIDE = 4, 5, 6
"""Pseudo-states of an object beside its states 0 to 3."""
_BUCKETS = 7

HOST_WORDS = ("up", "down", "unreachable")
SERVICE_WORDS = ("ok", "warning", "critical", "unknown")
_INDETERMINATE = {
    "nodata": NODATA,
    "notrunning": NOTRUNNING,
    "outside_timeperiod": OUTSIDE,
}


@frozen(kw_only=True)
class Period:
    """When a time period holds: ``changes`` (moment, whether it holds from then on) in order.

    Before the first change it holds. ``logged``: the changes come from the log, so that the core
    must have been running when it wrote them.
    """

    changes: Sequence[tuple[int, bool]] = ()
    logged: bool = True


ALWAYS = Period()


@frozen(kw_only=True)
class Rules:
    """The rules of a report.

    ``soft``: soft states as well. ``not_running``: the time when the core was not running is a
    state of its own. ``initial``: states to assume for objects of which no line is known.
    """

    span: Span
    soft: bool = False
    not_running: bool = False
    period: Period = ALWAYS
    initial: Mapping[ObjectKey, int] = Factory(dict)


@define(eq=False)
class _Object:
    """One object while the log goes by; ``seen`` counts the changes of everything it knows."""

    key: ObjectKey
    assumed: int
    state: int = field(init=False)
    last_known: int = field(init=False)
    since: int = 0
    inside: bool = True
    seen: int = 0
    parts: DayParts | None = None
    seconds: list[int] = field(factory=lambda: [0] * _BUCKETS)
    scheduled: list[int] = field(factory=lambda: [0] * _BUCKETS)

    def __attrs_post_init__(self) -> None:
        self.state = self.last_known = self.assumed


@frozen
class Times:
    """Seconds of one object by state, and those of them in downtime."""

    seconds: Sequence[int]
    scheduled: Sequence[int]


@define(eq=False)
class Availability:
    """The accounts of ``keys`` while events are taken; each is asked for at the end.

    ``bounds`` are the moments where a new part of the report begins, in order, its start first;
    none where ``parts`` are not asked for.
    """

    keys: Iterable[ObjectKey]
    rules: Rules
    bounds: Sequence[int] = ()
    _downtimes: Downtimes[_Object] = field(init=False)
    _objects: Mapping[ObjectKey, _Object] = field(init=False)
    _changes: list[tuple[int, bool | None, bool]] = field(init=False, factory=list)
    _coming: int = field(init=False, default=0)
    _next: float = field(init=False)
    _soft: bool = field(init=False)
    _start: int = field(init=False)
    _end: int = field(init=False)

    def __attrs_post_init__(self) -> None:
        self._start, self._end = self.rules.span.start, self.rules.span.end
        self._soft, self._next = self.rules.soft, -inf if self.rules.period.changes else inf
        initial = self.rules.initial
        self._objects = {
            key: _Object(
                key,
                initial.get(key, NODATA),
                parts=DayParts(self.bounds, _BUCKETS) if self.bounds else None,
            )
            for key in self.keys
        }
        self._downtimes = Downtimes(self._objects)

    def take(self, event: LogEvent) -> None:
        """Count one event; times must not go back."""
        time = event.time
        if time >= self._next:
            self._turn(time)
        if isinstance(event, StateEvent):
            account = self._objects.get(event.key)
            if account is None or (not self._soft and event.passing):
                return
            state = event.state
            if account.seen < len(self._changes):
                self._account(account, time)
            elif account.state == state:
                return  # nothing changes, and the time is accounted for when something does
            else:
                self._add(account, time)
            account.state = account.last_known = state
        elif isinstance(event, DowntimeEvent):
            concerned = self._downtimes.concerned(event)
            for account in concerned:
                self._account(account, time)
            if concerned:
                self._downtimes.follow(event)
        elif self.rules.not_running:
            self._changes.append((time, None, event.running))

    def times(self, key: ObjectKey) -> Times:
        """The result of one object, after the last event."""
        self._turn(self.rules.span.end)
        account = self._objects[key]
        self._account(account, self.rules.span.end)
        return Times(account.seconds, account.scheduled)

    def parts(self, key: ObjectKey) -> DayParts:
        """The result of one object in each part, after ``times``."""
        return self._objects[key].parts or DayParts((), _BUCKETS)

    def _turn(self, time: int) -> None:
        """Take over the changes of the time period up to a moment."""
        changes = self.rules.period.changes
        while self._coming < len(changes) and changes[self._coming][0] <= time:
            moment, inside = changes[self._coming]
            self._changes.append((moment, inside, self.rules.period.logged))
            self._coming += 1
        self._next = changes[self._coming][0] if self._coming < len(changes) else inf

    def _account(self, account: _Object, time: int) -> None:
        """Account for the time up to a moment, with all that concerned every object meanwhile."""
        while account.seen < len(self._changes):
            moment, inside, running = self._changes[account.seen]
            account.seen += 1
            self._add(account, moment)
            if inside is not None:
                account.inside = inside
                if running:
                    account.state = account.last_known
            else:
                account.state = account.last_known if running else NOTRUNNING
        self._add(account, time)

    def _add(self, account: _Object, time: int) -> None:
        since, account.since = account.since, time
        if since < self._start:
            since = self._start
        if time > self._end:
            time = self._end
        seconds = time - since
        if seconds <= 0:
            return
        state, planned = OUTSIDE, False
        if account.inside:
            state = account.state
            planned = state != NOTRUNNING and self._downtimes.covers(account.key)
        account.seconds[state] += seconds
        if planned:
            account.scheduled[state] += seconds
        if account.parts is not None:
            account.parts.add(state, since, time, planned=planned)


def words_of(key: ObjectKey) -> tuple[str, ...]:
    """The names of the states of a host or service by number."""
    return SERVICE_WORDS if key[1] else HOST_WORDS


def row(key: ObjectKey, times: Times, span: Span) -> dict[str, int | float | None]:
    """The fields of a row: seconds, and their percentage of the whole report.

    Percentages of states are None where no state is known, though one could be.
    """
    unknown = times.seconds[NODATA] and not any(
        times.seconds[state] for state, _ in enumerate(words_of(key))
    )
    values: dict[str, int] = {}
    for state, word in enumerate(words_of(key)):
        values[f"time_{word}"] = times.seconds[state]
        values[f"scheduled_time_{word}"] = times.scheduled[state]
    for word, state in _INDETERMINATE.items():
        values[f"time_indeterminate_{word}"] = times.seconds[state]
    values["scheduled_time_indeterminate"] = times.scheduled[NODATA]
    record: dict[str, int | float | None] = {}
    for name, value in values.items():
        record[name] = value
        percent = 100 * value / span.seconds if span.seconds else 0.0
        record[f"{name}_percent"] = None if unknown and "indeterminate" not in name else percent
    return record
