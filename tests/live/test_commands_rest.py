"""Commands and the core around them: checks, notifications, the log, the process; who may what.

On a core of their own, because they change it; the embedded one and a real Icinga 2.
"""

import time

import pytest
from harness.client import segment
from harness.commanding import OWN, WAIT, boss, send, server, skip_unknown, tape, value, web
from harness.daemon import site
from harness.expect import SEMICOLON
from harness.waiting import until

from monrest.commands.effects import UNKNOWN_TO_ICINGA2
from monrest.livestatus.catalogue import ALL

__all__ = ["OWN", "boss", "server", "tape", "web"]


def test_check_results(own, boss):
    path = "/hosts/pend01"
    send(
        boss,
        f"{path}/cmd/process_host_check_result",
        plugin_state=1,
        plugin_output="DOWN - gone\nand more",
        performance_data="rta=5ms",
    )
    (row,) = boss.rows(path)
    # Icinga 2 leaves further lines in the output of hosts.
    assert (row["state"], row["plugin_output"].split("\\n")[0]) == (1, "DOWN - gone")
    path = "/services/pend01/ping"
    send(
        boss,
        f"{path}/cmd/process_service_check_result",
        plugin_state=2,
        plugin_output="CRITICAL - gone",
        performance_data="rta=5ms;1;2",
    )
    (row,) = boss.rows(path)
    assert (row["state"], row["plugin_output"]) == (2, "CRITICAL - gone")
    assert row["perf_data"] == "rta=5ms;1;2"


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("/hosts/db01", "schedule_host_check"),
        ("/hosts/db01", "schedule_forced_host_check"),
        ("/services/db01/ping", "schedule_svc_check"),
        ("/services/db01/ping", "schedule_forced_svc_check"),
        ("/hosts/db01", "schedule_host_svc_checks"),
        ("/hosts/db01", "schedule_forced_host_svc_checks"),
    ],
)
def test_scheduled_checks(own, boss, path, name):
    service = "svc" in name
    shown = "/hosts/db01/services" if "host_svc" in name else path
    kind = "host_svc_checks" if "host_svc" in name else ("svc_check" if service else "host_check")
    send(boss, f"{path}/cmd/enable_{kind}")
    at = int(time.time()) + 3600
    if own.name == "icinga2" and "forced" not in name:
        # It keeps the next check if that is sooner than the one that was asked for.
        send(boss, f"{path}/cmd/{name}")
        until(lambda: value(boss, shown, "last_check") >= at - 3600, "the check was made")
    else:
        send(boss, f"{path}/cmd/{name}", start_time=at)
        assert value(boss, shown, "next_check") == at
    send(boss, f"{path}/cmd/disable_{kind}")


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("/hosts/web02", "send_custom_host_notification"),
        ("/services/web02/http", "send_custom_svc_notification"),
    ],
)
def test_custom_notifications(boss, path, name):
    text = f"look at this {time.time()}"
    send(boss, f"{path}/cmd/{name}", options=2, comment_data=text)
    assert any(text in row["message"] for row in boss.rows("/notifications"))


@pytest.mark.parametrize(
    ("path", "name", "line"),
    [
        ("/system", "log", "hello; you"),
        ("/hosts/web02", "note", "HOST NOTE: web02;hello; you"),
        ("/services/web02/http", "note", "SERVICE NOTE: web02;http;hello; you"),
    ],
)
def test_log_lines(own, boss, path, name, line):
    skip_unknown(own, "LOG")
    send(boss, f"{path}/cmd/{name}", log="hello; you")
    assert any(row["message"].endswith(line) for row in boss.rows("/logs"))


@pytest.mark.parametrize("name", ["restart_program", "restart_process"])
def test_restart(own, boss, name):
    if own.name == "icinga2":
        pytest.skip("a restart of Icinga 2 replaces the process that the fixture started")
    ((before,),) = own.ask("GET status\nColumns: program_start")
    until(lambda: int(time.time()) > before, "the second of the last start is over")
    send(boss, f"/system/cmd/{name}")
    ((after,),) = own.ask("GET status\nColumns: program_start")
    assert after > before
    if name == "restart_program":
        # The API shows the start that the last probe of the site saw, which takes a while.
        until(lambda: value(boss, "/processinfo", "program_start") > before, "the start is shown")


@pytest.mark.parametrize(
    ("name", "given"),
    [
        ("save_state_information", {}),
        ("read_state_information", {}),
        ("change_global_host_event_handler", {"eventhandler": "notify"}),
        ("change_global_svc_event_handler", {"eventhandler": "notify"}),
        ("shutdown_program", {}),
        ("shutdown_process", {}),
    ],
)
def test_without_a_trace(own, boss, name, given):
    """No core shows these; the embedded one does not stop for a shutdown."""
    if own.name == "icinga2":
        pytest.skip("Icinga 2 does not know this command, or obeys it")
    response = boss.post_form(f"/system/cmd/{name}", {**given, **WAIT})
    assert response.json["effect"].startswith("nothing to read back: ")


