"""Collections, their aliases, names and wildcards in paths, default columns (16, 1.4)."""

import pytest
from harness.client import segment
from harness.expect import HOSTS, SEMICOLON, SERVICES, SIZES, refused

from tests.table import each


def test_hosts_come_by_name(client):
    assert client.values("/hosts", "name") == list(HOSTS)


def test_services_come_by_host_and_description(client):
    rows = client.rows("/services", {"columns": "host_name,description,state"})
    assert [(row["host_name"], row["description"], row["state"]) for row in rows] == list(SERVICES)


def test_groups_come_by_name(client):
    assert client.values("/hostgroups", "name") == ["idle", "linux", "web"]
    assert client.values("/servicegroups", "name") == ["http", "pings"]


def test_a_pending_object_reads_alike_on_every_core(client):
    columns = "state,has_been_checked,last_check,perf_data,plugin_output,check_period"
    expected = {"state": 0, "has_been_checked": 0, "last_check": 0, "perf_data": ""}
    row = client.rows("/hosts/pend01", {"columns": columns})[0]
    assert expected.items() <= row.items()
    row = client.rows("/services/pend01/ping", {"columns": columns})[0]
    assert expected.items() <= row.items()


@each(
    ("path", "column", "expected"),
    [
        ("/hosts/web01", "name", ["web01"]),
        ("/host/web01", "name", ["web01"]),
        ("/hosts/WEB01", "name", []),
        ("/hosts/web*", "name", []),
        ("/hosts/nope", "name", []),
        ("/hostgroups/linux", "name", ["linux"]),
        ("/hostgroup/linux", "name", ["linux"]),
        ("/servicegroups/pings", "name", ["pings"]),
        ("/servicegroup/pings", "name", ["pings"]),
        ("/contacts/olga", "name", ["olga"]),
        ("/contact/olga", "name", ["olga"]),
        ("/contactgroups/webteam", "name", ["webteam"]),
        ("/contactgroup/webteam", "members", [["olga"]]),
        ("/timeperiods/24x7", "alias", ["Always"]),
        ("/timeperiod/24x7", "alias", ["Always"]),
        ("/hosts/web01/services", "description", [SEMICOLON, SIZES, "http", "ping"]),
        ("/host/web02/services", "description", ["http", "ping"]),
        ("/hosts/web*/services", "description", []),
        ("/services/web01/ping", "description", ["ping"]),
        ("/service/web01/ping", "description", ["ping"]),
        ("/services/web*/ping", "host_name", ["web01", "web02"]),
        ("/services/web*/*", "host_name", ["web01"] * 4 + ["web02"] * 2),
        ("/services/web.*/http", "host_name", ["web01", "web02"]),
        ("/services/*/http", "host_name", ["web01", "web02"]),
        ("/services/eb*/ping", "host_name", []),
        ("/services/web%7Cdb/ping", "host_name", ["db01", "web01", "web02"]),
        ("/services/web01/%5Ep", "description", ["ping"]),
        ("/services/WEB01/ping", "host_name", []),
        ("/services/web01/p.ng", "host_name", []),
    ],
)
def test_aliases_by_name(client, path, column, expected):
    assert client.values(path, column) == expected


@pytest.mark.parametrize("collection", ["hosts", "services", "hostgroups", "contacts", "commands"])
def test_singular_is_plural(client, collection):
    columns = {"columns": "host_name,description" if collection == "services" else "name"}
    plural = client.rows(f"/{collection}", columns)
    assert client.rows(f"/{collection[:-1]}", columns) == plural


@pytest.mark.parametrize("description", [row[1] for row in SERVICES if row[0] in ("db01", "web01")])
def test_awkward_names_in_paths(client, description):
    host = "db01" if description == "Disk /var" else "web01"
    path = f"/services/{host}/{segment(description)}"
    rows = client.rows(path, {"columns": "host_name,description"})
    assert rows == [{"host_name": host, "description": description}]


def test_plus_in_a_path_is_a_plus(client):
    assert client.values("/services/router1/uplink%201+1", "description") == ["uplink 1+1"]
    assert client.values("/services/router1/uplink%201%2B1", "description") == ["uplink 1+1"]


def test_a_slash_splits_unless_encoded(client):
    assert client.values("/services/db01/Disk%20%2Fvar", "description") == ["Disk /var"]
    refused(client.get("/services/db01/Disk%20/var"), 404, "unknown rest path")


def test_wildcards_work_on_awkward_names(client):
    assert client.values(f"/services/*/{segment('Größe*')}", "description") == [SIZES]
    assert client.values(f"/services/*/{segment('*/var')}", "description") == ["Disk /var"]
    assert client.values(f"/services/web*/{segment('*; 5%')}", "description") == [SEMICOLON]


def test_comments_and_downtimes_by_id(client, differences):
    comments = client.rows("/comments")
    texts = {row["comment"]: row for row in comments}
    first = "first; with ü and €"
    assert {"on it", first, "looks fine"} <= set(texts)
    assert len(comments) == 3 + differences["downtime_comments"]
    row = texts["on it"]
    assert (row["entry_type"], row["author"], row["type"]) == (4, "admin", 2)
    assert (row["host_name"], row["service_description"]) == ("web01", "http")
    assert texts[first]["service_description"] == ""
    assert client.rows(f"/comments/{row['id']}") == [row]
    assert client.rows(f"/comment/{row['id']}") == [row]
    (downtime,) = client.rows("/downtimes")
    assert (downtime["host_name"], downtime["comment"]) == ("web02", "new disks")
    assert (downtime["fixed"], downtime["duration"]) == (1, 7260)
    assert client.rows(f"/downtimes/{downtime['id']}") == [downtime]
    assert client.rows("/downtimes/99999") == []


