"""Work for one transaction each: what the database is asked about reports."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import tzinfo
from typing import Any

from sqlalchemy import ColumnElement, Connection, delete, insert, select, update

from monrest.api.records import RecordLimits
from monrest.api.recurring import RecurringRecords
from monrest.base.schedule import between
from monrest.reports.files import File
from monrest.reports.mail import Letter
from monrest.reports.model import (
    DONE,
    HANDING,
    MAILING,
    SCHEDULE,
    WAITING,
    Report,
    Run,
)
from monrest.reports.model import report_files as files
from monrest.store.database import transaction

_LATEST = 86400
"""Seconds after which a time of a schedule is too long ago to be made."""
_MOST_AT_ONCE = 2
_KEPT = 31 * 86400


reports, runs = Report.table, Run.table
LIMITS = RecordLimits(
    word="reports", document=reports.c.record, owner=reports.c.record["user"].as_string()
)


def _add_run(connection: Connection, report: Report, at: int, purpose: str) -> bool:
    """Make a run unless there is one for that time and purpose, or one that waits for it."""
    query = select(runs.c.at).where(runs.c.report == report.number, runs.c.purpose == purpose)
    waiting = (runs.c.phase == WAITING) & runs.c.open & (runs.c.number == 0)
    same = runs.c.at == at
    if connection.execute(query.where(same | waiting).limit(1)).first() is not None:
        return False
    run = Run(report=report, at=at, purpose=purpose)
    connection.execute(insert(runs).values(run.values()))
    return True


def _occur(connection: Connection, report: Report, first: float, now: float, zone: tzinfo) -> int:
    """Make a run of the newest time that has come since ``first``; how many are left out."""
    after = max(first - 1.0, now - _LATEST)
    times = between(report.crons(), after, now, zone, _MOST_AT_ONCE)
    if times:
        _add_run(connection, report, times[-1], SCHEDULE)
    return max(0, len(times) - 1) if times else 1


def _clean(connection: Connection, now: float) -> None:
    connection.execute(delete(runs).where(~runs.c.open, runs.c.at < now - _KEPT))


STORED = RecurringRecords(Report, LIMITS, _occur, _clean)


def _same(report: Report) -> ColumnElement[bool]:
    """Return a condition: it is still this report, changed or not, and no other of its number."""
    return STORED.same(report.number, report.version)


def values(
    record: Mapping[str, Any],
    sites: Mapping[str, str],
    limit: Sequence[str] | None,
    now: float,
    zone: tzinfo,
) -> dict[str, Any]:
    """The columns of a report that is written now; ``limit``: the roles of its writer."""
    return {
        "record": dict(record),
        "sites": dict(sites),
        "limit": None if limit is None else list(limit),
        "next_at": STORED.first_time(record, now, zone),
    }


@transaction
def several(connection: Connection, number: int | None = None) -> list[Report]:
    return STORED.read(connection, number)


@transaction
def remove(connection: Connection, report: Report) -> bool:
    return STORED.remove(connection, report.number, report.version)


@transaction
def add(
    connection: Connection, first: int, values: Mapping[str, Any], owner: str | None = None
) -> int:
    """Store a new one with the first free number from ``first`` on; returns the number."""
    return STORED.add_number(connection, first, values, owner)


@transaction
def adopt(connection: Connection, number: int, values: Mapping[str, Any]) -> bool:
    """Store one of another installation; False when its number is taken. Nothing is caught up."""
    return STORED.adopt(connection, number, values)


@transaction
def replace(
    connection: Connection,
    old: Report,
    values: Mapping[str, Any],
    now: float,
    zone: tzinfo,
    owner: str | None = None,
) -> bool:
    """Store other values instead of ``old``; False when that is not the stored one any more.

    A time of the old schedule that has come is a run before that; results stay.
    """
    return STORED.reschedule(connection, old, values, now, zone, owner)


@transaction
def queue(connection: Connection, report: Report, at: int, purpose: str) -> bool:
    """Queue a report; False when it is queued already, or was deleted."""
    query = select(reports.c.number).where(_same(report))
    there = connection.execute(query).first() is not None
    return there and _add_run(connection, report, at, purpose)


@transaction
def unfinished(connection: Connection, now: float) -> list[Run]:
    """All runs that are not over and may continue now, the oldest first."""
    columns = [column for column in runs.c if column.name != "message"]
    query = (
        select(*columns, reports)
        .join(reports, reports.c.number == runs.c.report)
        .where(runs.c.open, runs.c.again <= now)
        .order_by(runs.c.at, runs.c.report)
    )
    return [Run.of(row) for row in connection.execute(query)]


def _this(run: Run) -> Any:
    number, at, purpose = run.key
    return (runs.c.report == number) & (runs.c.at == at) & (runs.c.purpose == purpose)


@transaction
def begin(connection: Connection, run: Run, number: int) -> bool:
    """Take a run for the holder of the duty with this number; False when it is another's by now."""
    query = update(runs).where(
        _this(run), runs.c.open, runs.c.phase == run.phase, runs.c.attempts == run.attempts,
        runs.c.number <= number,
    )  # fmt: skip
    values = query.values(number=number, attempts=run.attempts + 1)
    return connection.execute(values).rowcount == 1


