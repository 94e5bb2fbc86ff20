"""Totals, statistics, checks, processes (17, 18)."""

import pytest
from harness.expect import HOSTS, SERVICES, refused


def numbers_only(document):
    assert all(type(value) in (int, float) for value in document.values()), document


def test_host_totals(client):
    assert client.rows("/hosts/totals") == {
        "total": 6,
        "pending": 1,
        "up": 2,
        "down": 2,
        "unreachable": 1,
        "down_and_unhandled": 0,
        "unreachable_and_unhandled": 0,
    }


def test_service_totals(client):
    assert client.rows("/services/totals") == {
        "total": 11,
        "pending": 2,
        "ok": 3,
        "warning": 2,
        "critical": 3,
        "unknown": 1,
        "warning_and_unhandled": 1,
        "critical_and_unhandled": 0,
        "unknown_and_unhandled": 0,
    }


def test_contact_totals(client):
    assert client.rows("/contacts/totals") == {"total": 2}


def test_host_stats(client):
    stats = client.rows("/hosts/stats")
    numbers_only(stats)
    expected = {
        "total": 6, "pending": 1, "plain_pending": 1, "pending_and_disabled": 1, "up": 2,
        "plain_up": 2, "down": 2, "plain_down": 1, "down_and_scheduled": 1, "down_hard": 2,
        "unreachable": 1, "outages": 1, "down_soft": 0, "flapping": 0,
        "passive_checks_disabled": 0,
    }  # fmt: skip
    assert {name: stats[name] for name in expected} == expected
    assert stats["total_active"] + stats["total_passive"] == 6


def test_service_stats(client):
    stats = client.rows("/services/stats")
    numbers_only(stats)
    expected = {
        "total": 11, "pending": 2, "pending_and_disabled": 2, "ok": 3, "plain_ok": 3,
        "warning": 2, "critical": 3, "critical_and_ack": 1, "plain_critical": 2, "unknown": 1,
        "critical_on_down_host": 2, "unknown_on_down_host": 1, "warning_on_down_host": 1,
        "warning_and_unhandled": 1, "warning_hard_unhandled": 1, "critical_hard": 3,
    }  # fmt: skip
    assert {name: stats[name] for name in expected} == expected


def test_check_stats(client):
    stats = client.rows("/checks/stats")
    numbers_only(stats)
    for kind, total in (("hosts", 6), ("services", 11)):
        assert stats[f"{kind}_active_sum"] + stats[f"{kind}_passive_sum"] == total
    if stats["hosts_passive_sum"]:
        share = 100 * stats["hosts_passive_60_sum"] / stats["hosts_passive_sum"]
        assert stats["hosts_passive_60_perc"] == pytest.approx(share)
    assert client.rows("/check/stats").keys() == stats.keys()


def test_check_stats_are_filtered(client):
    """A column that only hosts or only services have is empty in the other."""

    def count(name, value):
        stats = client.rows("/checks/stats", {name: value})
        return tuple(
            stats[f"{kind}_active_sum"] + stats[f"{kind}_passive_sum"]
            for kind in ("hosts", "services")
        )

    expected = {
        ("host_name", "web01"): (1, 4),
        ("state", "0"): (3, 5),
        ("groups[gte]", "linux"): (3, 0),
        ("peer_key", "s1"): (6, 11),
        ("peer_key", "s2"): (0, 0),
        ("description", "ping"): (0, 5),
        ("description[ne]", "ping"): (6, 6),
        ("service_description", ""): (6, 0),
        ("name", "web01"): (1, 0),
        ("q", 'service = "http" and host = "web01"'): (0, 1),
        ("q", 'state = 0 or description = "http"'): (3, 7),
        ("_WORKER", "local"): (1, 0),
        ("display_name", "nope"): (0, 0),
    }
    assert {pair: count(*pair) for pair in expected} == expected
    answer = client.get("/checks/stats", {"nam": "x", "description": "ping"})
    assert answer.status == 400
    assert answer.json["description"] == "no data row has attribute(s) named: nam"


def test_group_stats_are_the_filtered_stats(client):
    assert client.rows("/hostgroups/web/stats") == client.rows(
        "/hosts/stats", {"groups[gte]": "web"}
    )
    stats = client.rows("/hostgroup/linux/stats")
    assert (stats["total"], stats["up"], stats["down"]) == (3, 2, 1)
    stats = client.rows("/servicegroups/http/stats")
    assert (stats["total"], stats["critical"], stats["warning"]) == (2, 1, 1)
    assert stats == client.rows("/services/stats", {"service_groups[gte]": "http"})
    assert set(client.rows("/hostgroups/nope/stats").values()) == {0}


@pytest.mark.parametrize(
    ("parameters", "total"),
    [
        ({"name[~]": "^web"}, 2),
        ({"groups[gte]": "linux"}, 3),
        ({"q": "state = 1 or state = 2"}, 3),
        ({"_WORKER": "local"}, 1),
        ({"pl[gte]": "1"}, 2),
        ({"name": "nope"}, 0),
        ({"backends": "s1"}, 6),
        ({"last_check[gt]": "-10m"}, 5),
    ],
)
def test_totals_take_filters(client, parameters, total):
    assert client.rows("/hosts/totals", parameters)["total"] == total
    assert client.rows("/hosts/stats", parameters)["total"] == total


def test_service_totals_take_host_conditions(client):
    assert client.rows("/services/totals", {"host_name": "web01"})["total"] == 4
    assert client.rows("/services/totals", {"_HOSTWORKER": "remote"})["total"] == 2


def test_columns_of_an_object(client):
    parameters = {"columns": "up+down as n,calc(up,*,2) as u2,total"}
    assert client.rows("/hosts/totals", parameters) == {"n": 4, "u2": 4, "total": 6}


@pytest.mark.parametrize("path", ["/hosts/totals", "/hosts/stats", "/services/stats"])
def test_misspelt_filters_of_statistics_are_refused(client, path):
    refused(client.get(path, {"nope": "1"}), 400, "nope")


def test_process(client, differences):
    for path in ("/processinfo", "/processinfos"):
        (row,) = client.rows(path)
        assert row["peer_key"] == "s1"
        assert row["peer_name"] == "Site One"
        assert row["program_version"].startswith(differences["version"])
        assert row["data_source_version"].startswith("Livestatus ")
        assert type(row["nagios_pid"]) is int
        assert row["interval_length"] == 60
        assert row["program_start"] > 1_000_000_000
        for flag in (
            *("accept_passive_host_checks", "accept_passive_service_checks"),
            *("check_external_commands", "check_host_freshness", "enable_event_handlers"),
            *("enable_notifications", "execute_host_checks", "execute_service_checks"),
            *("obsess_over_hosts", "process_performance_data"),
        ):
            assert row[flag] in (0, 1)


def test_process_without_any_known_column(client):
    response = client.get("/processinfo", {"columns": "nope"})
    assert response.status == 400, response
    assert response.json["description"] == "columns: there is no column nope"


def test_totals_agree_with_the_rows(client):
    assert client.rows("/hosts", {"columns": "count(*)"}) == {"count(*)": len(HOSTS)}
    assert client.rows("/services", {"columns": "count(*)"}) == {"count(*)": len(SERVICES)}
