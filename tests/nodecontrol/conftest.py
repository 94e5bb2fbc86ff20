"""Nodes are stored on SQLite and on PostgreSQL."""

from tests.fakes.postgres import database_url, postgres_server, postgres_url

__all__ = ["database_url", "postgres_server", "postgres_url"]
