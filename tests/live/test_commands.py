"""Commands by their effect: sent over the API, read back over it; who may what.

On a core of their own, because they change it; the embedded one and a real Icinga 2.
"""

import time

import pytest
from harness.client import segment
from harness.commanding import (
    OWN,
    WAIT,
    boss,
    send,
    server,
    skip_unknown,
    skip_what_another_core_gets,
    tape,
    value,
    web,
)
from harness.expect import SEMICOLON, SIZES
from harness.given import GIVEN
from harness.lying import told
from harness.waiting import until

from monrest.commands.effects import UNKNOWN_TO_ICINGA2
from monrest.livestatus.catalogue import ALL

__all__ = ["OWN", "boss", "server", "tape", "web"]

stays = pytest.mark.skipif(bool(GIVEN), reason="what it does to a core of others stays")

_OBJECT = {
    "check": "active_checks_enabled",
    "notifications": "notifications_enabled",
    "event_handler": "event_handler_enabled",
    "flap_detection": "flap_detection_enabled",
}
SWITCHES = [
    ("/hosts/web02", f"enable_host_{word}", "/hosts/web02", column)
    for word, column in _OBJECT.items()
]
SWITCHES += [
    ("/services/web02/http", f"enable_svc_{word}", "/services/web02/http", column)
    for word, column in _OBJECT.items()
]
SWITCHES += [
    ("/hosts/web02", "enable_passive_host_checks", "/hosts/web02", "accept_passive_checks"),
    ("/services/web02/http", "enable_passive_svc_checks", "/services/web02/http", "accept_passive_checks"),
    ("/hosts/web02", "enable_host_svc_checks", "/hosts/web02/services", "active_checks_enabled"),
    ("/hosts/web02", "enable_host_svc_notifications", "/hosts/web02/services", "notifications_enabled"),
    ("/hosts/router1", "enable_all_notifications_beyond_host", "/hosts/leaf01", "notifications_enabled"),
    ("/hosts/router1", "enable_host_and_child_notifications", "/hosts/leaf01", "notifications_enabled"),
]  # fmt: skip
_MEMBERS = {
    ("hostgroup", "host"): ("web", "/hosts?groups[gte]=web"),
    ("hostgroup", "svc"): ("web", "/services?host_groups[gte]=web"),
    ("servicegroup", "svc"): ("http", "/services?groups[gte]=http"),
    ("servicegroup", "host"): ("http", "/hosts?name[regex]=^web"),
}
for (_group, _member), (_name, _path) in _MEMBERS.items():
    SWITCHES += [
        (f"/{_group}s/{_name}", f"enable_{_group}_{word}", _path, column)
        for word, column in (
            (f"{_member}_checks", "active_checks_enabled"),
            (f"{_member}_notifications", "notifications_enabled"),
            (f"passive_{_member}_checks", "accept_passive_checks"),
        )
    ]
for _word, _column in (("host", "host"), ("svc", "service")):
    _column += "_notifications_enabled"
    SWITCHES += [
        ("/contacts/olga", f"enable_contact_{_word}_notifications", "/contacts/olga", _column),
        ("/contactgroups/webteam", f"enable_contactgroup_{_word}_notifications", "/contacts/olga", _column),
    ]  # fmt: skip
SWITCHES += [
    ("/system", "enable_notifications", "/processinfo", "enable_notifications"),
    ("/system", "enable_event_handlers", "/processinfo", "enable_event_handlers"),
    ("/system", "enable_flap_detection", "/processinfo", "enable_flap_detection"),
    ("/system", "enable_performance_data", "/processinfo", "process_performance_data"),
    ("/system", "enable_host_freshness_checks", "/processinfo", "check_host_freshness"),
    ("/system", "enable_service_freshness_checks", "/processinfo", "check_service_freshness"),
    ("/system", "start_accepting_passive_host_checks", "/processinfo", "accept_passive_host_checks"),
    ("/system", "start_accepting_passive_svc_checks", "/processinfo", "accept_passive_service_checks"),
    ("/system", "start_executing_host_checks", "/processinfo", "execute_host_checks"),
    ("/system", "start_executing_svc_checks", "/processinfo", "execute_service_checks"),
    ("/core", "start_obsessing_over_host_checks", "/processinfo", "obsess_over_hosts"),
    ("/sites/s1", "start_obsessing_over_svc_checks", "/processinfo", "obsess_over_services"),
    ("/hosts/web02", "start_obsessing_over_host", "/hosts/web02", "obsess_over_host"),
    ("/services/web02/http", "start_obsessing_over_svc", "/services/web02/http", "obsess_over_service"),
]  # fmt: skip


