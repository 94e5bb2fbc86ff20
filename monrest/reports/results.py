"""Work for one transaction each: what was made of reports."""

from __future__ import annotations

from collections.abc import Iterable

from sqlalchemy import Connection, delete, insert, select, update

from monrest.reports.files import File
from monrest.reports.model import Report
from monrest.store.database import Work
from monrest.store.tables import report_files as files
from monrest.store.tables import reports


def result(number: int, format: str) -> Work[tuple[str, bytes] | None]:
    """The last result in one form: what the report was called, and the file."""
    query = select(files.c.name, files.c.data).where(
        files.c.report == number, files.c.format == format
    )

    def work(connection: Connection) -> tuple[str, bytes] | None:
        row = connection.execute(query).one_or_none()
        return None if row is None else (row.name, bytes(row.data))

    return work


def begun(number: int, job: int) -> Work[None]:
    """Note which job makes a report."""
    query = update(reports).where(reports.c.number == number).values(job=job)

    def work(connection: Connection) -> None:
        connection.execute(query)

    return work


def keep(report: Report, found: Iterable[File], now: float) -> Work[bool]:
    """Store a result instead of the last one; False when the report is gone."""

    def work(connection: Connection) -> bool:
        query = update(reports).where(reports.c.number == report.number)
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


def fail(number: int, failure: str) -> Work[None]:
    """Note why a report was not made; the last result stays."""
    query = update(reports).where(reports.c.number == number).values(failure=failure)

    def work(connection: Connection) -> None:
        connection.execute(query)

    return work
