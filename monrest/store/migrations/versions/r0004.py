"""Staged changes of object files, and the ids of their objects."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    """Make the tables of the object configuration."""
    op.create_table(
        "config_stashes",
        sa.Column("site", sa.Text(), nullable=False),
        sa.Column("username", sa.Text(), nullable=False),
        sa.Column("version", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("site", "username", name="pk_config_stashes"),
    )
    op.create_table(
        "config_stash",
        sa.Column("site", sa.Text(), nullable=False),
        sa.Column("username", sa.Text(), nullable=False),
        sa.Column("path", sa.Text(), nullable=False),
        sa.Column("base", sa.LargeBinary()),
        sa.Column("base_hash", sa.Text()),
        sa.Column("content", sa.LargeBinary()),
        sa.Column("content_hash", sa.Text()),
        sa.Column("objects", sa.LargeBinary(), nullable=False),
        sa.Column("staged", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("site", "username", "path", name="pk_config_stash"),
    )
    op.create_table(
        "config_ids",
        sa.Column("site", sa.Text(), nullable=False),
        sa.Column("path", sa.Text(), nullable=False),
        sa.Column("hash", sa.Text(), nullable=False),
        sa.Column("objects", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("site", "path", name="pk_config_ids"),
    )
