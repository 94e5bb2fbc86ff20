"""The log for reports: from the cache what it has for sure, all else from the core.

A time is read in up to three pieces: what is older than the cache from the core, then from the
cache, then the newest lines from the core again. The numbers of a report are the same whichever
piece a line is in (docs/spec/logcache.md, "What is sure").
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Any, TypeVar

from attrs import define, evolve, field, frozen
from sqlalchemy import ColumnElement, Connection, Select, and_, func, or_, select
from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IReactorTime

from monrest.base.clock import WallClock
from monrest.base.errors import Unavailable
from monrest.logs import cache_records as records
from monrest.logs.importer import present
from monrest.logs.line import LINE, service_of
from monrest.logs.model import CachedPiece, CachedSite, piece_of
from monrest.logs.source import CORES, FEW_HOSTS, MOST_LINES, LogSource, Wanted
from monrest.logs.sql import fetched
from monrest.logs.state_events import ObjectKey, TimedLine
from monrest.sites.site import Site
from monrest.store.database import Database, Work, transaction
from monrest.store.tables import logcache_lines as lines

T = TypeVar("T")

_LEFT_ALONE = 15.0
"""Seconds for which a database is not asked after it could not answer."""

_PROGRAM = 2
_STATES = frozenset({1, 6})
_HOST_TYPES = ("HOST ALERT", "INITIAL HOST STATE", "CURRENT HOST STATE")
_SERVICE_STATES = ("SERVICE ALERT", "INITIAL SERVICE STATE", "CURRENT SERVICE STATE")
_SERVICE_TYPES = (*_SERVICE_STATES, "SERVICE DOWNTIME ALERT")
_HOST_DOWNTIME = "HOST DOWNTIME ALERT"
_TRANSITION = "TIMEPERIOD TRANSITION: "


@define(eq=False)
class CacheReader:
    """Reads from the cache, for reports that can do without it."""

    database: Database
    clock: IReactorTime
    _away_until: float = field(init=False, default=0.0)

    async def read(self, work: Work[T | None]) -> T | None:
        """The result; None while the database is away, which only the first one waits for."""
        if self.clock.seconds() < self._away_until:
            return None
        try:
            return await self.database.run(work)
        except Unavailable:
            self._away_until = self.clock.seconds() + _LEFT_ALONE
            return None


@frozen(kw_only=True)
class CachedLog:
    """A LogSource. While the database is away the core alone is asked."""

    reader: CacheReader
    wall: WallClock
    core: LogSource = CORES
    most: int = MOST_LINES

    async def objects(self, site: Site, wanted: Wanted) -> list[ObjectKey] | None:
        """Which hosts and services the log tells states of; None unless all of it is there."""
        known = await self.reader.read(records.known(site.id))
        piece = self._piece(site, known, wanted)
        if known is None or piece is None or not _covers(piece, wanted):
            return None
        return await self.reader.read(objects_of(site.id, piece, wanted))

    def _piece(self, site: Site, known: CachedSite | None, wanted: Wanted) -> CachedPiece | None:
        now = present(site, self.wall)
        return piece_of(known, wanted.since, wanted.until + 1, wanted.texts, now)

    async def slices(self, site: Site, wanted: Wanted) -> AsyncIterator[Sequence[TimedLine]]:
        """See ``LogSource``. A site that is down is not asked where the cache has everything."""
        low = wanted.since
        known = await self.reader.read(records.known(site.id))
        piece = self._piece(site, known, wanted)
        begins = piece is not None and piece.start <= low and wanted.classes is not None
        if piece is None or not (begins or _covers(piece, wanted)):
            await site.verdict()
        named = site.capabilities is not None and not site.capabilities.icinga2
        if piece is not None:
            if low < piece.start:
                before = evolve(wanted, until=piece.start - 1)
                async for some in self.core.slices(site, before):
                    yield some
                low = piece.start

            def begin(low: int) -> Deferred[Slice | None]:
                work = slice_of(site.id, piece, wanted, low, self.most, named=named)
                return Deferred.fromCoroutine(self.reader.read(work))

            # The next slice is read while the one before is worked at.
            share = site.memory.room.turn()
            await share.admit(2 * LINE * self.most)
            coming = begin(low)
            try:
                while low < piece.end:
                    found = await coming
                    if found is None:
                        break
                    low = found.after
                    if low < piece.end:
                        coming = begin(low)
                    if found.lines:
                        yield found.lines
            finally:
                coming.addErrback(lambda _: None).cancel()
                share.release()
        if low <= wanted.until:
            async for some in self.core.slices(site, evolve(wanted, since=low)):
                yield some


def _covers(piece: CachedPiece, wanted: Wanted) -> bool:
    """Whether nothing is wanted beside it."""
    return piece.start <= wanted.since and wanted.until < piece.end


@frozen
class Slice:
    """Lines in the order of the log, and the second that comes after them."""

    lines: Sequence[TimedLine]
    after: int


@transaction
def slice_of(
    connection: Connection,
    site: str,
    piece: CachedPiece,
    wanted: Wanted,
    low: int,
    most: int,
    *,
    named: bool,
) -> Slice | None:
    """The next lines of a piece, from ``low`` on; None when the cache has them no more.

    There are ``most`` of them at most, unless a single second has more. ``named``: the core tells
    which host a line is about.
    """
    known = records.of_site(connection, site)
    if known is None or not piece.still(known, low):
        return None
    chosen = _chosen(connection, known.id, wanted, named=named)
    found = fetched(
        connection,
        chosen.where(lines.c.time >= low, lines.c.time < piece.end)
        .order_by(lines.c.time)
        .limit(most),
    )
    if len(found) < most:
        return Slice(_in_order(found), piece.end)
    last = max(found)[0]
    if last == low:
        found = fetched(connection, chosen.where(lines.c.time == low))
        return Slice(_in_order(found), low + 1)
    # There may be more of the last second.
    return Slice(_in_order([one for one in found if one[0] < last]), last)


@transaction
def objects_of(
    connection: Connection, site: str, piece: CachedPiece, wanted: Wanted
) -> list[ObjectKey] | None:
    """The hosts and services of which a piece tells states; None when it is there no more."""
    known = records.of_site(connection, site)
    if known is None or not piece.still(known, piece.start):
        return None
    hosts = _HOST_TYPES if wanted.hosts else ()
    types = (*hosts, *(_SERVICE_STATES if wanted.services else ()))
    found = (
        select(lines.c.host_name, lines.c.service_description, func.min(lines.c.message))
        .where(
            lines.c.site == known.id,
            lines.c.time >= piece.start,
            lines.c.time < piece.end,
            lines.c["class"].in_(_STATES),
            lines.c.type.in_(types),
        )
        .group_by(lines.c.host_name, lines.c.service_description)
    )
    return [
        (host, service_of(message, host, service))
        for host, service, message in connection.execute(found)
    ]


def _in_order(found: list[Any]) -> list[TimedLine]:
    found.sort()  # by time and number, of which no two lines have the same
    return [(time, message) for time, _, message in found]


def _chosen(connection: Connection, site: int, wanted: Wanted, *, named: bool) -> Select[Any]:
    found = select(lines.c.time, lines.c.number, lines.c.message).where(lines.c.site == site)
    if wanted.classes is not None:
        return found.where(lines.c["class"].in_(wanted.classes))
    if wanted.transitions:
        return found.where(lines.c["class"] == 6, lines.c.message.contains(_TRANSITION))
    types = [_HOST_DOWNTIME]
    if wanted.hosts:
        types += _HOST_TYPES
    if wanted.services:
        types += _SERVICE_TYPES
    states: ColumnElement[bool] = and_(lines.c["class"].in_(_STATES), lines.c.type.in_(types))
    if wanted.names is not None and len(wanted.names) <= FEW_HOSTS:
        names = sorted(wanted.names)
        position = func.strpos if connection.dialect.name == "postgresql" else func.instr
        states = and_(
            states,
            lines.c.host_name.in_(names)
            if named
            else or_(*(position(lines.c.message, f": {name};") > 0 for name in names)),
        )
    return found.where(or_(states, lines.c["class"] == _PROGRAM) if wanted.program else states)
