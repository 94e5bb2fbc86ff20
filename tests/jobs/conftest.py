"""Jobs are tested on SQLite and on PostgreSQL."""

from __future__ import annotations

import pytest

from tests.fakes.jobs import World
from tests.fakes.postgres import database_url, postgres_server, postgres_url

__all__ = ["database_url", "postgres_server", "postgres_url"]


@pytest.fixture
def world(database_url, tmp_path):
    """Daemons on one database."""
    made = World(database_url, tmp_path)
    yield made
    made.close()
