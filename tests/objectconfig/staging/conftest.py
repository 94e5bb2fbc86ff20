"""Staging on SQLite and on PostgreSQL, over real files."""

import pytest
import pytest_twisted

from tests.fakes.postgres import database_url, postgres_server, postgres_url
from tests.objectconfig.staging.site import Daemon, Site

__all__ = ["database_url", "postgres_server", "postgres_url"]


@pytest.fixture
def site(tmp_path):
    return Site(tmp_path / "core")


@pytest.fixture
def started(database_url, site, tmp_path):
    """A function that starts a daemon on the same database; ``name`` is its state folder."""
    daemons = []

    def start(name="var"):
        folder = tmp_path / name
        folder.mkdir(exist_ok=True)
        daemons.append(Daemon(database_url, folder, site))
        return daemons[-1]

    yield start
    for daemon in daemons:
        if daemon.staging.running:
            pytest_twisted.blockon(pytest_twisted.defer.ensureDeferred(daemon.stop()))


@pytest.fixture
def daemon(started):
    return started()
