"""Broadcasts are stored on SQLite and on PostgreSQL."""

from tests.store.conftest import database, opened

__all__ = ["database", "opened"]
