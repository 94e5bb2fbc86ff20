"""Putting lines into the table as fast as a database takes them.

PostgreSQL has a partition for each stretch of thirty days, made when its first line comes; lines
get there by COPY. SQLite takes prepared statements.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Connection, text

from monrest.store.tables import logcache_lines as lines

SPAN = 30 * 86400
"""Seconds of one partition; the first one begins with the epoch."""

_LOCK = 0x6C6F6773  # "logs"; any number that others do not use
_NAMES = ", ".join(f'"{one.name}"' for one in lines.columns)
_INSERT = f"INSERT INTO {lines.name} ({_NAMES}) VALUES ({', '.join('?' * len(lines.columns))})"  # noqa: S608  names of ours
_COPY = f"COPY {lines.name} ({_NAMES}) FROM STDIN"
_TIME = 1


def insert(connection: Connection, rows: Sequence[tuple[Any, ...]]) -> None:
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
    missing = [number for number in sorted(numbers) if not _there(connection, number)]
    if not missing:
        return
    connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": _LOCK})
    for number in missing:
        name = _name(number)
        if _there(connection, number):  # made while we waited for the lock
            continue
        bounds = f"FROM ({number * SPAN}) TO ({(number + 1) * SPAN})"
        connection.execute(text(f"CREATE TABLE {name} (LIKE {lines.name} INCLUDING ALL)"))
        connection.execute(
            text(f"ALTER TABLE {lines.name} ATTACH PARTITION {name} FOR VALUES {bounds}")
        )


def _there(connection: Connection, number: int) -> bool:
    found = connection.execute(text("SELECT to_regclass(:name)"), {"name": _name(number)})
    return found.scalar_one() is not None


def _name(number: int) -> str:
    return f"{lines.name}_{number}" if number >= 0 else f"{lines.name}_before_{-number}"