@pytest.mark.parametrize(("path", "name", "shown", "column"), SWITCHES)
def test_switches(own, boss, path, name, shown, column):
    skip_what_another_core_gets(own, name.upper())
    opposite = name.replace("enable_", "disable_").replace("start_", "stop_")
    before = value(boss, shown, column)
    for wanted in (1 - before, before):
        send(boss, f"{path}/cmd/{name if wanted else opposite}")
        assert value(boss, shown, column) == wanted


SETTINGS = [
    ("/hosts/web02", "change_normal_host_check_interval", {"interval": 7}, "check_interval", 7),
    ("/hosts/web02", "change_retry_host_check_interval", {"interval": 3}, "retry_interval", 3),
    ("/hosts/web02", "change_max_host_check_attempts", {"attempts": 4}, "max_check_attempts", 4),
    ("/services/web02/http", "change_normal_svc_check_interval", {"interval": 7}, "check_interval", 7),
    ("/services/web02/http", "change_retry_svc_check_interval", {"interval": 3}, "retry_interval", 3),
    ("/services/web02/http", "change_max_svc_check_attempts", {"interval": 4}, "max_check_attempts", 4),
    ("/hosts/web02", "set_host_notification_number", {"number": 5}, "current_notification_number", 5),
    ("/services/web02/http", "set_svc_notification_number", {"number": 5}, "current_notification_number", 5),
    ("/hosts/web02", "change_host_check_timeperiod", {"timeperiod": "24x7"}, "check_period", "24x7"),
    ("/services/web02/http", "change_svc_check_timeperiod", {"timeperiod": "24x7"}, "check_period", "24x7"),
    ("/hosts/web02", "change_host_notification_timeperiod", {"timeperiod": "24x7"}, "notification_period", "24x7"),
    ("/services/web02/http", "change_svc_notification_timeperiod", {"timeperiod": "24x7"}, "notification_period", "24x7"),
    ("/contacts/olga", "change_contact_host_notification_timeperiod", {"timeperiod": "24x7"}, "host_notification_period", "24x7"),
    ("/contacts/olga", "change_contact_svc_notification_timeperiod", {"timeperiod": "24x7"}, "service_notification_period", "24x7"),
    ("/hosts/web02", "change_host_modattr", {}, "modified_attributes", 0),
    ("/services/web02/http", "change_svc_modattr", {}, "modified_attributes", 0),
]  # fmt: skip


@pytest.mark.parametrize(("path", "name", "given", "column", "expected"), SETTINGS)
def test_settings(own, boss, path, name, given, column, expected):
    skip_what_another_core_gets(own, name.upper())
    send(boss, f"{path}/cmd/{name}", **given)
    assert value(boss, path, column) == expected


@pytest.mark.parametrize(
    ("path", "name", "variable"),
    [
        ("/hosts/web02", "change_custom_host_var", "WORKER"),
        ("/services/db01/ping", "change_custom_svc_var", "LEVEL"),
    ],
)
def test_custom_variables(boss, path, name, variable):
    send(boss, f"{path}/cmd/{name}", name=variable, value="a; b = 'c'")
    (row,) = boss.rows(path, {"columns": "custom_variables"})
    assert row["custom_variables"][variable] == "a; b = 'c'"
    send(boss, f"{path}/cmd/{name}", name=f"_{variable}", value="7")
    (row,) = boss.rows(path, {"columns": "custom_variables"})
    assert row["custom_variables"][variable] == "7"
    assert f"_{variable}" not in row["custom_variables"]


@pytest.mark.parametrize(
    ("path", "name"),
    [("/hosts/web02", "delay_host_notification"), ("/services/web02/http", "delay_svc_notification")],
)  # fmt: skip
def test_delayed_notifications(boss, path, name):
    at = int(time.time()) + 3600
    send(boss, f"{path}/cmd/{name}", notification_time=at)
    assert value(boss, path, "next_notification") == at


