"""Three real daemons on one real PostgreSQL: what they know of each other, and their restart."""

import itertools
import threading
from urllib.parse import quote

import pytest
from harness.balancer import Balancer
from harness.client import Client
from harness.daemon import site
from harness.expect import refused
from harness.nodes import Nodes, rows
from harness.waiting import until

from monrest.cluster import seal

NOTICE = 5.0
"""Seconds in which the balancer has to notice, on whatever machine, that a node leaves."""


@pytest.fixture(scope="module")
def cluster(postgres_server, embedded, shared):
    return shared.keep(
        Nodes(
            shared.folder(),
            postgres_server,
            [site("s1", embedded)],
            cluster={"restart_notice": NOTICE},
        )
    ).start()


def ready(node):
    with node.client() as client:
        client.key = client.user = None
        return client.get("/mon/ready")


def test_every_node_knows_all_of_them(cluster):
    for node in cluster.nodes:
        found = rows(node)
        assert [row["node_url"] for row in found] == sorted(cluster.urls)
        by_url = {row["node_url"]: row for row in found}
        for at, url in enumerate(cluster.urls):
            row = by_url[url]
            assert set(row) == {
                "hostname", "last_contact", "last_error", "maintenance", "node_id", "node_url",
                "pids", "response_time", "version",
            }  # fmt: skip
            assert row["node_id"] == cluster.id_of(at)
            assert row["pids"] == [str(cluster.nodes[at].process.pid)]
            assert (row["last_error"], row["maintenance"]) == ("", 0)
            assert row["last_contact"] > 1_700_000_000
            assert (row["response_time"] > 0) == (node is not cluster.nodes[at])


def test_one_node_and_none(cluster):
    with cluster.nodes[0].client() as client:
        for name in (cluster.id_of(1), quote(cluster.urls[1], safe="")):
            assert client.rows(f"/mon/cluster/{name}")["node_id"] == cluster.id_of(1)
        assert client.rows(f"/mon/cluster/{cluster.id_of(2)}", {"columns": "node_url"}) == {
            "node_url": cluster.urls[2]
        }
        refused(client.get("/mon/cluster/none"), 404, "no such cluster node")
        (row,) = client.rows("/mon/cluster", {"node_id": cluster.id_of(2), "columns": "node_url"})
        assert row == {"node_url": cluster.urls[2]}


def test_heartbeat(cluster):
    with cluster.nodes[0].client() as client:
        refused(client.get("/mon/cluster/heartbeat"), 400, "bad request", "POST method required")
        answer = client.request("POST", "/mon/cluster/heartbeat").json
        assert answer["message"] == "heartbeat send"
        assert set(answer["nodes"]) == {cluster.id_of(1), cluster.id_of(2)}
        for name, one in answer["nodes"].items():
            assert set(one) == {"hostname", "maintenance", "node_id", "time", "version"}
            assert one["node_id"] == name


def test_a_node_that_is_cut_off_is_told(cluster):
    with cluster.nodes[0].client() as client:
        path = f"/mon/cluster/{cluster.id_of(1)}"
        cluster.to_node[1].drop()
        try:
            answer = client.request("POST", "/mon/cluster/heartbeat", timeout=300).json
            assert answer["nodes"][cluster.id_of(1)] is None
            assert answer["nodes"][cluster.id_of(2)] is not None
            row = client.rows(path)
            assert "no answer" in row["last_error"]
            assert row["last_contact"] > 1_700_000_000
        finally:
            cluster.to_node[1].mend()
        until(lambda: client.rows(path)["last_error"] == "", "it answers again")


def test_nobody_else_is_told_anything(cluster):
    path = f"/mon/cluster/ping?url={quote(cluster.urls[0])}"
    with cluster.nodes[0].client() as client:
        for given in ("", "x", "0" * 32, f"{'0' * 32}:{'0' * 64}", "ü:ü"):
            headers = {"X-Mon-Cluster-Auth": given.encode()}
            refused(client.get(path, headers=headers), 403, "not a node of this cluster")


def call_of(cluster, at):
    """What a node sends to the one at this url, and where."""
    url = cluster.urls[at]
    key = seal.key_of(cluster.nodes[0].key)
    headers = {"X-Mon-Cluster-Auth": seal.of_call(key, seal.new_number(), url)}
    return f"/mon/cluster/ping?url={quote(url, safe='')}", headers


