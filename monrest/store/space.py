"""The disk of the embedded database: room for what is more important than bulk, given back."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from sqlalchemy import Connection, Engine
from sqlalchemy.exc import SQLAlchemyError

from monrest.base.errors import Unavailable

RESERVE = 67_108_864
"""Bytes that stay free, or a quarter of a disk that has less than four times as much."""


def require_space(connection: Connection) -> None:
    """Raise Unavailable when disk and file are nearly full, so that bulk does not fill them.

    On a full one nothing can be stored at all, and not even bulk be removed: that takes room in
    the write-ahead log. Of the disk of a PostgreSQL nothing is known here.
    """
    if connection.dialect.name != "sqlite":
        return
    path = connection.exec_driver_sql("PRAGMA database_list").one()[2]
    disk = os.statvfs(path)
    size = disk.f_blocks * disk.f_frsize
    # What was deleted is not given back to the disk at once.
    pages = connection.exec_driver_sql("PRAGMA freelist_count").scalar_one()
    page = connection.exec_driver_sql("PRAGMA page_size").scalar_one()
    free = disk.f_bavail * disk.f_frsize + pages * page
    if free < min(RESERVE, size // 4):
        raise Unavailable(
            "cannot store",
            f"the disk of the database is nearly full: {free // 1_048_576} MB are free",
        )


_KEPT_FREE = 4096
"""Pages that stay free in the file, for what comes next: 16 MB."""
_PAGES = 2000
_REWRITTEN = 1 << 30


def let_shrink(engine: Engine, path: Path) -> None:
    """Rewrite a file of an older version, which cannot shrink: once, unless it is large."""
    with suppress(SQLAlchemyError, OSError):
        size, disk = path.stat().st_size, os.statvfs(path)
        connection = engine.raw_connection()
        try:
            cursor = connection.cursor()
            (mode,) = cursor.execute("PRAGMA auto_vacuum").fetchone()
            if not mode and size < min(_REWRITTEN, disk.f_bavail * disk.f_frsize // 3):
                cursor.execute("PRAGMA auto_vacuum = INCREMENTAL")
                cursor.execute("VACUUM")
        finally:
            connection.close()


def is_loose(connection: Connection) -> bool:
    """Whether the file has more free pages than it needs, and can give them back."""
    if connection.dialect.name != "sqlite":
        return False
    can = connection.exec_driver_sql("PRAGMA auto_vacuum").scalar_one() != 0
    free = connection.exec_driver_sql("PRAGMA freelist_count").scalar_one()
    return bool(can and free > _KEPT_FREE)


def give_back(connection: Connection) -> bool:
    """Give 8 MB of free pages back to the disk; whether there are more of them."""
    for _ in range(_PAGES):
        # The driver takes one step of a statement without rows, which is one page.
        connection.exec_driver_sql("PRAGMA incremental_vacuum(1)")
    return is_loose(connection)
