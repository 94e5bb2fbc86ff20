"""The log cache: what is known of each site, and its lines."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    """Make both tables; PostgreSQL gets partitions as lines come."""
    op.create_table(
        "logcache_sites",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("site", sa.Text(), nullable=False),
        sa.Column("covered_from", sa.BigInteger()),
        sa.Column("covered_until", sa.BigInteger()),
        sa.Column("wanted_from", sa.BigInteger()),
        sa.Column("compacted_until", sa.BigInteger(), nullable=False),
        sa.Column("items", sa.BigInteger(), nullable=False),
        sa.Column("data_size", sa.BigInteger(), nullable=False),
        sa.Column("index_size", sa.BigInteger(), nullable=False),
        sa.Column("last_update", sa.BigInteger()),
        sa.Column("update_duration", sa.Double(), nullable=False),
        sa.Column("last_compact", sa.BigInteger()),
        sa.Column("compact_duration", sa.Double(), nullable=False),
        sa.Column("mode", sa.Text(), nullable=False),
        sa.Column("mode_since", sa.BigInteger(), nullable=False),
        sa.Column("owner", sa.Text(), nullable=False),
        sa.Column("owned_until", sa.Double(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_logcache_sites"),
        sa.UniqueConstraint("site", name="uq_logcache_sites_site"),
    )
    op.create_table(
        "logcache_lines",
        sa.Column("site", sa.Integer(), nullable=False, autoincrement=False),
        sa.Column("time", sa.BigInteger(), nullable=False, autoincrement=False),
        sa.Column("lineno", sa.BigInteger(), nullable=False, autoincrement=False),
        sa.Column("number", sa.Integer(), nullable=False, autoincrement=False),
        sa.Column("class", sa.BigInteger(), nullable=False),
        sa.Column("type", sa.Text(), nullable=False),
        sa.Column("state", sa.BigInteger(), nullable=False),
        sa.Column("state_type", sa.Text(), nullable=False),
        sa.Column("attempt", sa.BigInteger(), nullable=False),
        sa.Column("host_name", sa.Text(), nullable=False),
        sa.Column("service_description", sa.Text(), nullable=False),
        sa.Column("contact_name", sa.Text(), nullable=False),
        sa.Column("command_name", sa.Text(), nullable=False),
        sa.Column("plugin_output", sa.Text(), nullable=False),
        sa.Column("comment", sa.Text(), nullable=False),
        sa.Column("message", sa.Text(), nullable=False),
        sa.Column("options", sa.Text()),
        sa.PrimaryKeyConstraint("site", "time", "lineno", "number", name="pk_logcache_lines"),
        sqlite_with_rowid=False,
        postgresql_partition_by="RANGE (time)",
    )
    op.create_index(
        "ix_logcache_lines_host_name", "logcache_lines", ["host_name"], postgresql_using="hash"
    )
