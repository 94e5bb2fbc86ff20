"""Every test of the store runs on SQLite and on PostgreSQL."""

import pytest
import pytest_twisted
from twisted.internet import reactor

from monrest.store.database import Database
from tests.fakes.postgres import PostgresServer
from tests.store.rows import Child


@pytest.fixture
def opened():
    """A function that opens a ``Database`` with real threads, closed after the test."""
    databases = []

    def open_(url, **options):
        database = Database(reactor, url, **options)
        database.startService()
        databases.append(database)
        return database

    yield open_
    for database in databases:
        pytest_twisted.blockon(database.stopService())


@pytest.fixture
def database(opened, database_url):
    """A database of each kind, open."""
    return opened(database_url)


@pytest.fixture
def children():
    """A function that starts ``child.py``; none outlives the test."""
    started = []

    def start(*arguments):
        started.append(Child(*arguments))
        return started[-1]

    yield start
    for child in started:
        child.end()


@pytest.fixture(scope="module")
def own_server(postgres_server):
    """A server that tests may stop and freeze."""
    server = PostgresServer()
    yield server
    server.thaw()
    server.remove()
