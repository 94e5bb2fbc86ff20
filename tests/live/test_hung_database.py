"""A daemon whose PostgreSQL does not answer any more: it says so, and it can be stopped."""

import signal

import pytest
from harness.client import InFlight
from harness.daemon import site
from harness.expect import refused
from harness.waiting import until

STOP_SECONDS = 45
"""TimeoutStopSec of etc/monrest.service, after which a service manager kills."""


@pytest.fixture
def daemon(line_url, slow, lab):
    return lab.daemon(
        [site("s1", slow)],
        sections={
            "database": {"url": line_url},
            "server": {"drain_timeout": 1.0},
            "logcache": {"update_interval": 1.0},
        },
    ).start()


def test_it_can_be_stopped(daemon, line, slow):
    """With a job, an update of the log cache, requests and duties that all wait for it."""
    slow.lie(None, "services")
    slow.hold()
    with daemon.client() as client:
        number = client.get("/services?background=1").json["job_id"]
        until(lambda: client.rows(f"/mon/jobs/{number}")["is_running"] == 1, "the job runs")
        assert slow.waiting.wait(300)
        line.drop()
        for path in ("/mon/broadcasts", "/mon/reports", "/services", "/mon/jobs"):
            InFlight(daemon, path)
        assert daemon.stop(seconds=STOP_SECONDS) in (0, -signal.SIGTERM)
    assert not line.open.is_set(), "it did not wait until the database was back"
    assert "info monrest.daemon.service.Daemon: stopped" in daemon.log
    assert "Traceback" not in daemon.log


def test_readers_are_told_and_later_ones_at_once(daemon, line):
    """The one who notices it waits; the log has one line, and nothing has to be done afterwards."""
    with daemon.client() as client:
        line.drop()
        for _ in range(20):
            answer = client.get("/mon/broadcasts", timeout=300)
            refused(answer, 503, "cannot read what is stored", "did not answer in time")
        assert client.get("/hosts?columns=name").status == 200
        line.mend()
        until(lambda: client.get("/mon/broadcasts").status == 200, "the database is back")
    assert "Traceback" not in daemon.log
