"""One operation at a time on a node: its daemon is killed, paused, or cut off from the database."""

import os
import signal
from pathlib import Path

import pytest
from harness.daemon import site
from harness.nodes import Nodes
from harness.waiting import until

PATH = "/mon/node-control/nodes/s1"
TAKEN_OVER = 120.0
FIRST, SECOND = 0, 1


@pytest.fixture(scope="module")
def own(shared):
    return shared.core()


class Trail:
    """What two operations write: the first goes on for ever, the second looks whether it does."""

    def __init__(self, folder):
        self.pids, self.second = folder / "pids", folder / "second"
        self.install = f"sleep 1000 & echo $! >> {self.pids}; echo $$ >> {self.pids}; wait"
        self.update = (
            f"for one in $(cat {self.pids}); do kill -0 $one 2>/dev/null && echo $one; done "
            f"> {self.second}.new; mv {self.second}.new {self.second}"
        )

    def begun(self):
        return self.pids.exists() and len(self.pids.read_text().split()) == 2

    def alive(self):
        return [one for one in self.pids.read_text().split() if Path("/proc", one).exists()]


@pytest.fixture
def trail(tmp_path):
    made = Trail(tmp_path)
    yield made
    for one in made.pids.read_text().split() if made.pids.exists() else ():
        if Path("/proc", one).exists():
            os.kill(int(one), signal.SIGKILL)


@pytest.fixture
def cluster(postgres_server, own, trail, lab):
    node = {"site": "s1", "install": trail.install, "update": trail.update, "gather": "echo '{}'"}
    return lab.keep(
        Nodes(
            lab.folder(),
            postgres_server,
            [site("s1", own)],
            count=2,
            nodecontrol={"nodes": [node]},
        )
    ).start()


def do(node, operation):
    """The job of an operation; None while another one goes on."""
    with node.client() as client:
        answer = client.request("POST", f"{PATH}/cmd/{operation}")
    assert answer.status in (200, 409), answer
    return answer.json["job_id"] if answer.status == 200 else None


def begin(cluster, trail):
    job = do(cluster.nodes[FIRST], "install")
    until(trail.begun, "it runs")
    assert do(cluster.nodes[SECOND], "update") is None
    return job


def follow(cluster):
    """The other node does the next operation as soon as it may."""
    until(
        lambda: do(cluster.nodes[SECOND], "update"), "the next one begins",
        seconds=TAKEN_OVER, pause=0.5,
    )  # fmt: skip


def error(node):
    with node.client() as client:
        (row,) = client.rows("/mon/node-control/nodes")
    return row["last_error"]


def test_a_daemon_that_is_paused(cluster, trail):
    """Its command goes on with it, and ends as soon as it finds that others took it for dead."""
    first = cluster.nodes[FIRST]
    job = begin(cluster, trail)
    first.send_signal(signal.SIGSTOP)
    follow(cluster)
    first.send_signal(signal.SIGCONT)
    until(lambda: not trail.alive(), "all of it has ended")
    with first.client() as client:
        until(lambda: client.rows(f"/mon/jobs/{job}")["is_running"] == 0, "its job is over")
    assert "ended unexpectedly" in error(first)


def test_a_daemon_that_is_cut_off_from_the_database(cluster, trail):
    """Nothing of its command is left when the next one begins."""
    begin(cluster, trail)
    cluster.to_database[FIRST].drop()
    try:
        follow(cluster)
        until(trail.second.exists, "it has looked")
        assert trail.second.read_text() == ""
    finally:
        cluster.to_database[FIRST].mend()
    assert not trail.alive()


def test_a_daemon_that_is_killed(cluster, trail):
    """All of it ends with the daemon, which may do the next one as soon as it is back."""
    first = cluster.nodes[FIRST]
    begin(cluster, trail)
    first.kill()
    until(lambda: not trail.alive(), "all of it has ended")
    first.output.close()
    first.start()
    assert "ended unexpectedly" in error(first)
    assert do(first, "update") is not None
    until(trail.second.exists, "the next one has run")
    assert trail.second.read_text() == ""
