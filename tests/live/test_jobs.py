"""Background jobs of a real daemon: every method and format, followers, cancels, kills, stops."""

from __future__ import annotations

import signal

import pytest
from harness.daemon import Daemon
from harness.waiting import until

FIELDS = {
    *("cmd", "end", "forward", "host_id", "host_name", "id", "is_running", "message", "percent"),
    *("perl_res", "pid", "rc", "remaining", "show_output", "start", "stderr", "stdout", "time"),
    "user",
}


@pytest.fixture
def made(tmp_path):
    """A function that makes a daemon, which ends with the test."""
    daemons = []

    def make(sites, **more):
        folder = tmp_path / f"daemon{len(daemons)}"
        folder.mkdir()
        daemons.append(Daemon(folder, sites, **more))
        return daemons[-1]

    yield make
    for daemon in daemons:
        daemon.stop(signal.SIGKILL)


def background(client, path, method="GET", **more):
    """Start a job; its id."""
    joint = "&" if "?" in path else "?"
    response = client.request(method, f"{path}{joint}background=1", **more)
    assert response.status == 200, response
    started = response.json
    assert set(started) == {"job_id", "message", "result_url", "success"}
    assert started["success"] is True
    assert started["message"]
    assert started["result_url"] == f"/mon/r/mon/jobs/{started['job_id']}/output"
    return started["job_id"]


def ended(client, number):
    """Wait for the end of a job; its record."""
    return until(
        lambda: (row := client.rows(f"/mon/jobs/{number}"))["is_running"] == 0 and row,
        f"job {number} ends",
    )


def result(client, number):
    """The result of a job, which comes within one wait."""
    return client.get(f"/mon/jobs/{number}/output")


@pytest.mark.parametrize(
    "prefix", ["", "/wrapped_json", "/csv", "/text", "/sites/s1", "/sites/s1/csv"]
)
@pytest.mark.parametrize(
    "path",
    [
        "/hosts",
        "/services?columns=host_name,description&sort=-description&limit=3",
        "/hosts/totals",
        "/hosts?pretty=1&headers=0",
        "/hosts/nosuch*",
        "/index",
    ],
)
def test_the_result_is_the_answer(client, path, prefix):
    direct = client.get(f"{prefix}{path}")
    number = background(client, f"{prefix}{path}")
    found = result(client, number)
    assert (found.status, found.headers["content-type"]) == (200, direct.headers["content-type"])
    assert found.body == direct.body
