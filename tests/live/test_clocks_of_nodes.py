"""Two nodes on one PostgreSQL, of which the one that does everything is an hour ahead."""

import json
import time
from datetime import datetime

import pytest
from harness.daemon import site
from harness.dates import DatedDaemon
from harness.jobs import background
from harness.nodes import Nodes
from harness.waiting import until

HOUR = 3600
AHEAD, RIGHT = 0, 1


@pytest.fixture(scope="module")
def own(shared):
    return shared.core()


@pytest.fixture(scope="module")
def cluster(tmp_path_factory, postgres_server, own, shared):
    """The node that is ahead comes first and takes all duties."""
    folder = tmp_path_factory.mktemp("dated-nodes")
    slow = {"site": "s1", "gather": f"touch {folder}/gathers; sleep 60; echo '{{}}'"}
    made = shared.keep(
        Nodes(
            folder,
            postgres_server,
            [site("s1", own)],
            count=2,
            kind=DatedDaemon,
            jobs={"keep": 600.0},
            auth={"session_idle": 1800.0, "htpasswd_file": str(folder / "htpasswd")},
            nodecontrol={"nodes": [slow], "gather_timeout": 60},
        )
    )
    (folder / "htpasswd").write_text("ann:{SHA}NWoZK3kTsExUV00Ywo1G5jlUKKs=\n")  # 1
    made.folder = folder
    made.nodes[AHEAD].set_clock(HOUR)
    made.nodes[AHEAD].start()
    until(lambda: made.holder("recurring downtimes") == AHEAD, "it has the duties")
    made.nodes[RIGHT].start()
    until(made.all_known, "all nodes know each other")
    return made


def login(node):
    with node.client(None) as client:
        client.key = None
        answer = client.post_form("/mon/login", {"login": "ann", "password": "1"})
    assert answer.status == 200, answer
    return answer.headers["set-cookie"].partition(";")[0]


def test_sessions_are_valid_everywhere(cluster):
    for at in (RIGHT, AHEAD):
        cookie = login(cluster.nodes[at])
        for node in cluster.nodes:
            with node.client(None) as client:
                client.key = None
                assert client.get("/mon/whoami", headers={"Cookie": cookie}).status == 200
    with cluster.nodes[AHEAD].client() as client:
        rows = client.rows("/mon/sessions")
    assert len(rows) == 2
    assert all(abs(row["active"] - time.time()) < 60 for row in rows)


def test_results_of_jobs_are_kept(cluster):
    """Whoever removes old ones is ahead, and does remove those that are old."""
    with cluster.nodes[RIGHT].client() as client:
        young, old = (background(client, "/hosts?columns=name") for _ in range(2))
        for job in (young, old):
            assert client.get(f"/mon/jobs/{job}/output").status == 200
    with cluster.nodes[AHEAD].client() as client:
        row = client.rows(f"/mon/jobs/{young}")
        assert abs(row["start"] - time.time()) < 60
        cluster.sql(f"UPDATE jobs SET ended = ended - 601 WHERE id = {old}")
        until(lambda: client.get(f"/mon/jobs/{old}").status == 404, "old results are removed")
        assert client.get(f"/mon/jobs/{young}").status == 200


def test_nothing_comes_early(cluster):
    now = int(time.time()) // 60 * 60
    with cluster.nodes[RIGHT].client() as client:
        for comment, at in (("later", now + 1800), ("soon", now + 60)):
            when = datetime.fromtimestamp(at)
            schedule = [{"type": "day", "minute": when.minute, "hour": str(when.hour)}]
            record = {"host": "web01", "schedule": schedule, "comment": comment}
            assert client.post_json("/mon/recurring_downtimes", record).status == 200
    found = "SELECT at FROM downtime_occurrences"
    until(lambda: cluster.sql(found), "one has come", seconds=120)
    assert cluster.sql(found) == [(now + 60,)]
    assert cluster.holder("recurring downtimes") == AHEAD


def test_nobody_gathers_twice(cluster):
    """A node is being asked until that is over, as all see it."""
    path = "/mon/node-control/nodes/s1/cmd/gather"
    with cluster.nodes[RIGHT].client() as right, cluster.nodes[AHEAD].client() as ahead:
        first = right.request("POST", path).json
        until((cluster.folder / "gathers").exists, "it is asked")
        second = ahead.request("POST", path).json
        answer = ahead.get(f"/mon/jobs/{second['job_id']}/output?wait=20")
        assert answer.status == 409, answer
        assert json.loads(answer.body)["message"] == "facts of the node are being gathered"
        for job in (first, second):
            right.request("DELETE", f"/mon/jobs/{job['job_id']}")


def test_it_is_told(cluster):
    line = f"the clock of this machine differs by {HOUR} s from that of the database"
    assert line in cluster.nodes[AHEAD].log
    assert "the clock of this machine differs" not in cluster.nodes[RIGHT].log
