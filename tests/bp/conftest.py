"""Business processes on SQLite and on PostgreSQL, without threads, on a clock."""

import pytest
from twisted.logger import globalLogPublisher

from tests.fakes.sites import Town
from tests.fakes.store import InlineThreads, inline_database, url_for

NOW = 1_700_000_000


@pytest.fixture
def town():
    town = Town()
    town.clock.advance(NOW)
    return town


@pytest.fixture
def clock(town):
    return town.clock


@pytest.fixture
def database(clock, request, tmp_path):
    database = inline_database(clock, url_for(request, tmp_path))
    yield database
    database.stopService()


@pytest.fixture
def threads():
    threads = InlineThreads(None, 1, "test")
    threads.startService()
    return threads


@pytest.fixture
def caught():
    """What is logged meanwhile."""
    events = []
    globalLogPublisher.addObserver(events.append)
    yield events
    globalLogPublisher.removeObserver(events.append)
