"""One daemon over one set of object files, which tests leave as they were."""

import pytest

from harness.configured import Files
from harness.daemon import site

META = {":FILE", ":ID", ":PEER_KEY", ":PEER_NAME", ":READONLY", ":TYPE"}
"""Keys of a row that stand in no file."""


@pytest.fixture(scope="module")
def edited(shared):
    """One daemon over one set of files for most tests, which leave both as they were."""
    files = Files(shared.folder())
    daemon = shared.daemon(
        [
            site("s1", "unix:/nonexistent/live", name="Site One", configtool=files.tool()),
            site("plain", "unix:/nonexistent/other"),
        ],
        sections={"auth.roles": {"admin": ["admin", "ro"], "read_only": ["ro"]}},
    )
    return daemon.start(connected=()), files


@pytest.fixture
def files(edited):
    return edited[1]


@pytest.fixture
def daemon(edited):
    return edited[0]


@pytest.fixture
def admin(daemon, files):
    before = files.state()
    with daemon.client() as client:
        yield client
        assert client.request("POST", "/config/revert").status == 200
    files.restore(before)


def found(client, **filters):
    return client.rows("/config/objects", filters)
