"""The async door to the database: work with a connection runs in threads, one transaction each.

SQLite has one writing thread, so that writers queue here and not at the file's lock; readers go
beside it. PostgreSQL has several of both. A database that is full, gone or hung answers with
``Unavailable``, and is used again as soon as it is back.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any, ClassVar, Generic, TypeVar

from attrs import define, field
from sqlalchemy import Connection, Engine
from twisted.application.service import Service
from twisted.internet.defer import CancelledError, Deferred, DeferredList
from twisted.internet.defer import TimeoutError as TooLate
from twisted.internet.interfaces import IReactorTime
from twisted.logger import Logger

from monrest.concurrency import Threads, pause, shielded
from monrest.errors import BadRequest, Unavailable
from monrest.store import engines, migrate
from monrest.store.failures import Meaning, StoreError, meaning_of, told

__all__ = ["Database", "StoreError"]

T = TypeVar("T")

_READERS = 4
_WRITERS = 4
_FIRST_PAUSE = 0.01
_LONGEST_PAUSE = 0.5
_GRACE = 5.0


@define(eq=False)
class Database(Service):
    """The database of ``url``; ``timeout`` in seconds for one transaction, retries included.

    ``threads`` makes a thread pool from (reactor, size, title).
    """

    log: ClassVar[Logger] = Logger()

    reactor: Any
    url: str = field(repr=False)
    clock: IReactorTime = field(default=None)
    timeout: float = field(default=15.0, kw_only=True)
    threads: Callable[[Any, int, str], Threads] = field(default=Threads, kw_only=True)
    _readers: _Door | None = field(init=False, default=None)
    _writers: _Door | None = field(init=False, default=None)
    _changes: set[Deferred[Any]] = field(init=False, factory=set)
    _lost: bool = field(init=False, default=False)

    def __attrs_post_init__(self) -> None:
        if self.clock is None:
            self.clock = self.reactor

    def startService(self) -> None:
        """Open the database and migrate it, which may block shortly; raises StoreError."""
        url = engines.parse(self.url)
        sqlite = url.drivername.startswith("sqlite")
        if sqlite:
            try:
                engines.prepare_file(Path(url.database or ""))
            except OSError as error:
                raise StoreError(
                    f"database.url: {url.database}: {error.strerror or error}"
                ) from None
        migrate.upgrade(url)
        super().startService()
        self._readers = _Door.open(
            engines.reading(url, _READERS, self.timeout),
            self.threads(self.reactor, _READERS, "database readers"),
        )
        writers = 1 if sqlite else _WRITERS
        self._writers = _Door.open(
            engines.writing(url, writers, self.timeout),
            self.threads(self.reactor, writers, "database writers"),
        )

    async def _stop(self, doors: list[_Door]) -> None:
        if self._changes:
            await DeferredList(list(self._changes), consumeErrors=True)
        for door in doors:
            await door.close()

    def stopService(self) -> Deferred[None]:
        """Take no more work; fires when every transaction has ended and all files are closed."""
        super().stopService()
        doors = [door for door in (self._readers, self._writers) if door is not None]
        return Deferred.fromCoroutine(self._stop(doors))

    def run(self, work: Callable[[Connection], T]) -> Deferred[T]:
        """Read: the result of ``work`` with a connection that sees one state and changes nothing.

        ``work`` runs in a thread, perhaps more than once. Cancelling ends the wait. Unavailable
        when the database is; what ``work`` raises otherwise comes out as it is.
        """
        return Deferred.fromCoroutine(self._until_done(self._readers, work, "cannot read"))

    def change(self, work: Callable[[Connection], T]) -> Deferred[T]:
        """Write: ``work`` as one transaction, which is on the disk before the Deferred fires.

        ``work`` runs in a thread, and again when another transaction was in the way: it must
        have no effect but on the connection. What it raises undoes the transaction. Cancelling
        ends the wait and not the transaction. Unavailable when the database is, or is full.
        """

        async def changing() -> T:
            return await self._until_done(self._writers, work, "cannot store")

        return shielded(self._counted(changing()))

    async def _counted(self, changing: Coroutine[Deferred[Any], Any, T]) -> T:
        ended: Deferred[None] = Deferred()
        self._changes.add(ended)
        try:
            return await changing
        finally:
            self._changes.discard(ended)
            ended.callback(None)

    async def _until_done(
        self, door: _Door | None, work: Callable[[Connection], T], message: str
    ) -> T:
        if door is None or not self.running:
            raise Unavailable(message, "the service is stopping")
        end = self.clock.seconds() + self.timeout
        wait = _FIRST_PAUSE
        again = True
        while True:
            job = _Job(door.engine, work)
            try:
                value = await self._once(door, job, end + _GRACE)
            except CancelledError:
                raise
            except Exception as error:
                meaning = Meaning.SLOW if isinstance(error, TooLate) else meaning_of(error)
                late = self.clock.seconds() + wait > end
                if meaning is Meaning.BUSY and not late:
                    # Of two transactions in each other's way one has to come first.
                    await pause(self.clock, wait * random.uniform(0.5, 1.0))  # noqa: S311  no secret
                    wait = min(2 * wait, _LONGEST_PAUSE)
                    continue
                if meaning is Meaning.LOST and again and not job.committing:
                    again = False
                    continue
                self._raise(meaning, error, message, committing=job.committing)
                raise
            if self._lost:
                self._lost = False
                self.log.info("the database is back")
            return value

    async def _once(self, door: _Door, job: _Job[T], end: float) -> T:
        left = max(0.0, end - self.clock.seconds())
        overdue = self.clock.callLater(left, job.give_up)
        try:
            return await door.threads.run(job).addTimeout(left, self.clock)
        except CancelledError:
            job.forget()
            raise
        finally:
            if overdue.active():
                overdue.cancel()

    def _raise(self, meaning: Meaning, error: Exception, message: str, *, committing: bool) -> None:
        """Raise what the caller is told, unless the error is none of the database's."""
        if meaning is Meaning.OURS:
            return
        if meaning is Meaning.VALUE:
            raise BadRequest(
                message, "expected text without NUL and unpaired surrogates, and numbers in range"
            ) from None
        if meaning is Meaning.BUSY:
            raise Unavailable(message, "the database is too busy") from None
        if not self._lost:
            self._lost = True
            reason = engines.without_secrets(told(error), engines.parse(self.url))
            self.log.warn("the database cannot be used: {reason}", reason=reason)
        text = _REASONS[meaning]
        if committing:
            text += "; the change may have been stored or not"
        raise Unavailable(message, text) from None


