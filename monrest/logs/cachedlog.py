"""The log for reports: from the cache what it has for sure, all else from the core.

A time is read in up to three pieces: what is older than the cache from the core, then from the
cache, then the newest lines from the core again. The numbers of a report are the same whichever
piece a line is in (docs/spec/logcache.md, "What is sure").
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import TypeVar

from attrs import define, evolve, field, frozen
from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IReactorTime

from monrest.base.clock import WallClock
from monrest.base.errors import Unavailable
from monrest.logs import cache_records as records
from monrest.logs.cache_records import CachedSite, LogTransaction
from monrest.logs.cached_piece import CachedPiece, piece_of
from monrest.logs.importer import present
from monrest.logs.reportlines import Slice, objects_of, slice_of
from monrest.logs.source import CORES, MOST_LINES, LogSource, Wanted
from monrest.logs.state_events import ObjectKey, TimedLine
from monrest.sites.site import Site
from monrest.store.database import Database

T = TypeVar("T")

_LEFT_ALONE = 15.0
"""Seconds for which a database is not asked after it could not answer."""


@define(eq=False)
class CacheReader:
    """Reads from the cache for those who can do without it."""

    database: Database
    clock: IReactorTime
    _away_until: float = field(init=False, default=0.0)

    async def read(self, work: LogTransaction[T | None]) -> T | None:
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
        if piece is None or not _covers(piece, wanted):
            await site.verdict()
        named = site.capabilities is not None and site.capabilities.kind != "icinga2"
        if piece is not None:
            if low < piece.start:
                before = evolve(wanted, until=piece.start - 1)
                async for lines in self.core.slices(site, before):
                    yield lines
                low = piece.start

            def begin(low: int) -> Deferred[Slice | None]:
                work = slice_of(site.id, piece, wanted, low, self.most, named=named)
                return Deferred.fromCoroutine(self.reader.read(work))

            # The next slice is read while the one before is worked at.
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
        if low <= wanted.until:
            async for lines in self.core.slices(site, evolve(wanted, since=low)):
                yield lines


def _covers(piece: CachedPiece, wanted: Wanted) -> bool:
    """Whether nothing is wanted beside it."""
    return piece.start <= wanted.since and wanted.until < piece.end
