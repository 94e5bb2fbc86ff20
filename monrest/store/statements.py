"""Statements that SQLAlchemy spells for each kind of database, and we for all of them."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Connection, Executable, Table
from sqlalchemy.dialects import sqlite


def insert_if_absent(connection: Connection, table: Table, values: dict[str, Any]) -> Executable:
    """Insert a row unless there is one with its key, also when another daemon does the same."""
    insert: Any = sqlite.insert
    if connection.dialect.name == "postgresql":
        # Nobody else has what it takes, 3 MB.
        from sqlalchemy.dialects.postgresql import insert
    made: Executable = insert(table).values(values).on_conflict_do_nothing()
    return made
