"""An engine with the threads that use it, and one attempt at a transaction in them."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, Generic, TypeVar

from attrs import define, field
from sqlalchemy import Connection, Engine
from twisted.internet.defer import CancelledError
from twisted.internet.interfaces import IDelayedCall, IReactorTime

from monrest.base.concurrency import Threads
from monrest.store import engines
from monrest.store.failures import Meaning, meaning_of

T = TypeVar("T")

# After any other error in a commit the database has said that it was not made.
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

    ``committing``: the database was told to commit, and has not said that it did not.
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
        """Note what to interrupt; GivenUpError when it is too late to go on."""
        with self._lock:
            self._running = running
            if check and self.given_up:
                raise GivenUpError
            self.committing = self.committing or committing

    def _ended(self, driver: Any) -> None:
        self._goes_on(None, check=False)
        engines.stop_when(driver, None)

    def forget(self) -> None:
        """Do not begin any more, since nobody waits for it; what runs goes on."""
        self._forgotten = True

    def give_up(self) -> None:
        """Do not begin any more, and end what runs, so that its thread is free again.

        If nothing was committed until now, nothing will be.
        """
        with self._lock:
            self.given_up = True
            if self._running is not None:
                engines.interrupt(self._running)
