"""Jobs are tested on SQLite and on PostgreSQL."""

from __future__ import annotations

import pytest

from tests.fakes.jobs import World


@pytest.fixture
def world(database_url, tmp_path):
    """Daemons on one database."""
    made = World(database_url, tmp_path)
    yield made
    made.close()
