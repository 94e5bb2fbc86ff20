"""Work for one transaction each: what the database is asked about reports."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import tzinfo
from typing import Any

from attrs import frozen
from sqlalchemy import ColumnElement, Connection, Row, delete, insert, select, update

from monrest.api.records import RecordLimits, StoredRecords
from monrest.base.schedule import between, following
from monrest.reports.files import File
from monrest.reports.letter import Letter
from monrest.reports.model import Report
from monrest.store import recurring
from monrest.store.database import Work
from monrest.store.tables import report_files as files
from monrest.store.tables import report_runs as runs
from monrest.store.tables import reports

SCHEDULE, MAIL, QUEUE = "schedule", "mail", "queue"
"""Why a report is made: its time has come, or a user wants it to be mailed, or made."""

WAITING, MAILING, HANDING, DONE = "waiting", "mailing", "handing", "done"
"""Phases of a run: to be made, to be sent, being handed to a mail server, over."""

_LATEST = 86400
"""Seconds after which a time of a schedule is too long ago to be made."""
_MOST_AT_ONCE = 2
_KEPT = 31 * 86400


@frozen(kw_only=True)
class Run:
    """One time that a report is made, and sent unless its purpose is QUEUE."""

    report: Report
    at: int
    purpose: str
    phase: str
    number: int
    attempts: int
    again: float
    recipients: tuple[str, ...]
    error: str | None = None

    @property
    def key(self) -> tuple[int, int, str]:
        return self.report.number, self.at, self.purpose


def report_of(row: Row[*tuple[Any, ...]]) -> Report:
    values = row._mapping
    limit = values[reports.c.limit]
    return Report(
        number=values[reports.c.number],
        record=values[reports.c.record],
        sites=values[reports.c.sites],
        limit=None if limit is None else tuple(limit),
        failure=values[reports.c.failure],
        unsent=values[reports.c.unsent],
        job=values[reports.c.job],
        made=values[reports.c.made],
        version=values[reports.c.version],
    )


LIMITS = RecordLimits(
    noun="reports", document=reports.c.record, owner=reports.c.record["user"].as_string()
)
STORED = StoredRecords(reports, report_of, LIMITS)


def _same(report: Report) -> ColumnElement[bool]:
    """Say that it is still this report, changed or not, and no other one of its number."""
    return STORED.same(report.number, report.version)


def _values(
    record: Mapping[str, Any],
    sites: Mapping[str, str],
    limit: Sequence[str] | None,
    now: float,
    zone: tzinfo,
) -> dict[str, Any]:
    crons = Report(number=0, record=record).crons()
    return {
        "record": dict(record),
        "sites": dict(sites),
        "limit": None if limit is None else list(limit),
        "next_at": following(crons, now, zone),
    }


def add(
    first: int,
    record: Mapping[str, Any],
    sites: Mapping[str, str],
    limit: Sequence[str] | None,
    now: float,
    zone: tzinfo,
    owner: str | None = None,
) -> Work[int]:
    """Store a new one with the first free number from ``first`` on; gives the number."""
    return STORED.add_number(first, _values(record, sites, limit, now, zone), owner)


def adopt(
    number: int, record: Mapping[str, Any], sites: Mapping[str, str], now: float, zone: tzinfo
) -> Work[bool]:
    """Store one of another installation; False when its number is taken. Nothing is caught up."""
    values = _values(record, sites, None, now, zone)
    return lambda connection: STORED.adopt(connection, number, values)


def replace(
    old: Report,
    record: Mapping[str, Any],
    sites: Mapping[str, str],
    limit: Sequence[str] | None,
    now: float,
    zone: tzinfo,
    owner: str | None = None,
) -> Work[bool]:
    """Store another record instead of ``old``; False when that is not the stored one any more.

    A time of the old schedule that has come is a run before that; results stay.
    """

    def before(connection: Connection, row: Row[*tuple[Any, ...]]) -> None:
        if row.next_at is not None and row.next_at <= now:
            _plan(connection, old, row.next_at, now, zone)

    values = _values(record, sites, limit, now, zone)
    return STORED.replace(old.number, old.version, values, owner, before)


def _add_run(connection: Connection, number: int, at: int, purpose: str) -> bool:
    """Make a run unless there is one for that time and purpose, or one that waits for it."""
    query = select(runs.c.at).where(runs.c.report == number, runs.c.purpose == purpose)
    waiting = (runs.c.phase == WAITING) & runs.c.open & (runs.c.number == 0)
    same = runs.c.at == at
    if connection.execute(query.where(same | waiting).limit(1)).first() is not None:
        return False
    connection.execute(
        insert(runs).values(
            report=number, at=at, purpose=purpose, open=True, phase=WAITING, number=0,
            attempts=0, again=0.0, recipients=[],
        )
    )  # fmt: skip
    return True


def queue(report: Report, at: int, purpose: str) -> Work[bool]:
    """Have a report made as soon as there is room; False when that is so already, or it is gone."""
    query = select(reports.c.number).where(_same(report))

    def work(connection: Connection) -> bool:
        there = connection.execute(query).first() is not None
        return there and _add_run(connection, report.number, at, purpose)

    return work


def _plan(connection: Connection, report: Report, first: int, now: float, zone: tzinfo) -> int:
    """Make a run of the newest time that has come since ``first``; how many are left out."""
    after = max(first - 1.0, now - _LATEST)
    times = between(report.crons(), after, now, zone, _MOST_AT_ONCE)
    if times:
        _add_run(connection, report.number, times[-1], SCHEDULE)
    return max(0, len(times) - 1) if times else 1


def is_due(now: float) -> Work[bool]:
    """Whether any time has come that has no run."""
    return recurring.is_due(reports, now)


def plan(now: float, zone: tzinfo) -> Work[list[int]]:
    """Make a run of what has come; the reports of which earlier times were missed."""
    due = select(reports).where(reports.c.next_at <= int(now))

    def work(connection: Connection) -> list[int]:
        missed = []
        for row in connection.execute(due).all():
            report = report_of(row)
            if _plan(connection, report, row.next_at, now, zone):
                missed.append(report.number)
            connection.execute(
                update(reports)
                .where(reports.c.number == report.number)
                .values(next_at=following(report.crons(), now, zone))
            )
        connection.execute(delete(runs).where(~runs.c.open, runs.c.at < now - _KEPT))
        return missed

    return work


def plan_again(now: float, zone: tzinfo) -> Work[None]:
    """Work out anew when everything comes next that has not come: the clocks may be others."""
    return recurring.plan_again(reports, lambda row: report_of(row).crons(), now, zone)


def unfinished(now: float) -> Work[list[Run]]:
    """All runs that are not over and may go on now, the oldest first."""
    columns = [one for one in runs.c if one.name != "message"]
    query = (
        select(*columns, reports)
        .join(reports, reports.c.number == runs.c.report)
        .where(runs.c.open, runs.c.again <= now)
        .order_by(runs.c.at, runs.c.report)
    )

    def work(connection: Connection) -> list[Run]:
        return [
            Run(
                report=report_of(row),
                at=row._mapping[runs.c.at],
                purpose=row._mapping[runs.c.purpose],
                phase=row._mapping[runs.c.phase],
                number=row._mapping[runs.c.number],
                attempts=row._mapping[runs.c.attempts],
                again=row._mapping[runs.c.again],
                recipients=tuple(row._mapping[runs.c.recipients]),
                error=row._mapping[runs.c.error],
            )
            for row in connection.execute(query)
        ]

    return work


def _this(run: Run) -> Any:
    number, at, purpose = run.key
    return (runs.c.report == number) & (runs.c.at == at) & (runs.c.purpose == purpose)


def begin(run: Run, number: int) -> Work[bool]:
    """Take a run for the holder of the duty with this number; False when it is another's by now."""
    query = update(runs).where(
        _this(run), runs.c.open, runs.c.phase == run.phase, runs.c.attempts == run.attempts,
        runs.c.number <= number,
    )  # fmt: skip
    values = query.values(number=number, attempts=run.attempts + 1)
    return lambda connection: connection.execute(values).rowcount == 1