def test_a_call_that_is_repeated(cluster):
    """At the same node it is refused; at another one it changes nobody's place."""
    path, headers = call_of(cluster, 0)
    with cluster.nodes[0].client() as one, cluster.nodes[1].client() as two:
        assert one.get(path, headers=headers).json["node_id"] == cluster.id_of(0)
        for _ in range(3):
            refused(one.get(path, headers=headers), 403, "not a node of this cluster")
        assert two.get(path, headers=headers).json["node_id"] == cluster.id_of(1)
        for node in (one, two):
            node.request("POST", "/mon/cluster/heartbeat")
            assert node.values("/mon/cluster", "node_url") == sorted(cluster.urls)
    until(cluster.all_known, "all nodes know each other")
    stored = dict(cluster.sql("SELECT id, url FROM cluster_nodes"))
    assert stored == {int(cluster.id_of(at)): url for at, url in enumerate(cluster.urls)}


def test_calls_with_more_than_belongs_there(cluster):
    path, headers = call_of(cluster, 0)
    much = b"x" * 1_000_000
    with cluster.nodes[0].client() as client:
        # What comes with a call is not looked at, beyond the limit for unknown clients not read.
        assert client.request("GET", path, body=much[:60_000], headers=headers).status == 200
        refused(client.request("GET", path, body=much, headers=headers), 413, "body too long")
        head = {"X-Mon-Cluster-Auth": "0" * 10_000}
        refused(client.get(path, headers=head), 403, "not a node of this cluster")
    with cluster.nodes[0].client() as client:
        answer = client.request("POST", "/mon/cluster/heartbeat", body=much)
        assert answer.status in (400, 415), answer
    with cluster.nodes[0].client() as client:
        assert client.request("POST", "/mon/cluster/heartbeat").status == 200


def test_maintenance(cluster):
    with cluster.nodes[0].client() as client, cluster.nodes[2].client() as other:
        path = f"/mon/cluster/{cluster.id_of(1)}"
        assert ready(cluster.nodes[1]).json == {"message": "OK"}
        done = client.request("POST", f"{path}/maintenance")
        assert done.json == {"message": f"node {cluster.id_of(1)} put into maintenance mode"}
        until(lambda: ready(cluster.nodes[1]).status == 503, "it is not ready")
        refused(ready(cluster.nodes[1]), 503, "MAINTENANCE")
        since = client.rows(path)["maintenance"]
        assert since > 1_700_000_000
        until(lambda: other.rows(path)["maintenance"] == since, "the others see it")
        with cluster.nodes[1].client() as itself:
            assert itself.get("/hosts").status == 200
        assert client.request("POST", f"{path}/maintenance").status == 200
        assert client.rows(path)["maintenance"] == since
        done = client.request("DELETE", f"{path}/maintenance")
        assert done.json == {"message": f"node {cluster.id_of(1)} taken out of maintenance mode"}
        until(lambda: ready(cluster.nodes[1]).status == 200, "it is ready")


def test_bad_input(cluster):
    with cluster.nodes[0].client() as client:
        for path in ("heartbeat", "restart", f"{cluster.id_of(1)}/maintenance"):
            answer = client.post_form(f"/mon/cluster/{path}", [("force", "1")])
            refused(answer, 400, "unknown parameter", "force")
        refused(client.request("POST", "/mon/cluster/none/maintenance"), 404, "no such cluster")


def state(cluster, at=0):
    with cluster.nodes[at].client() as client:
        return [row["state"] for row in client.rows("/mon/cluster/restart")]


