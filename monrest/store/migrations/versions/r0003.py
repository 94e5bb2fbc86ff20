"""Background jobs with their results."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    """Make the tables of jobs."""
    op.create_table(
        "job_daemons",
        sa.Column("run", sa.BigInteger(), nullable=False, autoincrement=False),
        sa.Column("beat", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("run", name="pk_job_daemons"),
    )
    op.create_table(
        "jobs",
        sa.Column("id", sa.BigInteger(), nullable=False, autoincrement=False),
        sa.Column("user", sa.Text()),
        sa.Column("roles", sa.JSON(), nullable=False),
        sa.Column("run", sa.BigInteger(), nullable=False),
        sa.Column("host_id", sa.BigInteger(), nullable=False),
        sa.Column("host_name", sa.Text(), nullable=False),
        sa.Column("pid", sa.BigInteger(), nullable=False),
        sa.Column("cmd", sa.Text(), nullable=False),
        sa.Column("created", sa.Double(), nullable=False),
        sa.Column("started", sa.Double()),
        sa.Column("ended", sa.Double()),
        sa.Column("percent", sa.Double(), nullable=False),
        sa.Column("remaining", sa.Double()),
        sa.Column("message", sa.Text(), nullable=False),
        sa.Column("stdout", sa.Text(), nullable=False),
        sa.Column("stderr", sa.Text(), nullable=False),
        sa.Column("canceled_by", sa.Text()),
        sa.Column("status", sa.BigInteger()),
        sa.Column("content_type", sa.Text(), nullable=False),
        sa.Column("disposition", sa.Text()),
        sa.Column("headers", sa.JSON(), nullable=False),
        sa.Column("failed_sites", sa.JSON(), nullable=False),
        sa.Column("size", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_jobs"),
    )
    op.create_index("ix_jobs_user", "jobs", ["user"])
    op.create_index("ix_jobs_ended", "jobs", ["ended"])
    op.create_table(
        "job_output",
        sa.Column("job", sa.BigInteger(), nullable=False),
        sa.Column("piece", sa.BigInteger(), nullable=False, autoincrement=False),
        sa.Column("data", sa.LargeBinary(), nullable=False),
        sa.ForeignKeyConstraint(["job"], ["jobs.id"], name="fk_job_output_job", ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("job", "piece", name="pk_job_output"),
    )
