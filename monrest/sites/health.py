"""Whether a site lives: a circuit breaker over its queries and a probe in the background.

A site is ``pending`` until the first probe is over; queries wait for that one. After a failure
that proves it dead it is ``down``: queries fail at once with the last error, and the probe tries
again with growing pauses until it is back. What counts as proof:

- no connection could be made: down at once;
- a query timed out: down at once, unless the core showed a sign of life (any answered query or
  probe) after that query was sent. A query that is slow asks for a probe long before it times
  out, so one slow query does not take a living core down;
- everything else (connection lost, nonsense, a refusal): the probe decides, and is sent at once.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any, ClassVar, Literal

from attrs import define, evolve, field, frozen
from twisted.application.internet import backoffPolicy
from twisted.application.service import Service
from twisted.internet.defer import Deferred, fail, succeed
from twisted.internet.interfaces import IDelayedCall, IReactorTime
from twisted.logger import Logger
from twisted.python.failure import Failure

from monrest.livestatus.errors import (
    ConnectError,
    LivestatusError,
    ProtocolError,
    StoppedError,
    first_line,
)
from monrest.sites.capabilities import Program

INTERVAL = 10.0
"""Seconds between two probes of a living site."""
SUSPICIOUS = 1.0
"""Seconds that must lie between two probes, however many queries fail."""


@frozen(kw_only=True)
class Health:
    """How a site is; ``since`` and ``checked`` are seconds of the reactor's clock, no dates.

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
        """When the core was started."""
        return self.program.program_start


@define(eq=False)
class Breaker(Service):
    """Keeps the health of one site; ``probe`` asks it and fails with LivestatusError.

    ``error`` is what queries fail with, None unless the site is down. ``retry`` gives the pause
    in seconds after that many failures in a row.
    """

    log: ClassVar[Logger] = Logger()

    clock: IReactorTime
    probe: Callable[[], Coroutine[Deferred[Any], Any, Program]]
    site: str
    interval: float = INTERVAL
    retry: Callable[[int], float] = field(factory=lambda: backoffPolicy(1.0, 10.0, 2.0))
    health: Health = field(factory=Health)
    error: LivestatusError | None = None
    alive: float = 0.0
    """The last time at which the core showed a sign of life."""
    _waiting: list[Deferred[None]] = field(init=False, factory=list)
    _running: Deferred[None] | None = field(init=False, default=None)
    _next: IDelayedCall | None = field(init=False, default=None)
    _started: float = field(init=False, default=0.0)
    _failures: int = field(init=False, default=0)

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
        self._tell(StoppedError())
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

        def over(_: None) -> None:
            self.stopService().chainDeferred(done)

        self._running.addBoth(over)
        return done

    def verdict(self) -> Deferred[None]:
        """Fire when the site is up; fail with the last error when it is down.

        Waits only while the site is pending.
        """
        if self.error is not None:
            return fail(self.error)
        if self.health.state == "up":
            return succeed(None)
        if not self.running:
            return fail(StoppedError())
        waiter: Deferred[None] = Deferred(self._forget)
        self._waiting.append(waiter)
        return waiter

    def failed(self, error: LivestatusError, sent: float) -> None:
        """Take note that a query failed which was sent at ``sent``."""
        if isinstance(error, StoppedError):
            return
        if isinstance(error, ConnectError) or (error.timed_out and self.alive <= sent):
            known = self.error is not None
            self._down(error)
            if not known and self._running is None and self.running:
                self._failures = 1
                self._schedule(self.retry(0))
        else:
            self.suspect()

    def suspect(self) -> None:
        """Probe now, or as soon as the last probe is a second old."""
        if self._running is None and self.running and self.error is None:
            since = self.clock.seconds() - self._started
            self._schedule(max(0.0, SUSPICIOUS - since))

    def probed(self) -> Deferred[None]:
        """Probe now, or wait for the probe that is under way; fires at its end, whatever it found.

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
            self._down(error)
            self._failures += 1
        else:
            self._up(program)

    def _ended(self, _: object) -> None:
        self._running = None
        if self.running and self._next is None:
            up = self.health.state == "up"
            self._schedule(self.interval if up else self.retry(self._failures - 1))

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
        self.error = None
        self._failures = 0
        self._tell(None)

    def _down(self, error: LivestatusError) -> None:
        reason = first_line(error.reason)
        if self.health.state != "down":
            self.log.warn("site {site} is down: {reason}", site=self.site, reason=reason)
            now = self.clock.seconds()
            self.health = evolve(self.health, state="down", since=now)
        self.health = evolve(self.health, last_error=reason)
        self.error = error
        self._tell(error)

    def _forget(self, waiter: Deferred[None]) -> None:
        if waiter in self._waiting:
            self._waiting.remove(waiter)

    def _tell(self, error: LivestatusError | None) -> None:
        while self._waiting:
            waiter = self._waiting.pop(0)
            if error is None:
                waiter.callback(None)
            else:
                waiter.errback(Failure(error))
