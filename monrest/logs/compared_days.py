"""Closed days of the log cache, compared with what the core counts (docs/spec/logcache.md).

A core may give a log in part: it answers 200, and lines are missing. So the lines of a day are
counted in the cache and by the core, class by class, and a day of which the core counts more is
not used. Once a day was compared with two runs of the core it is settled, because a core reads
its files anew after each start.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TypeAlias

from attrs import asdict, frozen
from sqlalchemy import Connection, delete, func, select

from monrest.base.values import Row
from monrest.logs import cache_records as records
from monrest.logs.cache_records import UpdateLease
from monrest.logs.line import DAY
from monrest.query.model import CoreFilter, Pushed, Stat, Test
from monrest.store.database import transaction
from monrest.store.tables import logcache_days as days
from monrest.store.tables import logcache_lines as lines

AGAIN = 3600
"""Seconds after which a day that is not complete is compared once more."""

_CLASSES = range(8)
_OTHER = -1

Count: TypeAlias = Counter[int]
"""Lines by class; those of unknown classes together."""


def floor(time: int) -> int:
    """The beginning of the day of a moment."""
    return time // DAY * DAY


def ceil(time: int) -> int:
    """The beginning of a day at a moment or next after it."""
    return -(-time // DAY) * DAY


@frozen(kw_only=True)
class Day:
    """What is known of one day: ``lines`` in the cache, and what the core counted.

    ``missing``: how many more lines the core has; ``gone``: how many it has no more. ``since``:
    when the core was started that said so, at ``compared``.
    """

    day: int
    lines: int
    missing: int
    gone: int
    compared: int
    since: int
    settled: bool

    def due(self, since: int, now: float) -> bool:
        """Whether it is to be compared again with a core that runs ``since`` then."""
        if self.missing:
            return since != self.since or not 0 <= now - self.compared < AGAIN
        return not self.settled and since != self.since


def counting(bounds: CoreFilter) -> Pushed:
    """The question for the lines of each class within some bounds."""
    each = [Stat("count", filter=Test("class", "=", str(number))) for number in _CLASSES]
    return Pushed(table="log", filter=bounds, stats=(Stat("count"), *each), waits_long=True)


def told(rows: Sequence[Row]) -> Count:
    """What a core has answered to that."""
    whole, *each = (int(value) for value in rows[0]) if rows else (0,)
    found = Counter(dict(zip(_CLASSES, each, strict=False)))
    found[_OTHER] = whole - sum(each)
    return +found


def among(rows: Sequence[Row]) -> Count:
    """How many of these rows, each with its class alone, are of each class."""
    known = frozenset(_CLASSES)
    return Counter(int(one) if one in known else _OTHER for (one,) in rows)


@transaction
def counted(connection: Connection, site: int, start: int, end: int) -> Count:
    """The lines of each class with ``start <= time < end``."""
    query = (
        select(lines.c["class"], func.count())
        .where(lines.c.site == site, lines.c.time >= start, lines.c.time < end)
        .group_by(lines.c["class"])
    )
    found: Count = Counter()
    for number, count in connection.execute(query):
        found[number if number in _CLASSES else _OTHER] += count
    return found


@transaction
def known(connection: Connection, site: int) -> dict[int, Day]:
    """All days that were compared, by their beginnings."""
    query = select(days).where(days.c.site == site)
    found = {}
    for row in connection.execute(query).mappings():
        values = {name: value for name, value in row.items() if name != "site"}
        found[row["day"]] = Day(**values)
    return found


@transaction
def note(connection: Connection, lease: UpdateLease, now: float, noted: Sequence[Day]) -> None:
    """Note what became of some days."""
    which = [one.day for one in noted]
    values = [{"site": lease.id, **asdict(one)} for one in noted]
    records.hold(connection, lease, now)
    connection.execute(delete(days).where(days.c.site == lease.id, days.c.day.in_(which)))
    connection.execute(days.insert(), values)


def due(found: Mapping[int, Day], first: int, end: int, since: int, now: float) -> list[int]:
    """The days from ``first`` to before ``end`` that are to be compared, the newest first."""
    return [
        day
        for day in range(end - DAY, first - DAY, -DAY)
        if day not in found or found[day].due(since, now)
    ]
