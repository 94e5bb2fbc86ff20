"""The log cache on SQLite and on PostgreSQL, without threads, on a clock."""

import pytest

from tests.fakes.store import inline_database, url_for
from tests.logs.core import NOW, Prompt


@pytest.fixture
def clock():
    clock = Prompt()
    clock.advance(NOW)
    return clock


@pytest.fixture
def database(clock, request, tmp_path):
    database = inline_database(clock, url_for(request, tmp_path))
    yield database
    database.stopService()
