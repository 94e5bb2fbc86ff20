"""Business processes with their results."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"


def upgrade() -> None:
    """Make the tables of business processes."""
    op.create_table(
        "bp_processes",
        sa.Column("nr", sa.BigInteger(), nullable=False, autoincrement=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("draft", sa.Boolean(), nullable=False),
        sa.Column("definition", sa.JSON(none_as_null=True), nullable=False),
        sa.Column("version", sa.BigInteger(), nullable=False),
        sa.Column("changed", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("nr", name="pk_bp_processes"),
        sa.UniqueConstraint("name", name="uq_bp_processes_name"),
    )
    op.create_table(
        "bp_results",
        sa.Column("nr", sa.BigInteger(), nullable=False),
        sa.Column("stamp", sa.BigInteger(), nullable=False),
        sa.Column("data", sa.LargeBinary()),
        sa.ForeignKeyConstraint(
            ["nr"], ["bp_processes.nr"], name="fk_bp_results_nr", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("nr", name="pk_bp_results"),
    )
    op.create_table(
        "bp_figures",
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("value", sa.Double(), nullable=False),
        sa.PrimaryKeyConstraint("name", name="pk_bp_figures"),
    )
