"""What is stored, as SQLAlchemy Core tables.

Times are whole seconds since the epoch. Keys and session ids are kept as hashes only. A change
here needs a migration of its own in ``migrations/versions``; a test compares the two.
"""

from __future__ import annotations

from sqlalchemy import JSON, BigInteger, Boolean, Column, LargeBinary, MetaData, Table, Text

metadata = MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "pk": "pk_%(table_name)s",
    }
)

# An absent document is NULL, not the JSON text "null".
_DOCUMENT = JSON(none_as_null=True)

api_keys = Table(
    "api_keys",
    metadata,
    Column("hashed_key", Text, primary_key=True),
    Column("digest", Text, nullable=False),
    Column("user", Text, index=True),
    Column("superuser", Boolean, nullable=False),
    Column("force_user", Text),
    Column("roles", _DOCUMENT),
    Column("comment", Text, nullable=False),
    Column("created", BigInteger, nullable=False),
    Column("last_used", BigInteger),
    Column("last_from", Text),
)
"""API keys; ``roles`` is a list of full names or NULL (auth-and-commands.md, section 4.3)."""

sessions = Table(
    "sessions",
    metadata,
    Column("hashed_id", Text, primary_key=True),
    Column("username", Text, nullable=False, index=True),
    Column("address", Text, nullable=False),
    Column("csrf_token", Text, nullable=False),
    Column("roles", _DOCUMENT),
    Column("created", BigInteger, nullable=False),
    Column("active", BigInteger, nullable=False, index=True),
)
"""Cookie sessions; ``active`` is the time of the last request (section 4.5)."""

users = Table(
    "users",
    metadata,
    Column("name", Text, primary_key=True),
    Column("locked", Boolean, nullable=False),
    Column("failed", BigInteger, nullable=False),
    Column("last_failed", _DOCUMENT),
    Column("last_success", _DOCUMENT),
    Column("tz", Text),
    Column("created", BigInteger, nullable=False),
)
"""Profiles: ``failed`` logins in a row, the last ones as ``{time, ip, …}`` (section 4.7)."""

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
"""Staged files (object-config.md, section 7): the file on disk when it was changed first, and
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
