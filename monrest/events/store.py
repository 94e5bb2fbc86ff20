"""Work for one transaction each: what the database is asked about events (docs/spec/events.md)."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from attrs import evolve
from sqlalchemy import ColumnElement, Connection, delete, func, insert, select, update
from sqlalchemy.exc import IntegrityError

from monrest.events.model import OWN, Coverage, Event, Place
from monrest.store.database import transaction
from monrest.store.space import require_space
from monrest.store.tables import duties

KEPT = 7 * 86400.0
"""Seconds after which events are removed."""

MOST_KEPT = 1_000_000

SLICE = 200
"""Events that are read in one transaction."""

_CLEANED = 1_000
"""The number of new events after which old ones are removed."""

_TRIES = 5

events, event_sites = Event.table, Coverage.table


def last(connection: Connection) -> int:
    """The last number of an event, or of the beginning of a coverage."""
    numbers = (func.max(events.c.number), func.max(event_sites.c.first))
    return max(connection.execute(select(number)).scalar() or 0 for number in numbers)


@transaction
def behind(connection: Connection, number: int) -> list[Event]:
    """The next events behind a number."""
    return _read(connection, events.c.number > number, events.c.number)


@transaction
def of_log(connection: Connection, site: str, low: int, place: Place, end: int) -> list[Event]:
    """The next events of the log of a site from the second ``low`` on that are behind ``place``.

    Only those with numbers up to ``end``.
    """
    second = events.c.time
    this = (
        (events.c.site == site)
        & events.c.nth.is_not(None)
        & (second >= low)
        & ((second > place.time) | ((second == place.time) & (events.c.nth > place.number)))
        & (events.c.number <= end)
    )
    return _read(connection, this, second, events.c.nth)


def _read(
    connection: Connection, this: ColumnElement[bool], *order: ColumnElement[object]
) -> list[Event]:
    query = select(events).where(this).order_by(*order).limit(SLICE)
    return [Event.of(row) for row in connection.execute(query)]


@transaction
def before(connection: Connection, time: int) -> int:
    """The number before those from ``time`` on: one that was seen late is behind younger ones."""
    first = connection.execute(select(func.min(events.c.number)).where(events.c.time >= time))
    number = first.scalar()
    return last(connection) if number is None else int(number) - 1


@transaction
def number_of(connection: Connection, name: str) -> int | None:
    return connection.execute(select(events.c.number).where(events.c.name == name)).scalar()


def kept(connection: Connection) -> tuple[int, int]:
    """The number behind which no event was removed, and the last one."""
    query = select(func.max(event_sites.c.first)).where(event_sites.c.site == OWN)
    return connection.execute(query).scalar() or 0, last(connection)


def _coverages(connection: Connection) -> list[Coverage]:
    query = select(event_sites).order_by(event_sites.c.first)
    return [Coverage.of(row) for row in connection.execute(query)]


def coverage(connection: Connection) -> dict[str, Coverage]:
    """The last one of each site."""
    return {coverage.site: coverage for coverage in _coverages(connection)}


@transaction
def watched(connection: Connection, duty: str) -> set[str]:
    """The sites that the holder of the duty watches."""
    query = (
        select(event_sites.c.site)
        .join(duties, duties.c.number == event_sites.c.token)
        .where(duties.c.name == duty, duties.c.run != 0)
    )
    return set(connection.execute(query).scalars())


def _last_place(connection: Connection, site: str, end: int) -> Place:
    """The place of the last event of a site's log with a number up to ``end``."""
    query = (
        select(events.c.time, events.c.nth)
        .where(events.c.site == site, events.c.nth.is_not(None), events.c.number <= end)
        .order_by(events.c.time.desc(), events.c.nth.desc())
        .limit(1)
    )
    row = connection.execute(query).one_or_none()
    return Place(0) if row is None else Place(int(row.time), row.nth)


