"""The tables of the database, in SQLAlchemy Core.

A family declares the tables of its records in its ``model`` (``store.stored``); the others are
here. Times are seconds since the epoch. A change of a table needs a migration of its own in
``migrations/versions``; a test compares the two.
"""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from pkgutil import iter_modules
from typing import Any

from sqlalchemy import (
    JSON,
    BigInteger,
    Column,
    Connection,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    Table,
    Text,
    event,
)

import monrest

metadata = MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "pk": "pk_%(table_name)s",
        "fk": "fk_%(table_name)s_%(column_0_N_name)s",
    }
)


def all_tables() -> MetaData:
    """The tables of all families, also those that this process has not imported."""
    for room in iter_modules(monrest.__path__, "monrest."):
        if room.ispkg and find_spec(f"{room.name}.model"):
            import_module(f"{room.name}.model")
    return metadata


# An absent document is NULL, not the JSON text "null".
DOCUMENT = JSON(none_as_null=True)

duty_daemons = Table(
    "duty_daemons",
    metadata,
    Column("run", BigInteger, primary_key=True, autoincrement=False),
    Column("owner", Text, nullable=False),
    Column("beat", BigInteger, nullable=False),
)
"""Runs of daemons that hold duties; ``beat`` grows for as long as one lives."""

duties = Table(
    "duties",
    metadata,
    Column("name", Text, primary_key=True),
    Column("run", BigInteger, nullable=False),
    Column("number", BigInteger, nullable=False),
)
"""The holder of each duty; ``number`` grows with each new holder, 0 is no daemon."""

logcache_lines = Table(
    "logcache_lines",
    metadata,
    Column("site", Integer, primary_key=True, autoincrement=False),
    Column("time", BigInteger, primary_key=True, autoincrement=False),
    Column("lineno", BigInteger, primary_key=True, autoincrement=False),
    Column("number", Integer, primary_key=True, autoincrement=False),
    Column("class", BigInteger, nullable=False),
    Column("type", Text, nullable=False),
    Column("state", BigInteger, nullable=False),
    Column("state_type", Text, nullable=False),
    Column("attempt", BigInteger, nullable=False),
    Column("host_name", Text, nullable=False),
    Column("service_description", Text, nullable=False),
    Column("contact_name", Text, nullable=False),
    Column("command_name", Text, nullable=False),
    Column("plugin_output", Text, nullable=False),
    Column("comment", Text, nullable=False),
    Column("message", Text, nullable=False),
    Column("options", Text),
    Index("ix_logcache_lines_host_name", "host_name"),
    # Lines lie in the order in which they are read.
    sqlite_with_rowid=False,
)
"""Log lines as the cores tell them; ``number`` counts those of a site in one second.

``options`` is NULL where it is the text of the message after its first colon.
"""


@event.listens_for(metadata, "before_create")
def _tell_postgresql(_: MetaData, connection: Connection, **__: Any) -> None:
    """Declare what only PostgreSQL has: above it would import the dialect everywhere, 4 MB."""
    if connection.dialect.name != "postgresql":
        return
    # A partition for each month.
    logcache_lines.dialect_options["postgresql"]["partition_by"] = "RANGE (time)"
    # A hash, because texts of a log may be longer than what a tree can hold.
    for index in logcache_lines.indexes:
        index.dialect_options["postgresql"]["using"] = "hash"


config_stashes = Table(
    "config_stashes",
    metadata,
    Column("site", Text, primary_key=True),
    Column("username", Text, primary_key=True),
    Column("version", Text, nullable=False),
)
"""The users with staged changes of a site's object files; ``version`` differs after each change."""

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
