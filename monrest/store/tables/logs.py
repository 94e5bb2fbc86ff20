"""The log cache."""

from __future__ import annotations

from sqlalchemy import BigInteger, Boolean, Column, Double, Index, Integer, Table, Text

from monrest.store.tables.base import metadata

logcache_sites = Table(
    "logcache_sites",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("site", Text, nullable=False, unique=True),
    Column("covered_from", BigInteger),
    Column("covered_until", BigInteger),
    Column("wanted_from", BigInteger),
    Column("compacted_until", BigInteger, nullable=False),
    Column("firsts_until", BigInteger),
    Column("items", BigInteger, nullable=False),
    Column("data_size", BigInteger, nullable=False),
    Column("index_size", BigInteger, nullable=False),
    Column("last_update", BigInteger),
    Column("update_duration", Double, nullable=False),
    Column("last_compact", BigInteger),
    Column("compact_duration", Double, nullable=False),
    Column("mode", Text, nullable=False),
    Column("mode_since", BigInteger, nullable=False),
    Column("owner", Text, nullable=False),
    Column("owned_until", Double, nullable=False),
)
"""What is in the log cache for each site (``peer_key``).

All lines with ``covered_from <= time < covered_until`` are there, except late ones near the end;
both are NULL before the first import, which goes down to ``wanted_from``. Repetitions before
``compacted_until`` are removed; before ``firsts_until`` so were the latest of equal alerts, as
version 0.1 did it. ``owner`` is who may change the lines of the site; empty for nobody.
``owned_until`` is another with every renewal: others only look whether it still changes.
"""

logcache_days = Table(
    "logcache_days",
    metadata,
    Column("site", Integer, primary_key=True, autoincrement=False),
    Column("day", BigInteger, primary_key=True, autoincrement=False),
    Column("lines", BigInteger, nullable=False),
    Column("missing", BigInteger, nullable=False),
    Column("gone", BigInteger, nullable=False),
    Column("compared", BigInteger, nullable=False),
    Column("since", BigInteger, nullable=False),
    Column("settled", Boolean, nullable=False),
)
"""Days (UTC, by their first second) whose lines were compared with the count of the core.

``missing``: how many lines the core counted that it did not give; ``gone``: how many of ``lines``
it has no more. ``since`` is when that core was started; ``settled`` days need no further look.
"""

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
    # A hash where there is one: texts of a log may be longer than what a tree can hold.
    Index("ix_logcache_lines_host_name", "host_name", postgresql_using="hash"),
    # Lines lie in the order in which they are read; PostgreSQL has a partition for each month.
    sqlite_with_rowid=False,
    postgresql_partition_by="RANGE (time)",
)
"""Log lines as the cores tell them; ``number`` counts those of a site in one second.

``options`` is NULL where it is the text of the message after its first colon.
"""
