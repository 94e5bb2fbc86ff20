"""One daemon over one set of object files, which tests leave as they were."""

from __future__ import annotations

import pytest

from harness.configured import Files
from harness.daemon import Daemon, site

META = {":FILE", ":ID", ":PEER_KEY", ":PEER_NAME", ":READONLY", ":TYPE"}
"""Keys of a row that stand in no file."""


@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    """One daemon over one set of files for most tests, which leave both as they were."""
    folder = tmp_path_factory.mktemp("config")
    files = Files(folder / "core")
    daemon = Daemon(
        folder,
        [
            site("s1", "unix:/nonexistent/live", name="Site One", configtool=files.tool()),
            site("plain", "unix:/nonexistent/other"),
        ],
    )
    try:
        yield daemon.start(connected=()), files
    finally:
        daemon.stop()


@pytest.fixture
def files(shared):
    return shared[1]


@pytest.fixture
def daemon(shared):
    return shared[0]


@pytest.fixture
def admin(daemon, files):
    before = files.state()
    with daemon.client() as client:
        yield client
        assert client.request("POST", "/config/revert").status == 200
    files.restore(before)


def found(client, **filters):
    return client.rows("/config/objects", filters)
