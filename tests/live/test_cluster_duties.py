"""What is done once in a cluster, counted: a node is killed, paused, or cut off from the database."""

from __future__ import annotations

import signal
import time
from collections import Counter
from datetime import datetime

import pytest
from harness.cores import EmbeddedCore
from harness.daemon import site
from harness.nodes import Nodes
from harness.waiting import until

MANY = 60
DOWNTIMES, LOGS = "recurring downtimes", "log cache"
TAKEN_OVER = 120.0
IN_BUFFERS = 1
"""Lines that may be between the last look and the system call when a node is paused."""


@pytest.fixture(scope="module")
def own(tmp_path_factory, ready):
    core = EmbeddedCore(tmp_path_factory.mktemp("cluster-core"))
    try:
        yield ready(core)
    finally:
        core.stop()


@pytest.fixture(scope="module")
def nodes(tmp_path_factory, postgres_server, own):
    made = Nodes(
        tmp_path_factory.mktemp("duties"),
        postgres_server,
        [site("s1", f"unix:{own.socket}")],
        cluster={"restart_notice": 1.0},
        logcache={"update_interval": 1.0, "first_import": 604800.0},
    )
    try:
        yield made.start()
    finally:
        made.close()


@pytest.fixture
def cluster(nodes):
    """All nodes run, know each other and have nothing to do; each test puts that right again."""
    until(nodes.all_known, "all nodes know each other")
    for duty in (DOWNTIMES, LOGS):
        until(lambda duty=duty: nodes.holder(duty) is not None, f"somebody does {duty}")
    yield nodes
    nodes.sql("DELETE FROM recurring_downtimes")


def plan(cluster, name):
    """Make many recurring downtimes, and let the time of all of them come at once."""
    at = int(time.time()) // 60 * 60 - 3600
    when = datetime.fromtimestamp(at)
    schedule = [{"type": "day", "minute": when.minute, "hour": when.hour}]
    with cluster.nodes[0].client() as client:
        for number in range(MANY):
            fields = {"host": "web01", "schedule": schedule, "comment": f"{name} {number}"}
            response = client.post_json("/mon/recurring_downtimes", fields)
            assert response.status == 200, response
    cluster.sql(f"UPDATE recurring_downtimes SET next_at = {int(time.time()) - 3700}")


def told(own, name):
    """How often the core was told each of them."""
    found = own.ask("GET downtimes\nColumns: comment is_service")
    return Counter(comment for comment, _ in found if comment.startswith(f"{name} "))


def all_told(cluster, own, name):
    ((left,),) = cluster.sql("SELECT count(*) FROM downtime_occurrences WHERE open")
    ((due,),) = cluster.sql(
        f"SELECT count(*) FROM recurring_downtimes WHERE next_at <= {int(time.time())}"
    )
    return not left and not due and len(told(own, name)) >= MANY


def cached(cluster):
    """The lines of the cache, each as often as it is there."""
    return Counter(cluster.sql("SELECT time, message FROM logcache_lines"))


def of_core(own):
    return Counter(map(tuple, own.ask("GET log\nColumns: time message")))


def check_counts(cluster, own, name):
    """Everything was done, and once."""
    until(lambda: all_told(cluster, own, name), "the core was told", seconds=TAKEN_OVER, pause=0.2)
    assert told(own, name) == {f"{name} {number}": 1 for number in range(MANY)}
    until(lambda: not of_core(own) - cached(cluster), "all lines are there", seconds=TAKEN_OVER)
    assert cached(cluster) == of_core(own)


def moved(cluster, before, duty):
    now = cluster.holder(duty)
    return now is not None and now != before


