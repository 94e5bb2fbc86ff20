"""Transactions about recurring downtimes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import tzinfo
from typing import Any

from sqlalchemy import Connection, delete, insert, select, update

from monrest.api.records import RecordLimits
from monrest.api.recurring import RecurringRecords
from monrest.base.schedule import between
from monrest.downtimes.model import Downtime, Occurrence
from monrest.store.database import transaction

_LATEST = 31 * 86400
"""Seconds after which an occurrence that was not triggered is given up."""
_MOST_AT_ONCE = 100
_KEPT = 7 * 86400


downtimes, occurrences = Downtime.table, Occurrence.table
LIMITS = RecordLimits(
    word="recurring downtimes",
    document=downtimes.c.record,
    owner=downtimes.c.record["created_by"].as_string(),
)


def _occur(
    connection: Connection, downtime: Downtime, first: float, now: float, zone: tzinfo
) -> int:
    """Make the occurrences from ``first`` to ``now``; how many come too late to be of use."""
    after = max(first - 1.0, now - _LATEST)
    times = between(downtime.crons(), after, now, zone, _MOST_AT_ONCE)
    rows = [
        Occurrence(downtime=downtime, at=at, until=downtime.until(at)).values()
        for at in times
        if downtime.until(at) > now
    ]
    if rows:
        query = select(occurrences.c.at).where(
            occurrences.c.downtime == downtime.number, occurrences.c.at >= rows[0]["at"]
        )
        stored = set(connection.execute(query).scalars())
        rows = [row for row in rows if row["at"] not in stored]
    if rows:
        connection.execute(insert(occurrences), rows)
    return sum(downtime.until(at) <= now for at in times)


def _clean(connection: Connection, now: float) -> None:
    connection.execute(
        delete(occurrences).where(~occurrences.c.open, occurrences.c.until < now - _KEPT)
    )


STORED = RecurringRecords(Downtime, LIMITS, _occur, _clean)


def versions(connection: Connection) -> dict[int, int]:
    """The version of each downtime by number, which is another after every write."""
    query = select(downtimes.c.number, downtimes.c.version)
    return {row.number: row.version for row in connection.execute(query)}


def _values(
    record: Mapping[str, Any], sites: Mapping[str, str], now: float, zone: tzinfo
) -> dict[str, Any]:
    next_at = STORED.first_time(record, now, zone)
    return {"record": dict(record), "sites": dict(sites), "next_at": next_at}


@transaction
def several(connection: Connection, number: int | None = None) -> list[Downtime]:
    """All recurring downtimes, or the one with this number."""
    return STORED.read(connection, number)


@transaction
def remove(connection: Connection, old: Downtime) -> bool:
    return STORED.remove(connection, old.number, old.version)


@transaction
def add(
    connection: Connection,
    first: int,
    record: Mapping[str, Any],
    sites: Mapping[str, str],
    now: float,
    zone: tzinfo,
    owner: str | None = None,
) -> int:
    """Store a new one with the first free number from ``first`` on; returns the number."""
    return STORED.add_number(connection, first, _values(record, sites, now, zone), owner)


@transaction
def adopt(
    connection: Connection,
    number: int,
    record: Mapping[str, Any],
    sites: Mapping[str, str],
    now: float,
    zone: tzinfo,
) -> bool:
    """Store one of another installation; False when its number is taken. Nothing is caught up."""
    values = _values(record, sites, now, zone)
    return STORED.adopt(connection, number, values)


@transaction
def replace(
    connection: Connection,
    old: Downtime,
    record: Mapping[str, Any],
    sites: Mapping[str, str],
    now: float,
    zone: tzinfo,
    owner: str | None = None,
) -> bool:
    """Store another record instead of ``old``; False when that is not the stored one any more.

    Times of the old schedule that have come are occurrences before that.
    """
    values = {**_values(record, sites, now, zone), "error": None, "failure": None}
    return STORED.reschedule(connection, old, values, now, zone, owner)


@transaction
def report(connection: Connection, of: Downtime, error: str | None) -> bool:
    """Store what is wrong with one, None for nothing; True when that is news.

    Not for one that was written again since it was looked at.
    """
    query = update(downtimes).where(
        downtimes.c.number == of.number,
        downtimes.c.version == of.version,
        downtimes.c.error.is_distinct_from(error),
    )
    return connection.execute(query.values(error=error)).rowcount == 1


def unfinished(connection: Connection) -> list[Occurrence]:
    """All occurrences that are not done, the oldest first."""
    query = (
        select(occurrences, downtimes)
        .join(downtimes, downtimes.c.number == occurrences.c.downtime)
        .where(occurrences.c.open)
        .order_by(occurrences.c.at, occurrences.c.downtime)
    )
    return [Occurrence.of(row) for row in connection.execute(query)]


def _this(occurrence: Occurrence) -> Any:
    return (occurrences.c.downtime == occurrence.downtime.number) & (
        occurrences.c.at == occurrence.at
    )


@transaction
def begin(connection: Connection, occurrence: Occurrence, number: int) -> bool:
    """Take an occurrence for the holder of the duty with this number, which then sends commands.

    False when it is done, gone or was taken since it was read.
    """
    query = update(occurrences).where(
        _this(occurrence),
        occurrences.c.open,
        occurrences.c.attempts == occurrence.attempts,
        occurrences.c.number <= number,
    )
    values = query.values(number=number, attempts=occurrence.attempts + 1)
    return connection.execute(values).rowcount == 1


@transaction
def note(
    connection: Connection,
    occurrence: Occurrence,
    accepted: Mapping[str, Sequence[str]],
    error: str | None,
    failure: str | None,
    *,
    done: bool,
) -> None:
    """Store the answers of the cores; ``done``: there is nothing left to try.

    What went wrong is not that of a record that was written meanwhile.
    """
    query = (
        update(occurrences).where(_this(occurrence)).values(accepted=dict(accepted), open=not done)
    )
    connection.execute(query)
    connection.execute(
        update(downtimes)
        .where(
            downtimes.c.number == occurrence.downtime.number,
            downtimes.c.version == occurrence.downtime.version,
        )
        .values(error=error, failure=failure)
    )
