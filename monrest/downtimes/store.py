"""Transactions about recurring downtimes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import tzinfo
from typing import Any

from attrs import frozen
from sqlalchemy import Connection, Row, delete, insert, select, update

from monrest.api.records import RecordLimits, StoredRecords
from monrest.base.schedule import between, following
from monrest.downtimes.model import Downtime
from monrest.store import recurring
from monrest.store.database import Work
from monrest.store.tables import downtime_occurrences as occurrences
from monrest.store.tables import recurring_downtimes as downtimes

_LATEST = 31 * 86400
"""Seconds after which an occurrence that was not triggered is given up."""
_MOST_AT_ONCE = 100
_KEPT = 7 * 86400


@frozen(kw_only=True)
class Occurrence:
    """One time of a downtime that is not done; ``accepted`` are the keys of orders by site."""

    downtime: Downtime
    at: int
    until: int
    number: int
    attempts: int
    accepted: Mapping[str, Sequence[str]]


def downtime_of(row: Row[*tuple[Any, ...]]) -> Downtime:
    """One stored row, also with columns of other tables."""
    values = row._mapping
    return Downtime(
        number=values[downtimes.c.number],
        record=values[downtimes.c.record],
        sites=values[downtimes.c.sites],
        error=values[downtimes.c.error],
        failure=values[downtimes.c.failure],
        version=values[downtimes.c.version],
    )


LIMITS = RecordLimits(
    noun="recurring downtimes",
    document=downtimes.c.record,
    owner=downtimes.c.record["created_by"].as_string(),
)
STORED = StoredRecords(downtimes, downtime_of, LIMITS)


def versions(connection: Connection) -> dict[int, int]:
    """The version of each downtime by number, which is another after every write."""
    query = select(downtimes.c.number, downtimes.c.version)
    return {row.number: row.version for row in connection.execute(query)}


def _values(
    record: Mapping[str, Any], sites: Mapping[str, str], now: float, zone: tzinfo
) -> dict[str, Any]:
    crons = Downtime(number=0, record=record).crons()
    return {
        "record": dict(record),
        "sites": dict(sites),
        "next_at": following(crons, now, zone),
    }


def add(
    first: int,
    record: Mapping[str, Any],
    sites: Mapping[str, str],
    now: float,
    zone: tzinfo,
    owner: str | None = None,
) -> Work[int]:
    """Store a new one with the first free number from ``first`` on; gives the number."""
    return STORED.add_number(first, _values(record, sites, now, zone), owner)


def adopt(
    number: int, record: Mapping[str, Any], sites: Mapping[str, str], now: float, zone: tzinfo
) -> Work[bool]:
    """Store one of another installation; False when its number is taken. Nothing is caught up."""
    values = _values(record, sites, now, zone)
    return lambda connection: STORED.adopt(connection, number, values)


def replace(
    old: Downtime,
    record: Mapping[str, Any],
    sites: Mapping[str, str],
    now: float,
    zone: tzinfo,
    owner: str | None = None,
) -> Work[bool]:
    """Store another record instead of ``old``; False when that is not the stored one any more.

    Times of the old schedule that have come are occurrences before that.
    """

    def before(connection: Connection, row: Row[*tuple[Any, ...]]) -> None:
        if row.next_at is not None and row.next_at <= now:
            _plan(connection, old, row.next_at, now, zone)

    values = {**_values(record, sites, now, zone), "error": None, "failure": None}
    return STORED.replace(old.number, old.version, values, owner, before)


def report(of: Downtime, error: str | None) -> Work[bool]:
    """Store what is wrong with one, None for nothing; True when that is news.

    Not for one that was written again since it was looked at.
    """

    def work(connection: Connection) -> bool:
        query = update(downtimes).where(
            downtimes.c.number == of.number,
            downtimes.c.version == of.version,
            downtimes.c.error.is_distinct_from(error),
        )
        return connection.execute(query.values(error=error)).rowcount == 1

    return work


def _plan(connection: Connection, downtime: Downtime, first: int, now: float, zone: tzinfo) -> int:
    """Make the occurrences from ``first`` to ``now``; how many come too late to be of use."""
    after = max(first - 1.0, now - _LATEST)
    times = between(downtime.crons(), after, now, zone, _MOST_AT_ONCE)
    rows = [
        {
            "downtime": downtime.number,
            "at": at,
            "until": downtime.until(at),
            "open": True,
            "number": 0,
            "attempts": 0,
            "accepted": {},
        }
        for at in times
        if downtime.until(at) > now
    ]
    if rows:
        query = select(occurrences.c.at).where(
            occurrences.c.downtime == downtime.number, occurrences.c.at >= rows[0]["at"]
        )
        known = set(connection.execute(query).scalars())
        rows = [row for row in rows if row["at"] not in known]
    if rows:
        connection.execute(insert(occurrences), rows)
    return sum(downtime.until(at) <= now for at in times)


def is_due(now: float) -> Work[bool]:
    """Whether any time has come that has no occurrence."""
    return recurring.is_due(downtimes, now)


def plan(now: float, zone: tzinfo) -> Work[dict[int, int]]:
    """Make an occurrence of every time that has come; how many came too late, by downtime."""
    due = select(downtimes).where(downtimes.c.next_at <= int(now))

    def work(connection: Connection) -> dict[int, int]:
        late: dict[int, int] = {}
        for row in connection.execute(due).all():
            downtime = downtime_of(row)
            missed = _plan(connection, downtime, row.next_at, now, zone)
            if missed:
                late[downtime.number] = missed
            connection.execute(
                update(downtimes)
                .where(downtimes.c.number == downtime.number)
                .values(next_at=following(downtime.crons(), now, zone))
            )
        connection.execute(
            delete(occurrences).where(~occurrences.c.open, occurrences.c.until < now - _KEPT)
        )
        return late

    return work


def plan_again(now: float, zone: tzinfo) -> Work[None]:
    """Work out anew when everything comes next that has not come: the clocks may be others."""
    return recurring.plan_again(downtimes, lambda row: downtime_of(row).crons(), now, zone)


def unfinished(connection: Connection) -> list[Occurrence]:
    """All occurrences that are not done, the oldest first."""
    query = (
        select(occurrences, downtimes)
        .join(downtimes, downtimes.c.number == occurrences.c.downtime)
        .where(occurrences.c.open)
        .order_by(occurrences.c.at, occurrences.c.downtime)
    )
    return [
        Occurrence(
            downtime=downtime_of(row),
            at=row._mapping[occurrences.c.at],
            until=row._mapping[occurrences.c.until],
            number=row._mapping[occurrences.c.number],
            attempts=row._mapping[occurrences.c.attempts],
            accepted=row._mapping[occurrences.c.accepted],
        )
        for row in connection.execute(query)
    ]


def _this(one: Occurrence) -> Any:
    return (occurrences.c.downtime == one.downtime.number) & (occurrences.c.at == one.at)


def begin(one: Occurrence, number: int) -> Work[bool]:
    """Take an occurrence for the holder of the duty with this number, who tells the cores then.

    False when it is done, gone or was taken since it was read.
    """
    query = update(occurrences).where(
        _this(one),
        occurrences.c.open,
        occurrences.c.attempts == one.attempts,
        occurrences.c.number <= number,
    )
    values = query.values(number=number, attempts=one.attempts + 1)
    return lambda connection: connection.execute(values).rowcount == 1


def note(
    one: Occurrence,
    accepted: Mapping[str, Sequence[str]],
    error: str | None,
    failure: str | None,
    *,
    done: bool,
) -> Work[None]:
    """Store what the cores said; ``done``: there is nothing left to try.

    What went wrong is not that of a record that was written meanwhile.
    """
    query = update(occurrences).where(_this(one)).values(accepted=dict(accepted), open=not done)

    def work(connection: Connection) -> None:
        connection.execute(query)
        connection.execute(
            update(downtimes)
            .where(
                downtimes.c.number == one.downtime.number,
                downtimes.c.version == one.downtime.version,
            )
            .values(error=error, failure=failure)
        )

    return work
