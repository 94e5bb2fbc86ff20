"""Transactions on the log cache: who may write for a site, what is covered, lines in and out.

Every function returns work for ``Database.run`` or ``Database.change``. A write renews the
lease of its writer in the same transaction, and is undone when another process holds it by now; so
two updaters of a cluster can never both write, however long one of them slept. A dead one is found
by ``Leases``, which compares no clocks of two machines.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from operator import attrgetter, itemgetter
from types import MappingProxyType
from typing import Any, TypeAlias

from attrs import define, evolve, field, frozen
from sqlalchemy import Connection, bindparam, delete, func, select, text, update

from monrest.base.errors import LostError, Unavailable
from monrest.logs.line import LINENO, MESSAGE, TIME, LogLine, sizes
from monrest.logs.model import CachedSite
from monrest.store.database import Database, transaction
from monrest.store.duties import Heartbeats, boot_time
from monrest.store.tables import logcache_lines as lines

sites = CachedSite.table

LEASE = 20.0
"""Seconds that a lease holds unless it is renewed; a dead updater is followed within 30 s."""

Held: TypeAlias = tuple[str, float]
"""The holder of a lease, and the value of its last renewal, which differs each time."""


class LeaseLostError(LostError):
    """Another process updates the site by now."""


@frozen(kw_only=True)
class UpdateLease:
    """The right to change the lines of one site: the site's number and who holds it."""

    id: int
    owner: str


_NOBODY: Mapping[int, Held] = MappingProxyType({})

# Two nodes may come with the same new site at the same time.
_FIRST = text(
    f"INSERT INTO {sites.name} (site, compacted_until, items, data_size, index_size,"  # noqa: S608  a name of ours
    " update_duration, compact_duration, mode, mode_since, owner, owned_until)"
    " VALUES (:site, 0, 0, 0, 0, 0, 0, '', 0, '', 0) ON CONFLICT (site) DO NOTHING"
)


@transaction
def acquire(
    connection: Connection,
    site: str,
    owner: str,
    mode: str,
    now: float,
    gone: Mapping[int, Held] = _NOBODY,
) -> CachedSite | None:
    """Take the lease of ``site`` and return its record; None while another process holds the lease.

    ``owner`` begins with a name that at most one living process has, up to a colon: what a former
    process of that name held is free. So is one that was not renewed since it was seen ``gone``.
    """
    name = owner.partition(":")[0]
    connection.execute(_FIRST, {"site": site})
    query = select(sites.c.id, sites.c.owner, sites.c.owned_until)
    row = connection.execute(query.where(sites.c.site == site).with_for_update()).one()
    held = (row.owner, row.owned_until)
    if row.owner and row.owner.partition(":")[0] != name and gone.get(row.id) != held:
        return None
    connection.execute(
        update(sites)
        .where(sites.c.id == row.id)
        .values(owner=owner, owned_until=now + LEASE, mode=mode, mode_since=int(now))
    )
    return record(site)(connection)


def held(connection: Connection) -> dict[int, Held]:
    """All leases that a process holds, or held when it died, by the number of the site."""
    query = select(sites.c.id, sites.c.owner, sites.c.owned_until).where(sites.c.owner != "")
    return {row.id: (row.owner, row.owned_until) for row in connection.execute(query)}


@transaction
def renew(connection: Connection, lease: UpdateLease, now: float) -> None:
    """Hold the lease for longer; raises LeaseLostError."""
    hold(connection, lease, now)


@transaction
def release(connection: Connection, /, lease: UpdateLease, **values: Any) -> None:
    """Give the lease back, and note ``values``; that of another process is left alone."""
    connection.execute(
        update(sites)
        .where(sites.c.id == lease.id, sites.c.owner == lease.owner)
        .values(owner="", owned_until=0, mode="", **values)
    )


def hold(connection: Connection, lease: UpdateLease, now: float, **values: Any) -> None:
    """Hold the lease for longer and note ``values``; raises LeaseLostError."""
    held = connection.execute(
        update(sites)
        .where(sites.c.id == lease.id, sites.c.owner == lease.owner)
        .values(owned_until=now + LEASE, **values)
    )
    if held.rowcount != 1:
        raise LeaseLostError("another daemon updates the log cache of the site by now")


# What a holder writes with each renewal of a lease is a beat to the others: where it stands still
# for as long as a lease holds, as this daemon measures, the holder is gone. That no clock of one
# machine is compared with another's, and that a paused holder cannot write, is as with
# ``store.duties``.

LOOK = 2.5
"""Seconds between two looks."""


