"""The real database without threads: what is asked of it is done when the call returns."""

import tempfile
from functools import cache
from pathlib import Path

import pytest
from twisted.internet.defer import maybeDeferred, succeed

from monrest.store import engines, migrate
from monrest.store.database import Database


class InlineThreads:
    """Runs at once what ``Threads`` runs in a thread."""

    def __init__(self, reactor, size, title):
        self.running = False

    def startService(self):
        self.running = True

    def run(self, function):
        assert self.running
        return maybeDeferred(function)

    def stopService(self):
        self.running = False
        return succeed(None)


def inline_database(clock, url):
    """A started ``Database`` of ``url`` whose Deferreds have fired already; stop it at the end."""
    database = Database(None, url, clock, threads=InlineThreads)
    database.startService()
    return database


def sqlite_url(folder):
    """The URL of a database in ``folder``, a path."""
    return f"sqlite:///{folder}/monrest.sqlite"


def migrated_sqlite_url(folder):
    """As ``sqlite_url``, and the database is there with all its tables, which are empty."""
    (Path(folder) / "monrest.sqlite").write_bytes(_migrated())
    return sqlite_url(folder)


BOTH = pytest.mark.usefixtures("database_url")
"""For a test whose fixtures have their database from ``url_for``."""


def url_for(request, folder):
    """A new database on SQLite, for a test that is ``BOTH`` one of each kind; with all tables."""
    both = "database_url" in request.fixturenames
    return request.getfixturevalue("database_url") if both else migrated_sqlite_url(folder)


@cache
def _migrated():
    """Made once: the migrations take longer than most tests."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "monrest.sqlite"
        engines.prepare_file(file)
        migrate.upgrade(engines.parse(sqlite_url(folder)))
        return file.read_bytes()
