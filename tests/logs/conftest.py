"""The log cache on SQLite and on PostgreSQL, without threads, on a clock."""

import pytest
from twisted.internet.task import Clock

from tests.fakes.postgres import database_url, postgres_server, postgres_url
from tests.fakes.store import inline_database
from tests.logs.core import NOW

__all__ = ["database_url", "postgres_server", "postgres_url"]


class Prompt(Clock):
    """A clock on which the next turn of the reactor comes at once, however slow the machine is."""

    def callLater(self, when, what, *args, **kw):
        call = super().callLater(when, what, *args, **kw)
        if not when:
            self.advance(0)
        return call


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
