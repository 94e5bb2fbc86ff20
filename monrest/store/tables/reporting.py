"""Reports, what was made of them, and their runs."""

from __future__ import annotations

from sqlalchemy import BigInteger, Boolean, Column, Double, ForeignKey, LargeBinary, Table, Text

from monrest.store.tables.base import DOCUMENT, metadata

reports = Table(
    "reports",
    metadata,
    Column("number", BigInteger, primary_key=True, autoincrement=False),
    Column("record", DOCUMENT, nullable=False),
    Column("sites", DOCUMENT, nullable=False),
    Column("limit", DOCUMENT),
    Column("failure", Text),
    Column("unsent", Text),
    Column("job", BigInteger),
    Column("made", Double),
    Column("next_at", BigInteger, index=True),
    Column("version", BigInteger, nullable=False),
)
"""Reports: ``limit`` are the roles to which its owner was restricted.

``failure`` is what went wrong when it was made last, ``unsent`` when it was sent last; ``job`` is
the last job that made it, ``next_at`` the first time of its schedule that has no run yet.
"""

report_files = Table(
    "report_files",
    metadata,
    Column("report", BigInteger, ForeignKey("reports.number", ondelete="CASCADE"),
           primary_key=True),
    Column("format", Text, primary_key=True),
    Column("name", Text, nullable=False),
    Column("data", LargeBinary, nullable=False),
)  # fmt: skip
"""The last result of each report in its forms; ``name`` is what the report was called then."""

report_runs = Table(
    "report_runs",
    metadata,
    Column("report", BigInteger, ForeignKey("reports.number", ondelete="CASCADE"),
           primary_key=True),
    Column("at", BigInteger, primary_key=True, autoincrement=False),
    Column("purpose", Text, primary_key=True),
    Column("open", Boolean, nullable=False, index=True),
    Column("phase", Text, nullable=False),
    Column("number", BigInteger, nullable=False),
    Column("attempts", BigInteger, nullable=False),
    Column("again", Double, nullable=False),
    Column("recipients", DOCUMENT, nullable=False),
    Column("message", LargeBinary),
    Column("error", Text),
)  # fmt: skip
"""What is to be made and sent, and what was: ``phase`` says how far it is, ``number`` is that of
the duty of who works or worked at it. ``recipients`` have not got the ``message`` yet, which is
kept until they have; ``again`` is when the next try may begin."""
