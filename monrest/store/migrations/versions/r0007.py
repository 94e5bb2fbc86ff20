"""Nodes of a cluster, and their restart one after another."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"


def upgrade() -> None:
    """Make the tables."""
    op.create_table(
        "cluster_nodes",
        sa.Column("id", sa.BigInteger(), nullable=False, autoincrement=False),
        sa.Column("run", sa.BigInteger(), nullable=False),
        sa.Column("url", sa.Text(), nullable=False),
        sa.Column("host", sa.Text(), nullable=False),
        sa.Column("pid", sa.BigInteger(), nullable=False),
        sa.Column("version", sa.Text(), nullable=False),
        sa.Column("maintenance", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_cluster_nodes"),
    )
    op.create_table(
        "cluster_restarts",
        sa.Column("position", sa.BigInteger(), nullable=False, autoincrement=False),
        sa.Column("node", sa.BigInteger(), nullable=False),
        sa.Column("run", sa.BigInteger(), nullable=False),
        sa.Column("url", sa.Text(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("message", sa.Text(), nullable=False),
        sa.Column("changed", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("position", name="pk_cluster_restarts"),
    )
