"""Several sites in one daemon: selection, order, merging, a dead one, a hidden one (1.3, 13)."""

import json

import pytest
from harness.cores import Icinga2Core
from harness.daemon import site
from harness.expect import HOSTS, refused

from tests.table import each

BOTH = [*((host, "emb") for host in HOSTS), *((host, "ici") for host in HOSTS)]


@pytest.fixture(scope="module")
def daemon(embedded, shared):
    icinga2 = shared.core(Icinga2Core)
    sites = [
        site("emb", embedded, name="Embedded", section="Europe/Berlin"),
        site("ici", icinga2, name="Icinga 2", section="Europe/Munich"),
        site("dead", "unix:/nowhere/live", name="Dead", section="Asia", timeout=2.0),
        site("hid", embedded, name="Hidden", section="Asia", hidden=True),
        site("far", "tcp:127.0.0.1:1", name="Far", hidden=True, timeout=2.0),
    ]
    return shared.daemon(sites).start(connected={"emb", "ici", "hid"})


@pytest.fixture(scope="module")
def client(daemon):
    with daemon.client() as client:
        yield client


def keys(response):
    assert response.status == 200, response
    return list(dict.fromkeys(row["peer_key"] for row in response.json))


pytestmark = pytest.mark.icinga2


def test_rows_of_all_living_sites_in_configured_order(client):
    response = client.get("/hosts?columns=name,peer_key")
    assert [(row["name"], row["peer_key"]) for row in response.json] == BOTH
    assert response.headers["x-mon-failed-sites"] == "dead"
    document = client.rows("/wrapped_json/hosts?columns=name")
    assert len(document["meta"]["failed_sites"]) == 1
    assert "dead" in json.dumps(document["meta"]["failed_sites"])


@each(
    ("path", "expected", "dead"),
    [
        ("/sites/emb/hosts", ["emb"], False),
        ("/sites/emb,ici/hosts", ["emb", "ici"], False),
        ("/sites/ici,emb/hosts", ["emb", "ici"], False),
        ("/sites/emb%2C%20ici/hosts", ["emb", "ici"], False),
        ("/sites/emb/sites/ici/hosts", ["emb", "ici"], False),
        ("/sites/Icinga%202/hosts", ["ici"], False),
        ("/sites/Europe%2FMunich/hosts", ["ici"], False),
        ("/sites/hid/hosts", ["hid"], False),
        ("/sites/Hidden,emb/hosts", ["emb", "hid"], False),
        ("/sites/emb,dead/hosts", ["emb"], True),
        ("/sites/ALL/hosts", ["emb", "ici", "hid"], True),
        ("/sites/LOCAL/hosts", ["emb", "ici", "hid"], True),
        ("/hosts?backends=emb", ["emb"], False),
        ("/hosts?backends=emb,ici", ["emb", "ici"], False),
        ("/hosts?backends=emb&backends=ici", ["emb", "ici"], False),
        ("/hosts?backend=ici", ["ici"], False),
        ("/hosts?backends=ALL", ["emb", "ici", "hid"], True),
        ("/hosts?backends=", ["emb", "ici"], True),
        ("/sites/emb/hosts?backends=ici", ["emb"], False),
        ("/csv/sites/emb/json/hosts", ["emb"], False),
        ("/hosts?peer_key=ici", ["ici"], True),
        ("/hosts?peer_name=Embedded", ["emb"], True),
        ("/hosts?peer_section[~]=Munich", ["ici"], True),
        ("/hosts?q=peer_key%20!=%20emb", ["ici"], True),
        ("/hosts?sort=-peer_key", ["ici", "emb"], True),
    ],
)
def test_selection(client, path, expected, dead):
    response = client.get(path)
    assert keys(response) == expected
    assert ("x-mon-failed-sites" in response.headers) is dead
    if dead:
        assert "dead" in response.headers["x-mon-failed-sites"].split(",")


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("/sites/nope/hosts", ["failed to find backend(s): nope"]),
        ("/sites/emb,nope,no/hosts", ["failed to find backend(s): nope, no"]),
        ("/sites/all/hosts", ["failed to find backend(s): all"]),
        ("/hosts?backends=emb,nope", ["failed to find backend(s): nope"]),
        ("/hosts?backend=%3Cx%3E", ["failed to find backend(s): <x>"]),
    ],
)
def test_unknown_sites_refuse_the_whole_request(client, path, words):
    refused(client.get(path), 400, *words)


def test_selection_in_a_json_body(client):
    response = client.post_json("/hosts", {"backends": ["ici"], "columns": "name,peer_key"})
    assert keys(response) == ["ici"]


def test_only_dead_sites_selected(client):
    for path in ("/sites/dead/hosts", "/sites/dead,far/services", "/hosts/totals?backends=dead"):
        response = client.get(path)
        assert response.status in (502, 504), response
        document = refused(response, response.status)
        assert "dead" in document["description"]
        assert "/nothing" not in response.text