_REASONS = {
    Meaning.LOST: "no connection to the database",
    Meaning.FULL: "the disk of the database is full",
    Meaning.SLOW: "the database did not answer in time",
    Meaning.REFUSED: "the database refuses, the log says why",
}


@define(eq=False)
class _Door:
    """An engine and the threads that use it, as many as it has connections."""

    engine: Engine
    threads: Threads

    @classmethod
    def open(cls, engine: Engine, threads: Threads) -> _Door:
        threads.startService()
        return cls(engine, threads)

    async def close(self) -> None:
        await self.threads.stopService()
        self.engine.dispose()


@define(eq=False)
class _Job(Generic[T]):
    """One attempt at a transaction; called in a thread, given up from the reactor."""

    engine: Engine
    work: Callable[[Connection], T]
    committing: bool = False
    _connection: Any = None
    _dropped: bool = False
    _lock: threading.Lock = field(factory=threading.Lock, init=False)

    def __call__(self) -> T:
        with self._lock:
            if self._dropped:
                raise CancelledError
        with self.engine.connect() as connection:
            self._take(connection.connection.driver_connection)
            try:
                value = self.work(connection)
                self.committing = True
                connection.commit()
            finally:
                self._take(None)
            self.committing = False
            return value

    def _take(self, connection: Any) -> None:
        with self._lock:
            self._connection = connection
            if self._dropped and connection is not None:
                raise CancelledError

    def forget(self) -> None:
        """Do not begin any more; what runs goes on."""
        self._dropped = True

    def give_up(self) -> None:
        """Do not begin any more, and end what runs, so that its thread is free again."""
        with self._lock:
            self._dropped = True
            if self._connection is not None:
                engines.interrupt(self._connection)
