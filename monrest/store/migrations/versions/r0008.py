"""Dashboards; nodes of node-control."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"


def upgrade() -> None:
    """Make the tables."""
    op.create_table(
        "dashboards",
        sa.Column("nr", sa.Text(), nullable=False),
        sa.Column("record", sa.JSON(), nullable=False),
        sa.Column("changed", sa.BigInteger(), nullable=False),
        sa.Column("version", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("nr", name="pk_dashboards"),
    )
    op.create_table(
        "dashboard_backups",
        sa.Column("nr", sa.Text(), nullable=False),
        sa.Column("at", sa.BigInteger(), nullable=False, autoincrement=False),
        sa.Column("record", sa.JSON(), nullable=False),
        sa.ForeignKeyConstraint(
            ["nr"], ["dashboards.nr"], name="fk_dashboard_backups_nr", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("nr", "at", name="pk_dashboard_backups"),
    )
    op.create_table(
        "dashboard_runtime",
        sa.Column("nr", sa.Text(), nullable=False),
        sa.Column("username", sa.Text(), nullable=False),
        sa.Column("data", sa.JSON(), nullable=False),
        sa.ForeignKeyConstraint(
            ["nr"], ["dashboards.nr"], name="fk_dashboard_runtime_nr", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("nr", "username", name="pk_dashboard_runtime"),
    )
    op.create_table(
        "dashboard_maintenance",
        sa.Column("nr", sa.Text(), nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("nr", name="pk_dashboard_maintenance"),
    )
    op.create_table(
        "controlled_nodes",
        sa.Column("site", sa.Text(), nullable=False),
        sa.Column("data", sa.JSON(), nullable=False),
        sa.Column("gathered", sa.BigInteger(), nullable=False),
        sa.Column("facts_gathered", sa.BigInteger(), nullable=False),
        sa.Column("gathering_until", sa.BigInteger(), nullable=False),
        sa.Column("last_error", sa.Text(), nullable=False),
        sa.Column("last_error_at", sa.BigInteger(), nullable=False),
        sa.Column("operation", sa.Text(), nullable=False),
        sa.Column("job", sa.BigInteger()),
        sa.Column("claimed", sa.BigInteger(), nullable=False),
        sa.Column("last_job", sa.BigInteger()),
        sa.PrimaryKeyConstraint("site", name="pk_controlled_nodes"),
    )
    op.create_table(
        "node_logs",
        sa.Column("site", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("failed", sa.BigInteger(), nullable=False),
        sa.Column("at", sa.BigInteger(), nullable=False),
        sa.Column("output", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("site", "name", name="pk_node_logs"),
    )