@transaction
def uncovered(
    connection: Connection, sites: Collection[str], number: int, now: float
) -> dict[str, Place]:
    """The sites of which not all events behind a number are stored, with their places then."""
    known_sites = _coverages(connection)
    places = {}
    for site in sites:
        coverages = [row for row in known_sites if row.site == site]
        before = [coverage for coverage in coverages if coverage.first <= number]
        if before and before[-1] is coverages[-1]:
            continue
        if before:
            places[site] = max(_last_place(connection, site, number), Place(before[-1].since))
        else:
            numbers = events.c.number
            near = select(func.max(numbers)).where(numbers <= number).scalar_subquery()
            time = select(events.c.time).where(numbers == near)
            places[site] = Place(int(connection.execute(time).scalar() or now))
    return places


@transaction
def continued(connection: Connection, site: str, since: int) -> Place | None:
    """The place from which the log of a site is read; None if it is before the second ``since``."""
    rows = [row for row in _coverages(connection) if row.site == site]
    if not rows:
        return None
    place = max(_last_place(connection, site, last(connection)), Place(rows[-1].since))
    return place if place.time >= since else None


@transaction
def begin(connection: Connection, site: str, since: int) -> None:
    """Note that all events of a site's log from the second ``since`` on are stored from now on."""
    coverage = Coverage(site=site, since=since, first=last(connection) + 1)
    connection.execute(insert(event_sites).values(coverage.values()))


@transaction
def note_watched(connection: Connection, site: str, token: int) -> None:
    """A site is watched: streams that begin in other processes need not wait any more."""
    this = event_sites.c.site == site
    connection.execute(update(event_sites).where(this).values(token=token))


@transaction
def add(connection: Connection, arrived: Sequence[Event], now: float) -> None:
    """Add those whose names are not stored yet behind all others.

    A process that takes the same number waits, and tries another: so a smaller number is never
    seen after a greater one.
    """
    require_space(connection)
    for left in reversed(range(_TRIES)):
        new = _new(connection, arrived)
        if not new:
            return
        first = last(connection) + 1
        rows = [evolve(event, number=first + at).values() for at, event in enumerate(new)]
        try:
            with connection.begin_nested():
                connection.execute(insert(events), rows)
        except IntegrityError:
            if not left:
                raise
            continue
        if first // _CLEANED != (first + len(rows)) // _CLEANED:
            _clean(connection, now - KEPT, first)
        return


def _clean(connection: Connection, old: float, first: int) -> None:
    """Remove what is too old or too much, and note behind which number nothing was removed."""
    spare = connection.execute(select(events.c.time).where(events.c.number == first - MOST_KEPT))
    old = max(old, spare.scalar() or 0.0)
    gone = delete(events).where(events.c.time < old, events.c.number < first)
    if not connection.execute(gone).rowcount:
        return
    coverages = _coverages(connection)
    latest = {row.site: row.first for row in coverages}
    for row in coverages:
        this = (event_sites.c.site == row.site) & (event_sites.c.first == row.first)
        if row.since < old and row.first < latest[row.site]:
            connection.execute(delete(event_sites).where(this))
        elif row.since < old:
            connection.execute(update(event_sites).where(this).values(since=int(old) + 1))
    left = connection.execute(select(func.min(events.c.number))).scalar()
    connection.execute(delete(event_sites).where(event_sites.c.site == OWN))
    own = Coverage(site=OWN, since=int(old), first=first - 1 if left is None else left - 1)
    connection.execute(insert(event_sites).values(own.values()))


def _new(connection: Connection, arrived: Sequence[Event]) -> list[Event]:
    """The events whose names are not stored yet, each name once."""
    taken: set[str | None] = set()
    names = [event.name for event in arrived if event.name is not None]
    for at in range(0, len(names), SLICE):
        some = events.c.name.in_(names[at : at + SLICE])
        taken.update(connection.execute(select(events.c.name).where(some)).scalars())
    new: list[Event] = []
    for event in arrived:
        if event.name is None or event.name not in taken:
            new.append(event)
            taken.add(event.name)
    return new