@define(eq=False)
class Leases:
    """``gone`` are the leases whose holders are, by the number of the site."""

    database: Database
    timer: Callable[[], float] = field(default=boot_time, kw_only=True)
    gone: Mapping[int, Held] = field(init=False, factory=dict)
    _beats: Heartbeats[Held] = field(init=False, factory=lambda: Heartbeats(2 * LOOK))

    async def look(self) -> None:
        """See which leases were renewed since the last look."""
        began = self.timer()
        try:
            leases = await self.database.run(held)
        except Unavailable:
            # No holder can renew meanwhile: that time does not count against any.
            self._beats.missed()
            return
        stands = self._beats.look(leases, began, self.timer())
        self.gone = {site: leases[site] for site, still in stands.items() if still >= LEASE}

    def living(self, cached: CachedSite) -> bool:
        """Whether a living process holds the lease of a site, as far as this daemon knows."""
        return bool(cached.owner) and self.gone.get(cached.id) != (cached.owner, cached.owned_until)


@transaction
def record(connection: Connection, site: str) -> CachedSite | None:
    """The record of ``site``; None before its first import."""
    cached = of_site(connection, site)
    if cached is None:
        return None
    newest = select(func.max(lines.c.time)).where(lines.c.site == cached.id)
    return evolve(cached, last_entry=connection.execute(newest).scalar_one())


@transaction
def cached_site(connection: Connection, site: str) -> CachedSite | None:
    """What is noted about ``site``, without looking at its lines."""
    return of_site(connection, site)


def of_site(connection: Connection, site: str) -> CachedSite | None:
    """What is noted about ``site``, without looking at its lines."""
    row = connection.execute(select(sites).where(sites.c.site == site)).one_or_none()
    return None if row is None else CachedSite.of(row)


def updates(connection: Connection) -> list[tuple[str, float, int]]:
    """The id of each site, its last update and the number of its lines."""
    query = select(sites.c.site, sites.c.last_update, sites.c["items"])
    return [(site, last, items) for site, last, items in connection.execute(query) if last]


@frozen
class LinesWritten:
    """The number of lines that a transaction has added and removed."""

    added: int = 0
    removed: int = 0


@transaction
def write(
    connection: Connection,
    /,
    lease: UpdateLease,
    now: float,
    given: Sequence[LogLine],
    **covered: int,
) -> LinesWritten:
    """Store those of ``given`` that are not there yet, and what is covered now.

    ``given`` are all lines of the core between the first one's time and the last one's. A line is
    known by its time and text, and two with the same are two lines when the core has two. Numbers
    of lines in their file follow the core's.
    """
    hold(connection, lease, now, **covered)
    if not given:
        return LinesWritten()
    there = _present(connection, lease.id, given[0][TIME], given[-1][TIME])
    fresh, _ = _merge(connection, lease.id, given, there)
    return LinesWritten(added=len(fresh))


@transaction
def replace(
    connection: Connection,
    lease: UpdateLease,
    now: float,
    given: Sequence[LogLine],
    start: int,
    end: int,
) -> LinesWritten:
    """Make ``given`` all lines that are there with ``start <= time < end``."""
    hold(connection, lease, now)
    there = _present(connection, lease.id, start, end - 1)
    fresh, left = _merge(connection, lease.id, given, there)
    if left:
        connection.execute(where_exactly(delete(lines), lease.id), left)
        forget(connection, lease.id, len(left))
    return LinesWritten(added=len(fresh), removed=len(left))


def _merge(
    connection: Connection, site: int, given: Sequence[LogLine], there: _Known
) -> tuple[list[LogLine], list[dict[str, int]]]:
    """Store what is not there yet; the new lines, and the keys of those that were not given."""
    fresh, moved, left = _compared(given, there)
    if moved:
        connection.execute(
            where_exactly(update(lines), site).values(lineno=bindparam("new")), moved
        )
    if fresh:
        insert_lines(connection, _numbered(site, fresh, there))
        data, index = sizes(fresh)
        _count(connection, site, len(fresh), data, index)
    return fresh, left


@define
class _Present:
    """A line that is there: its number in its file, and ours in its second."""

    lineno: int
    number: int


_Known: TypeAlias = Mapping[tuple[int, str], list[_Present]]


def _present(connection: Connection, site: int, first: int, last: int) -> _Known:
    """The stored lines, by time and text."""
    stored_lines: dict[tuple[int, str], list[_Present]] = defaultdict(list)
    rows = connection.execute(
        select(lines.c.time, lines.c.message, lines.c.lineno, lines.c.number).where(
            lines.c.site == site, lines.c.time.between(first, last)
        )
    )
    for time, message, lineno, number in rows:
        stored_lines[time, message].append(_Present(lineno, number))
    return stored_lines


