"""Log lines as events of hosts and services (docs/spec/availability.md, "Which states count").

Only the text of a line is read, because the parsed columns differ from core to core. What a line
says is a claim: any user who may send the LOG command can write one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Set
from typing import TypeAlias

from attrs import define, field, frozen

ObjectKey: TypeAlias = tuple[str, str]
"""A host (with an empty second part) or a service: name of the host, description."""

TimedLine: TypeAlias = tuple[int, str]
"""Unix time and the whole text of a log line."""

SOFT = "SOFT"

_STATES = {
    "UP": 0, "OK": 0, "RECOVERY": 0, "PENDING": 0,
    "DOWN": 1, "WARNING": 1,
    "UNREACHABLE": 2, "CRITICAL": 2,
    "UNKNOWN": 3, "(unknown)": 3,
}  # fmt: skip
# No field of a host could take the time of another one.
_HOST_STATES = {word: state for word, state in _STATES.items() if state < 3}

_HOST_LINES = frozenset({"HOST ALERT", "INITIAL HOST STATE", "CURRENT HOST STATE"})
_SERVICE_LINES = frozenset({"SERVICE ALERT", "INITIAL SERVICE STATE", "CURRENT SERVICE STATE"})
_HOST_DOWNTIME = "HOST DOWNTIME ALERT"
_DOWNTIMES = frozenset({_HOST_DOWNTIME, "SERVICE DOWNTIME ALERT"})

_STARTS = (" starting...", " restarting...")
_STOPS = ("shutting down...", "Bailing out")


@define(eq=False)
class StateEvent:
    """A host or service has (again) this state: 0 to 2 for hosts, 0 to 3 for services."""

    time: int
    key: ObjectKey
    state: int
    soft: bool
    output: str

    @property
    def passing(self) -> bool:
        """Whether only reports that include soft states count it; a soft recovery always counts."""
        return self.soft and self.state != 0


@define(eq=False)
class DowntimeEvent:
    """A downtime of a host or service started or ended."""

    time: int
    key: ObjectKey
    started: bool


@define(eq=False)
class ProgramEvent:
    """The core started or stopped."""

    time: int
    running: bool


LogEvent: TypeAlias = StateEvent | DowntimeEvent | ProgramEvent


@frozen(kw_only=True)
class Watched:
    """Whose lines matter: the ``keys``, and the downtimes of the hosts of all of them.

    ``program``: starts and stops of the core matter as well.
    """

    keys: Set[ObjectKey]
    program: bool = False
    hosts: Set[str] = field(init=False)
    _hosts: Mapping[str, ObjectKey] = field(init=False)
    _services: Mapping[tuple[str, ...], ObjectKey] = field(init=False)
    _split: Mapping[str, tuple[str, ...]] = field(init=False)

    @hosts.default
    def _all_hosts(self) -> Set[str]:
        return frozenset(host for host, _ in self.keys)

    @_hosts.default
    def _host_keys(self) -> Mapping[str, ObjectKey]:
        return {key[0]: key for key in self.keys if not key[1]}

    @_services.default
    def _service_keys(self) -> Mapping[tuple[str, ...], ObjectKey]:
        return {key: key for key in self.keys if key[1]}

    @_split.default
    def _with_semicolons(self) -> Mapping[str, tuple[str, ...]]:
        # Icinga 2 allows what separates the fields of a line in the names of services.
        names: dict[str, tuple[str, ...]] = {}
        for host, service in self.keys:
            if ";" in service:
                names[host] = (*names.get(host, ()), service)
        return names

    def event(self, time: int, message: str) -> LogEvent | None:
        """The event of one line, None for a line that does not matter.

        One function for the frequent kinds: reports read millions of lines.
        """
        kind, colon, rest = message.partition("] ")[2].partition(": ")
        if kind in _HOST_LINES:
            # The output may hold semicolons of its own.
            parts = rest.split(";", 4)
            key = self._hosts.get(parts[0])
            states = _HOST_STATES
        elif kind in _SERVICE_LINES:
            parts = rest.split(";", 5)
            if parts[0] in self._split:
                parts = self._joined(parts[0], rest)
            key = self._services.get(tuple(parts[:2]))
            states = _STATES
            del parts[0]
        elif kind in _DOWNTIMES:
            return self._downtime(time, kind, rest)
        else:
            return self._program(time, kind) if self.program and not colon else None
        if key is None:
            return None
        try:
            _, word, hardness, _, output = parts
        except ValueError:  # something is cut off
            _, word, hardness, _, output = [*parts, "", "", "", ""][:5]
        state = states.get(word)
        return None if state is None else StateEvent(time, key, state, hardness == SOFT, output)

    def events(self, lines: Iterable[TimedLine]) -> Iterator[LogEvent]:
        for time, message in lines:
            event = self.event(time, message)
            if event is not None:
                yield event

    def _joined(self, host: str, rest: str) -> list[str]:
        """The fields of a service's line, whose name may hold what separates them."""
        more = rest[len(host) + 1 :]
        for service in self._split[host]:
            if more.startswith(f"{service};"):
                return [host, service, *more[len(service) + 1 :].split(";", 3)]
        return rest.split(";", 5)

    def _downtime(self, time: int, kind: str, rest: str) -> DowntimeEvent | None:
        if kind == _HOST_DOWNTIME:
            host, word, *_ = *rest.split(";", 2), ""
            return (
                DowntimeEvent(time, (host, ""), word == "STARTED") if host in self.hosts else None
            )
        host = rest.partition(";")[0]
        parts = self._joined(host, rest) if host in self._split else rest.split(";", 3)
        key = self._services.get(tuple(parts[:2]))
        if key is None:
            return None
        return DowntimeEvent(time, key, parts[2:3] == ["STARTED"])

    def _program(self, time: int, text: str) -> ProgramEvent | None:
        if any(word in text for word in _STARTS):
            return ProgramEvent(time, running=True)
        if any(word in text for word in _STOPS):
            return ProgramEvent(time, running=False)
        return None


_TRANSITION = "TIMEPERIOD TRANSITION"
_ROUND = 120
_EARLY = 30


def transition(time: int, message: str, period: str) -> tuple[int, bool] | None:
    """When ``period`` began (true) or ended by this line; None if it says nothing about it.

    Cores write these lines up to a minute late, so their times are rounded.
    """
    kind, _, rest = message.partition("] ")[2].partition(": ")
    if kind != _TRANSITION or not rest.startswith(f"{period};"):
        return None
    after = rest[len(period) + 1 :].split(";")
    if len(after) != 2:
        return None
    return (time + _EARLY) // _ROUND * _ROUND, after[1] == "1"
