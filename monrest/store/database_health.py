"""Whether the database can be used, asked again and again, for balancers and service managers.

A request that needs the database learns it by itself. Here it is known before a request asks.
"""

from __future__ import annotations

from attrs import define, field
from sqlalchemy import Connection, literal, select, text
from twisted.application.service import Service
from twisted.internet.defer import Deferred
from twisted.internet.defer import TimeoutError as TooLate
from twisted.internet.interfaces import IReactorTime

from monrest.base.concurrency import Periodic
from monrest.base.errors import Unavailable
from monrest.store.database import Database
from monrest.store.tables import metadata

_INTERVAL = 2.0
_PATIENCE = 3.0


@define(eq=False)
class DatabaseHealth(Service):
    """``trouble`` says why the database cannot be used; empty when it can."""

    database: Database
    clock: IReactorTime
    trouble: str = field(default="", init=False)
    _periodic: Periodic = field(init=False)

    def __attrs_post_init__(self) -> None:
        self._periodic = Periodic(self.clock, _INTERVAL, self.look, "looking at the database")

    async def look(self) -> None:
        """Ask the database something that it can only answer when it works."""
        try:
            await self.database.run(_read).addTimeout(_PATIENCE, self.clock)
        except TooLate:
            self.trouble = "the database did not answer in time"
        except Unavailable as error:
            self.trouble = error.description
        else:
            self.trouble = ""

    def startService(self) -> None:
        """Look from time to time; the database must run."""
        super().startService()
        self._periodic.startService()

    def stopService(self) -> Deferred[None]:
        """Fire when nothing is asked any more."""
        super().stopService()
        return self._periodic.stopService()


def _read(connection: Connection) -> None:
    """Read the beginning of each table; from an embedded database's file and not from memory."""
    if connection.dialect.name == "sqlite":
        connection.execute(text("PRAGMA shrink_memory"))
    tables = metadata.tables.values()
    connection.execute(
        select(
            *(select(literal(1)).select_from(table).limit(1).scalar_subquery() for table in tables)
        )
    ).one()
