"""Whether a site lives: a circuit breaker over its queries and a probe in the background.

A site is ``pending`` until the first probe is over; queries wait for that one. It is ``down`` when
it is proved dead: queries then fail at once with the last error, and the probe tries again with
growing pauses until the site is back. docs/spec/sites.md says what counts as proof:

- no connection can be made for two seconds; until then the site is away, as in a reload, and
  queries wait;
- it hangs: a query waits for long and a probe beside it has no answer within a second either;
- a query timed out and there was no sign of life since it was sent.

Everything else (connection lost, nonsense, a refusal) lets the probe decide, which is sent at once.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any, ClassVar, Literal

from attrs import define, evolve, field, frozen
from twisted.application.service import Service
from twisted.internet.defer import Deferred, fail, succeed
from twisted.internet.interfaces import IDelayedCall, IReactorTime
from twisted.logger import Logger
from twisted.python.failure import Failure

from monrest.livestatus.core_errors import (
    ConnectError,
    HangingError,
    LivestatusError,
    ProtocolError,
    StoppedError,
    first_line,
)
from monrest.sites.capabilities import Program

INTERVAL = 10.0
"""Seconds between two probes of a living site."""
SUSPICIOUS = 1.0
"""Seconds that must lie between two probes of a living site, however many queries fail."""
GRACE = 2.0
"""Seconds for which no connection can be made before the site counts as down."""
SLOW = 3.0
"""Seconds that a request waits before the core has to show that it lives."""
SIGN_OF_LIFE = 1.0
"""Seconds that it may take for that."""

_MOMENT = 0.001
"""Seconds that make no difference."""
_FIRST_PAUSE = 0.05
_LONGEST_PAUSE = 10.0
_GROWTH = 1.5
_GROWN = 20


def pause_after(failures: int) -> float:
    """Seconds before the next probe when so many have failed before the last one: 50 ms first."""
    return min(_LONGEST_PAUSE, _FIRST_PAUSE * _GROWTH ** min(failures, _GROWN))


@frozen(kw_only=True)
class Health:
    """The health of a site; ``since`` and ``checked`` are seconds of the reactor's clock, no dates.

    ``response_time`` is that of the last answered probe; ``last_error`` is empty while up.
    """

    state: Literal["pending", "up", "down"] = "pending"
    last_error: str = ""
    since: float = 0.0
    checked: float | None = None
    response_time: float | None = None
    program: Program = field(factory=Program)

    @property
    def program_start(self) -> int:
        return self.program.program_start


def _may_be_back(error: LivestatusError) -> bool:
    return isinstance(error, ConnectError) and error.momentary


def _ignore(*_: object) -> None:
    """For a breaker without requests that wait, or without an observer."""


@define(eq=False)
class Breaker(Service):
    """Keeps the health of one site; ``probe`` asks it and fails with LivestatusError.

    ``error`` is what queries fail with, None unless the site is down. ``retry`` returns the pause
    in seconds after that many failures in a row. ``on_hang`` is called when the core hangs, with
    the error of the requests that wait for it; ``on_change`` at each probe and when it is away.
    """

    log: ClassVar[Logger] = Logger()

    clock: IReactorTime
    probe: Callable[[], Coroutine[Deferred[Any], Any, Program]]
    site: str
    interval: float = INTERVAL
    retry: Callable[[int], float] = pause_after
    grace: float = GRACE
    on_hang: Callable[[LivestatusError], None] = _ignore
    on_change: Callable[[], None] = _ignore
    health: Health = field(factory=Health)
    error: LivestatusError | None = None
    alive: float = 0.0
    """The last time at which the core showed a sign of life."""
    _waiting: list[Deferred[None]] = field(init=False, factory=list)
    _running: Deferred[None] | None = field(init=False, default=None)
    _next: IDelayedCall | None = field(init=False, default=None)
    _started: float = field(init=False, default=0.0)
    _failures: int = field(init=False, default=0)
    missed: LivestatusError | None = field(init=False, default=None)
    """Why no connection can be made at present, while that is no proof yet."""
    _away: float = field(init=False, default=0.0)
    """Since when that is so."""
    _patience: IDelayedCall | None = field(init=False, default=None)
    """Rings when the probe under way has taken too long."""

    @property
    def ready(self) -> bool:
        """Whether queries can be sent right now."""
        return self.health.state == "up" and self.missed is None

    def startService(self) -> None:
        """Probe for the first time."""
        super().startService()
        now = self.clock.seconds()
        self.health = evolve(self.health, since=now)
        self._begin()

    def stopService(self) -> Deferred[None]:
        """Stop probing; fires when no probe is under way."""
        super().stopService()
        self._schedule(None)
        self._end_waiting(StoppedError())
        running = self._running
        if running is None:
            return succeed(None)
        done: Deferred[None] = Deferred()
        running.addBoth(lambda _: done.callback(None))
        running.cancel()
        return done

    def retire(self) -> Deferred[None]:
        """Stop probing, but not before the first verdict, which requests may wait for.

        Fires when no probe is under way.
        """
        if self.health.state != "pending" or self._running is None:
            return self.stopService()
        done: Deferred[None] = Deferred()
        self.grace = 0.0

        def over(_: None) -> None:
            self.stopService().chainDeferred(done)

        self._running.addBoth(over)
        return done

    def verdict(self) -> Deferred[None]:
        """Fire when the site is up; fail with the last error when it is down.

        Waits only while the site is pending or away.
        """
        if self.error is not None:
            return fail(self.error.anew())
        if self.ready:
            return succeed(None)
        if not self.running:
            return fail(StoppedError())
        waiter: Deferred[None] = Deferred(self._forget)
        self._waiting.append(waiter)
        return waiter

    def hear(self) -> None:
        """Take note of a sign of life."""
        self.alive = self.clock.seconds()

    def failed(self, error: LivestatusError, sent: float) -> None:
        """Take note that a query failed which was sent at ``sent``."""
        if isinstance(error, StoppedError):
            return
        if _may_be_back(error):
            self._miss(error)
        elif isinstance(error, ConnectError) or (error.timed_out and self.alive <= sent):
            was_down = self.error is not None
            self._down(error)
            if not was_down:
                self._probe_soon()
        else:
            self.suspect()

    def suspect(self) -> None:
        """Probe now, or as soon as the last probe is a second old."""
        if self._running is None and self.running and self.error is None and self.missed is None:
            since = self.clock.seconds() - self._started
            self._schedule(max(0.0, SUSPICIOUS - since))

    def slow(self) -> None:
        """A request waits for long: the core has to show within a second that it lives."""
        if self.error is not None or not self.running:
            return
        if not self.ready:
            return  # the probe that requests wait for has its own limit: a core begins slowly
        if self._running is None:
            if self.clock.seconds() - self._started < SUSPICIOUS:
                return  # it has just shown that
            self._schedule(None)
            self._begin()
        self._expect(SIGN_OF_LIFE)

    def _miss(self, error: LivestatusError) -> None:
        """No connection could be made: look for the core until it is back or proved dead."""
        if self.error is None and self.missed is None and self.running:
            self.missed, self._away = error.anew(), self.clock.seconds()
            self._probe_soon()
            self.on_change()

    def _probe_soon(self) -> None:
        if self._running is None and self.running:
            self._failures = 1
            self._schedule(self.retry(0))

    async def program_now(self) -> Program | None:
        """The result of a probe that begins now or later; None when the core does not answer it."""
        if self._running is not None:
            await self.probed()  # this one began earlier and proves nothing
        await self.probed()
        return self.health.program if self.ready and self.running else None

    def probed(self) -> Deferred[None]:
        """Probe now, or wait for the probe that is under way; fires at its end, also if it failed.

        Cancelling ends the wait and not the probe.
        """
        if self._running is None and self.running:
            self._schedule(None)
            self._begin()
        done: Deferred[None] = Deferred(lambda _: None)
        if self._running is None:
            return succeed(None)

        def ended(result: None) -> None:
            if not done.called:
                done.callback(None)
            return result

        self._running.addBoth(ended)
        return done

    def _schedule(self, seconds: float | None) -> None:
        if self._next is not None:
            self._next.cancel()
            self._next = None
        if seconds is not None:
            self._next = self.clock.callLater(seconds, self._begin)

    def _begin(self) -> None:
        self._next = None
        self._started = self.clock.seconds()
        self._running = running = Deferred.fromCoroutine(self._probe())
        if not self.ready and self.error is None:
            self._expect(SLOW + SIGN_OF_LIFE)  # requests wait for this probe alone
        running.addBoth(self._ended)

    async def _probe(self) -> None:
        try:
            program = await self.probe()
        except Exception as error:  # noqa: BLE001  a site that upsets our reading is down as well
            if not self.running:
                return
            if not isinstance(error, LivestatusError):
                self.log.failure("probe of site {site} failed", site=self.site)
                error = ProtocolError("strange status data")
            self._probe_failed(error)
        else:
            self._up(program)

    def _probe_failed(self, error: LivestatusError) -> None:
        """The site is down, unless it may be back in a moment."""
        now = self.clock.seconds()
        if self.error is None and self.missed is None and _may_be_back(error):
            self._away, self._failures = now, 0
        self._failures += 1
        early = now - self._away < self.grace - _MOMENT
        if self.error is None and _may_be_back(error) and early:
            self.missed = error.anew()
            self.on_change()
        elif self.ready and error.timed_out and self.alive > self._started:
            self._failures = 0  # it is busy, and answers others
        else:
            self._down(error)

    def _ended(self, _: object) -> None:
        self._running = None
        self._expect(None)
        if self.running and self._next is None:
            self._schedule(self.interval if self.ready else self._pause())

    def _pause(self) -> float:
        pause = self.retry(max(0, self._failures - 1))
        if self.missed is None:
            return pause
        return max(0.0, min(pause, self._away + self.grace - self.clock.seconds()))

    def _expect(self, seconds: float | None) -> None:
        """The probe under way has to show a sign of life within ``seconds`` of its beginning."""
        if self._patience is not None and self._patience.active():
            self._patience.cancel()
        self._patience = None
        if seconds is not None and self._running is not None:
            left = self._started + seconds - self.clock.seconds()
            self._patience = self.clock.callLater(max(0.0, left), self._hangs, seconds)

    def _hangs(self, seconds: float) -> None:
        left = max(self._started, self.alive) + seconds - self.clock.seconds()
        if left > _MOMENT:
            self._patience = self.clock.callLater(left, self._hangs, seconds)
        elif self.error is None:
            error = HangingError(seconds)
            self._down(error)
            self.on_hang(error)

    def _up(self, program: Program) -> None:
        now = self.clock.seconds()
        if self.health.state != "up":
            self.log.info("site {site} is up: {core}", site=self.site, core=program.program_version)
        self.health = Health(
            state="up",
            since=self.health.since if self.health.state == "up" else now,
            checked=now,
            response_time=now - self._started,
            program=program,
        )
        self.alive = now
        self.error = self.missed = None
        self._failures = 0
        self._end_waiting(None)
        self.on_change()

    def _down(self, error: LivestatusError) -> None:
        reason = first_line(error.reason)
        if self.health.state != "down":
            self.log.warn("site {site} is down: {reason}", site=self.site, reason=reason)
            now = self.clock.seconds()
            self.health = evolve(self.health, state="down", since=now)
        self.health = evolve(self.health, last_error=reason)
        self.error, self.missed = error.anew(), None
        self._end_waiting(error)
        self.on_change()

    def _forget(self, waiter: Deferred[None]) -> None:
        if waiter in self._waiting:
            self._waiting.remove(waiter)

    def _end_waiting(self, error: LivestatusError | None) -> None:
        while self._waiting:
            waiter = self._waiting.pop(0)
            if error is None:
                waiter.callback(None)
            else:
                waiter.errback(Failure(error.anew()))
