"""Attacks with line ends and semicolons, through every way in; nothing of them arrives.

Each attack ends in a command that the core would obey at once, so that its effect would show.
"""

import json

import pytest
from harness.client import raw_status, segment
from harness.daemon import site
from harness.recorder import COMMAND, problems

from tests.table import each

SAME_FOR_ALL_CORES = "what is on its way to the core is looked at, before any core has it"

EVIL = "DISABLE_NOTIFICATIONS"
ATTACKS = {
    "two newlines": f"x\n\nCOMMAND [1] {EVIL}",
    "one newline": f"x\nCOMMAND [1] {EVIL}",
    "return and newline": f"x\r\nCOMMAND [1] {EVIL}\r\n",
    "return": f"x\rCOMMAND [1] {EVIL}",
    "newline and query": "x\n\nGET hosts\nColumns: name",
    "null": f"x\0\n\nCOMMAND [1] {EVIL}",
    "next line": f"x\x85COMMAND [1] {EVIL}",
    "line separator": f"x\u2028COMMAND [1] {EVIL}",
    "vertical tab": f"x\x0bCOMMAND [1] {EVIL}",
    "backslash and n": f"x\\nCOMMAND [1] {EVIL}",
    "two backslashes and n": f"x\\\\n\\\\nCOMMAND [1] {EVIL}",
    "semicolon": f"a;b;{EVIL}",
}
TEXTS = ("comment_data", "plugin_output", "log")


@pytest.fixture(scope="module")
def server(tape, shared):
    """A daemon under which authors may be chosen, so that they too are a way in."""
    return shared.daemon(
        [site("s1", tape)],
        sections={
            "auth.roles": {"admin": ["admin"], "all_host_commands": ["*"]},
            "commands": {"lock_author_names": False},
        },
    ).start()


@pytest.fixture(scope="module")
def boss(server):
    with server.client() as client:
        yield client


@pytest.fixture
def harmless(own, tape):
    """After the test: only commands and queries of ours arrived, each once, none of them evil."""
    mark = tape.mark()
    yield
    for request in tape.since(mark):
        assert not problems(request), request
        first = request.decode().split("\n")[0]
        if COMMAND.fullmatch(first):
            assert not first.split("] ", 1)[1].startswith(EVIL), request
            # Neither kind of line end is left, by which a core could make two lines of it.
            assert not set("\x85\u2028\u2029\r") & set(first), request
    assert own.ask("GET status\nColumns: enable_notifications")[0][0] == 1


def obeyed(tape, mark):
    return [one for one in tape.since(mark) if one.startswith(b"COMMAND")]


WAYS = {
    "form": lambda client, path, given: client.post_form(path, given),
    "query": lambda client, path, given: client.request(
        "POST", path + "?" + "&".join(f"{k}={segment(v)}" for k, v in given.items())
    ),
    "json": lambda client, path, given: client.post_json(path, given),
    "cmd": lambda client, path, given: client.post_form(
        "/cmd", {"cmd": path.rsplit("/", 1)[1], **named(path), **given}
    ),
    "bulk": lambda client, path, given: client.post_json(
        "/cmd", [{"cmd": path.rsplit("/", 1)[1], **named(path), **given}]
    ),
}


def named(path):
    """The object of a path as parameters of ``/cmd``."""
    parts = path.strip("/").split("/")
    if parts[0] == "hosts":
        return {"host": parts[1]}
    if parts[0] == "services":
        return {"host": parts[1], "service": parts[2]}
    return {}


ARGUMENTS = [
    ("/hosts/web01/cmd/add_host_comment", {"comment_data": "x"}, "comment_data"),
    ("/hosts/web01/cmd/add_host_comment", {"comment_data": "x"}, "comment_author"),
    ("/hosts/web01/cmd/add_host_comment", {"comment_data": "x"}, "persistent_comment"),
    ("/hosts/web01/cmd/schedule_host_downtime", {"comment_data": "x"}, "start_time"),
    ("/hosts/web01/cmd/schedule_host_downtime", {"comment_data": "x"}, "duration"),
    ("/hosts/web01/cmd/schedule_host_downtime", {"comment_data": "x"}, "triggered_by"),
    ("/services/web01/ping/cmd/process_service_check_result", {"plugin_output": "x"}, "plugin_output"),
    ("/services/web01/ping/cmd/process_service_check_result", {"plugin_output": "x"}, "performance_data"),
    ("/hosts/web01/cmd/change_custom_host_var", {"name": "SIZE", "value": "2"}, "name"),
    ("/hosts/web01/cmd/change_custom_host_var", {"name": "SIZE", "value": "2"}, "value"),
    ("/hosts/web01/cmd/change_host_check_timeperiod", {"timeperiod": "24x7"}, "timeperiod"),
    ("/hosts/web01/cmd/del_comment", {"comment_id": "1"}, "comment_id"),
    ("/system/cmd/del_downtime_by_host_name", {}, "hostname"),
    ("/system/cmd/del_downtime_by_host_name", {}, "comment"),
    ("/system/cmd/log", {"log": "x"}, "log"),
]  # fmt: skip


