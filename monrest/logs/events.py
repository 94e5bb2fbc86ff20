"""Log lines as events of hosts and services (availability.md, sections 3.1, 3.6 and 7.3).

Only the text of a line is read, because the parsed columns differ from core to core. What a line
says is a claim: anybody who may send the LOG command can write one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Set
from typing import TypeAlias

from attrs import define, field, frozen

Key: TypeAlias = tuple[str, str]
"""A host (with an empty second part) or a service: name of the host, description."""

Line: TypeAlias = tuple[int, str]
"""Unix time and the whole text of a log line."""

SOFT = "SOFT"

_STATES = {
    "UP": 0, "OK": 0, "RECOVERY": 0, "PENDING": 0,
    "DOWN": 1, "WARNING": 1,
    "UNREACHABLE": 2, "CRITICAL": 2,
    "UNKNOWN": 3, "(unknown)": 3,
}  # fmt: skip
_HOST_STATES = 3

_HOST_LINES = frozenset({"HOST ALERT", "INITIAL HOST STATE", "CURRENT HOST STATE"})
_SERVICE_LINES = frozenset({"SERVICE ALERT", "INITIAL SERVICE STATE", "CURRENT SERVICE STATE"})
_HOST_DOWNTIME = "HOST DOWNTIME ALERT"
_SERVICE_DOWNTIME = "SERVICE DOWNTIME ALERT"

_STARTS = (" starting...", " restarting...")
_STOPS = ("shutting down...", "Bailing out")


@define(eq=False)
class StateEvent:
    """A host or service has (again) this state: 0 to 2 for hosts, 0 to 3 for services."""

    time: int
    key: Key
    state: int
    soft: bool
    output: str


@define(eq=False)
class DowntimeEvent:
    """A downtime of a host or service started or ended."""

    time: int
    key: Key
    started: bool


@define(eq=False)
class ProgramEvent:
    """The core started or stopped."""

    time: int
    running: bool


Event: TypeAlias = StateEvent | DowntimeEvent | ProgramEvent


@frozen(kw_only=True)
class Watched:
    """Whose lines matter: the ``keys``, and the downtimes of the hosts of all of them.

    ``program``: starts and stops of the core matter as well.
    """

    keys: Set[Key]
    program: bool = False
    hosts: Set[str] = field(init=False)
    _split: Mapping[str, tuple[str, ...]] = field(init=False)

    @hosts.default
    def _hosts(self) -> Set[str]:
        return frozenset(host for host, _ in self.keys)

    @_split.default
    def _with_semicolons(self) -> Mapping[str, tuple[str, ...]]:
        # Icinga 2 allows what separates the fields of a line in the names of services.
        found: dict[str, tuple[str, ...]] = {}
        for host, service in self.keys:
            if ";" in service:
                found[host] = (*found.get(host, ()), service)
        return found

    def event(self, time: int, message: str) -> Event | None:
        """The event of one line, None for a line that does not matter."""
        text = message.partition("] ")[2]
        kind, colon, rest = text.partition(": ")
        if not colon:
            return self._program(time, text) if self.program else None
        if kind in _HOST_LINES:
            return self._host_state(time, rest)
        if kind in _SERVICE_LINES:
            return self._service_state(time, rest)
        if kind == _HOST_DOWNTIME:
            host, _, more = rest.partition(";")
            if host in self.hosts:
                return DowntimeEvent(time, (host, ""), more.partition(";")[0] == "STARTED")
        elif kind == _SERVICE_DOWNTIME:
            key, more = self._service(rest)
            if key is not None:
                return DowntimeEvent(time, key, more.partition(";")[0] == "STARTED")
        return None

    def events(self, lines: Iterable[Line]) -> Iterator[Event]:
        """The events of lines in their order."""
        for time, message in lines:
            found = self.event(time, message)
            if found is not None:
                yield found

    def _host_state(self, time: int, rest: str) -> StateEvent | None:
        host, _, more = rest.partition(";")
        key = (host, "")
        if key not in self.keys:
            return None
        event = _state(time, key, more)
        # No field of a host could take the time of such a state.
        return event if event is not None and event.state < _HOST_STATES else None

    def _service_state(self, time: int, rest: str) -> StateEvent | None:
        key, more = self._service(rest)
        return None if key is None else _state(time, key, more)

    def _service(self, rest: str) -> tuple[Key | None, str]:
        host, _, more = rest.partition(";")
        for service in self._split.get(host, ()):
            if more.startswith(f"{service};"):
                return (host, service), more[len(service) + 1 :]
        service, _, more = more.partition(";")
        return ((host, service) if service and (host, service) in self.keys else None), more

    def _program(self, time: int, text: str) -> ProgramEvent | None:
        if any(word in text for word in _STARTS):
            return ProgramEvent(time, running=True)
        if any(word in text for word in _STOPS):
            return ProgramEvent(time, running=False)
        return None


def _state(time: int, key: Key, text: str) -> StateEvent | None:
    """``STATE;TYPE;attempt;output``; the output may hold semicolons of its own."""
    word, _, more = text.partition(";")
    state = _STATES.get(word)
    if state is None:
        return None
    kind, _, more = more.partition(";")
    return StateEvent(time, key, state, kind == SOFT, more.partition(";")[2])


_TRANSITION = "TIMEPERIOD TRANSITION"
_ROUND = 120
_EARLY = 30


def transition(time: int, message: str, period: str) -> tuple[int, bool] | None:
    """When ``period`` began (true) or ended by this line; None if it says nothing about it.

    Cores write these lines up to a minute late, so their times are rounded (section 3.7).
    """
    kind, _, rest = message.partition("] ")[2].partition(": ")
    if kind != _TRANSITION or not rest.startswith(f"{period};"):
        return None
    after = rest[len(period) + 1 :].split(";")
    if len(after) != 2:
        return None
    return (time + _EARLY) // _ROUND * _ROUND, after[1] == "1"
