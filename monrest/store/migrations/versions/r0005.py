"""Duties, which one daemon of a database does; recurring downtimes; broadcasts."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    """Make the tables."""
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
    op.create_table(
        "recurring_downtimes",
        sa.Column("number", sa.BigInteger(), nullable=False, autoincrement=False),
        sa.Column("record", sa.JSON(), nullable=False),
        sa.Column("sites", sa.JSON(), nullable=False),
        sa.Column("error", sa.Text()),
        sa.Column("failure", sa.Text()),
        sa.Column("next_at", sa.BigInteger()),
        sa.Column("version", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("number", name="pk_recurring_downtimes"),
    )
    op.create_index("ix_recurring_downtimes_next_at", "recurring_downtimes", ["next_at"])
    op.create_table(
        "downtime_occurrences",
        sa.Column("downtime", sa.BigInteger(), nullable=False),
        sa.Column("at", sa.BigInteger(), nullable=False, autoincrement=False),
        sa.Column("until", sa.BigInteger(), nullable=False),
        sa.Column("open", sa.Boolean(), nullable=False),
        sa.Column("number", sa.BigInteger(), nullable=False),
        sa.Column("attempts", sa.BigInteger(), nullable=False),
        sa.Column("accepted", sa.JSON(), nullable=False),
        sa.ForeignKeyConstraint(
            ["downtime"],
            ["recurring_downtimes.number"],
            name="fk_downtime_occurrences_downtime",
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("downtime", "at", name="pk_downtime_occurrences"),
    )
    op.create_index("ix_downtime_occurrences_open", "downtime_occurrences", ["open"])
    op.create_table(
        "broadcasts",
        sa.Column("file", sa.Text(), nullable=False),
        sa.Column("record", sa.JSON(), nullable=False),
        sa.Column("changed", sa.BigInteger(), nullable=False),
        sa.Column("version", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("file", name="pk_broadcasts"),
    )
