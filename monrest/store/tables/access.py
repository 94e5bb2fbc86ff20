"""Who may come in: API keys, sessions, users."""

from __future__ import annotations

from sqlalchemy import BigInteger, Boolean, Column, Table, Text

from monrest.store.tables.base import DOCUMENT, metadata

api_keys = Table(
    "api_keys",
    metadata,
    Column("hashed_key", Text, primary_key=True),
    Column("digest", Text, nullable=False),
    Column("user", Text, index=True),
    Column("superuser", Boolean, nullable=False),
    Column("force_user", Text),
    Column("roles", DOCUMENT),
    Column("comment", Text, nullable=False),
    Column("created", BigInteger, nullable=False),
    Column("last_used", BigInteger),
    Column("last_from", Text),
)
"""API keys; ``roles`` is a list of full names or NULL."""

sessions = Table(
    "sessions",
    metadata,
    Column("hashed_id", Text, primary_key=True),
    Column("username", Text, nullable=False, index=True),
    Column("address", Text, nullable=False),
    Column("csrf_token", Text, nullable=False),
    Column("roles", DOCUMENT),
    Column("created", BigInteger, nullable=False),
    Column("active", BigInteger, nullable=False, index=True),
    Column("proof", Text),
)
"""Cookie sessions; ``active`` is the time of the last request.

``proof`` is a digest of the session's value and of the password that it began with.
"""

users = Table(
    "users",
    metadata,
    Column("name", Text, primary_key=True),
    Column("locked", Boolean, nullable=False),
    Column("failed", BigInteger, nullable=False),
    Column("last_failed", DOCUMENT),
    Column("last_success", DOCUMENT),
    Column("tz", Text),
    Column("created", BigInteger, nullable=False),
)
"""Profiles: ``failed`` logins in a row, the last ones as ``{time, ip, …}``."""