def test_a_killed_node(cluster, own):
    dead = cluster.holder(DOWNTIMES)
    plan(cluster, "killed")
    until(lambda: told(own, "killed"), "it has begun", pause=0.005)
    cluster.nodes[dead].kill()
    until(lambda: moved(cluster, dead, DOWNTIMES), "another one does it", seconds=TAKEN_OVER)
    check_counts(cluster, own, "killed")
    left = [at for at in range(3) if at != dead]
    assert cluster.holder(LOGS) in left
    with cluster.nodes[left[0]].client() as client:
        until(
            lambda: client.rows(f"/mon/cluster/{cluster.id_of(dead)}")["last_error"], "it is told"
        )
    cluster.nodes[dead].start()
    until(cluster.all_known, "it is back")
    assert told(own, "killed") == {f"killed {number}": 1 for number in range(MANY)}


def test_a_paused_node(cluster, own):
    """It knows that it lost the duty; a core has no fence for what was in its buffers just then."""
    paused = cluster.holder(DOWNTIMES)
    before = len(cluster.nodes[paused].log)
    plan(cluster, "paused")
    until(lambda: told(own, "paused"), "it has begun", pause=0.005)
    cluster.nodes[paused].send_signal(signal.SIGSTOP)
    until(lambda: moved(cluster, paused, DOWNTIMES), "another one does it", seconds=TAKEN_OVER)
    check_counts(cluster, own, "paused")
    cluster.nodes[paused].send_signal(signal.SIGCONT)
    until(cluster.all_known, "it goes on")
    until(lambda: "duties of another daemon now" in cluster.nodes[paused].log[before:], "it knows")
    assert moved(cluster, paused, DOWNTIMES)
    assert set(told(own, "paused")) == {f"paused {number}" for number in range(MANY)}
    assert sum(told(own, "paused").values()) <= MANY + IN_BUFFERS


def test_a_node_that_is_cut_off_from_the_database(cluster, own):
    """What it had under way comes through late, when others have done it already."""
    lost = cluster.holder(DOWNTIMES)
    plan(cluster, "cut")
    until(lambda: told(own, "cut"), "it has begun", pause=0.005)
    cluster.to_database[lost].drop()
    until(lambda: moved(cluster, lost, DOWNTIMES), "another one does it", seconds=TAKEN_OVER)
    check_counts(cluster, own, "cut")
    cluster.to_database[lost].mend()
    with cluster.nodes[lost].client() as client:
        until(lambda: client.get("/mon/recurring_downtimes").status == 200, "it is back")
    until(cluster.all_known, "all know each other")
    assert moved(cluster, lost, DOWNTIMES)
    check_counts(cluster, own, "cut")


def test_a_node_that_stops_hands_over(cluster, own):
    gone = cluster.holder(DOWNTIMES)
    plan(cluster, "stopped")
    until(lambda: told(own, "stopped"), "it has begun", pause=0.005)
    assert cluster.nodes[gone].stop() in (0, -signal.SIGTERM)
    until(lambda: moved(cluster, gone, DOWNTIMES), "another one does it")
    check_counts(cluster, own, "stopped")
    cluster.nodes[gone].start()


def test_a_restart_goes_on_when_its_driver_dies(cluster):
    """The dead one comes back as after a crash, which counts as its restart."""
    asked = cluster.nodes[(cluster.holder(DOWNTIMES) + 1) % 3]
    runs = set(cluster.sql("SELECT run FROM cluster_nodes"))
    with asked.client() as client:
        assert client.request("POST", "/mon/cluster/restart").status == 200
    states = "SELECT state FROM cluster_restarts ORDER BY position"
    until(lambda: cluster.sql(states)[0] == ("leaving",), "the first one leaves", pause=0.05)

    def driving():
        at = cluster.holder("cluster restart")
        return None if at is None else cluster.nodes[at]

    driver = until(driving, "somebody drives")
    driver.kill()
    driver.start()
    until(lambda: set(cluster.sql(states)) == {("done",)}, "all are done", seconds=240, pause=0.2)
    assert not runs & set(cluster.sql("SELECT run FROM cluster_nodes"))
    until(cluster.all_known, "all nodes know each other")
