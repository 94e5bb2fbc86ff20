"""Removing old lines from the cache: repetitions first, and at some age all.

Rules: docs/spec/logcache.md, "Compaction".
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

from sqlalchemy import Connection, and_, delete, func, select, text, update
from twisted.internet.interfaces import IReactorTime

from monrest.base.clock import WallClock
from monrest.logs import cache_records as records
from monrest.logs.cache_records import UpdateLease, sites
from monrest.logs.line import DAY, repetitions
from monrest.logs.model import CachedSite
from monrest.store.database import Database, transaction
from monrest.store.tables import logcache_lines as lines

AT_ONCE = 5_000
"""Lines of one transaction, so that others who write need not wait for long."""

LineKey: TypeAlias = tuple[int, int]
"""Time and number of a line."""

_BOUNDS = ("covered_from", "covered_until", "wanted_from")
_WEIGHED = (lines.c.time, lines.c.number, lines.c["class"], lines.c.type, lines.c.message)


async def thin(
    database: Database,
    clock: IReactorTime,
    wall: WallClock,
    lease: UpdateLease,
    cached: CachedSite,
    compact: int,
    keep: int,
) -> dict[str, Any]:
    """Compact and remove what is older than these seconds, 0 for never; the figures to store.

    A day at a time, each of which is complete by itself.
    """
    date, began = wall.now(), clock.seconds()
    first = await database.run(oldest(lease.id))
    if first is None:
        return {}
    if keep:
        end = int(date - keep) // DAY * DAY
        for step in range(first // DAY * DAY + DAY, end + DAY, DAY):
            await database.change(remove(lease, wall.now(), step))
        first = max(first, end)
    end = int(date - compact) // DAY * DAY
    start = max(first // DAY * DAY, cached.compacted_until)
    if not compact or start >= end:
        return {}
    # A process that was killed may have left some of the last day behind.
    for step in range(max(first // DAY * DAY, start - DAY), end, DAY):
        await compact_day(database, wall, lease, step)
    return {"last_compact": int(date), "compact_duration": clock.seconds() - began}


async def compact_day(database: Database, wall: WallClock, lease: UpdateLease, day: int) -> None:
    """Remove the repetitions of the day that begins then."""
    doomed = await database.run(repeated(lease.id, day, day + DAY))
    for at in range(0, max(1, len(doomed)), AT_ONCE):
        part = doomed[at : at + AT_ONCE]
        await database.change(drop(lease, wall.now(), part, day + DAY))


@transaction
def repeated(connection: Connection, site: int, first: int, end: int) -> list[LineKey]:
    """The repetitions among the lines of a site with ``first <= time < end``."""
    rows = connection.execution_options(yield_per=AT_ONCE).execute(
        select(*_WEIGHED)
        .where(lines.c.site == site, lines.c.time >= first, lines.c.time < end)
        .order_by(lines.c.time, lines.c.number)
    )
    return list(repetitions(((row[0], row[1]), *row[2:]) for row in rows))


@transaction
def drop(
    connection: Connection, lease: UpdateLease, now: float, doomed: Sequence[LineKey], until: int
) -> int:
    """Remove these lines, and note that before ``until`` not all are there; count them."""
    records.hold(connection, lease, now)
    connection.execute(
        update(sites)
        .where(sites.c.id == lease.id, sites.c.compacted_until < until)
        .values(compacted_until=until)
    )
    if doomed:
        keys = [{"at_time": time, "at_number": number} for time, number in doomed]
        connection.execute(records.where_exactly(delete(lines), lease.id), keys)
        records.forget(connection, lease.id, len(doomed))
    return len(doomed)


@transaction
def remove(connection: Connection, lease: UpdateLease, now: float, end: int) -> int:
    """Remove all lines before ``end``, which are no more covered; count them."""
    rows = connection.execute(
        select(*(sites.c[name] for name in _BOUNDS)).where(sites.c.id == lease.id)
    ).one_or_none()
    given = tuple(rows) if rows is not None else ()
    later = {
        name: end
        for name, value in zip(_BOUNDS, given, strict=False)
        if value is not None and value < end
    }
    records.hold(connection, lease, now, **later)
    gone = connection.execute(
        delete(lines).where(and_(lines.c.site == lease.id, lines.c.time < end))
    ).rowcount
    if gone:
        records.forget(connection, lease.id, gone)
    return gone


def analyze(connection: Connection) -> None:
    """Let PostgreSQL analyze the tables, as it does by itself only much later.

    Without that it takes every condition for a rare one, and reads all to find the newest.
    """
    if connection.dialect.name == "postgresql":
        connection.execute(text(f"ANALYZE {lines.name}"))


@transaction
def oldest(connection: Connection, site: int) -> int | None:
    """The time of the oldest line of a site; None without any."""
    query = select(func.min(lines.c.time)).where(lines.c.site == site)
    time: int | None = connection.execute(query).scalar_one()
    return time
