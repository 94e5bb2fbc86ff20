"""Logs, alerts and notifications straight from the cores (19)."""

import time

import pytest
from harness.expect import refused

from tests.table import each

DEFAULTS = {
    *("class", "state", "time", "type", "message", "options", "host_name"),
    *("service_description", "contact_name", "plugin_output", "command_name", "peer_key"),
    *("attempt", "comment", "lineno", "peer_name"),
}


def test_logs_come_oldest_first_with_the_declared_columns(client):
    rows = client.rows("/logs")
    assert rows
    times = [row["time"] for row in rows]
    assert times == sorted(times)
    for row in rows:
        assert set(row) >= DEFAULTS
        assert row["message"].startswith(f"[{row['time']}]")
        assert type(row["attempt"]) is int
        assert None not in (row["host_name"], row["plugin_output"], row["contact_name"])
    assert client.rows("/log") == rows


def test_default_window_is_a_day(client):
    rows = client.rows("/logs", {"columns": "time"})
    assert min(row["time"] for row in rows) >= time.time() - 86400 - 60
    assert client.rows("/logs", {"time[gt]": "+1h"}) == []
    older = client.rows("/logs", {"columns": "count(*) as n", "time[gt]": "-30d"})
    assert older["n"] >= len(rows)


def test_a_condition_on_time_replaces_the_window(client):
    assert client.rows("/logs", {"time[lt]": "100"}) == []
    assert client.rows("/logs", {"q": "time < 100"}) == []
    assert client.rows("/logs", {"q": "message ~ 'no such timeout text'"}) == []


@each(
    ("name", "value", "empty"),
    [
        *(("time[gt]", value, True) for value in ("9" * 40, "1e15", "99999999999")),
        *(("time[lt]", value, True) for value in ("-1", "-1e300", "0.5")),
        *(("time", value, True) for value in ("9" * 40, "-5", "1.5")),
        *(("time[gte]", value, False) for value in ("-1e300", "-5", "0", "1.5")),
        *(("time[lte]", value, False) for value in ("9" * 40, "1e15", "99999999999")),
    ],
)
def test_bounds_beyond_all_time(client, name, value, empty):
    assert (client.rows("/logs", {name: value}) == []) is empty


def test_alerts(client):
    rows = client.rows("/alerts", {"time[gt]": "-1h"})
    assert {row["type"] for row in rows} <= {"HOST ALERT", "SERVICE ALERT"}
    seen = {(row["host_name"], row["service_description"], row["state"]) for row in rows}
    assert ("router1", "", 1) in seen
    assert ("web01", "http", 2) in seen
    assert ("web02", "http", 1) in seen
    outputs = {(row["host_name"], row["service_description"]): row["plugin_output"] for row in rows}
    assert outputs["web01", "http"] == "CRITICAL - 503"
    assert outputs["db01", "Disk /var"] == "WARNING: 80% used, not 75%"
    assert {row["state_type"] for row in rows} == {"HARD"}


@pytest.mark.parametrize(
    ("path", "hosts"),
    [
        ("/hosts/web02/alerts", {"web02"}),
        ("/host/web02/alerts", {"web02"}),
        ("/hosts/web*/alerts", {"web01", "web02"}),
        ("/hosts/eb*/alerts", set()),
        ("/hosts/nope/alerts", set()),
    ],
)
def test_alerts_of_hosts(client, path, hosts):
    rows = client.rows(path, {"time[gt]": "-1h"})
    assert {row["host_name"] for row in rows} == hosts
    assert {row["type"] for row in rows} <= {"HOST ALERT", "SERVICE ALERT"}


def test_notifications_are_class_three(client):
    for path in ("/notifications", "/hosts/web02/notifications", "/hosts/web*/notifications"):
        assert {row["class"] for row in client.rows(path)} <= {3}
    same = {"class": "3", "columns": "time,message"}
    assert client.rows("/notifications", {"columns": "time,message"}) == client.rows("/logs", same)


def test_limit_takes_the_newest_and_sort_turns_them(client):
    times = [row["time"] for row in client.rows("/logs", {"columns": "time"})]
    newest = client.rows("/logs", {"columns": "time", "limit": "3"})
    assert [row["time"] for row in newest] == times[-3:]
    turned = client.rows("/logs", {"columns": "time", "sort": "-time", "limit": "2"})
    assert [row["time"] for row in turned] == times[:-3:-1]


def test_log_filters(client):
    rows = client.rows("/logs", {"type": "SERVICE ALERT", "host_name": "web02", "time[gt]": "-1h"})
    assert {row["service_description"] for row in rows} == {"ping", "http"}
    counted = client.rows("/logs", {"columns": "class,count(*) as n"})
    assert sum(row["n"] for row in counted) == len(client.rows("/logs"))
    assert all(type(row["class"]) is int for row in counted)


def test_wrong_log_filters_are_refused(client):
    refused(client.get("/logs", {"nope": "1"}), 400, "nope")
    refused(client.get("/hosts/%5B/alerts"), 400)


@pytest.mark.parametrize("path", ["/hosts/web01/commandline", "/hosts/web*/commandline"])
def test_command_line_of_hosts(client, differences, path):
    rows = {row["host_name"]: row for row in client.rows(path)}
    row = rows["web01"]
    assert {"check_command", "command_line", "error", "host_name"} <= set(row)
    assert {"peer_key", "peer_name", "peer_section"} <= set(row)
    assert row["check_command"] == differences["check_command"]
    if differences["commandline"]:
        assert row["command_line"] == differences["commandline"]
        assert row["error"] == ""


def test_command_line_of_services(client):
    rows = client.rows("/services/db01/*/commandline")
    assert [row["service_description"] for row in rows] == ["Disk /var", "ping"]
    assert "check_disk" in rows[0]["command_line"]
    (row,) = client.rows("/services/db01/Disk%20%2Fvar/commandline")
    assert row["host_name"] == "db01"
