"""Commands that change what the core keeps, by their effect: sent over the API, read back over it.

On a core of their own, because they change it; the embedded one and a real Icinga 2.
"""

import time

import pytest
from harness.client import segment
from harness.commanding import OWN, WAIT, boss, send, server, skip_unknown, tape, value, web
from harness.expect import SIZES

__all__ = ["OWN", "boss", "server", "tape", "web"]

_OBJECT = {
    "check": "active_checks_enabled",
    "notifications": "notifications_enabled",
    "event_handler": "event_handler_enabled",
    "flap_detection": "flap_detection_enabled",
}
SWITCHES = [
    ("/hosts/web02", f"_host_{word}", "/hosts/web02", column) for word, column in _OBJECT.items()
]
SWITCHES += [
    ("/services/web02/http", f"_svc_{word}", "/services/web02/http", column)
    for word, column in _OBJECT.items()
]
SWITCHES += [
    ("/hosts/web02", "_passive_host_checks", "/hosts/web02", "accept_passive_checks"),
    ("/services/web02/http", "_passive_svc_checks", "/services/web02/http", "accept_passive_checks"),
    ("/hosts/web02", "_host_svc_checks", "/hosts/web02/services", "active_checks_enabled"),
    ("/hosts/web02", "_host_svc_notifications", "/hosts/web02/services", "notifications_enabled"),
    ("/hosts/router1", "_all_notifications_beyond_host", "/hosts/leaf01", "notifications_enabled"),
    ("/hosts/router1", "_host_and_child_notifications", "/hosts/leaf01", "notifications_enabled"),
]  # fmt: skip
_MEMBERS = {
    ("hostgroup", "host"): ("web", "/hosts?groups[gte]=web"),
    ("hostgroup", "svc"): ("web", "/services?host_groups[gte]=web"),
    ("servicegroup", "svc"): ("http", "/services?groups[gte]=http"),
    ("servicegroup", "host"): ("http", "/hosts?name[regex]=^web"),
}
for (_group, _member), (_name, _path) in _MEMBERS.items():
    SWITCHES += [
        (f"/{_group}s/{_name}", f"_{_group}_{_member}_checks", _path, "active_checks_enabled"),
        (f"/{_group}s/{_name}", f"_{_group}_{_member}_notifications", _path, "notifications_enabled"),
        (f"/{_group}s/{_name}", f"_{_group}_passive_{_member}_checks", _path, "accept_passive_checks"),
    ]  # fmt: skip
for _word, _column in (("host", "host"), ("svc", "service")):
    _column += "_notifications_enabled"
    SWITCHES += [
        ("/contacts/olga", f"_contact_{_word}_notifications", "/contacts/olga", _column),
        ("/contactgroups/webteam", f"_contactgroup_{_word}_notifications", "/contacts/olga", _column),
    ]  # fmt: skip
for _name, _column in (
    ("notifications", "enable_notifications"),
    ("event_handlers", "enable_event_handlers"),
    ("flap_detection", "enable_flap_detection"),
    ("performance_data", "process_performance_data"),
    ("host_freshness_checks", "check_host_freshness"),
    ("service_freshness_checks", "check_service_freshness"),
):
    SWITCHES.append(("/system", f"_{_name}", "/processinfo", _column))


@pytest.mark.parametrize(("path", "name", "shown", "column"), SWITCHES)
def test_switches(own, boss, path, name, shown, column):
    skip_unknown(own, f"ENABLE{name}".upper())
    for verb, expected in (("enable", 1), ("disable", 0), ("enable", 1)):
        send(boss, f"{path}/cmd/{verb}{name}")
        assert value(boss, shown, column) == expected


STARTED = [
    ("/system", "accepting_passive_host_checks", "/processinfo", "accept_passive_host_checks"),
    ("/system", "accepting_passive_svc_checks", "/processinfo", "accept_passive_service_checks"),
    ("/system", "executing_host_checks", "/processinfo", "execute_host_checks"),
    ("/system", "executing_svc_checks", "/processinfo", "execute_service_checks"),
    ("/core", "obsessing_over_host_checks", "/processinfo", "obsess_over_hosts"),
    ("/sites/s1", "obsessing_over_svc_checks", "/processinfo", "obsess_over_services"),
    ("/hosts/web02", "obsessing_over_host", "/hosts/web02", "obsess_over_host"),
    ("/services/web02/http", "obsessing_over_svc", "/services/web02/http", "obsess_over_service"),
]


@pytest.mark.parametrize(("path", "name", "shown", "column"), STARTED)
def test_starting_and_stopping(own, boss, path, name, shown, column):
    skip_unknown(own, f"START_{name}".upper())
    for verb, expected in (("start", 1), ("stop", 0), ("start", 1)):
        send(boss, f"{path}/cmd/{verb}_{name}")
        assert value(boss, shown, column) == expected


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
    skip_unknown(own, name.upper())
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
        ("/services/web02/http", "svc", {"host_name": "web02", "service_description": "http"}),
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


DOWNTIMES = [
    ("/hosts/web02", "host", {("web02", "")}),
    ("/services/web02/http", "svc", {("web02", "http")}),
    ("/hosts/web02", "host_svc", {("web02", "http"), ("web02", "ping")}),
    ("/hosts/router1", "and_propagate_host", {("router1", ""), ("leaf01", "")}),
    ("/hosts/router1", "and_propagate_triggered_host", {("router1", ""), ("leaf01", "")}),
    ("/hostgroups/web", "hostgroup_host", {("web01", ""), ("web02", "")}),
    (
        "/hostgroups/idle",
        "hostgroup_svc",
        {("pend01", "ping")},
    ),
    ("/servicegroups/http", "servicegroup_host", {("web01", ""), ("web02", "")}),
    ("/servicegroups/http", "servicegroup_svc", {("web01", "http"), ("web02", "http")}),
]


@pytest.mark.parametrize(("path", "word", "owners"), DOWNTIMES)
def test_downtimes(own, boss, path, word, owners):
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
    )
    rows = [row for row in boss.rows("/downtimes") if row["comment"] == text]
    assert {(row["host_name"], row["service_description"] or "") for row in rows} == owners
    assert {(row["start_time"], row["end_time"], row["author"]) for row in rows} == {
        (start, start + 3600, "admin")
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