def test_a_list_is_empty_where_an_object_is_missing(client):
    """A path of an object is the list with that filter; what is no list is a 404 without it."""
    for path in ("/hosts/web99", "/hosts/web99/services", "/hosts/web99/alerts", "/contacts/web99"):
        assert client.rows(path) == [], path
    refused(client.get("/hosts/web99/availability"), 404, "no such host")


def test_commands(client, differences):
    assert differences["command"] in client.values("/commands", "name")
    (row,) = client.rows(f"/commands/{differences['command']}")
    assert "check_ping" in row["line"]


def test_joined_host_columns_of_services_and_downtimes(client):
    (row,) = client.rows(
        "/services/web01/ping",
        {"columns": "host_state,host_num_services,host_groups,host_address,service_state"},
    )
    assert row == {
        "host_state": 0,
        "host_num_services": 4,
        "host_groups": row["host_groups"],
        "host_address": "127.0.0.3",
        "service_state": 0,
    }
    assert sorted(row["host_groups"]) == ["linux", "web"]
    assert client.values("/downtimes", "host_address") == ["127.0.0.4"]


def test_group_members_and_counters_agree_with_the_rows(client):
    for group in client.rows("/hostgroups"):
        hosts = client.rows("/hosts", {"groups[gte]": group["name"]})
        assert sorted(group["members"]) == [host["name"] for host in hosts]
        assert group["num_hosts"] == len(hosts)
        pending = [host for host in hosts if not host["has_been_checked"]]
        assert group["num_hosts_pending"] == len(pending)
        down = [host for host in hosts if host["has_been_checked"] and host["state"] == 1]
        assert group["num_hosts_down"] == len(down)
        assert group["peer_key"] == ["s1"]
        services = client.rows("/services", {"host_groups[gte]": group["name"]})
        assert group["num_services"] == len(services)
        unknown = [row for row in services if row["has_been_checked"] and row["state"] == 3]
        assert group["num_services_unknown"] == len(unknown)


def test_host_service_lists_agree_with_the_services(client):
    (host,) = client.rows("/hosts/web01")
    assert sorted(host["services"]) == [row[1] for row in SERVICES if row[0] == "web01"]
    states = {name: (state, checked) for name, state, checked in host["services_with_state"]}
    assert states["http"] == (2, 1)
    assert states[SEMICOLON] == (0, 0)
    assert host["num_services"] == 4
    assert host["num_services_pending"] == 1
    assert host["num_services_crit"] == 1
    assert host["num_services_unknown"] == 0
    assert host["num_services_ok"] == 2


def test_custom_variables_are_dictionaries_everywhere(client):
    (host,) = client.rows("/hosts/web01")
    assert host["custom_variables"] == {"SIZE": "2", "WORKER": "local"}
    assert sorted(host["custom_variable_names"]) == ["SIZE", "WORKER"]
    assert (host["_SIZE"], host["_WORKER"]) == ("2", "local")
    (service,) = client.rows("/services/db01/ping")
    assert service["custom_variables"] == {"LEVEL": "gold"}
    assert service["host_custom_variables"] == {"SIZE": "10"}
    assert (service["_LEVEL"], service["_HOSTSIZE"]) == ("gold", "10")


def test_site_identity_on_every_row(client):
    for collection in ("hosts", "services", "contacts", "commands", "timeperiods", "comments"):
        for row in client.rows(f"/{collection}", {"columns": "peer_key,peer_name,peer_section"}):
            assert row == {
                "peer_key": "s1",
                "peer_name": "Site One",
                "peer_section": "Europe/Munich",
            }


def test_comments_and_downtimes_as_text(client):
    (row,) = client.rows("/hosts/web02", {"columns": "downtimes_info,downtimes_with_info"})
    (downtime,) = row["downtimes_with_info"]
    assert row["downtimes_info"] == f"id:{downtime[0]} author:admin: text:new disks"
    assert client.values("/hosts/db01", "downtimes_info") == [""]
    (info,) = client.values("/services/db01/ping", "comments_info")
    assert info.endswith(" author:olga: text:looks fine")


def test_groups_of_contacts_on_every_core(client):
    """An Icinga 2 has no such column: they are those of its contact groups."""
    groups = {"admin": ["admins"], "olga": ["webteam"]}
    assert {
        row["name"]: row["groups"] for row in client.rows("/contacts?columns=name,groups")
    } == groups
    assert client.values("/contacts?groups[gte]=webteam", "name") == ["olga"]
    assert client.values("/contacts?sort=-groups", "groups") == [["webteam"], ["admins"]]
    made = client.rows("/contacts?columns=to_rows(groups)%20as%20g,count(*)%20as%20n&sort=g")
    assert made == [{"g": "admins", "n": 1}, {"g": "webteam", "n": 1}]
    assert client.rows("/contacts/totals?groups[gte]=admins")["total"] == 1
