"""Databases of both kinds, as in the tests of the store."""

from tests.fakes.postgres import database_url, postgres_server, postgres_url

__all__ = ["database_url", "postgres_server", "postgres_url"]