def test_limits_cut_the_merged_list(client):
    rows = client.rows("/hosts?columns=name,peer_key&limit=2&offset=5")
    assert [(row["name"], row["peer_key"]) for row in rows] == BOTH[5:7]
    rows = client.rows("/hosts?columns=name,peer_key&sort=name,-peer_key&limit=3")
    assert [(row["name"], row["peer_key"]) for row in rows] == [
        ("db01", "ici"),
        ("db01", "emb"),
        ("leaf01", "ici"),
    ]
    assert len(client.rows("/hosts?columns=name&limit=100&sort=-name")) == 12


def test_aggregation_over_sites(client):
    assert client.rows("/hosts?columns=count(*)") == {"count(*)": 12}
    rows = client.rows("/hosts?columns=state,count(*) as n".replace(" ", "%20"))
    assert [(row["state"], row["n"]) for row in rows] == [(0, 6), (1, 4), (2, 2)]
    rows = client.rows("/services?columns=peer_key,count(*)")
    assert [(row["peer_key"], row["count(*)"]) for row in rows] == [("emb", 11), ("ici", 11)]
    assert client.rows("/hosts?columns=avg(pl)") == {"avg(pl)": 40.0}
    assert client.rows("/services?columns=max(state),min(state),sum(state)") == {
        "max(state)": 3,
        "min(state)": 0,
        "sum(state)": 22,
    }


def test_totals_are_added(client):
    totals = client.rows("/hosts/totals")
    assert (totals["total"], totals["up"], totals["pending"], totals["unreachable"]) == (
        12,
        4,
        2,
        2,
    )
    assert client.rows("/services/totals")["critical"] == 6
    assert client.rows("/hostgroups/web/stats")["total"] == 4
    assert client.rows("/checks/stats")["services_active_sum"] >= 0


def test_groups_are_merged_by_name(client):
    groups = {row["name"]: row for row in client.rows("/hostgroups")}
    assert list(groups) == ["idle", "linux", "web"]
    assert groups["web"]["num_hosts"] == 4
    assert groups["web"]["peer_key"] == ["emb", "ici"]
    assert groups["web"]["peer_name"] == ["Embedded", "Icinga 2"]
    assert sorted(groups["web"]["members"]) == ["web01", "web01", "web02", "web02"]
    assert groups["web"]["worst_host_state"] == 1
    rows = client.rows("/hostgroups", {"peer_key[gte]": "ici", "columns": "name"})
    assert len(rows) == 3


def test_logs_are_merged_by_time(client):
    rows = client.rows("/logs?columns=time,peer_key")
    times = [row["time"] for row in rows]
    assert times == sorted(times)
    assert {row["peer_key"] for row in rows} == {"emb", "ici"}


def test_processes_come_in_configured_order(client):
    rows = client.rows("/processinfo")
    assert [row["peer_key"] for row in rows] == ["emb", "ici"]


def test_sites_lists_all_of_them(client):
    rows = client.rows("/sites")
    assert [row["id"] for row in rows] == ["emb", "ici", "dead", "hid", "far"]
    assert [row["name"] for row in rows] == ["Embedded", "Icinga 2", "Dead", "Hidden", "Far"]
    assert [row["status"] for row in rows] == [0, 0, 1, 0, 1]
    assert [row["connected"] for row in rows] == [1, 1, 0, 1, 0]
    for row in rows:
        assert {
            *("addr", "id", "name", "section", "type", "status", "connected", "last_error"),
            *("localtime", "federation_key", "federation_name", "federation_addr"),
            *("federation_type", "federation_version"),
        } <= set(row)
        assert row["type"] == "livestatus"
        assert type(row["localtime"]) is int
        assert bool(row["last_error"]) is (row["status"] == 1)
    assert rows[4]["addr"] == "127.0.0.1:1"
    # The time of a core goes on between two questions.
    again = client.rows("/site")
    assert [row | {"localtime": 0} for row in again] == [row | {"localtime": 0} for row in rows]
    assert len(client.rows("/sites/emb/sites")) == 5
    assert client.values("/sites", "id", connected="1") == ["emb", "ici", "hid"]


def test_core_differences_do_not_show_in_the_merged_rows(client):
    columns = "name,state,state_type,has_been_checked,last_check,acknowledged,custom_variables"
    columns += ",perf_data,plugin_output,modified_attributes_list,check_options,is_flapping,parents"
    rows = client.rows("/hosts", {"columns": columns})
    for mine, other in zip(rows[:6], rows[6:], strict=True):
        for row in (mine, other):
            row.pop("last_check")
        assert mine == other


LACKING = {
    "hosts": {"depends_exec", "depends_notify", "last_update"},
    "services": {"depends_exec", "depends_notify", "last_update", "parents"},
    "contacts": {
        *("id", "address1", "address2", "address3", "address4", "address5", "groups"),
        *("host_notification_commands", "service_notification_commands", "custom_variables"),
        *("custom_variable_names", "custom_variable_values", "last_update"),
    },
}
"""Default columns that are left out where the core does not have them (16, marked there)."""


@pytest.mark.parametrize("collection", ["hosts", "services", "hostgroups", "contacts", "downtimes"])
def test_both_sites_have_the_same_keys(client, collection):
    embedded, icinga2 = (
        set(client.rows(f"/sites/{key}/{collection}")[0]) for key in ("emb", "ici")
    )
    assert icinga2 - embedded == set()
    assert embedded - icinga2 <= LACKING.get(collection, set())
