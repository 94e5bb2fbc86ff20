"""Broadcasts are stored on SQLite and on PostgreSQL."""

from tests.fakes.postgres import database_url, postgres_server, postgres_url
from tests.store.conftest import database, opened

__all__ = ["database", "database_url", "opened", "postgres_server", "postgres_url"]
