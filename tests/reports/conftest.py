"""Reports are stored on SQLite and on PostgreSQL."""

from tests.fakes.postgres import database_url, postgres_server, postgres_url
from tests.fakes.strict import stray_failures

__all__ = ["database_url", "postgres_server", "postgres_url", "stray_failures"]