@each("at", range(len(ARGUMENTS)))
@each("number", range(len(ATTACKS)), ids=list(ATTACKS))
@pytest.mark.usefixtures("harmless")
def test_arguments(boss, tape, at, number):
    """Every attack on every argument; each of them comes by every way."""
    path, given, name = ARGUMENTS[at]
    way = list(WAYS)[(at + number) % len(WAYS)]
    attack = list(ATTACKS.values())[number]
    mark = tape.mark()
    response = WAYS[way](boss, path, {**given, name: attack})
    assert response.status in (200, 400), (way, response)
    commands = obeyed(tape, mark)
    assert len(commands) <= 1, (way, commands)
    if response.status == 400 and "sending command failed" not in response.text:
        assert commands == [], way
    if ";" in attack and name not in (*TEXTS, "value", "comment", "performance_data"):
        assert response.status == 400, (way, response)


@each("attack", ATTACKS.values(), ids=list(ATTACKS))
@pytest.mark.usefixtures("harmless")
def test_names(server, boss, tape, attack):
    mark = tape.mark()
    name = segment(attack)
    responses = [
        boss.request("POST", f"/hosts/{name}/cmd/enable_host_check"),
        boss.request("POST", f"/services/web01/{name}/cmd/enable_svc_check"),
        boss.request("POST", f"/hostgroups/{name}/cmd/enable_hostgroup_svc_checks"),
        boss.request("POST", f"/hosts/web01/cmd/{name}"),
        boss.request("POST", f"/system/cmd/{name}"),
        boss.post_form("/cmd", {"cmd": "enable_host_check", "host": attack}),
        boss.post_form("/cmd", {"cmd": attack}),
        boss.post_json("/cmd", {"cmd": "enable_svc_check", "host": "web01", "service": attack}),
        boss.post_json("/cmd", [{"cmd": "enable_host_check", "host": attack}]),
        boss.post_json("/cmd", [{"cmd": attack, "host": "web01"}]),
        boss.post_form("/system/cmd/log", {"log": "x", "backends": attack}),
        boss.post_form("/system/cmd/log", {"log": "x", attack: "1"}),
        boss.post_json("/cmd", [{"cmd": "log", "log": "x", attack: "1"}]),
    ]
    assert {one.status for one in responses} <= {400, 404}, responses
    status, _ = raw_status(
        server.port,
        b"/mon/r/hosts/web01%0a%0aCOMMAND%20[1]%20" + EVIL.encode() + b"/cmd/enable_host_check",
        server.key,
        method=b"POST",
    )
    assert status == 400
    assert obeyed(tape, mark) == []


@pytest.mark.parametrize(
    "user",
    [
        f"eve;1;admin;x\\n\\nCOMMAND [1] {EVIL}",
        f"eve\\nCOMMAND [1] {EVIL}",
        "eve;b",
        "eve\\",
        "contacts >= admin",
        f"eve\u2028COMMAND [1] {EVIL}",
        f"eve\x85COMMAND [1] {EVIL}",
    ],
)
@pytest.mark.usefixtures("harmless")
def test_user_names(server, tape, user):
    """The name of the user is the author of comments; it may come from a header."""
    mark = tape.mark()
    headers = {"X-Mon-Auth-User": user.encode().decode("latin-1")}
    with server.client() as client:
        for send in (
            lambda: client.post_form(
                "/hosts/web01/cmd/add_host_comment", {"comment_data": "x"}, headers=headers
            ),
            lambda: client.request(
                "POST",
                "/cmd",
                body=json.dumps([{"cmd": "add_host_comment", "host": "web01", "comment": "x"}]),
                headers={**headers, "Content-Type": "application/json"},
            ),
        ):
            response = send()
            assert response.status in (200, 400, 403), response
            if ";" in user:
                assert response.status == 400, response
    for line in obeyed(tape, mark):
        assert line.split(b"\n")[0].count(b";") == 4, line


@pytest.mark.usefixtures("harmless")
def test_texts_with_line_ends_stay_one_comment(boss):
    attack = f"first\n\nCOMMAND [1] {EVIL}\nlast"
    response = boss.post_form(
        "/hosts/web01/cmd/add_host_comment", {"comment_data": attack, "wait": 10}
    )
    assert response.json["effect"] == "seen", response
    assert f"first  COMMAND [1] {EVIL} last" in {row["comment"] for row in boss.rows("/comments")}
