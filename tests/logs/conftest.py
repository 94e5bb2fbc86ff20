"""The log cache on SQLite and on PostgreSQL, without threads, on a clock."""

import pytest

from tests.fakes.store import inline_database
from tests.logs.core import NOW, Prompt


@pytest.fixture
def clock():
    clock = Prompt()
    clock.advance(NOW)
    return clock


@pytest.fixture
def database(clock, database_url):
    database = inline_database(clock, database_url)
    yield database
    database.stopService()
