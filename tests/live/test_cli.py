"""``monrest`` as people call it, against a real daemon: over TCP and over its Unix socket."""

import json

import pytest
from harness.command import Command
from harness.daemon import site
from harness.waiting import until


@pytest.fixture(scope="module")
def own(embedded, shared):
    """A daemon that listens on TCP and on a Unix socket in a folder that it makes."""
    folder = shared.folder()
    daemon = shared.daemon([site("s1", embedded)], folder=folder)
    daemon.path = folder / "run" / "monrest.sock"
    daemon.sections["server"]["listen"].append(f"unix:{daemon.path}")
    daemon.write_config()
    return daemon.start()


@pytest.fixture
def by_tcp(own, tmp_path):
    return Command(
        tmp_path,
        MONREST_URL=f"http://127.0.0.1:{own.port}",
        MONREST_KEY=own.key,
        MONREST_USER="admin",
    )


@pytest.fixture
def by_socket(own, tmp_path):
    return Command(tmp_path, MONREST_URL=f"unix:{own.path}")


@pytest.fixture(params=["tcp", "socket"])
def monrest(request):
    return request.getfixturevalue(f"by_{request.param}")


def test_requests(monrest):
    totals = monrest.json("r", "/hosts/totals")
    assert (
        totals["total"] == totals["up"] + totals["down"] + totals["unreachable"] + totals["pending"]
    )
    names = [row["name"] for row in monrest.json("r", "-b", "s1", "/hosts?columns=name&sort=name")]
    assert "web01" in names
    assert monrest("r", "--csv", "/hosts?columns=name&sort=name").splitlines() == ["#name", *names]
    assert "| web01 " in monrest("r", "-t", "/hosts?columns=name,state")
    many = monrest("r", "/hosts/totals", "--csv", "/hosts?columns=name&limit=1&headers=0")
    assert json.loads(many[: many.index("}") + 1]) == totals
    assert monrest.json("r", "-m", "GET", "-d", "columns=name", "-d", "name=web01", "/hosts") == [
        {"name": "web01"}
    ]
    assert monrest.json("r", "-d", "columns=name", "-d", "q=name = web01", "/hosts") == [
        {"name": "web01"}
    ]
    assert monrest.json("r", "/hosts?columns=name&q=***name = web01 and state >= 0***") == [
        {"name": "web01"}
    ]


def test_a_command_and_its_effect(by_tcp):
    monrest, text = by_tcp, "by TCP + ü"
    sent = monrest.json(
        "r", "-D", f"comment_data={text.replace('+', '%2B')}", "/hosts/web01/cmd/add_host_comment"
    )
    assert "ADD_HOST_COMMENT;web01;" in sent["commands"]
    until(
        lambda: text in {row["comment"] for row in monrest.json("r", "/comments?columns=comment")},
        "the comment is there",
    )


def test_a_list_of_commands(by_socket, tmp_path):
    path = tmp_path / "bulk.json"
    commands = [
        {"cmd": "add_host_comment", "host": name, "comment_data": "by socket"}
        for name in ("web01", "db01")
    ]
    path.write_text(json.dumps(commands))
    by_socket("r", "-d", f"@{path}", "/cmd")
    wanted = [{"host_name": "db01"}, {"host_name": "web01"}]
    listed = "/comments?columns=host_name&comment=by socket&sort=host_name"
    until(lambda: by_socket.json("r", listed) == wanted, "both comments are there")


def test_users(by_socket, by_tcp):
    assert by_socket.json("r", "/mon/whoami")["id"] == "(cli)"
    assert by_socket.json("r", "-A", "olga", "/mon/whoami")["id"] == "olga"
    everything = by_socket.json("r", "/hosts?columns=name")
    assert 0 < len(by_socket.json("r", "-A", "olga", "/hosts?columns=name")) < len(everything)
    assert by_tcp.json("r", "/mon/whoami")["id"] == "admin"
    assert by_tcp.json("r", "-A", "olga", "/mon/whoami")["id"] == "olga"


def test_the_first_key(by_socket, own, tmp_path):
    key = by_socket("key", "create", "--user", "olga", "--comment", "mine").strip()
    olga = Command(tmp_path, MONREST_URL=f"http://127.0.0.1:{own.port}", MONREST_KEY=key)
    assert olga.json("r", "/mon/whoami")["id"] == "olga"
    listed = by_socket("key", "list")
    (line,) = [line for line in listed.splitlines() if line.endswith("mine")]
    assert line.split()[1] == "olga"
    assert olga.json("key", "list", "--json")[0]["comment"] == "mine"
    second = olga("key", "create", "--role", "read_only").strip()
    assert second != key
    assert by_socket("key", "revoke", line.split()[0]) == f"revoked {line.split()[0]}\n"
    until(lambda: olga.run("r", "/mon/whoami").returncode == 1, "the key is refused")


def test_errors(monrest):
    assert json.loads(monrest("r", "/hosts?nonsense=1", status=1))["code"] == 400
    assert json.loads(monrest("r", "/nonsense", status=1))["code"] == 404
    assert json.loads(monrest("r", "--key", "wrong", "/hosts", status=1))["code"] == 403
    assert monrest("r", "--url", "unix:/nonexistent/x", "/hosts", status=1) == ""


def test_the_demo_tells_commands_that_work(served, tmp_path):
    exports = [
        line.partition("#")[0].partition(", or")[0]
        for line in served.lines()
        if line.startswith("export ")
    ]
    environment = [dict(word.split("=", 1) for word in line.split()[1:]) for line in exports]
    assert [set(one) for one in environment] == [
        {"MONREST_URL"},
        {"MONREST_URL", "MONREST_KEY", "MONREST_USER"},
    ]
    for one in environment:
        monrest = Command(tmp_path / "home", **one)
        until(
            lambda monrest=monrest: monrest.json("r", "/sites")[0]["connected"] == 1,
            "the demo core is up",
        )
        assert monrest.json("r", "/hosts/totals")["total"] == 20