@transaction
def message(connection: Connection, run: Run) -> bytes | None:
    query = select(runs.c.message).where(_this(run))
    text = connection.execute(query).scalar_one_or_none()
    return None if text is None else bytes(text)


@transaction
def to_be_sent(connection: Connection, run: Run, letter: Letter) -> None:
    query = update(runs).where(_this(run)).values(
        phase=MAILING, attempts=0, again=0.0, recipients=list(letter.recipients),
        message=letter.message, error=None,
    )  # fmt: skip
    connection.execute(query)


@transaction
def handing(connection: Connection, run: Run) -> bool:
    """Note that the text of a mail goes to a server from now on; False when the run is gone."""
    query = update(runs).where(_this(run), runs.c.open).values(phase=HANDING)
    return connection.execute(query).rowcount == 1


@transaction
def again(
    connection: Connection, run: Run, phase: str, when: float, left: Sequence[str], error: str
) -> None:
    """Try once more later; mails for those who are ``left``."""
    connection.execute(
        update(runs)
        .where(_this(run))
        .values(phase=phase, again=when, recipients=list(left), error=error)
    )
    _tell(connection, run, phase, error)


def try_again_now(connection: Connection) -> None:
    connection.execute(update(runs).where(runs.c.open).values(again=0.0))


@transaction
def over(
    connection: Connection, run: Run, phase: str, error: str | None, left: Sequence[str] = ()
) -> None:
    """End a run; ``error`` is what went wrong while it was made or, in later phases, sent."""
    connection.execute(
        update(runs)
        .where(_this(run))
        .values(open=False, phase=DONE, message=None, error=error, recipients=list(left))
    )
    _tell(connection, run, phase, error)


def _tell(connection: Connection, run: Run, phase: str, error: str | None) -> None:
    """Show what went wrong with a report, or that nothing did."""
    query = update(reports).where(_same(run.report))
    if phase != WAITING:
        connection.execute(query.values(unsent=error))
    elif error is not None:
        connection.execute(query.values(failure=error))


# Work for one transaction each: what was made of reports.


@transaction
def result(connection: Connection, number: int, format: str) -> tuple[str, bytes] | None:
    """The last result in one form: what the report was called, and the file."""
    query = select(files.c.name, files.c.data).where(
        files.c.report == number, files.c.format == format
    )
    row = connection.execute(query).one_or_none()
    return None if row is None else (row.name, bytes(row.data))


@transaction
def begun(connection: Connection, report: Report, job: int) -> None:
    query = update(reports).where(_same(report)).values(job=job)
    connection.execute(query)


@transaction
def keep(connection: Connection, report: Report, results: Sequence[File], now: float) -> bool:
    """Store a result instead of the last one; False when the report is gone."""
    query = update(reports).where(_same(report))
    if connection.execute(query.values(failure=None, made=now)).rowcount == 0:
        return False
    connection.execute(delete(files).where(files.c.report == report.number))
    for file in results:
        connection.execute(
            insert(files).values(
                report=report.number, format=file.format, name=report.name, data=file.data
            )
        )
    return True


@transaction
def fail(connection: Connection, report: Report, failure: str) -> None:
    """Note why a report was not made; the last result stays."""
    query = update(reports).where(_same(report)).values(failure=failure)
    connection.execute(query)
