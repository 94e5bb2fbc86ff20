"""Business processes."""

from __future__ import annotations

from sqlalchemy import BigInteger, Boolean, Column, Double, ForeignKey, LargeBinary, Table, Text

from monrest.store.tables.base import DOCUMENT, metadata

bp_processes = Table(
    "bp_processes",
    metadata,
    Column("nr", BigInteger, primary_key=True, autoincrement=False),
    Column("name", Text, nullable=False, unique=True),
    Column("draft", Boolean, nullable=False),
    Column("definition", DOCUMENT, nullable=False),
    Column("version", BigInteger, nullable=False),
    Column("changed", BigInteger, nullable=False),
)
"""Business processes: ``version`` is another one with each change."""

bp_results = Table(
    "bp_results",
    metadata,
    Column("nr", BigInteger, ForeignKey("bp_processes.nr", ondelete="CASCADE"), primary_key=True),
    Column("stamp", BigInteger, nullable=False),
    Column("data", LargeBinary),
)
"""What the last calculation of each process found; ``stamp`` is another one with each."""

bp_figures = Table(
    "bp_figures",
    metadata,
    Column("name", Text, primary_key=True),
    Column("value", Double, nullable=False),
)
"""Figures of the last complete run."""
