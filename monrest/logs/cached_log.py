"""The log for reports: from the cache what it has for sure, all else from the core.

A time is read in up to three pieces: what is older than the cache from the core, then from the
cache, then the newest lines from the core again. The numbers of a report do not depend on
which piece a line is in (docs/spec/logcache.md, "What is sure").
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence

from attrs import evolve, frozen
from sqlalchemy import Connection, func, select

from monrest.base.clock import WallClock
from monrest.logs import cache_records as records
from monrest.logs.importer import present
from monrest.logs.line import service_of
from monrest.logs.model import CachedPiece, CachedSite, piece_of
from monrest.logs.reader import CachedSlices, CacheQuestion, CacheReader
from monrest.logs.source import (
    CORES,
    HOST_STATES,
    MOST_LINES,
    SERVICE_STATES,
    LogSource,
    Wanted,
    cache_filter,
)
from monrest.logs.state_events import ObjectKey, TimedLine
from monrest.query.model import Pushed
from monrest.sites.site import Site
from monrest.store.database import transaction
from monrest.store.tables import logcache_lines as lines

_STATES = (1, 6)


@frozen(kw_only=True)
class CachedLog:
    """A LogSource. While the database is away the core alone is asked."""

    reader: CacheReader
    wall: WallClock
    core: LogSource = CORES
    most: int = MOST_LINES

    async def objects(self, site: Site, wanted: Wanted) -> list[ObjectKey] | None:
        """The hosts and services with states in the log; None unless all of it is in the cache."""
        cached = await self.reader.read(records.cached_site(site.id))
        piece = self._piece(site, cached, wanted)
        if cached is None or piece is None or not _covers(piece, wanted):
            return None
        return await self.reader.read(objects_of(site.id, piece, wanted))

    def _piece(self, site: Site, cached: CachedSite | None, wanted: Wanted) -> CachedPiece | None:
        now = present(site, self.wall)
        return piece_of(cached, wanted.since, wanted.until + 1, wanted.texts, now)

    async def slices(self, site: Site, wanted: Wanted) -> AsyncIterator[Sequence[TimedLine]]:
        """See ``LogSource``. A site that is down is not asked where the cache has everything."""
        low = wanted.since
        record = await self.reader.read(records.cached_site(site.id))
        piece = self._piece(site, record, wanted)
        begins = piece is not None and piece.start <= low and wanted.classes is not None
        if piece is None or not (begins or _covers(piece, wanted)):
            await site.verdict()
        named = site.capabilities is not None and not site.capabilities.icinga2
        if piece is not None:
            if low < piece.start:
                before = evolve(wanted, until=piece.start - 1)
                async for some in self.core.slices(site, before):
                    yield some
            pushed = Pushed(
                table="log",
                columns=("time", "number", "message"),
                filter=cache_filter(wanted, named=named),
            )
            cached = CachedSlices(
                reader=self.reader,
                site=site.id,
                piece=piece,
                question=CacheQuestion(pushed=pushed),
            )
            async for rows in cached.slices(self.most, site.memory.room):
                # No two lines have the same time and number.
                yield [(time, message) for time, _, message in sorted(rows)]
            low = cached.reached
        if low <= wanted.until:
            async for some in self.core.slices(site, evolve(wanted, since=low)):
                yield some


def _covers(piece: CachedPiece, wanted: Wanted) -> bool:
    """Whether nothing is wanted beside it."""
    return piece.start <= wanted.since and wanted.until < piece.end


@transaction
def objects_of(
    connection: Connection, site: str, piece: CachedPiece, wanted: Wanted
) -> list[ObjectKey] | None:
    """The hosts and services with states in a piece; None when it is not in the cache any more."""
    cached = records.of_site(connection, site)
    if cached is None or not piece.still(cached, piece.start):
        return None
    hosts = HOST_STATES if wanted.hosts else ()
    types = (*hosts, *(SERVICE_STATES if wanted.services else ()))
    rows = (
        select(lines.c.host_name, lines.c.service_description, func.min(lines.c.message))
        .where(
            lines.c.site == cached.id,
            lines.c.time >= piece.start,
            lines.c.time < piece.end,
            lines.c["class"].in_(_STATES),
            lines.c.type.in_(types),
        )
        .group_by(lines.c.host_name, lines.c.service_description)
    )
    return [
        (host, service_of(message, host, service))
        for host, service, message in connection.execute(rows)
    ]