@pytest.mark.parametrize("name", sorted(UNKNOWN_TO_ICINGA2))
def test_what_icinga2_does_not_know(own, boss, name):
    """It refuses, and that is told."""
    if own.name != "icinga2":
        pytest.skip("about Icinga 2")
    command = next(one for one in ALL if one.core_name == name and not one.frontend)
    paths = {"hosts": "/hosts/web02", "services": "/services/web02/http", "sites": "/system",
             "contacts": "/contacts/olga", "contactgroups": "/contactgroups/webteam"}  # fmt: skip
    sample = {"integer": 1, "timeperiod": "24x7", "hostgroup": "web"}
    given = {one.name: sample.get(one.type, "x") for one in command.arguments if one.required}
    response = boss.post_form(f"{paths[command.kind]}/cmd/{command.name}", {**given, "wait": 1})
    assert response.status == 400, response
    assert response.json["message"] == "sending command failed"
    assert response.json["error"].startswith("Site One: ")


def test_contact_sends_for_what_is_hers(web, boss):
    send(web, "/hosts/web01/cmd/add_host_comment", comment_data="by olga", comment_author="admin")
    rows = [row for row in boss.rows("/comments") if row["comment"] == "by olga"]
    assert [row["author"] for row in rows] == ["olga"]
    send(web, "/services/db01/ping/cmd/add_svc_comment", comment_data="hers")


@pytest.mark.parametrize(
    "path",
    [
        "/hosts/db01/cmd/add_host_comment",
        "/services/db01/Disk%20%2Fvar/cmd/add_svc_comment",
        "/hostgroups/web/cmd/disable_hostgroup_svc_checks",
        "/contacts/admin/cmd/disable_contact_host_notifications",
        "/contactgroups/webteam/cmd/disable_contactgroup_host_notifications",
        "/system/cmd/disable_notifications",
        "/sites/s1/cmd/disable_notifications",
    ],
)
def test_contact_may_not(web, tape, path):
    mark = tape.mark()
    response = web.post_form(path, {"comment_data": "x"})
    assert response.status == 403, response
    assert response.json["message"].startswith("you are not allowed to run ")
    assert not [one for one in tape.since(mark) if one.startswith(b"COMMAND")]


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("/hosts/none/cmd/enable_host_check", "host=none"),
        ("/services/web01/none/cmd/enable_svc_check", "host=web01 service=none"),
        (f"/services/web01/{segment(SEMICOLON)}/cmd/enable_svc_check", "semicolons"),
    ],
)
def test_unknown_and_impossible_objects(boss, tape, path, words):
    mark = tape.mark()
    response = boss.post_form(path, {})
    assert response.status == 400, response
    assert words in f"{response.json['message']} {response.json['description']}"
    assert not [one for one in tape.since(mark) if one.startswith(b"COMMAND")]


def test_list_of_commands(own, boss):
    entries = [
        {"cmd": "add_host_comment", "host": "db01", "comment_data": f"list {n}"} for n in range(300)
    ] + [{"cmd": "enable_svc_notifications", "host": "web01", "service": "http"}]
    response = boss.post_json("/cmd?wait=10", entries)
    assert response.status == 200, response
    assert {one["effect"] for one in response.json} == {"seen"}
    assert [one["index"] for one in response.json] == list(range(301))
    rows = boss.rows("/comments", {"host_name": "db01", "columns": "comment"})
    texts = [row["comment"] for row in rows if row["comment"].startswith("list ")]
    assert texts == [f"list {n}" for n in range(300)]
    send(boss, "/hosts/db01/cmd/del_all_host_comments")


def test_list_with_an_error_sends_nothing(boss, tape):
    mark = tape.mark()
    entries = [{"cmd": "add_host_comment", "host": "db01", "comment_data": "never"},
               {"cmd": "add_host_comment", "host": "nowhere", "comment_data": "never"}]  # fmt: skip
    response = boss.post_json("/cmd", entries)
    assert response.status == 400, response
    assert [one["index"] for one in response.json["problems"]] == [1]
    assert not [one for one in tape.since(mark) if one.startswith(b"COMMAND")]
    assert not [row for row in boss.rows("/comments") if row["comment"] == "never"]


def test_dead_site_beside_a_living_one(own, made):
    """It is named in the header and the body; alone it is a failure, and never a success."""
    sites = [site("s1", own), site("dead", f"unix:{own.folder}/nobody")]
    daemon = made(sites).start(connected={"s1"})
    path = "/hosts/db01/cmd/add_host_comment"
    with daemon.client() as client:
        response = client.post_form(path, {"comment_data": "half", **WAIT})
        assert response.status == 200, response
        assert response.headers["x-mon-failed-sites"] == "dead"
        assert [one["site"] for one in response.json["failed_sites"]] == ["dead"]
        assert response.json["effects"] == {"s1": "seen"}
        assert response.json["commands"].count("COMMAND") == 1
        response = client.post_form("/hosts/none/cmd/add_host_comment", {"comment_data": "x"})
        assert response.status == 400, response
        assert response.json["message"].endswith("unreachable sites: DEAD")
        assert response.headers["x-mon-failed-sites"] == "dead"
        for alone in (path, "/system/cmd/enable_notifications"):
            given = {"comment_data": "x"} if alone == path else {}
            response = client.post_form(f"/sites/dead{alone}", given)
            assert response.status == 502, response
            assert response.json["message"] == "no backend available"
        named = client.post_form(f"/sites/s1,dead{path}", {"comment_data": "named"})
        for response in (client.post_form("/system/cmd/enable_notifications", {}), named):
            assert response.status == 502, response
            assert response.json["message"] == "not all sites took the command"
            assert response.headers["x-mon-failed-sites"] == "dead"
            assert [one["site"] for one in response.json["failed_sites"]] == ["dead"]
            assert response.json["accepted_sites"] == ["s1"]
            assert response.json["commands"].count("COMMAND") == 1


