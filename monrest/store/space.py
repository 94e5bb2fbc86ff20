"""Leaving room on the disk of the embedded database for what is more important than bulk."""

from __future__ import annotations

import os

from sqlalchemy import Connection

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
    # The file does not shrink when something is deleted, but has room then.
    pages = connection.exec_driver_sql("PRAGMA freelist_count").scalar_one()
    page = connection.exec_driver_sql("PRAGMA page_size").scalar_one()
    free = disk.f_bavail * disk.f_frsize + pages * page
    if free < min(RESERVE, size // 4):
        raise Unavailable(
            "cannot store",
            f"the disk of the database is nearly full: {free // 1_048_576} MB are free",
        )
