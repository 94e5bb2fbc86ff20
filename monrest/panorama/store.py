"""Work for one transaction each: what the database is asked about dashboards."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any

from attrs import frozen
from sqlalchemy import Connection, delete, func, insert, select, update

from monrest.api.records import RecordLimits, StoredRecords, first_version, memory_of
from monrest.base.errors import Conflict
from monrest.config import PanoramaConfig
from monrest.panorama.model import NEW_TITLE, RUNTIME, Dashboard
from monrest.panorama.model import dashboard_backups as backups
from monrest.panorama.model import dashboard_maintenance as maintenances
from monrest.panorama.model import dashboard_runtime as runtimes
from monrest.store.database import transaction

MOST_BACKUPS = 5
BACKUP_EVERY = 600
"""Seconds between two backups at least."""

_DAY = 86400
_OLD_UNTITLED = _DAY
_OLD = 14 * _DAY


dashboards = Dashboard.table
LIMITS = RecordLimits(
    word="dashboards",
    document=dashboards.c.record,
    owner=dashboards.c.record["user"].as_string(),
    size=PanoramaConfig().memory,
    size_setting="panorama.memory",
)


@frozen
class StoredDashboards:
    """Dashboards that may be seen, what one user sees at present on them, and maintenance, by nr.

    ``numbers`` are those of all that are stored.
    """

    dashboards: list[Dashboard]
    runtime: Mapping[str, Mapping[str, Any]]
    maintenance: Mapping[str, str]
    numbers: frozenset[str]


_SETTINGS = ("title", "groups", "users")
_HEADS = select(
    *(dashboards.c[name] for name in ("nr", "changed", "version")),
    dashboards.c.record["user"].as_string().label("owner"),
    *(dashboards.c.record["tab", "xdata", name].label(name) for name in _SETTINGS),
)
"""The columns for rights and order in a list, without the document."""

_AT_ONCE = 100


@transaction
def read(
    connection: Connection,
    username: str,
    nr: str | None = None,
    may: Callable[[Mapping[str, Any]], object] = lambda _: True,
    *,
    documents: bool = True,
) -> StoredDashboards:
    """All dashboards, or the one with this number, that ``may`` be seen by ``username``.

    Without ``documents`` their records have only the owner, the title and the rights.
    """
    query, halted = _HEADS, select(maintenances)
    if nr is not None:
        query = query.where(dashboards.c.nr == nr)
        halted = halted.where(maintenances.c.nr == nr)
    rows = connection.execute(query).all()
    numbers = {}
    for row in rows:
        settings = {name: getattr(row, name) for name in _SETTINGS}
        record = {"user": row.owner, "tab": {"xdata": settings}}
        if may(record):
            numbers[row.nr] = Dashboard(
                nr=row.nr,
                record=record,
                changed=row.changed,
                version=row.version,
            )
    runtime: dict[str, Mapping[str, Any]] = {}
    seen = list(numbers) if documents else []
    for at in range(0, len(seen), _AT_ONCE):
        some = seen[at : at + _AT_ONCE]
        whole = connection.execute(select(dashboards).where(dashboards.c.nr.in_(some)))
        numbers |= {row.nr: Dashboard.of(row) for row in whole}
        present = select(runtimes).where(runtimes.c.username == username)
        for row in connection.execute(present.where(runtimes.c.nr.in_(some))):
            runtime[row.nr] = row.data
    return StoredDashboards(
        list(numbers.values()),
        runtime,
        {row.nr: row.text for row in connection.execute(halted)},
        frozenset(row.nr for row in rows),
    )


@transaction
def add(
    connection: Connection,
    first: int,
    taken: Collection[str],
    record: Mapping[str, Any],
    present: tuple[str, Mapping[str, Any]],
    now: float,
    owner: str | None = None,
    limits: RecordLimits = LIMITS,
) -> str:
    """Store a new one with the lowest free number from ``first`` on; returns it.

    ``taken`` are numbers that are in use elsewhere. ``present`` is a user's name and what this user
    sees on the panels at present.
    """
    used = {*taken, *connection.execute(select(dashboards.c.nr)).scalars()}
    number = first
    while str(number) in used:
        number += 1
    nr = str(number)
    with limits.room(connection, nr, owner):
        STORED.add(connection, nr, {"record": dict(record), "changed": int(now)})
    # That of a scripted one of this number, which was deleted as a file.
    halt(nr, None)(connection)
    _keep(connection, nr, *present)
    return nr


@transaction
def adopt(
    connection: Connection,
    nr: str,
    record: Mapping[str, Any],
    changed: int,
    past: Mapping[int, Mapping[str, Any]],
    maintenance: str | None,
) -> bool:
    """Store one of another installation, ``past`` are its backups; False when ``nr`` is taken."""
    query = select(dashboards.c.nr).where(dashboards.c.nr == nr)
    if connection.execute(query).first() is not None:
        return False
    connection.execute(
        insert(dashboards).values(
            nr=nr, record=dict(record), changed=changed, version=first_version()
        )
    )
    for at in sorted(past)[-MOST_BACKUPS:]:
        connection.execute(insert(backups).values(nr=nr, at=at, record=dict(past[at])))
    if maintenance is not None:
        halt(nr, maintenance)(connection)
    return True


@transaction
def replace(
    connection: Connection,
    old: Dashboard,
    record: Mapping[str, Any],
    present: tuple[str, Mapping[str, Any]],
    now: float,
    owner: str | None = None,
    limits: RecordLimits = LIMITS,
) -> bool:
    """Store another record instead of ``old``; False when that is not the stored one any more.

    What ``present`` says is each user's own: a change of nothing else keeps
    the version, so that it is in no other user's way.
    """
    if record == old.record:
        this = (dashboards.c.nr == old.nr) & (dashboards.c.version == old.version)
        query = update(dashboards).where(this).values(version=old.version)
        done = connection.execute(query).rowcount == 1
    else:
        values = {"record": dict(record), "changed": int(now)}
        stored = StoredRecords(Dashboard, limits)
        done = stored.replace(connection, old.nr, old.version, values, owner)
        if done:
            _back_up(connection, old, int(now))
    if done:
        _keep(connection, old.nr, *present)
    return done


def _back_up(connection: Connection, old: Dashboard, now: int) -> None:
    query = select(backups.c.at).where(backups.c.nr == old.nr).order_by(backups.c.at)
    times = list(connection.execute(query).scalars())
    if times and now - times[-1] < BACKUP_EVERY:
        return
    for at in times[: max(0, len(times) - MOST_BACKUPS + 1)]:
        connection.execute(delete(backups).where(backups.c.nr == old.nr, backups.c.at == at))
    connection.execute(insert(backups).values(nr=old.nr, at=now, record=dict(old.record)))


def _keep(connection: Connection, nr: str, username: str, data: Mapping[str, Any]) -> None:
    connection.execute(delete(runtimes).where(runtimes.c.nr == nr, runtimes.c.username == username))
    if data:
        connection.execute(insert(runtimes).values(nr=nr, username=username, data=dict(data)))
        mine = select(func.sum(memory_of(runtimes.c.data))).where(runtimes.c.username == username)
        if connection.execute(mine).scalar_one() > LIMITS.owned_size:
            raise Conflict(
                "too much is shown on panels",
                f"expected at most {LIMITS.owned_size >> 20} MB in {', '.join(sorted(RUNTIME))} "
                "of all panels that a user sees",
            )


STORED = StoredRecords(Dashboard, LIMITS)


@transaction
def remove(connection: Connection, old: Dashboard) -> bool:
    """Delete one with all that belongs to it; False when it is gone."""
    gone = STORED.remove(connection, old.nr, old.version)
    if gone:
        halt(old.nr, None)(connection)
    return gone


@transaction
def halt(connection: Connection, nr: str, text: str | None) -> None:
    """Put one into maintenance, or end that with None."""
    connection.execute(delete(maintenances).where(maintenances.c.nr == nr))
    if text is not None:
        connection.execute(insert(maintenances).values(nr=nr, text=text))


@transaction
def former(connection: Connection, nr: str) -> list[tuple[int, Mapping[str, Any]]]:
    """Return the backups of one, the newest first: until when each was in force, and its record."""
    query = select(backups).where(backups.c.nr == nr).order_by(backups.c.at.desc())
    return [(row.at, row.record) for row in connection.execute(query)]


@transaction
def clean(connection: Connection, now: float) -> list[str]:
    """Delete old dashboards without panels; returns their numbers."""
    query = select(dashboards).where(dashboards.c.changed <= int(now) - _OLD_UNTITLED)
    gone = [
        dashboard
        for dashboard in map(Dashboard.of, connection.execute(query))
        if not dashboard.panels
        and (dashboard.title == NEW_TITLE or dashboard.changed <= now - _OLD)
    ]
    for dashboard in gone:
        remove(dashboard)(connection)
    return sorted(dashboard.nr for dashboard in gone)
