"""Time running in the embedded core: which check is due, how it ends, what expires.

Checks are due by the clock that cannot be set and dated by the wall clock (docs/spec/clocks.md).
A custom variable ``_DEMO`` of a host or service says how it behaves: ``steady`` (always good),
``broken`` (always bad), ``flapping``, ``pending`` (never checked), ``passive`` (results come
though active checks are off); without it the state walks at random.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from datetime import date, datetime
from random import Random
from typing import TypeAlias

from attrs import define, field
from twisted.internet.interfaces import IDelayedCall

from monrest.demo.core import INTERVAL_LENGTH, Core
from monrest.demo.objects import STATE_TYPES, Host, HostOrService, Service
from monrest.demo.states import Result, advance, dependency_fails, expire, process
from monrest.query.sendable import COUNTERS

_TICK = 1.0
_BUDGET = 0.005
"""Seconds of work on due checks before others get their turn."""

_PAUSE = 0.02
"""Seconds between two such shares of work."""


def behaviour(target: HostOrService) -> str:
    """The word of the custom variable ``_DEMO``, empty when there is none."""
    return target.custom_variables.get("DEMO", "")


def is_simulated(target: HostOrService) -> bool:
    """Whether results come by themselves."""
    word = behaviour(target)
    if word == "pending":
        return False
    return bool(target.check_command and target.active_checks_enabled) or word == "passive"


@define(eq=False)
class Simulation:
    """Runs the checks of a core. ``start`` after the history, ``stop`` ends all timers."""

    core: Core
    _due: list[tuple[float, int, HostOrService]] = field(factory=list)
    _sequence: int = 0
    _call: IDelayedCall | None = None
    _more: IDelayedCall | None = None
    _ticks: int = 0
    _day: date = date.min
    """The day of the last look."""
    _begun: set[date] = field(factory=set)
    """Days that have begun; a clock that was put back shows their midnights again."""
    _periods: dict[str, int] = field(factory=dict)
    _last_counts: dict[str, int] = field(factory=lambda: dict.fromkeys(COUNTERS, 0))

    def start(self) -> None:
        core = self.core
        self.replan()
        self._day = datetime.fromtimestamp(core.now(), core.zone).date()
        self._begun.add(self._day)
        self._call = core.clock.callLater(_TICK, self._tick)

    def replan(self) -> None:
        """Plan the checks of all objects anew; what is planned already stays as it is."""
        core = self.core
        now = core.now()
        self._due.clear()
        for target in core.inventory.targets():
            if not target.forced and not is_simulated(target):
                target.due = None
            elif target.due is not None:
                self._put(target)
            elif target.next_check > now:
                self.plan(target, target.next_check)
            else:
                span = max(target.check_interval * INTERVAL_LENGTH, 1)
                self.plan(target, now + core.rng.random() * span)
        self._periods = {name: core.in_period(name) for name in core.inventory.timeperiods}

    def stop(self) -> None:
        for call in (self._call, self._more):
            if call is not None and call.active():
                call.cancel()
        self._call = self._more = None

    def plan(self, target: HostOrService, at: float, *, forced: bool = False) -> None:
        """Plan the next check of a target for a date; an earlier plan is void."""
        clock, wall = self.core.clock, self.core.wall
        target.next_check = int(at)
        target.due = clock.seconds() + (at - wall.now())
        target.forced = forced
        target.check_options = int(forced)
        self._put(target)

    def _put(self, target: HostOrService) -> None:
        assert target.due is not None
        self._sequence += 1
        heapq.heappush(self._due, (target.due, self._sequence, target))

    def _tick(self) -> None:
        core = self.core
        # Planned first, so that a failure, which the reactor logs, costs one second only.
        self._call = core.clock.callLater(_TICK, self._tick)
        self._ticks += 1
        core.last_command_check = core.now()
        for downtime in list(core.downtimes.values()):
            advance(core, downtime)
        expire(core)
        if self._ticks % 5 == 0:
            self._count()
        if self._ticks % 60 == 0:
            self._transitions()
        self._rotate()
        self._checks()

    def _checks(self) -> None:
        """Do what is due, as long as it is quick; the rest follows after a pause."""
        if self._more is not None and self._more.active():
            self._more.cancel()
        self._more = None
        clock = self.core.clock
        started = clock.seconds()
        while self._due and self._due[0][0] <= started:
            due, _, target = heapq.heappop(self._due)
            if due == target.due:
                target.due = None
                self._check(target, due)
            if clock.seconds() - started > _BUDGET:
                self._more = clock.callLater(_PAUSE, self._checks)
                return

    def _check(self, target: HostOrService, due: float) -> None:
        core = self.core
        if self._may_check(target):
            state = self._next_state(target)
            first, lines, perf = output_of(core.rng, target, state)
            for name in (f"{target.kind}_checks", "forks", "neb_callbacks", "livechecks"):
                core.counters[name] += 1
            result = Result(
                state=state,
                output=first,
                long_output=lines,
                perf_data=perf if core.switches.process_performance_data else "",
                execution_time=abs(core.rng.gauss(0.4, 0.3)) + 0.004,
                latency=max(core.clock.seconds() - due, 0.0) + core.rng.random() * 0.2,
                passive=behaviour(target) == "passive" and not target.active_checks_enabled,
                started=core.wall.now(),
            )
            process(core, target, result)
        retrying = target.state and not target.state_type
        units = target.retry_interval if retrying else target.check_interval
        if units > 0:
            self.plan(target, core.wall.now() + units * INTERVAL_LENGTH)

    def _may_check(self, target: HostOrService) -> bool:
        if target.forced:
            return True
        core = self.core
        if not getattr(core.switches, f"execute_{target.kind}_checks"):
            return False
        if not target.active_checks_enabled and behaviour(target) != "passive":
            return False
        if not core.in_period(target.check_period):
            return False
        return not any(dependency_fails(core, link) for link in target.execution_dependencies)

    def _next_state(self, target: HostOrService) -> int:
        rng, word, now = self.core.rng, behaviour(target), target.state
        host = isinstance(target, Host)
        if word == "steady":
            return 0
        if word == "broken":
            return now or (1 if host else 2)
        if word == "flapping":
            return 0 if now and rng.random() < 0.6 else (1 if host else rng.choice((1, 2)))
        if not host and target.host.state:
            return 2
        if now == 0:
            if rng.random() > (0.002 if host else 0.01):
                return 0
            return 1 if host else rng.choice((1, 1, 1, 2, 2, 3))
        if rng.random() < 0.12:
            return 0
        return now if host or rng.random() < 0.9 else rng.choice((1, 2))

    def _count(self) -> None:
        core = self.core
        for name, number in core.counters.items():
            fresh = (number - self._last_counts[name]) / 5
            core.rates[name] = core.rates[name] * 0.75 + fresh * 0.25
            self._last_counts[name] = number

    def _transitions(self) -> None:
        core = self.core
        for name, before in self._periods.items():
            inside = core.in_period(name)
            if inside != before:
                self._periods[name] = inside
                text = f"TIMEPERIOD TRANSITION: {name};{before};{inside}"
                core.note(text)

    def _rotate(self) -> None:
        core = self.core
        now = core.now()
        day = datetime.fromtimestamp(now, core.zone).date()
        earlier, self._day = self._day, day
        if day > earlier and day not in self._begun:
            self._begun.add(day)
            core.last_log_rotation = now
            core.log.rotate(now)
            for target in core.inventory.targets():
                state = f"{target.state_name()};{STATE_TYPES[target.state_type]}"
                core.log.past(
                    now,
                    f"CURRENT {target.kind.upper()} STATE: {target.label};{state};"
                    f"{target.current_attempt};{target.plugin_output}",
                )


Output: TypeAlias = tuple[str, str, str]
"""First line, further lines (newlines as backslash and n), performance data."""


def _level(rng: Random, state: int, warning: float, critical: float, top: float) -> float:
    """A number that a plugin with these thresholds would report in this state."""
    spans = ((0.1 * warning, 0.9 * warning), (warning, critical), (critical, top), (0.0, warning))
    low, high = spans[state]
    return rng.uniform(low, high)


def _ping(rng: Random, state: int, _target: HostOrService) -> Output:
    if state == 3:
        return "UNKNOWN - could not resolve the name", "", ""
    rta = _level(rng, state, 100, 500, 900)
    loss = (0, rng.choice((0, 20)), rng.choice((60, 100)))[state]
    word = Service.states[state]
    text = f"PING {word} - Packet loss = {loss}%, RTA = {rta:.2f} ms"
    return text, "", f"rta={rta:.6f}ms;100.000000;500.000000;0.000000 pl={loss}%;20;60;0"


def _disk(rng: Random, state: int, target: HostOrService) -> Output:
    mount = target.description.partition(" ")[2] or "/"
    size = 10_000 + sum(map(ord, target.description)) * 50
    used = _level(rng, state, 80, 90, 99.9)
    free = size * (100 - used) / 100
    word = Service.states[state]
    perf = f"{mount}={size - free:.0f}MB;{size * 0.8:.0f};{size * 0.9:.0f};0;{size}"
    text = f"DISK {word} - free space: {mount} {free:.0f} MB ({100 - used:.0f}% inode=93%):"
    return text, "", perf


def _load(rng: Random, state: int, _target: HostOrService) -> Output:
    values = [_level(rng, state, limit, limit * 2, limit * 4) for limit in (5.0, 4.0, 3.0)]
    limits = ("5.000;10.000;0;", "4.000;8.000;0;", "3.000;6.000;0;")
    names = ("load1", "load5", "load15")
    perf = " ".join(
        f"{name}={value:.3f};{limit}"
        for name, value, limit in zip(names, values, limits, strict=True)
    )
    numbers = ", ".join(f"{value:.2f}" for value in values)
    return f"{Service.states[state]} - load average: {numbers}", "", perf


def _memory(rng: Random, state: int, _target: HostOrService) -> Output:
    used = _level(rng, state, 80, 95, 99.9)
    perf = f"mem_used={used:.1f}%;80;95;0;100 swap_used={rng.uniform(0, 20):.1f}%;;;0;100"
    lines = "cached: 1893 MB\\nbuffers: 211 MB\\nshared: 96 MB"
    return f"MEMORY {Service.states[state]} - {used:.1f}% used", lines, perf


def _http(rng: Random, state: int, _target: HostOrService) -> Output:
    if state == 3:
        return "HTTP UNKNOWN - Name or service not known", "", ""
    seconds = _level(rng, state, 1, 3, 10)
    answer = ("200 OK", "200 OK", "503 Service Unavailable")[state]
    size = rng.randrange(2_000, 60_000)
    word = Service.states[state]
    text = f"HTTP {word}: HTTP/1.1 {answer} - {size} bytes in {seconds:.3f} second response time"
    return text, "", f"time={seconds:.6f}s;1.000000;3.000000;0.000000 size={size}B;;;0"


def _users(rng: Random, state: int, _target: HostOrService) -> Output:
    number = int(_level(rng, state, 5, 10, 25))
    text = f"USERS {Service.states[state]} - {number} users currently logged in"
    return text, "", f"users={number};5;10;0"


def _processes(rng: Random, state: int, _target: HostOrService) -> Output:
    number = int(_level(rng, state, 250, 400, 900))
    text = f"PROCS {Service.states[state]}: {number} processes"
    return text, "", f"procs={number};250;400;0;"


def _traffic(rng: Random, state: int, _target: HostOrService) -> Output:
    received, sent = (_level(rng, state, 80e6, 95e6, 100e6) for _ in range(2))
    perf = (
        f"'in traffic'={received:.0f}B;80000000;95000000;0;100000000 "
        f"'out traffic'={sent:.0f}B;80000000;95000000;0;100000000"
    )
    word = Service.states[state]
    text = f"INTERFACE {word} - in {received / 1e6:.1f} MB/s, out {sent / 1e6:.1f} MB/s"
    return text, "", perf


def _temperature(rng: Random, state: int, _target: HostOrService) -> Output:
    degrees = _level(rng, state, 28, 35, 48)
    return (
        f"TEMPERATURE {Service.states[state]} - {degrees:.1f} °C",
        "",
        f"temperature={degrees:.1f};28;35",
    )


def _backup(rng: Random, state: int, _target: HostOrService) -> Output:
    hours = _level(rng, state, 26, 50, 200)
    text = f"BACKUP {Service.states[state]} - last backup {hours:.0f} hours ago"
    return text, "", f"age={hours * 3600:.0f}s;93600;180000;0"


def _generic(rng: Random, state: int, target: HostOrService) -> Output:
    word = Service.states[state]
    value = _level(rng, state, 70, 90, 100)
    return f"{word} - {target.description} at {value:.1f}%", "", f"value={value:.1f}%;70;90;0;100"


_PLUGINS: dict[str, Callable[[Random, int, HostOrService], Output]] = {
    "ping": _ping,
    "disk": _disk,
    "load": _load,
    "mem": _memory,
    "http": _http,
    "user": _users,
    "proc": _processes,
    "traffic": _traffic,
    "interface": _traffic,
    "temp": _temperature,
    "backup": _backup,
}


def output_of(rng: Random, target: HostOrService, state: int) -> Output:
    """Invent the output of a check of a target that ends in a state."""
    if isinstance(target, Service):
        command = target.check_command.split("!")[0]
        plugin = next((plugin for word, plugin in _PLUGINS.items() if word in command), _generic)
        return plugin(rng, state, target)
    if state:
        lines = "" if state == 1 else "no way through the hosts before it"
        perf = "rta=0.000ms;3000.000;5000.000;0; pl=100%;80;100;;"
        return f"CRITICAL - {target.state_name(state)}: no answer, lost 100%", lines, perf
    rta = rng.uniform(0.02, 40)
    perf = f"rta={rta:.3f}ms;3000.000;5000.000;0; pl=0%;80;100;;"
    return f"OK - rta {rta:.3f}ms, lost 0%", "", perf
