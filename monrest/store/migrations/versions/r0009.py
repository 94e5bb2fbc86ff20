"""Reports, what was made of them, and the times at which they are made and sent."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"


def upgrade() -> None:
    """Make the tables."""
    op.create_table(
        "reports",
        sa.Column("number", sa.BigInteger(), nullable=False, autoincrement=False),
        sa.Column("record", sa.JSON(), nullable=False),
        sa.Column("sites", sa.JSON(), nullable=False),
        sa.Column("limit", sa.JSON()),
        sa.Column("failure", sa.Text()),
        sa.Column("unsent", sa.Text()),
        sa.Column("job", sa.BigInteger()),
        sa.Column("made", sa.Double()),
        sa.Column("next_at", sa.BigInteger()),
        sa.Column("version", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("number", name="pk_reports"),
    )
    op.create_index("ix_reports_next_at", "reports", ["next_at"])
    op.create_table(
        "report_files",
        sa.Column("report", sa.BigInteger(), nullable=False),
        sa.Column("format", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("data", sa.LargeBinary(), nullable=False),
        sa.ForeignKeyConstraint(
            ["report"], ["reports.number"], name="fk_report_files_report", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("report", "format", name="pk_report_files"),
    )
    op.create_table(
        "report_runs",
        sa.Column("report", sa.BigInteger(), nullable=False),
        sa.Column("at", sa.BigInteger(), nullable=False, autoincrement=False),
        sa.Column("purpose", sa.Text(), nullable=False),
        sa.Column("open", sa.Boolean(), nullable=False),
        sa.Column("phase", sa.Text(), nullable=False),
        sa.Column("number", sa.BigInteger(), nullable=False),
        sa.Column("attempts", sa.BigInteger(), nullable=False),
        sa.Column("again", sa.Double(), nullable=False),
        sa.Column("recipients", sa.JSON(), nullable=False),
        sa.Column("message", sa.LargeBinary()),
        sa.Column("error", sa.Text()),
        sa.ForeignKeyConstraint(
            ["report"], ["reports.number"], name="fk_report_runs_report", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("report", "at", "purpose", name="pk_report_runs"),
    )
    op.create_index("ix_report_runs_open", "report_runs", ["open"])