def message(run: Run) -> Work[bytes | None]:
    query = select(runs.c.message).where(_this(run))

    def work(connection: Connection) -> bytes | None:
        found = connection.execute(query).scalar_one_or_none()
        return None if found is None else bytes(found)

    return work


def to_be_sent(run: Run, letter: Letter) -> Work[None]:
    """Note that what was made is to be mailed."""
    query = update(runs).where(_this(run)).values(
        phase=MAILING, attempts=0, again=0.0, recipients=list(letter.recipients),
        message=letter.message, error=None,
    )  # fmt: skip

    def work(connection: Connection) -> None:
        connection.execute(query)

    return work


def handing(run: Run) -> Work[bool]:
    """Note that the text of a mail goes to a server from now on; False when the run is gone."""
    query = update(runs).where(_this(run), runs.c.open).values(phase=HANDING)
    return lambda connection: connection.execute(query).rowcount == 1


def again(run: Run, phase: str, when: float, left: Sequence[str], error: str) -> Work[None]:
    """Try once more later; mails for those who are ``left``."""

    def work(connection: Connection) -> None:
        connection.execute(
            update(runs)
            .where(_this(run))
            .values(phase=phase, again=when, recipients=list(left), error=error)
        )
        _tell(connection, run, phase, error)

    return work