def _compared(
    given: Sequence[LogLine], there: _Known
) -> tuple[list[LogLine], list[dict[str, int]], list[dict[str, int]]]:
    """Lines that are new, those present with another number in their file, and those not given."""
    fresh: list[LogLine] = []
    again: dict[tuple[int, str], list[LogLine]] = defaultdict(list)
    for line in given:
        key = (line[TIME], line[MESSAGE])
        if key in there:
            again[key].append(line)
        else:
            fresh.append(line)
    moved: list[dict[str, int]] = []
    left: list[dict[str, int]] = []
    for key, known in there.items():
        # Equal lines of a second are distinguished by their order in the file.
        same = sorted(again[key], key=itemgetter(LINENO))
        known.sort(key=attrgetter("lineno"))
        for line, present in zip(same, known, strict=False):
            if line[LINENO] != present.lineno:
                moved.append({**_key(key, present), "new": line[LINENO]})
        fresh += same[len(known) :]
        left += [_key(key, present) for present in known[len(same) :]]
    return fresh, moved, left


def _key(key: tuple[int, str], line: _Present) -> dict[str, int]:
    return {"at_time": key[0], "at_number": line.number}


def _numbered(site: int, fresh: Sequence[LogLine], there: _Known) -> list[tuple[Any, ...]]:
    """New lines as rows of the table, numbered behind those of the same second."""
    highest: dict[int, int] = {}
    for (time, _), stored_lines in there.items():
        highest[time] = max(highest.get(time, -1), *(line.number for line in stored_lines))
    rows = []
    for line in fresh:
        time = line[TIME]
        number = highest[time] = highest.get(time, -1) + 1
        rows.append((site, time, line[LINENO], number, *line[2:]))
    return rows


def where_exactly(statement: Any, site: int) -> Any:
    """The statement for single lines of a site, given as ``at_time`` and ``at_number``."""
    return statement.where(
        lines.c.site == site,
        lines.c.time == bindparam("at_time"),
        lines.c.number == bindparam("at_number"),
    )


def forget(connection: Connection, site: int, items: int) -> None:
    """Count lines less, and their share of the sizes."""
    row = connection.execute(
        select(sites.c["items"], sites.c.data_size, sites.c.index_size).where(sites.c.id == site)
    ).one()
    before, data, index = row
    left = max(0, before - items)
    share = left / before if before else 0
    connection.execute(
        update(sites)
        .where(sites.c.id == site)
        .values(items=left, data_size=int(data * share), index_size=int(index * share))
    )


def _count(connection: Connection, site: int, items: int, data: int, index: int) -> None:
    connection.execute(
        update(sites)
        .where(sites.c.id == site)
        .values(
            items=sites.c["items"] + items,
            data_size=sites.c.data_size + data,
            index_size=sites.c.index_size + index,
        )
    )


# PostgreSQL has a partition for each stretch of thirty days, made when its first line comes; lines
# get there by COPY. SQLite takes prepared statements.

SPAN = 30 * 86400
"""Seconds of one partition; the first one begins with the epoch."""

_LOCK = 0x6C6F6773  # "logs"; any number that others do not use
_NAMES = ", ".join(f'"{column.name}"' for column in lines.columns)
_INSERT = f"INSERT INTO {lines.name} ({_NAMES}) VALUES ({', '.join('?' * len(lines.columns))})"  # noqa: S608  names of ours
_COPY = f"COPY {lines.name} ({_NAMES}) FROM STDIN"
_TIME = 1


def insert_lines(connection: Connection, rows: Sequence[tuple[Any, ...]]) -> None:
    """Insert rows with the values of all columns in the order of the table."""
    if connection.dialect.name != "postgresql":
        connection.exec_driver_sql(_INSERT, list(rows))
        return
    _make_room(connection, {row[_TIME] // SPAN for row in rows})
    with connection.connection.cursor() as cursor, cursor.copy(_COPY) as copy:  # type: ignore[attr-defined]  # psycopg's cursor
        for row in rows:
            copy.write_row(row)


def _make_room(connection: Connection, numbers: set[int]) -> None:
    """Make the partitions that are missing.

    Made apart and attached, which unlike making them in place does not wait for readers.
    """
    missing = [number for number in sorted(numbers) if not _is_there(connection, number)]
    if not missing:
        return
    connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": _LOCK})
    for number in missing:
        name = _partition(number)
        if _is_there(connection, number):  # made while we waited for the lock
            continue
        bounds = f"FROM ({number * SPAN}) TO ({(number + 1) * SPAN})"
        connection.execute(text(f"CREATE TABLE {name} (LIKE {lines.name} INCLUDING ALL)"))
        connection.execute(
            text(f"ALTER TABLE {lines.name} ATTACH PARTITION {name} FOR VALUES {bounds}")
        )


def _is_there(connection: Connection, number: int) -> bool:
    name = connection.execute(text("SELECT to_regclass(:name)"), {"name": _partition(number)})
    return name.scalar_one() is not None


def _partition(number: int) -> str:
    return f"{lines.name}_{number}" if number >= 0 else f"{lines.name}_before_{-number}"
