"""An engine with the threads that use it, one attempt at a transaction, a server that hangs."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, Generic, TypeVar

from attrs import define, field
from sqlalchemy import Connection, Engine, text
from twisted.internet.defer import CancelledError, Deferred
from twisted.internet.interfaces import IDelayedCall, IReactorTime

from monrest.base.concurrency import Threads
from monrest.store import engines
from monrest.store.failures import Meaning, meaning_of

T = TypeVar("T")

SUSPECT = 3.0
"""Seconds for which a transaction waits before the server is asked."""

ANSWER = 4.0
"""Seconds that it has for the answer."""

_ASK_AGAIN = 1.0

# After any other error in a commit the database has reported that it was not made.
_UNCERTAIN = frozenset({Meaning.LOST, Meaning.REFUSED})
_DISTRUSTED = frozenset({Meaning.LOST, Meaning.FULL, Meaning.REFUSED})


class GivenUpError(Exception):
    """An attempt was given up."""


@define(eq=False)
class Door:
    """``engine`` has as many connections as there are ``threads``.

    ``troubled``: the last attempt failed because of the database.
    """

    engine: Engine
    threads: Threads
    troubled: bool = False
    _timers: set[IDelayedCall] = field(init=False, factory=set)

    async def attempt(self, job: TransactionAttempt[T], clock: IReactorTime, seconds: float) -> T:
        """Run ``job`` in a thread; GivenUpError after ``seconds``, when it is ended by force."""
        waiting = self.threads.run(job)

        def overdue() -> None:
            job.give_up()
            waiting.cancel()

        timer = clock.callLater(seconds, overdue)
        self._timers.add(timer)
        try:
            return await waiting
        except CancelledError:
            if job.given_up:
                raise GivenUpError from None
            job.forget()
            raise
        finally:
            self._timers.discard(timer)
            if timer.active():
                timer.cancel()

    def hurry(self, clock: IReactorTime, seconds: float) -> None:
        """Give up everything that is under way after ``seconds`` at most."""
        for timer in tuple(self._timers):
            if timer.active() and timer.getTime() > clock.seconds() + seconds:
                timer.reset(seconds)

    async def close(self) -> None:
        """Close the connections and end the threads, when nothing is asked any more."""
        await self.threads.run(self.engine.dispose)
        await self.threads.stopService()


@define(eq=False)
class TransactionAttempt(Generic[T]):
    """One attempt at a transaction; called in a thread, given up from the reactor.

    ``committing``: the database was asked to commit, and has not reported that it did not.
    """

    engine: Engine
    work: Callable[[Connection], T]
    committing: bool = field(init=False, default=False)
    given_up: bool = field(init=False, default=False)
    _forgotten: bool = field(init=False, default=False)
    _running: Any = field(init=False, default=None)
    _lock: threading.Lock = field(init=False, factory=threading.Lock)

    def __call__(self) -> T:
        """Run the work and commit; undo everything when that fails."""
        if self.given_up or self._forgotten:
            raise GivenUpError
        with self.engine.connect() as connection:
            driver = connection.connection.driver_connection
            try:
                engines.stop_when(driver, lambda: self.given_up)
                self._goes_on(driver)
                value = self.work(connection)
                self._goes_on(driver, committing=True)
                connection.commit()
            except Exception as error:
                self._ended(driver)
                meaning = meaning_of(error)
                if meaning not in _UNCERTAIN:
                    self.committing = False
                if meaning in _DISTRUSTED and not connection.invalidated:
                    connection.invalidate()
                raise
            self._ended(driver)
            return value

    def _goes_on(self, running: Any, *, committing: bool = False, check: bool = True) -> None:
        """Note what to interrupt; GivenUpError when it is too late to continue."""
        with self._lock:
            self._running = running
            if check and self.given_up:
                raise GivenUpError
            self.committing = self.committing or committing

    def _ended(self, driver: Any) -> None:
        self._goes_on(None, check=False)
        engines.stop_when(driver, None)

    def forget(self) -> None:
        """Do not begin any more, since no caller waits for it; what runs continues."""
        self._forgotten = True

    def give_up(self) -> None:
        """Do not begin any more, and end what runs, so that its thread is free again.

        If nothing was committed until now, nothing will be.
        """
        with self._lock:
            self.given_up = True
            if self._running is not None:
                engines.interrupt(self._running)


@define(eq=False)
class HangDetector:
    """Notices that a server hangs, before the time is over that a transaction may take.

    A long statement has to be waited for, a server that does not answer has not: so while a
    transaction waits the server is asked something that takes no time at all. ``door`` has a
    connection for this alone; ``hung`` is called when there is no answer. ``answers``: False from
    then on until the server answers again.
    """

    clock: IReactorTime
    door: Door
    hung: Callable[[], object]
    answers: bool = field(init=False, default=True)
    _waiting: int = field(init=False, default=0)
    _timer: IDelayedCall | None = field(init=False, default=None)
    _asking: Deferred[None] | None = field(init=False, default=None)
    _stopped: bool = field(init=False, default=False)

    def waits(self) -> None:
        """Note that a transaction waits for the server."""
        self._waiting += 1
        self._later()

    def ended(self) -> None:
        """Note that it does not any more."""
        self._waiting -= 1
        if not self._waiting and self.answers:
            self._rest()

    def _later(self) -> None:
        wanted = self._waiting or not self.answers
        if wanted and not self._stopped and self._timer is None and self._asking is None:
            self._timer = self.clock.callLater(SUSPECT if self.answers else _ASK_AGAIN, self._ask)

    def _rest(self) -> None:
        timer, self._timer = self._timer, None
        if timer is not None and timer.active():
            timer.cancel()

    def _ask(self) -> None:
        self._timer = None
        self._asking = Deferred.fromCoroutine(self._asked())
        self._asking.addCallback(self._answered)

    async def _asked(self) -> None:
        try:
            question = TransactionAttempt(
                self.door.engine, lambda connection: connection.execute(text("SELECT 1")).close()
            )
            await self.door.attempt(question, self.clock, ANSWER)
        except CancelledError:
            return
        except GivenUpError:
            if self.answers:
                self.answers = False
                self.hung()
            return
        except Exception:  # noqa: BLE001  any error is an answer; the transaction gets its own
            self.answers = True
        else:
            self.answers = True

    def _answered(self, _: None) -> None:
        self._asking = None
        self._later()

    def stop(self) -> None:
        self._stopped = True
        self._rest()
        if self._asking is not None:
            self._asking.cancel()
