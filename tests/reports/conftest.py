"""Reports are stored on SQLite and on PostgreSQL."""

from tests.fakes.strict import stray_failures

__all__ = ["stray_failures"]
