"""Business processes of two daemons on one PostgreSQL: one of them calculates, until it is dead."""

from __future__ import annotations

import re
import signal

import pytest
from harness.cores import EmbeddedCore
from harness.daemon import Daemon, site
from harness.recorder import Recorder
from harness.waiting import until

SHOP = {"name": "web01", "nodes": [{"label": "http", "function": "status('db01', 'ping')"}]}
"""A process whose host and service are ones that the core has."""

CAME = re.compile("duties of this daemon now: .*business processes")
RESULT = re.compile(rb"PROCESS_HOST_CHECK_RESULT;web01;0;OK - business process")


@pytest.fixture
def seen(tmp_path, ready):
    """A proxy in front of a core of one's own."""
    core = EmbeddedCore(tmp_path)
    try:
        ready(core)
        recorder = Recorder(tmp_path / "proxy", core.socket)
        yield recorder
        recorder.close()
    finally:
        core.stop()


@pytest.fixture
def pair(tmp_path, postgres_server, seen):
    """Two daemons, not started, with the same core and the same database with a live process."""
    name = postgres_server.create()
    url, daemons = postgres_server.url(name), []
    for word in ("one", "two"):
        (tmp_path / word).mkdir()
        sections = {"database": {"url": url}}
        daemons.append(
            Daemon(tmp_path / word, [site("s1", f"unix:{seen.path}")], sections=sections)
        )
    with daemons[0].start().client() as client:
        assert client.post_json("/mon/bp", SHOP).status == 200
        header = {"Content-Type": "application/json"}
        assert client.request("PATCH", "/mon/bp/1", body="{}", headers=header).status == 200
    daemons[0].stop()
    yield daemons
    for daemon in daemons:
        daemon.stop(signal.SIGKILL)
    postgres_server.drop(name)


def test_once_for_all_and_on_when_the_holder_dies(pair, seen):
    def sent():
        return sum(1 for request in seen.since(before) if RESULT.search(request))

    before = seen.mark()
    marks = [len(pair[0].log), 0]

    def holders():
        return [one for one, mark in zip(pair, marks, strict=True) if CAME.search(one.log[mark:])]

    for daemon in pair:
        daemon.start()
    (holder,) = until(holders, "one has the duty")
    (other,) = [one for one in pair if one is not holder]
    with other.client() as client:

        def checked():
            return client.rows("/mon/bp/1")["last_check"]

        first = until(checked, "it is calculated at once")
        until(lambda: sent() == 1, "the results are sent")
        holder.kill()
        until(lambda: checked() > first, "the other one goes on")
        until(lambda: sent() == 2, "it sends what it found")
        # Whatever was sent before is counted when this has been: none of it was sent twice.
        assert client.post_json("/mon/bp/1/refresh", {}).status == 200
        assert sent() == 3
    assert holders() == pair
    assert "Traceback" not in holder.log + other.log