def test_every_command_is_one_line(server, boss, web):
    boss.post_form("/hosts/web01/cmd/add_host_comment", {"comment_data": 'audited "so"; yes'})
    web.post_form("/system/cmd/shutdown_process", {})
    lines = [line for line in server.log.splitlines() if " audit " in line]
    (sent,) = [line for line in lines if "audited" in line]
    for words in ("user=admin", "client=127.0.0.1", "action=command", "result=ok", "sites=s1"):
        assert words in sent
    assert "ADD_HOST_COMMENT;web01;1;admin;audited" in sent
    (refused,) = [line for line in lines if "shutdown_process" in line and "user=olga" in line]
    assert 'result="not allowed"' in refused
    assert server.key not in server.log


@pytest.mark.parametrize(
    ("path", "table", "word"),
    [
        ("/hosts/web01", "comments", "host comment"),
        ("/services/web01/http", "comments", "service comment"),
        ("/hosts/web01", "downtimes", "host downtime"),
        ("/services/web01/http", "downtimes", "service downtime"),
    ],
)
def test_an_entry_is_deleted_by_its_id_alone(own, boss, path, table, word):
    kind = "svc" if path.startswith("/services") else "host"
    of_host = {"host_name": "web01", "is_service": int(kind == "svc"), "comment": "by id"}
    ids = []
    for _ in range(2):
        name = f"add_{kind}_comment" if table == "comments" else f"schedule_{kind}_downtime"
        send(boss, f"{path}/cmd/{name}", comment_data="by id")
    ids = [row["id"] for row in boss.rows(f"/{table}", of_host)]
    assert len(ids) == 2
    one = table.removesuffix("s")
    document = boss.request("DELETE", f"/{table}/{ids[0]}?wait=10").json
    assert document["message"] == "Command successfully submitted"
    assert document["commands"].endswith(f"DEL_{kind.upper()}_{one.upper()};{ids[0]}")
    until(lambda: [row["id"] for row in boss.rows(f"/{table}", of_host)] == ids[1:], "it is gone")
    response = boss.request("DELETE", f"/{table}/{ids[0]}")
    assert (response.status, response.json["message"]) == (404, f"no such {one}")
    # The command for whole cores looks the id up as well, also that it is of this kind.
    other = "host" if kind == "svc" else "svc"
    for command, number in ((f"del_{kind}_{one}", ids[0]), (f"del_{other}_{one}", ids[1])):
        response = boss.post_form(f"/system/cmd/{command}", {f"{one}_id": number})
        assert response.status == 400, response
        asked = word if command.startswith(f"del_{kind}") else word.replace(*_OTHER[kind])
        assert response.json["description"] == (
            f"{one}_id: there is no {asked} {number} on Site One"
        )
    send(boss, f"/system/cmd/del_{kind}_{one}", **{f"{one}_id": ids[1]})
    until(lambda: boss.rows(f"/{table}", of_host) == [], "it is gone")


_OTHER = {"svc": ("service", "host"), "host": ("host", "service")}


def test_a_contact_deletes_what_is_on_his_own_hosts_only(boss, web):
    for host in ("web01", "db01"):
        send(boss, f"/hosts/{host}/cmd/add_host_comment", comment_data="of whom")
    found = {row["host_name"]: row["id"] for row in boss.rows("/comments", {"comment": "of whom"})}
    assert web.request("DELETE", f"/comments/{found['db01']}").status == 404
    assert web.request("DELETE", f"/comments/{found['web01']}").status == 200
    left = {"comment": "of whom", "columns": "host_name"}
    until(lambda: boss.rows("/comments", left) == [{"host_name": "db01"}], "the other one is left")
    for wrong in ("0", "x", "-1", "2147483648"):
        response = boss.request("DELETE", f"/comments/{wrong}")
        assert response.status == 400, wrong
        assert response.json["description"] == (
            "comment id: expected a number from 1 to 2147483647"
        )


def test_arguments_of_other_commands_are_named_in_warnings(boss):
    given = {"comment_data": "x", "sticky": 1, "end_time": "+1h", "test_only": 1}
    response = boss.post_form("/hosts/web01/cmd/add_host_comment", given)
    assert response.status == 200
    warnings = [f"{name}: add_host_comment does not take it" for name in ("sticky", "end_time")]
    assert response.json["warnings"] == warnings
    assert response.headers["x-mon-warnings"] == "; ".join(warnings)
