"""The async door to the database: work with a connection runs in threads, one transaction each.

SQLite has one writing thread, so that writers queue here and not at the file's lock; readers go
beside it. PostgreSQL has several of both. A database that is full, gone or hung answers with
``Unavailable``, and is used again as soon as it is back.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Coroutine
from contextlib import suppress
from functools import wraps
from pathlib import Path
from typing import Any, ClassVar, Concatenate, Generic, NoReturn, ParamSpec, TypeAlias, TypeVar

from attrs import define, field
from sqlalchemy import Connection, Engine, Executable, Table, text
from sqlalchemy.dialects import sqlite
from twisted.application.service import Service
from twisted.internet.defer import CancelledError, Deferred, DeferredList
from twisted.internet.defer import TimeoutError as DeferredTimeout
from twisted.internet.interfaces import IDelayedCall, IReactorTime
from twisted.logger import Logger

from monrest.base.concurrency import Threads, pause, shielded
from monrest.base.errors import BadRequest, Unavailable
from monrest.store import engines, migrate
from monrest.store.failures import Meaning, StoreError, error_text, meaning_of

__all__ = ["Database", "StoreError", "Work", "insert_if_absent", "transaction"]

T = TypeVar("T")
P = ParamSpec("P")

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


Work: TypeAlias = Callable[[Connection], T]
"""The work of one transaction; it may be run again."""


def transaction(function: Callable[Concatenate[Connection, P], T]) -> Callable[P, Work[T]]:
    """Let a function of a connection be called without it: that returns its work.

    It may be done again, so that no argument may be an iterator.
    """

    @wraps(function)
    def work_of(*args: P.args, **kwargs: P.kwargs) -> Work[T]:
        return lambda connection: function(connection, *args, **kwargs)

    return work_of


_READERS = 4
_WRITERS = 4
_FIRST_PAUSE = 0.01
_LONGEST_PAUSE = 0.5
_GRACE = 5.0
_LOOK_AGAIN = 1.0
_LOG_AGAIN = 15.0
_CLOSING = 2.0
"""Seconds for which a stop waits for threads of which nothing is wanted any more."""

_REASONS = {
    Meaning.BUSY: "the database is too busy",
    Meaning.LOST: "no connection to the database",
    Meaning.FULL: "the disk of the database is full",
    Meaning.SLOW: "the database did not answer in time",
    Meaning.REFUSED: "the database cannot be used, the log says why",
}


@define(eq=False)
class Database(Service):
    """The database of ``url``; ``timeout`` in seconds for one transaction, retries included.

    A database that does not even answer is given up 5 s later; a server that does not answer is
    noticed before, see ``HangDetector``, and what needs it fails at once from then on. ``threads``
    makes a thread pool from (reactor, size, title). A start waits ``patience`` seconds for a
    database that is away; ``sleep`` is how. ``migrated``: the tables are those of this version.
    """

    log: ClassVar[Logger] = Logger()

    reactor: Any
    url: str = field(repr=False)
    clock: IReactorTime = field(default=None)
    timeout: float = field(default=15.0, kw_only=True)
    threads: Callable[[Any, int, str], Threads] = field(default=Threads, kw_only=True)
    patience: float = field(default=0.0, kw_only=True)
    migrated: bool = field(default=False, kw_only=True)
    sleep: Callable[[float], object] = field(default=time.sleep, kw_only=True)
    _readers: Door | None = field(init=False, default=None)
    _writers: Door | None = field(init=False, default=None)
    _open: set[Deferred[None]] = field(init=False, factory=set)
    _hurry: tuple[float, float] | None = field(init=False, default=None)
    _lost: bool = field(init=False, default=False)
    _hang_detector: HangDetector | None = field(init=False, default=None)

    def __attrs_post_init__(self) -> None:
        if self.clock is None:
            self.clock = self.reactor

    def startService(self) -> None:
        """Open the database and migrate it, which blocks; raises StoreError."""
        url = engines.parse(self.url)
        embedded = engines.is_sqlite(url)
        if not self.migrated:
            self.migrate()
        super().startService()
        self._hurry, self._lost = None, False
        writers = 1 if embedded else _WRITERS
        self._readers = self._door(engines.reading(url, _READERS, self.timeout), _READERS)
        self._writers = self._door(engines.writing(url, writers, self.timeout), writers)
        if not embedded:
            alone = self._door(engines.asking(url, self.timeout), 1)
            self._hang_detector = HangDetector(self.clock, alone, lambda: self._shorten(0.0))

    def migrate(self) -> None:
        """Make the database and its tables, or bring them up to date; blocks, StoreError.

        Also a database that comes a little later than this daemon.
        """
        url = engines.parse(self.url)
        if engines.is_sqlite(url):
            engines.prepare_file(Path(url.database or ""))
        began = logged = None
        while True:
            try:
                migrate.upgrade(url)
            except StoreError as error:
                if not error.away or not self.patience:
                    raise
                now = self.clock.seconds()
                began = now if began is None else began
                if now >= began + self.patience:
                    raise
                if logged is None or now >= logged + _LOG_AGAIN:
                    logged = now
                    self.log.warn(
                        "{reason}; waiting for the database, {left:.0f} s at most",
                        reason=str(error),
                        left=began + self.patience - now,
                    )
                self.sleep(_LOOK_AGAIN)
            else:
                if logged is not None:
                    self.log.info("the database is there")
                return

    def _door(self, engine: Engine, size: int) -> Door:
        threads = self.threads(self.reactor, size, "database")
        threads.startService()
        return Door(engine, threads)

    def hurry(self, seconds: float) -> None:
        """Shorten all time-outs to ``seconds`` from now on, also of what is under way.

        For a daemon that stops: after the first transaction that gets no answer, the rest is
        refused at once.
        """
        self._hurry = (self.clock.seconds(), seconds)
        self._shorten(seconds)

    def _shorten(self, seconds: float) -> None:
        for door in (self._readers, self._writers):
            if door is not None:
                door.hurry(self.clock, seconds)

    def stopService(self) -> Deferred[None]:
        """Take no more work; fires when every transaction has ended and all files are closed.

        Threads that are still busy with making a connection are left alone.
        """
        super().stopService()
        doors = [door for door in (self._readers, self._writers) if door is not None]
        self._readers = self._writers = None
        return Deferred.fromCoroutine(self._stop(doors))

    async def _stop(self, doors: list[Door]) -> None:
        await DeferredList(list(self._open))
        hang_detector, self._hang_detector = self._hang_detector, None
        if hang_detector is not None:
            hang_detector.stop()
            doors = [*doors, hang_detector.door]
        await DeferredList([Deferred.fromCoroutine(self._close(door)) for door in doors])

    async def _close(self, door: Door) -> None:
        closing = Deferred.fromCoroutine(door.close())
        with suppress(DeferredTimeout):
            await closing.addTimeout(_CLOSING, self.clock)

    def run(self, work: Work[T]) -> Deferred[T]:
        """Read: the result of ``work`` with a connection that sees one state and changes nothing.

        ``work`` runs in a thread, perhaps more than once. Cancelling ends the wait. Unavailable
        when the database is; what ``work`` raises otherwise comes out as it is.
        """
        return Deferred.fromCoroutine(
            self._counted(self._until_done(self._readers, work, "cannot read what is stored"))
        )

    def change(self, work: Work[T]) -> Deferred[T]:
        """Write: ``work`` as one transaction, which is on the disk before the Deferred fires.

        ``work`` runs in a thread, and again when another transaction was in the way: it must
        have no effect but on the connection. What it raises undoes the transaction. Cancelling
        ends the wait and not the transaction. Unavailable when the database is, or is full.
        """
        return shielded(self._counted(self._until_done(self._writers, work, "cannot store")))

    async def _counted(self, transaction: Coroutine[Deferred[Any], Any, T]) -> T:
        ended: Deferred[None] = Deferred()
        hang_detector = self._hang_detector
        self._open.add(ended)
        if hang_detector is not None:
            hang_detector.waits()
        try:
            return await transaction
        finally:
            if hang_detector is not None:
                hang_detector.ended()
            self._open.discard(ended)
            ended.callback(None)

    async def _until_done(self, door: Door | None, work: Work[T], message: str) -> T:
        if door is None:
            raise Unavailable(message, "the service does not run")
        began = self.clock.seconds()
        wait = _FIRST_PAUSE
        reconnected = False
        while True:
            if self._lost or (self._hang_detector is not None and not self._hang_detector.answers):
                raise Unavailable(message, _REASONS[Meaning.SLOW])
            job = TransactionAttempt(door.engine, work)
            end, grace = self._end(began)
            left = max(0.0, end + grace - self.clock.seconds())
            try:
                value = await door.attempt(job, self.clock, left)
            except CancelledError:
                raise
            except Exception as error:  # noqa: BLE001  most are raised again, by meaning
                given_up = isinstance(error, GivenUpError)
                meaning = Meaning.SLOW if given_up else meaning_of(error)
                if given_up and self._hurry is not None and not self._lost:
                    self._lost = True
                    self._shorten(0.0)
                if meaning is Meaning.LOST and not reconnected and not job.committing:
                    # Mostly a connection that died while it was idle; the next one is new.
                    reconnected = True
                elif meaning is Meaning.BUSY and self.clock.seconds() + wait <= self._end(began)[0]:
                    # Chance decides which of two that hinder each other comes first.
                    await pause(self.clock, wait * random.uniform(0.5, 1.0))  # noqa: S311  no secret
                    wait = min(2 * wait, _LONGEST_PAUSE)
                else:
                    self._fail(door, meaning, error, message, maybe=job.committing)
            else:
                if door.troubled:
                    door.troubled = False
                    self.log.info("the database can be used again")
                return value

    def _end(self, began: float) -> tuple[float, float]:
        """Until when a transaction that began then may be tried, and how much later it is ended."""
        if self._hurry is None:
            return began + self.timeout, _GRACE
        since, seconds = self._hurry
        return max(began, since) + seconds, 0.0

    def _fail(
        self, door: Door, meaning: Meaning, error: Exception, message: str, *, maybe: bool
    ) -> NoReturn:
        """Raise the error for the caller; ``maybe``: the change may have been stored."""
        if meaning is Meaning.OURS:
            raise error
        if meaning is Meaning.VALUE:
            raise BadRequest(
                message, "expected text without NUL and unpaired surrogates, and 64-bit numbers"
            ) from None
        reason = _REASONS[meaning]
        if not door.troubled and meaning is not Meaning.BUSY:
            door.troubled = True
            text = "no answer" if isinstance(error, GivenUpError) else error_text(error)
            self.log.warn(
                "{message}: {reason}: {text}",
                message=message,
                reason=reason,
                text=engines.without_secrets(text, engines.parse(self.url)),
            )
        if maybe:
            reason += "; the change may have been made or not"
        raise Unavailable(message, reason) from None


def insert_if_absent(connection: Connection, table: Table, values: dict[str, Any]) -> Executable:
    """Insert a row unless there is one with its key, also when another daemon does the same."""
    insert: Any = sqlite.insert
    if connection.dialect.name == "postgresql":
        # Only daemons with such a database import it, 3 MB.
        from sqlalchemy.dialects.postgresql import insert
    statement: Executable = insert(table).values(values).on_conflict_do_nothing()
    return statement