def try_again_now(connection: Connection) -> None:
    """Let everything be tried once more that waits for that."""
    connection.execute(update(runs).where(runs.c.open).values(again=0.0))


def over(run: Run, phase: str, error: str | None, left: Sequence[str] = ()) -> Work[None]:
    """End a run; ``error`` is what went wrong while it was made or, in later phases, sent."""

    def work(connection: Connection) -> None:
        connection.execute(
            update(runs)
            .where(_this(run))
            .values(open=False, phase=DONE, message=None, error=error, recipients=list(left))
        )
        _tell(connection, run, phase, error)

    return work


def _tell(connection: Connection, run: Run, phase: str, error: str | None) -> None:
    """Show what went wrong with a report, or that nothing did."""
    query = update(reports).where(_same(run.report))
    if phase != WAITING:
        connection.execute(query.values(unsent=error))
    elif error is not None:
        connection.execute(query.values(failure=error))


# Work for one transaction each: what was made of reports.


def result(number: int, format: str) -> Work[tuple[str, bytes] | None]:
    """The last result in one form: what the report was called, and the file."""
    query = select(files.c.name, files.c.data).where(
        files.c.report == number, files.c.format == format
    )

    def work(connection: Connection) -> tuple[str, bytes] | None:
        row = connection.execute(query).one_or_none()
        return None if row is None else (row.name, bytes(row.data))

    return work


def begun(report: Report, job: int) -> Work[None]:
    query = update(reports).where(_same(report)).values(job=job)

    def work(connection: Connection) -> None:
        connection.execute(query)

    return work


def keep(report: Report, found: Iterable[File], now: float) -> Work[bool]:
    """Store a result instead of the last one; False when the report is gone."""

    def work(connection: Connection) -> bool:
        query = update(reports).where(_same(report))
        if connection.execute(query.values(failure=None, made=now)).rowcount == 0:
            return False
        connection.execute(delete(files).where(files.c.report == report.number))
        for one in found:
            connection.execute(
                insert(files).values(
                    report=report.number, format=one.format, name=report.name, data=one.data
                )
            )
        return True

    return work


def fail(report: Report, failure: str) -> Work[None]:
    """Note why a report was not made; the last result stays."""
    query = update(reports).where(_same(report)).values(failure=failure)

    def work(connection: Connection) -> None:
        connection.execute(query)

    return work
