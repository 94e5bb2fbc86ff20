"""Days of the log cache that were compared with their core; compaction keeps latest alerts."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"


def upgrade() -> None:
    """Make the table; what was compacted until now has lost the latest of equal alerts."""
    op.create_table(
        "logcache_days",
        sa.Column("site", sa.Integer(), nullable=False, autoincrement=False),
        sa.Column("day", sa.BigInteger(), nullable=False, autoincrement=False),
        sa.Column("lines", sa.BigInteger(), nullable=False),
        sa.Column("missing", sa.BigInteger(), nullable=False),
        sa.Column("gone", sa.BigInteger(), nullable=False),
        sa.Column("compared", sa.BigInteger(), nullable=False),
        sa.Column("since", sa.BigInteger(), nullable=False),
        sa.Column("settled", sa.Boolean(), nullable=False),
        sa.PrimaryKeyConstraint("site", "day", name="pk_logcache_days"),
    )
    op.add_column("logcache_sites", sa.Column("firsts_until", sa.BigInteger()))
    op.execute("UPDATE logcache_sites SET firsts_until = compacted_until")
