"""Background jobs and their results."""

from __future__ import annotations

from sqlalchemy import BigInteger, Column, Double, ForeignKey, LargeBinary, Table, Text

from monrest.store.tables.base import DOCUMENT, metadata

job_daemons = Table(
    "job_daemons",
    metadata,
    Column("run", BigInteger, primary_key=True, autoincrement=False),
    Column("beat", BigInteger, nullable=False),
)
"""Runs of daemons that work at jobs; ``beat`` grows for as long as one lives and has any."""

jobs = Table(
    "jobs",
    metadata,
    Column("id", BigInteger, primary_key=True, autoincrement=False),
    Column("user", Text, index=True),
    Column("roles", DOCUMENT, nullable=False),
    Column("run", BigInteger, nullable=False),
    Column("host_id", BigInteger, nullable=False),
    Column("host_name", Text, nullable=False),
    Column("pid", BigInteger, nullable=False),
    Column("cmd", Text, nullable=False),
    Column("created", Double, nullable=False),
    Column("started", Double),
    Column("ended", Double, index=True),
    Column("percent", Double, nullable=False),
    Column("remaining", Double),
    Column("message", Text, nullable=False),
    Column("stdout", Text, nullable=False),
    Column("stderr", Text, nullable=False),
    Column("canceled_by", Text),
    Column("status", BigInteger),
    Column("content_type", Text, nullable=False),
    Column("disposition", Text),
    Column("headers", DOCUMENT, nullable=False),
    Column("failed_sites", DOCUMENT, nullable=False),
    Column("size", BigInteger, nullable=False),
)
"""Background jobs: ``started`` and ``ended`` are NULL until then,
``status`` is NULL without a result, ``run`` the daemon's. No ``user``: for everybody."""

job_output = Table(
    "job_output",
    metadata,
    Column("job", BigInteger, ForeignKey("jobs.id", ondelete="CASCADE"), primary_key=True),
    Column("piece", BigInteger, primary_key=True, autoincrement=False),
    Column("data", LargeBinary, nullable=False),
)
"""The results of jobs, in pieces that are numbered from 0."""
