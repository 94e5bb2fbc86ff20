"""API keys, sessions and users."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None


def upgrade() -> None:
    """Make the first three tables."""
    op.create_table(
        "api_keys",
        sa.Column("hashed_key", sa.Text(), nullable=False),
        sa.Column("digest", sa.Text(), nullable=False),
        sa.Column("user", sa.Text()),
        sa.Column("superuser", sa.Boolean(), nullable=False),
        sa.Column("force_user", sa.Text()),
        sa.Column("roles", sa.JSON()),
        sa.Column("comment", sa.Text(), nullable=False),
        sa.Column("created", sa.BigInteger(), nullable=False),
        sa.Column("last_used", sa.BigInteger()),
        sa.Column("last_from", sa.Text()),
        sa.PrimaryKeyConstraint("hashed_key", name="pk_api_keys"),
    )
    op.create_index("ix_api_keys_user", "api_keys", ["user"])
    op.create_table(
        "sessions",
        sa.Column("hashed_id", sa.Text(), nullable=False),
        sa.Column("username", sa.Text(), nullable=False),
        sa.Column("address", sa.Text(), nullable=False),
        sa.Column("csrf_token", sa.Text(), nullable=False),
        sa.Column("roles", sa.JSON()),
        sa.Column("created", sa.BigInteger(), nullable=False),
        sa.Column("active", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("hashed_id", name="pk_sessions"),
    )
    op.create_index("ix_sessions_username", "sessions", ["username"])
    op.create_index("ix_sessions_active", "sessions", ["active"])
    op.create_table(
        "users",
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("locked", sa.Boolean(), nullable=False),
        sa.Column("failed", sa.BigInteger(), nullable=False),
        sa.Column("last_failed", sa.JSON()),
        sa.Column("last_success", sa.JSON()),
        sa.Column("tz", sa.Text()),
        sa.Column("created", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("name", name="pk_users"),
    )
