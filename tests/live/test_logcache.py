"""The log cache of a daemon before real cores."""

import signal
import time
from functools import partial

import pytest
from harness.daemon import site
from harness.expect import refused
from harness.waiting import until

from tests.table import each

QUERIES = [
    ("/logs", {"time[gte]": "-1d"}),
    ("/logs", {"time[gte]": "-1d", "limit": "7"}),
    ("/logs", {"time[gte]": "-1d", "limit": "5", "offset": "3", "sort": "-message"}),
    ("/logs", {"time[gte]": "-2d", "columns": "type,class,count(*)"}),
    ("/logs", {"time[gte]": "-1d", "q": 'message ~~ "crit.*503" or host_name = "db01"'}),
    ("/logs", {"time[gte]": "-1d", "columns": "message,current_host_state"}),
    ("/alerts", {"time[gte]": "-1d", "state[ne]": "0"}),
    ("/notifications", {"time[gte]": "-1d"}),
    ("/hosts/web*/alerts", {"time[gte]": "-1d"}),
    ("/hosts/web02/notifications", {}),
]


def updated(client):
    """Whether the first import is done and has found something."""
    (row,) = client.rows("/mon/logcache/stats")
    return row["status"] == "OK" and row["items"] > 0 and row["last_update"] > 0


@pytest.fixture(scope="module")
def cached(core, shared):
    """A daemon whose cache has been filled."""
    daemon = shared.daemon(
        [site("s1", core, name="Site One")],
        sections={"logcache": {"update_interval": 1.0, "first_import": 864000}},
    )
    daemon.start()
    with daemon.client() as client:
        until(lambda: updated(client), "the first import is done")
    return daemon


@each("user", ["admin", "olga"])
@each(("path", "query"), QUERIES)
def test_the_same_with_and_without(cached, path, query, user):
    def both():
        # Between the two questions the core may write another line.
        with cached.client(user) as client:
            before = client.rows(path, {**query, "logcache": "0"})
            found = client.rows(path, query)
            after = client.rows(path, {**query, "logcache": "0"})
        assert before != after or found == after
        return before == after

    until(both, "a moment without a new line")


@pytest.mark.parametrize("path", ["/logs", "/alerts", "/notifications", "/hosts/web01/alerts"])
def test_hostile_choice(cached, path):
    with cached.client() as client:
        for value in ("maybe", "2", "-1"):
            refused(client.get(path, {"logcache": value}), 400, "logcache: expected 0 or 1")
        assert client.rows(path, {"logcache": "1"}) == client.rows(path, {"logcache": ""})


def test_statistics(cached):
    with cached.client() as client:
        (row,) = client.rows("/mon/logcache/stats")
        newest = client.rows("/logs", {"columns": "time", "limit": "1", "time[gte]": "-1d"})
        assert row["key"] == "s1"
        assert row["name"] == "Site One"
        assert row["enabled"] == 1
        assert row["cache_version"] == "1"
        assert row["items"] > 0
        assert row["data_size"] > row["index_size"] > 0
        assert newest[0]["time"] >= row["last_entry"] >= newest[0]["time"] - 400
        assert row["last_update"] >= time.time() - 120
        assert (row["last_compact"], row["last_reorder"], row["reorder_duration"]) == (0, 0, 0)
        assert client.rows("/mon/logcache/stats", {"key": "nope"}) == []


def test_update_on_request(cached):
    with cached.client() as client:
        answer = client.post_json("/mon/logcache/update", {})
        assert answer.status == 200
        assert answer.json["code"] == 200
        assert answer.json["message"] == "logcache update finished."
        assert answer.json["insert_count"] >= 0
        assert set(answer.json) == {"code", "errors", "insert_count", "message"}
    with cached.client("olga") as olga:
        refused(olga.request("POST", "/mon/logcache/update"), 403)


def updated_now(client, parameters):
    """The answer to an update on request, unless another one is running."""
    answer = client.post_json("/mon/logcache/update", parameters)
    return None if b"is running already" in answer.body else answer.json


def test_a_time_is_imported_once_more(cached):
    query = {"time[gte]": "-1d", "columns": "time,lineno,message"}
    with cached.client() as client:
        before = client.rows("/logs", query)
        for parameters in (
            {"from": "-1d"},
            {"from": "-1d", "to": "-1h"},
            {"from": "-1d", "force": "1"},
            {"from": "-20d", "to": "-19d"},
        ):
            # The daemon updates once a second by itself.
            answer = until(partial(updated_now, client, parameters), "nobody else is at it")
            assert (answer["code"], answer["errors"]) == (200, [])
            assert answer["insert_count"] < 20
            removed = "logcache update finished, 0 lines removed."
            plain = "logcache update finished."
            assert answer["message"] == (removed if "force" in parameters else plain)
        assert client.rows("/logs", query)[: len(before)] == before
        for parameters, name in (
            ({"force": "1"}, "force"),
            ({"to": "-1h"}, "to"),
            ({"from": "garbage"}, "from"),
            ({"from": "-1h", "to": "-2h"}, "to"),
            ({"from": "-1h", "force": "perhaps"}, "force"),
            ({"from": "-9999d"}, "from"),
        ):
            refused(client.post_json("/mon/logcache/update", parameters), 400, f"{name}: ")
        started = client.post_json(
            "/mon/logcache/update", {"from": "-2d", "force": "1", "background": "1"}
        ).json
        until(
            lambda: not client.rows(f"/mon/jobs/{started['job_id']}")["is_running"],
            "the job has ended",
        )
        output = client.get(f"/mon/jobs/{started['job_id']}/output").json
        assert output["code"] == 200


def test_killed_and_started_again(cached):
    query = {"time[gte]": "-1d", "columns": "time,lineno,message"}
    cached.stop(signal.SIGKILL)
    cached.start()
    with cached.client() as client:
        found = client.rows("/logs", query)
        told = client.rows("/logs", {**query, "logcache": "0"})
    assert found == told[: len(found)]


def test_switched_off(embedded, made):
    daemon = made([site("s1", embedded)], sections={"logcache": {"enabled": False}}).start()
    with daemon.client() as client:
        refused(client.get("/mon/logcache/stats"), 400, "logcache is disabled")
        refused(client.request("POST", "/mon/logcache/update"), 400, "logcache is disabled")
        assert client.rows("/logs")


def test_a_database_of_its_own(embedded, made, tmp_path):
    file = tmp_path / "lines.sqlite"
    daemon = made(
        [site("s1", embedded), site("away", "unix:/nonexistent/live")],
        sections={"logcache": {"url": f"sqlite:///{file}", "first_import": 86400}},
    ).start(connected=["s1"])
    with daemon.client() as client:
        until(
            lambda: client.rows("/mon/logcache/stats", {"key": "s1"})[0]["items"] > 0, "lines came"
        )
        assert file.exists()
        # The daemon may be at it itself, and waits a moment for a core that may just be restarted.
        answers = []

        def tried(path):
            answers.append(client.request("POST", path))
            return b"away: an update is running already" not in answers[-1].body

        until(lambda: tried("/sites/away/mon/logcache/update"), "the daemon has given up itself")
        refused(answers[-1], 502, "no backend available", "away: ")
        until(lambda: tried("/mon/logcache/update"), "the daemon has given up once more")
        answer = answers[-1]
        assert (answer.status, answer.json["code"]) == (200, 200)
        # The other one may be busy with its first import.
        assert answer.json["errors"][0].startswith("away: ")
        assert answer.headers["x-mon-failed-sites"] == "away"