@pytest.mark.parametrize(
    ("path", "word", "given"),
    [
        ("/hosts/web02", "host", {"host_name": "web02", "service_description": ""}),
        (
            f"/services/web01/{segment(SIZES)}",
            "svc",
            {"host_name": "web01", "service_description": SIZES},
        ),
    ],
)
def test_comments(own, boss, path, word, given):
    text = "100% sure; \\n \\x C:\\temp 'quoted' ü €"
    send(boss, f"{path}/cmd/add_{word}_comment", comment_data=text)
    (row,) = [row for row in boss.rows("/comments", given) if row["comment"] == text]
    assert (row["author"], row["persistent"]) == ("admin", 1)
    send(boss, f"{path}/cmd/del_comment", comment_id=row["id"])
    assert boss.rows("/comments", {"id": row["id"]}) == []
    for _ in range(2):
        send(boss, f"{path}/cmd/add_{word}_comment", comment_data="two")
    send(boss, f"{path}/cmd/del_all_{word}_comments")
    assert boss.rows("/comments", given) == []
    send(boss, f"{path}/cmd/add_{word}_comment", comment_data="third")
    (row,) = boss.rows("/comments", given)
    send(boss, f"/system/cmd/del_{word}_comment", comment_id=row["id"])
    assert boss.rows("/comments", given) == []


@pytest.mark.parametrize(("path", "word"), [("/hosts/web02", "host"), ("/services/web02/http", "svc")])  # fmt: skip
def test_what_does_not_match_says_so(boss, path, word):
    for number in (99999, 2147483647):
        for kind in ("comment", "downtime"):
            field = f"{kind}_id"
            response = boss.post_form(f"{path}/cmd/del_{kind}", {field: number, **WAIT})
            assert response.status == 400, response
            assert response.json["message"] == f"invalid value for {field}"
            assert f" {kind} {number} of web02" in response.json["description"]
            assert response.json["description"].startswith(f"{field}: there is no ")
    response = boss.post_form(f"/system/cmd/del_{word}_comment", {"comment_id": 99999, **WAIT})
    assert response.status == 400
    assert response.json["description"].startswith("comment_id: there is no ")


@pytest.mark.parametrize(
    ("path", "word"), [("/hosts/web02", "host"), ("/services/web02/http", "svc")]
)
@pytest.mark.parametrize("expire", ["", "_expire"])
def test_acknowledgements(boss, path, word, expire):
    given = {"end_time": "+60m"} if expire else {}
    send(
        boss, f"{path}/cmd/acknowledge_{word}_problem{expire}", comment_data="seen; known", **given
    )
    assert value(boss, path, "acknowledged") == 1
    comments = boss.rows("/comments", {"host_name": "web02", "entry_type": 4})
    assert [row["comment"] for row in comments] == ["seen; known"]
    send(boss, f"{path}/cmd/remove_{word}_acknowledgement")
    assert value(boss, path, "acknowledged") == 0
    response = boss.post_form(f"{path}/cmd/remove_{word}_acknowledgement", WAIT)
    assert response.json["effect"].startswith("nothing matched: ")


def test_nothing_to_acknowledge(own, boss):
    response = boss.post_form(
        "/hosts/db01/cmd/acknowledge_host_problem", {"comment_data": "x", **WAIT}
    )
    if own.name == "icinga2":
        assert response.json["error"].startswith("Site One: "), response
        return
    assert response.json["effect"] == "nothing matched: host db01 has no problem to acknowledge"


FLEXIBLE = {"fixed": 0, "duration": 300}
DOWNTIMES = [
    ("/hosts/web02", "host", {("web02", "")}, {}),
    ("/hosts/web02", "host", {("web02", "")}, FLEXIBLE),
    ("/services/web02/http", "svc", {("web02", "http")}, {}),
    ("/services/web02/http", "svc", {("web02", "http")}, FLEXIBLE),
    ("/hosts/web02", "host_svc", {("web02", "http"), ("web02", "ping")}, {}),
    ("/hosts/router1", "and_propagate_host", {("router1", ""), ("leaf01", "")}, {}),
    ("/hosts/router1", "and_propagate_triggered_host", {("router1", ""), ("leaf01", "")}, {}),
    ("/hostgroups/web", "hostgroup_host", {("web01", ""), ("web02", "")}, {}),
    ("/hostgroups/idle", "hostgroup_svc", {("pend01", "ping")}, {}),
    ("/servicegroups/http", "servicegroup_host", {("web01", ""), ("web02", "")}, {}),
    ("/servicegroups/http", "servicegroup_svc", {("web01", "http"), ("web02", "http")}, {}),
]


