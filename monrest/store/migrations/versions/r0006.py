"""Duties, which one daemon of a database does."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0003"


def upgrade() -> None:
    """Make the tables of duties."""
    op.create_table(
        "duty_daemons",
        sa.Column("run", sa.BigInteger(), nullable=False, autoincrement=False),
        sa.Column("owner", sa.Text(), nullable=False),
        sa.Column("beat", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("run", name="pk_duty_daemons"),
    )
    op.create_table(
        "duties",
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("run", sa.BigInteger(), nullable=False),
        sa.Column("number", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("name", name="pk_duties"),
    )
