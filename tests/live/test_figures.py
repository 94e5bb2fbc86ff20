"""Figures over a real socket: what they count, in which format, and what is cheap about them."""

import base64
import hashlib
import sqlite3
import time
from contextlib import closing

import pytest
from harness.client import Client
from harness.daemon import site
from harness.expect import refused
from harness.waiting import until
from prometheus_client.openmetrics.parser import text_string_to_metric_families as openmetrics
from prometheus_client.parser import text_string_to_metric_families as plain

PROMETHEUS = (
    "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.5,"
    "text/plain;version=0.0.4;q=0.2,*/*;q=0.1"
)
NAMES = {
    "business_process_total",
    "sessions_active_5min_total", "sessions_total", "sessions_uniq_user_5min_total",
    "sessions_uniq_user_total", "users_locked_total", "users_total",
}  # fmt: skip


@pytest.fixture
def daemon(made, embedded, tmp_path):
    path = tmp_path / "htpasswd"
    word = base64.b64encode(hashlib.sha1(b"x").digest()).decode()
    path.write_text("".join(f"{user}:{{SHA}}{word}\n" for user in ("olga", "ann", "admin")))
    sections = {"auth": {"htpasswd_file": str(path)}}
    return made([site("s1", embedded)], sections=sections).start()


def login(daemon, user):
    with Client(daemon.port, None, None) as client:
        answer = client.post_form("/mon/login", {"login": user, "password": "x"})
        assert answer.status == 200
        return answer.headers["set-cookie"].partition(";")[0], answer.json["csrf_token"]


def test_sessions_and_users_are_counted(daemon):
    with daemon.client() as admin:
        before = admin.rows("/mon/stats")
        assert set(before) == NAMES
        assert before["sessions_total"] == before["users_locked_total"] == 0
        assert before["users_total"] == len(admin.rows("/mon/users"))
        cookies = [login(daemon, user) for user in ("olga", "olga", "ann")]
        admin.rows("/mon/sessions")
        after = admin.rows("/mon/metrics")
        assert (after["sessions_total"], after["sessions_uniq_user_total"]) == (3, 2)
        assert after["sessions_active_5min_total"] == 3
        assert after["sessions_uniq_user_5min_total"] == 2
        cookie, token = cookies[0]
        with Client(daemon.port, None, None) as olga:
            headers = {"Cookie": cookie}
            assert olga.post_form(
                "/mon/logout", {"CSRFtoken": token}, headers=headers
            ).status == 200  # fmt: skip
        admin.request("POST", "/mon/users/ann/cmd/lock")
        # A plain user's look at the list has no part in what is counted.
        with daemon.client("joe") as joe:
            assert len(joe.rows("/mon/users")) == 1
        admin.rows("/mon/sessions")
        last = admin.rows("/mon/stats")
        assert (last["sessions_total"], last["sessions_uniq_user_total"]) == (2, 2)
        assert last["users_locked_total"] == 1
        assert last["users_total"] == len(admin.rows("/mon/users")) == 3


@pytest.mark.parametrize(("accept", "parse"), [(PROMETHEUS, openmetrics), ("text/plain", plain)])
def test_prometheus(daemon, accept, parse):
    login(daemon, "olga")
    with daemon.client() as admin:
        answer = admin.get("/mon/metrics", headers={"Accept": accept})
        assert answer.status == 200
        assert answer.type == accept.partition(";")[0]
        assert answer.headers["content-length"] == str(len(answer.body))
        assert "Accept" in answer.headers["vary"].split(", ")
        found = {one.name: one for one in parse(answer.text)}
        numbers = admin.rows("/mon/stats")
        stored = {name: one for name, one in found.items() if name.startswith("mon_")}
        assert {
            name.removeprefix("mon_"): one.samples[0].value for name, one in stored.items()
        } == ({name.removesuffix("_total"): value for name, value in numbers.items()})
        assert numbers["sessions_total"] == 1
        assert all(one.type == "gauge" for one in stored.values())
        assert all(one.documentation for one in found.values())
        one = admin.get("/mon/metrics?columns=users_total,business_process_last_update",
                        headers={"Accept": accept})  # fmt: skip
        assert [metric.name for metric in parse(one.text)] == ["mon_users"]
        refused(
            admin.get("/mon/metrics?columns=users_total:u", headers={"Accept": accept}),
            400, "invalid columns",
        )  # fmt: skip


