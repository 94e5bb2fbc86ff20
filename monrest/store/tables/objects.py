"""Staged changes of object files, and the ids of objects."""

from __future__ import annotations

from sqlalchemy import BigInteger, Column, LargeBinary, Table, Text

from monrest.store.tables.base import metadata

config_stashes = Table(
    "config_stashes",
    metadata,
    Column("site", Text, primary_key=True),
    Column("username", Text, primary_key=True),
    Column("version", Text, nullable=False),
)
"""Who has staged changes of a site's object files; ``version`` differs after each change."""

config_stash = Table(
    "config_stash",
    metadata,
    Column("site", Text, primary_key=True),
    Column("username", Text, primary_key=True),
    Column("path", Text, primary_key=True),
    Column("base", LargeBinary),
    Column("base_hash", Text),
    Column("content", LargeBinary),
    Column("content_hash", Text),
    Column("objects", LargeBinary, nullable=False),
    Column("staged", BigInteger, nullable=False),
)
"""Staged files: the file on disk when it was changed first, and
what it is to be; NULL for a file that is not there. Files are compressed, hashes are SHA-256 in
hexadecimal digits. ``objects`` are the ids and lines of the objects in ``content``."""

config_ids = Table(
    "config_ids",
    metadata,
    Column("site", Text, primary_key=True),
    Column("path", Text, primary_key=True),
    Column("hash", Text, nullable=False),
    Column("objects", LargeBinary, nullable=False),
)
"""The ids of the objects in a file that was saved, as long as the file has this hash."""