def test_all_nodes_restart_and_no_request_fails(cluster):
    """Nodes go one after another, the one that drives this as well, while others work."""
    before = {at: run_of(cluster, at) for at in range(3)}
    pids = [node.process.pid for node in cluster.nodes]
    balancer = Balancer([node.port for node in cluster.nodes])
    key, wrong, stop = cluster.nodes[0].key, [], threading.Event()
    numbers, written = itertools.count(), []

    def traffic(kind):
        with Client(balancer.port, key) as client:
            while not stop.wait(0.15):
                if kind == "read":
                    response = client.get("/hosts?columns=name")
                elif kind == "write":
                    # Fifty of them, again and again: a user may have a hundred.
                    name = f"meanwhile{next(numbers) % 50}"
                    path = f"/mon/broadcasts/{name}" if name in written else "/mon/broadcasts"
                    response = client.post_form(path, [("file", name), ("text", "x")])
                    if name not in written:
                        written.append(name)
                else:
                    response = client.get("/hosts?columns=name&background=1")
                    number = response.json.get("job_id")
                    response = client.get(f"/mon/jobs/{number}/output")
                if response.status != 200:
                    wrong.append((kind, response))

    threads = [threading.Thread(target=traffic, args=(kind,), daemon=True)
               for kind in ("read", "read", "write", "job")]  # fmt: skip
    for thread in threads:
        thread.start()
    try:
        with Client(balancer.port, key) as client:
            begun = client.request("POST", "/mon/cluster/restart")
            assert begun.status == 200, begun
            assert begun.json["nodes"] == dict.fromkeys(map(cluster.id_of, range(3)), "waiting")
            refused(
                client.request("POST", "/mon/cluster/restart"), 409, "a restart is already running"
            )

            def steps():
                return client.rows("/mon/cluster/restart")

            until(
                lambda: all(one["state"] == "done" for one in steps()), "all are done", seconds=240
            )
    finally:
        stop.set()
        for thread in threads:
            thread.join(40)
        balancer.close()
    assert wrong == []
    assert {status for status, _ in balancer.answers} <= {200, 409}
    assert {port for _, port in balancer.answers} == {node.port for node in cluster.nodes}
    assert balancer.most_outside == 1
    assert [node.process.pid for node in cluster.nodes] == pids
    for at, node in enumerate(cluster.nodes):
        assert node.process.poll() is None
        assert run_of(cluster, at) != before[at]
        assert "Traceback" not in node.log
    stored = cluster.sql("SELECT file FROM broadcasts")
    assert sorted(file for (file,) in stored) == sorted(written)
    until(cluster.all_known, "all nodes know each other")


def run_of(cluster, at):
    ((run,),) = cluster.sql(f"SELECT run FROM cluster_nodes WHERE id = {cluster.id_of(at)}")
    return run


def test_a_node_that_could_not_start_stays_and_ends_the_restart(cluster):
    node = cluster.nodes[cluster.urls.index(sorted(cluster.urls)[1])]
    asked = cluster.nodes[cluster.urls.index(min(cluster.urls))]
    good = node.config.read_text()
    node.config.write_text(good + "\nbogus = 1\n")
    runs = [run_of(cluster, at) for at in range(3)]
    try:
        with asked.client() as client:
            assert client.request("POST", "/mon/cluster/restart").status == 200
            ends = {"done", "failed", "skipped"}
            until(
                lambda: {one["state"] for one in client.rows("/mon/cluster/restart")} <= ends,
                "it has ended",
                seconds=120,
            )
            steps = client.rows("/mon/cluster/restart")
    finally:
        node.config.write_text(good)
    assert [one["state"] for one in steps] == ["failed", "skipped", "skipped"]
    assert "bogus" in steps[0]["message"]
    assert steps[0]["node_url"] in steps[1]["message"]
    assert [run_of(cluster, at) for at in range(3)] == runs
    assert ready(node).status == 200


def test_a_node_with_another_key_is_none_of_this_cluster(made, cluster, embedded):
    stranger = made(
        [site("s1", embedded)],
        sections={
            "database": cluster.nodes[0].sections["database"],
            "cluster": {"nodes": [*cluster.urls, "http://127.0.0.1:1"], "heartbeat_interval": 1},
        },
    ).start()
    with stranger.client() as client:
        answer = client.request("POST", "/mon/cluster/heartbeat")
        assert set(answer.json["nodes"].values()) == {None}
        errors = {row["node_url"]: row["last_error"] for row in client.rows("/mon/cluster")}
    for url in cluster.urls:
        assert errors[url] == "status 403: not a node of this cluster"
    assert "no connection" in errors["http://127.0.0.1:1"]


def test_alone(made, embedded):
    alone = made([site("s1", embedded)]).start()
    with alone.client() as client:
        assert client.rows("/mon/cluster") == []
        for method, path in (
            ("GET", "heartbeat"), ("POST", "heartbeat"), ("POST", "restart"), ("GET", "restart"),
        ):  # fmt: skip
            answer = client.request(method, f"/mon/cluster/{path}")
            refused(answer, 501, "cluster disabled", "single node installation")
    assert ready(alone).json == {"message": "OK"}
