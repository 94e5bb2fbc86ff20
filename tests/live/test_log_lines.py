"""What a daemon writes: its first line, a line for each request, priorities, [log], probes."""

import json
import re

import pytest
from harness.client import Client
from harness.daemon import site
from harness.waiting import until

from monrest import __version__

SECRETS = {
    "password=hunter2": "password=***",
    "limit=1&Auth_Key=hunter2&columns=name": "limit=1&Auth_Key=***&columns=name",
    "p%61ssword=hunter2": "p%61ssword=***",
    "csrf_token=hunter2;x": "csrf_token=***",
    "_SNMPCOMMUNITY=hunter2&_DB_PASS=hunter2": "_SNMPCOMMUNITY=***&_DB_PASS=***",
    "accept_passive_checks=1": "accept_passive_checks=1",
    "columns=name&q=state%20%3D%200": "columns=name&q=state%20%3D%200",
    "X-Mon-Auth-User=ann&key=a&name%2d=b&passive=1": "X-Mon-Auth-User=ann&key=a&name%2d=b&passive=1",
    **{
        f"limit=1&{name}=hunter2&q=": f"limit=1&{name}=***&q="
        for name in (
            *("X-Mon-Auth-Key", "x-mon-auth-key", "X-Own_App-Auth-Key", "X-Mon-Auth%2dKey"),
            *("X-Mon-Auth%2DKey", "auth_key", "Auth.Key", "%61uth%5fkey", "apikey", "api-key"),
            *("private-key", "X-Mon-CSRF-Token", "password"),
        )
    },
    "peer_key=s1": "peer_key=s1",
    "columns=private_key&password=": "columns=private_key&password=",
    "": "-",
}


@pytest.fixture(scope="module")
def daemon(embedded, shared):
    """A daemon whose output is taken for the journal of systemd."""
    daemon = shared.daemon([site("s1", embedded)], sections={"server": {"workers": 1}})
    output = daemon.folder / "twistd.log"
    output.touch()
    return daemon.start(JOURNAL_STREAM=f"{output.stat().st_dev}:{output.stat().st_ino}")


def line_of(daemon, request_id):
    """The access line of a request."""
    found = re.compile(f"^.*request_id\\W+{request_id}\\b.*$", re.MULTILINE)
    return until(lambda: found.search(daemon.log), f"the line of {request_id}").group()


def test_the_first_line_says_what_starts_and_one_line_its_duties(daemon):
    first = daemon.log.splitlines()[0]
    assert f"monrest {__version__} starts with 1 site (s1); configuration {daemon.config}" in first
    until(lambda: "duties of this daemon now: " in daemon.log, "the duties")
    assert daemon.log.count("duties of this daemon now") == 1


def test_access_lines_have_the_query_without_secrets(daemon):
    wrong = {}
    with daemon.client() as client:
        for number, (query, shown) in enumerate(SECRETS.items()):
            name = f"query-{number}"
            client.get(f"/hosts?{query}" if query else "/hosts", headers={"X-Request-Id": name})
            said = re.search(r" query=(\S+) ", line_of(daemon, name))[1]
            if said != shown:
                wrong[query] = said
    assert wrong == {}
    assert "hunter2" not in daemon.log


def test_access_lines_have_the_key_and_the_agent(daemon):
    with daemon.client() as client:
        made = client.post_json("/mon/api_keys", {"comment": "log"}).json
        client.get("/hosts", headers={"X-Request-Id": "by-secret", "User-Agent": "a b/1\t"})
        long = {"limit": "1", "comment": "x" * 3000}
        client.get("/hosts", long, headers={"X-Request-Id": "long", "User-Agent": "y" * 3000})
    with Client(daemon.port, made["private_key"], None) as client:
        client.get("/hosts", headers={"X-Request-Id": "by-key"})
    line = line_of(daemon, "by-key")
    assert f" key={made['hashed_key'][:12]} agent=-" in line
    assert " path=/mon/r/hosts query=- status=200 " in line
    assert " user=admin " in line
    assert ' key=- agent="a b/1' in line_of(daemon, "by-secret")
    assert len(line_of(daemon, "long")) < 1600
    assert made["private_key"] not in daemon.log


def test_every_line_has_its_priority_for_the_journal(daemon):
    lines = daemon.log.splitlines()
    assert [line for line in lines if not re.match(r"<[2-6]>20\d\d-", line)] == []
    assert {"<5>" if " audit " in line else "<6>" for line in lines} >= {"<5>", "<6>"}
    assert all(line.startswith("<5>") == (" audit " in line) for line in lines)


def test_probes_beside_the_api_need_no_credentials(daemon):
    with Client(daemon.port, None, None, root="") as client:
        for path in ("/-/healthy", "/-/ready", "/mon/r/mon/healthy", "/mon/r/mon/ready"):
            answer = client.get(path)
            assert (path, answer.status, answer.json) == (path, 200, {"message": "OK"})
            assert client.request("HEAD", path).status == 200
        for path in ("/-/", "/-/metrics", "/-/healthy/x"):
            assert client.get(path).status == 404


def test_a_reload_takes_other_lines(daemon):
    def reloaded(**log):
        daemon.sections["log"] = log
        daemon.write_config()
        mark = len(daemon.log)
        daemon.hang_up()
        until(lambda: "configuration reload" in daemon.log[mark:], "the reload")

    with daemon.client() as client:
        reloaded(format="json")
        client.get("/hosts?limit=1", headers={"X-Request-Id": "json-1"})
        told = json.loads(line_of(daemon, "json-1").removeprefix("<6>"))
        assert (told["query"], told["key"], told["level"]) == ("limit=1", "-", "info")
        for log in ({"access": False}, {"level": "warning"}):
            reloaded(**log)
            mark = len(daemon.log)
            client.get("/hosts?limit=1", headers={"X-Request-Id": "silent"})
            reloaded()
            # Lines are written in order: it would stand before this one.
            client.get("/hosts?limit=1", headers={"X-Request-Id": "loud"})
            until(lambda mark=mark: "loud" in daemon.log[mark:], "the next line")
            assert "silent" not in daemon.log[mark:]
