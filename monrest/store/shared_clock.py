"""The clock of the database, by which all daemons go that share one.

With a database server the daemons are on several machines, whose clocks are never the same. One
that is an hour ahead must not take the sessions, leases and results of the others for old: dates
that several daemons compare come from the clock of the server. An embedded database is used by the
daemons of one machine, whose clock that is.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import ClassVar

from attrs import define, field, frozen
from sqlalchemy import Connection, text
from sqlalchemy.exc import SQLAlchemyError
from twisted.application.service import Service
from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IReactorTime
from twisted.logger import Logger

from monrest.base.clock import STEP, WallClock
from monrest.base.concurrency import Periodic
from monrest.base.errors import Unavailable
from monrest.store import engines
from monrest.store.database import Database
from monrest.store.duties import boot_time

INTERVAL = 20.0
"""Seconds between two looks at the clock of the server, which may be set as well."""

_SECONDS = 10.0


@frozen
class _Seen:
    date: float
    at: float
    exact: bool


@define(eq=False)
class SharedClock(Service):
    """Shows the date of the server of ``database``, ``own`` is the clock of this machine.

    Between two looks, and while the server is away, it continues by ``timer``. Before the first
    look it shows the date of the machine.
    """

    log: ClassVar[Logger] = Logger()

    database: Database
    clock: IReactorTime
    own: WallClock
    timer: Callable[[], float] = boot_time
    _seen: _Seen | None = field(init=False, default=None)
    _differs: bool = field(init=False, default=False)
    _periodic: Periodic = field(init=False)

    def __attrs_post_init__(self) -> None:
        self._periodic = Periodic(
            self.clock, INTERVAL, self.look, "looking at the clock of the database", now=False
        )

    def now(self) -> float:
        """Return the date in seconds since 1970 (UTC)."""
        seen = self._seen
        return self.own.now() if seen is None else seen.date + self.timer() - seen.at

    async def look(self) -> None:
        """Ask the server; while it is away the clock continues."""
        with suppress(Unavailable):
            self._take(await self.database.run(self._read))

    def _read(self, connection: Connection) -> _Seen:
        began = self.timer()
        date = connection.execute(text("SELECT extract(epoch FROM clock_timestamp())")).scalar_one()
        ended = self.timer()
        return _Seen(float(date), (began + ended) / 2, ended - began < STEP)

    def _take(self, seen: _Seen) -> None:
        if self._seen is not None and not seen.exact:
            return
        self._seen = seen
        apart = self.own.now() - self.now()
        if (abs(apart) >= STEP) != self._differs:
            self._differs = not self._differs
            if self._differs:
                self.log.warn(
                    "the clock of this machine differs by {seconds} s from that of the database, "
                    "which counts",
                    seconds=round(apart),
                )
            else:
                self.log.info("the clock of this machine shows the date of the database again")

    def startService(self) -> None:
        """Take a first look, which blocks shortly, and then one from time to time."""
        super().startService()
        engine = engines.asking(engines.parse(self.database.url), _SECONDS)
        try:
            with suppress(SQLAlchemyError), engine.connect() as connection:
                self._take(self._read(connection))
        finally:
            engine.dispose()
        self._periodic.startService()

    def stopService(self) -> Deferred[None]:
        """Look no more; before the database stops."""
        super().stopService()
        return self._periodic.stopService()


def clock_of(database: Database, clock: IReactorTime, own: WallClock) -> WallClock | SharedClock:
    """Return the clock by which the daemons of a database go; a service where it is a server's."""
    if database.url.startswith("sqlite:"):
        return own
    return SharedClock(database, clock, own)