def test_business_processes_are_counted(daemon):
    document = {
        "name": "B", "nodes": [{"id": "node1", "label": "B", "function": "fixed('OK')"}],
        "create_host_object": 0,
    }  # fmt: skip
    with daemon.client() as admin:
        assert admin.rows("/mon/stats")["business_process_total"] == 0
        assert admin.post_json("/mon/bp", document).status == 200
        admin.rows("/mon/bp")
        assert admin.rows("/mon/stats")["business_process_total"] == 0, "a draft"
        assert admin.patch("/mon/bp/1", {}).status == 200
        admin.rows("/mon/bp")
        assert admin.rows("/mon/stats")["business_process_total"] == 1


def test_json_unless_text_is_preferred(daemon):
    with daemon.client() as admin:
        for accept in (
            "*/*",
            "application/json, text/plain, */*",
            "text/html,*/*;q=0.8",
            "image/png",
        ):
            answer = admin.get("/mon/stats", headers={"Accept": accept})
            assert answer.type == "application/json"
            assert answer.headers["vary"] == "Accept, Accept-Encoding"
        csv = admin.get("/csv/mon/stats?columns=users_total", headers={"Accept": "text/plain"})
        assert csv.text == "#key;value\nusers_total;3\n"
        assert admin.rows("/mon/stats?columns=users_total:u").keys() == {"u"}
        started = admin.get("/mon/stats?background=1", headers={"Accept": "text/plain"}).json
        result = admin.get(f"/mon/jobs/{started['job_id']}/output")
        assert set(result.json) == NAMES


def test_the_log_cache_is_counted(made, embedded, tmp_path):
    """What the figures say is what is in the database, after every update."""
    began, file = int(time.time()), tmp_path / "lines.sqlite"
    cache = {"url": f"sqlite:///{file}", "first_import": 864000, "update_interval": 3600}
    daemon = made([site("s1", embedded)], sections={"logcache": cache}).start()

    def told():
        (row,) = admin.rows("/mon/logcache/stats")
        return row

    def stored():
        with closing(sqlite3.connect(file, timeout=20)) as base:
            return base.execute(
                "SELECT count(*), max(time), sum(length(message)) FROM logcache_lines"
            ).fetchone()

    with daemon.client() as admin:
        until(lambda: told()["status"] == "OK" and told()["items"], "the first import is done")
        for _ in range(2):
            answer = admin.request("POST", "/mon/logcache/update")
            row, (count, newest, size) = told(), stored()
            assert answer.json["errors"] == []
            assert (row["items"], row["last_entry"], row["mode"]) == (count, newest, "")
            assert row["data_size"] >= size
            assert row["update_duration"] > 0
            assert began <= row["last_update"] <= time.time()


def test_the_configuration(made, tmp_path):
    word = tmp_path / "word"
    word.write_text("hush\n")
    node = {
        "site": "s1", "gather": "curl -u ann:hush http://s1/", "update": "TOKEN=hush update",
        "install": "get --password 'hush hush' it", "cleanup": "curl https://hush@s1/",
    }  # fmt: skip
    daemon = made(
        [site("s1", "http://127.0.0.1:1/mon", auth_key="hush")],
        sections={
            "auth": {"max_api_keys_per_user": 3},
            "mail": {
                "host": "mail.example",
                "username": "u",
                "security": "tls",
                "password_file": str(word),
            },
            "mail.headers": {"X-Api-Key": "hush", "X-Team": "Ops"},
            "nodecontrol": {"nodes": [node]},
        },
    )
    daemon.start(connected=())
    with daemon.client() as admin:
        answer = admin.get("/mon/config")
        assert answer.status == 200
        config = answer.json
        assert "hush" not in answer.text
        assert daemon.key not in answer.text
        assert config["sites"][0]["auth_key"] == "***"
        assert config["mail"]["password_file"] == "***"
        assert config["mail"]["headers"] == {"X-Api-Key": "***", "X-Team": "Ops"}
        assert config["nodecontrol"]["nodes"][0]["gather"] == "curl -u ann:*** http://s1/"
        assert config["auth"]["max_api_keys_per_user"] == 3
        assert "secret_key_file" not in config["auth"]
        assert config["server"]["request_timeout"] == 40.0
        assert config["mon_version"] == admin.rows("/mon")["mon_version"]
        assert config["config_file"] == str(daemon.config.resolve())
        assert config["use_feature_configtool"] == 0
        assert list(config) == sorted(config)
        assert admin.rows("/mon/config?columns=hostname").keys() == {"hostname"}
