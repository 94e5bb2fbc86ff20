"""Time running in the embedded core: which check is due, how it ends, what expires.

A custom variable ``_DEMO`` of a host or service says how it behaves: ``steady`` (always good),
``broken`` (always bad), ``flapping``, ``pending`` (never checked), ``passive`` (results come
though active checks are off); without it the state walks at random.
"""

from __future__ import annotations

import heapq
from datetime import datetime
from typing import Any

from attrs import define, field
from twisted.internet.interfaces import IDelayedCall

from monrest.demo.checks import Result, process
from monrest.demo.core import INTERVAL_LENGTH, Core
from monrest.demo.downtimes import advance_all, expire
from monrest.demo.notifications import dependency_fails
from monrest.demo.objects import STATE_TYPES, Host, Target, label, state_name
from monrest.demo.plugins import output_of
from monrest.query.sendable import COUNTERS

_TICK = 1.0
_BUDGET = 0.005
"""Seconds of work on due checks before others get their turn."""

_PAUSE = 0.02
"""Seconds between two such shares of work."""


def behaviour(target: Target) -> str:
    """The word of the custom variable ``_DEMO``, empty when there is none."""
    return target.custom_variables.get("DEMO", "")


def is_simulated(target: Target) -> bool:
    """Whether results come by themselves."""
    word = behaviour(target)
    if word == "pending":
        return False
    return bool(target.check_command and target.active_checks_enabled) or word == "passive"


@define(eq=False)
class Simulation:
    """Runs the checks of a core. ``start`` after the history, ``stop`` ends all timers."""

    core: Core
    _due: list[tuple[float, int, Target, int]] = field(factory=list)
    _sequence: int = 0
    _call: IDelayedCall | None = None
    _more: IDelayedCall | None = None
    _ticks: int = 0
    _day: Any = None
    _periods: dict[str, int] = field(factory=dict)
    _last_counts: dict[str, int] = field(factory=lambda: dict.fromkeys(COUNTERS, 0))

    def start(self) -> None:
        """Plan the first checks and let time run."""
        core = self.core
        self.replan()
        self._day = datetime.fromtimestamp(core.now(), core.zone).date()
        self._call = core.clock.callLater(_TICK, self._tick)

    def replan(self) -> None:
        """Plan the checks of all objects anew, those that have a time in the future for then."""
        core = self.core
        now = core.now()
        for target in core.inventory.targets():
            if target.forced:
                self.plan(target, max(target.next_check, now), forced=True)
            elif is_simulated(target):
                span = max(target.check_interval * INTERVAL_LENGTH, 1)
                at = (
                    target.next_check if target.next_check > now else now + core.rng.random() * span
                )
                self.plan(target, at)
        self._periods = {name: core.in_period(name) for name in core.inventory.timeperiods}

    def stop(self) -> None:
        """Cancel what is planned."""
        for call in (self._call, self._more):
            if call is not None and call.active():
                call.cancel()
        self._call = self._more = None

    def plan(self, target: Target, at: float, *, forced: bool = False) -> None:
        """Plan the next check of a target; an earlier plan is void."""
        target.next_check = int(at)
        target.check_serial += 1
        target.forced = forced
        target.check_options = int(forced)
        self._sequence += 1
        heapq.heappush(self._due, (at, self._sequence, target, target.check_serial))

    # ------------------------------------------------------------------ every second

    def _tick(self) -> None:
        core = self.core
        # Planned first, so that a failure, which the reactor logs, costs one second only.
        self._call = core.clock.callLater(_TICK, self._tick)
        self._ticks += 1
        core.last_command_check = core.now()
        advance_all(core)
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
        clock, now = self.core.clock, self.core.wall.now()
        started = clock.seconds()
        while self._due and self._due[0][0] <= now:
            at, _, target, serial = heapq.heappop(self._due)
            if serial == target.check_serial:
                self._check(target, at)
            if clock.seconds() - started > _BUDGET:
                self._more = clock.callLater(_PAUSE, self._checks)
                return

    def _check(self, target: Target, at: float) -> None:
        core = self.core
        if self._may_check(target):
            now = core.wall.now()
            state = self._next_state(target)
            first, lines, perf = output_of(core.rng, target, state)
            host = isinstance(target, Host)
            core.counters["host_checks" if host else "service_checks"] += 1
            for name in ("forks", "neb_callbacks", "livechecks"):
                core.counters[name] += 1
            result = Result(
                state=state,
                output=first,
                long_output=lines,
                perf_data=perf if core.switches.process_performance_data else "",
                execution_time=abs(core.rng.gauss(0.4, 0.3)) + 0.004,
                latency=max(now - at, 0.0) + core.rng.random() * 0.2,
                passive=behaviour(target) == "passive" and not target.active_checks_enabled,
                started=now,
            )
            process(core, target, result)
        retrying = target.state and not target.state_type
        units = target.retry_interval if retrying else target.check_interval
        if units > 0:
            self.plan(target, core.wall.now() + units * INTERVAL_LENGTH)

    def _may_check(self, target: Target) -> bool:
        if target.forced:
            return True
        core = self.core
        host = isinstance(target, Host)
        switches = core.switches
        if not (switches.execute_host_checks if host else switches.execute_service_checks):
            return False
        if not target.active_checks_enabled and behaviour(target) != "passive":
            return False
        if not core.in_period(target.check_period):
            return False
        return not any(dependency_fails(core, link) for link in target.execution_dependencies)

    def _next_state(self, target: Target) -> int:
        """The next step of the random walk."""
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

    # ------------------------------------------------------------------ now and then

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
                core.log.write(core.wall.now(), text)

    def _rotate(self) -> None:
        core = self.core
        now = core.now()
        day = datetime.fromtimestamp(now, core.zone).date()
        if day != self._day:
            self._day = day
            core.last_log_rotation = now
            core.log.rotate(now)
            for target in core.inventory.targets():
                core.log.past(now, current_line(target))


def current_line(target: Target) -> str:
    """The line that repeats a state after the log was rotated."""
    kind = "HOST" if isinstance(target, Host) else "SERVICE"
    return (
        f"CURRENT {kind} STATE: {label(target)};{state_name(target)};"
        f"{STATE_TYPES[target.state_type]};{target.current_attempt};{target.plugin_output}"
    )
