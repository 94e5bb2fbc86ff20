"""Controlled nodes."""

from __future__ import annotations

from sqlalchemy import BigInteger, Column, Table, Text

from monrest.store.tables.base import DOCUMENT, metadata

controlled_nodes = Table(
    "controlled_nodes",
    metadata,
    Column("site", Text, primary_key=True),
    Column("data", DOCUMENT, nullable=False),
    Column("gathered", BigInteger, nullable=False),
    Column("facts_gathered", BigInteger, nullable=False),
    Column("gathering_until", BigInteger, nullable=False),
    Column("last_error", Text, nullable=False),
    Column("last_error_at", BigInteger, nullable=False),
    Column("operation", Text, nullable=False),
    Column("job", BigInteger),
    Column("claimed", BigInteger, nullable=False),
    Column("last_job", BigInteger),
)
"""Nodes of node-control by ``peer_key``.

``data`` is what was gathered; somebody gathers until ``gathering_until`` at most. ``operation`` is
what is done there at present, empty for nothing, by ``job``, which is NULL from ``claimed`` until
that one is stored.
"""

node_logs = Table(
    "node_logs",
    metadata,
    Column("site", Text, primary_key=True),
    Column("name", Text, primary_key=True),
    Column("failed", BigInteger, nullable=False),
    Column("at", BigInteger, nullable=False),
    Column("output", Text, nullable=False),
)
"""What the last operation of each name wrote on a node, and whether it went wrong."""