@pytest.mark.parametrize(("path", "word", "owners", "more"), DOWNTIMES)
def test_downtimes(own, boss, path, word, owners, more):
    if own.name == "icinga2" and word == "host_svc":
        owners = {*owners, ("web02", "")}  # it takes the host for one of its services
    start = int(time.time()) + 600
    text = f"work on {word}; later"
    send(
        boss,
        f"{path}/cmd/schedule_{word}_downtime",
        comment_data=text,
        start_time=start,
        end_time=start + 3600,
        **more,
    )
    rows = [row for row in boss.rows("/downtimes") if row["comment"] == text]
    assert {(row["host_name"], row["service_description"] or "") for row in rows} == owners
    keys = ("start_time", "end_time", "author", *more)
    assert {tuple(row[key] for key in keys) for row in rows} == {
        (start, start + 3600, "admin", *more.values())
    }
    # Those that others triggered first, because they go with them.
    while rows := [row for row in boss.rows("/downtimes") if row["comment"] == text]:
        row = max(rows, key=lambda row: row["id"])
        host, service = row["host_name"], row["service_description"]
        owner = f"/services/{host}/{segment(service)}" if service else f"/hosts/{host}"
        send(boss, f"{owner}/cmd/del_downtime", downtime_id=row["id"])


@pytest.mark.parametrize(
    ("path", "word", "name"),
    [
        ("/hosts/leaf01", "host", "del_active_host_downtimes"),
        ("/services/router1/ping", "svc", "del_active_service_downtimes"),
    ],
)
def test_active_downtimes(boss, path, word, name):
    """Those that have begun are deleted, the others stay."""
    for start, text in (("now", "active"), ("+60m", "planned")):
        send(
            boss,
            f"{path}/cmd/schedule_{word}_downtime",
            comment_data=text,
            start_time=start,
            end_time="+120m",
        )
    send(boss, f"{path}/cmd/{name}")
    host = path.split("/")[2]
    left = boss.rows("/downtimes", {"host_name": host})
    assert [row["comment"] for row in left] == ["planned"]
    send(boss, f"/system/cmd/del_{word}_downtime", downtime_id=left[0]["id"])
    assert boss.rows("/downtimes", {"host_name": host}) == []
    response = boss.post_form(f"{path}/cmd/{name}", WAIT)
    assert (response.json["commands"], response.json["effect"]) == ("", "nothing matched")


@pytest.mark.parametrize(
    ("name", "given"),
    [
        ("del_downtime_by_host_name", {"hostname": "leaf01"}),
        ("del_downtime_by_hostgroup_name", {"hostgroup_name": "idle"}),
        ("del_downtime_by_start_time_comment", {"comment": "by filter"}),
    ],
)
def test_downtimes_by_filter(own, boss, name, given):
    skip_unknown(own, name.upper())
    host = "pend01" if "hostgroup_name" in given else "leaf01"
    send(boss, f"/hosts/{host}/cmd/schedule_host_downtime", comment_data="by filter")
    send(boss, f"/system/cmd/{name}", **given)
    assert [r for r in boss.rows("/downtimes", {"host_name": host}) if r["comment"] == "by filter"] == []  # fmt: skip
    response = boss.post_form(f"/system/cmd/{name}", {**given, **WAIT})
    assert response.json["effect"] == "nothing matched: no downtime matches"


@stays
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


@stays
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
    if own.name != "embedded":
        pytest.skip("a restart may replace the process that the fixture started")
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
    if own.name != "embedded":
        pytest.skip("others may not know the command, or obey it")
    response = boss.post_form(f"/system/cmd/{name}", {**given, **WAIT})
    assert response.json["effect"].startswith("nothing to read back: ")


def test_what_icinga2_does_not_know(own, boss):
    """It refuses that, and only that, and the client is told."""
    if own.name != "icinga2":
        pytest.skip("about Icinga 2")
    names = {one.core_name for one in ALL} - {"RESTART_PROCESS", "SHUTDOWN_PROCESS"}
    now, unknown = int(time.time()), set()
    for name in names:
        said = told(own.socket, f"COMMAND [{now}] {name};no such object\nResponseHeader: fixed16")
        if f"Error: The external command '{name}' does not exist.".encode() in said:
            assert said.startswith(b"452 ")
            unknown.add(name)
    assert unknown == UNKNOWN_TO_ICINGA2
    response = boss.post_form("/system/cmd/log", {"log": "x", "wait": 1})
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
        {"cmd": "add_host_comment", "host": "db01", "comment_data": f"list {n}"} for n in range(120)
    ] + [{"cmd": "enable_svc_notifications", "host": "web01", "service": "http"}]
    response = boss.post_json("/cmd?wait=10", entries)
    assert response.status == 200, response
    assert {one["effect"] for one in response.json} == {"seen"}
    assert [one["index"] for one in response.json] == list(range(121))
    rows = boss.rows("/comments", {"host_name": "db01", "columns": "comment"})
    texts = [row["comment"] for row in rows if row["comment"].startswith("list ")]
    assert texts == [f"list {n}" for n in range(120)]
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
