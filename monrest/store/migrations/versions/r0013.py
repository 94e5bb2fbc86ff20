"""Events of the daemon itself."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0013"
down_revision = "0012"


def upgrade() -> None:
    op.create_table(
        "own_events",
        sa.Column("number", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("time", sa.Double(), nullable=False),
        sa.Column("type", sa.Text(), nullable=False),
        sa.Column("subject", sa.Text(), nullable=False),
        sa.Column("data", sa.JSON(none_as_null=True), nullable=False),
        sa.Column("owner", sa.Text()),
        sa.Column("roles", sa.JSON(none_as_null=True), nullable=False),
        sa.Column("site", sa.Text()),
        sa.Column("name", sa.Text()),
        sa.PrimaryKeyConstraint("number", name="pk_own_events"),
        sa.UniqueConstraint("name", name="uq_own_events_name"),
    )
    op.create_index("ix_own_events_time", "own_events", ["time"])
