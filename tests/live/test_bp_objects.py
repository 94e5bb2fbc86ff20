"""What business processes refer to, and which of them link to each other."""

from harness.expect import refused
from harness.processes import (
    LINKED,
    SHOP,
    admin,
    alive,
    by_id,
    core,
    create,
    daemon,
    patch,
    refreshed,
)

__all__ = ["admin", "core", "daemon"]


def test_linked_processes_and_their_objects(admin):
    alive(admin, SHOP)
    alive(admin, LINKED)
    node = by_id(refreshed(admin, 2))["shop"]
    assert (node["bp_ref"], node["bp_ref_peer"]) == ("1", "s1")
    rows = admin.rows("/mon/bp/2/objects")
    assert [(row["_type"], row["host_name"], row.get("description")) for row in rows] == [
        ("service", "Web Shop", "Shop"),
        ("host", "db01", None),
    ]
    assert rows[1]["name"] == "db01"
    assert rows[1]["state"] == 0
    assert rows[1]["_SIZE"] == "10"
    assert "description" not in rows[1]
    rows = admin.rows("/mon/bp/2/objects/recursive?columns=_type,host_name,description")
    assert [(row["_type"], row["host_name"], row["description"]) for row in rows] == [
        ("service", "Web Shop", "Shop"),
        ("host", "db01", None),
        ("service", "db01", "ping"),
        ("service", "web01", "http"),
        ("service", "web02", "http"),
    ]
    rows = admin.rows("/mon/bp/2/objects/recursive?_type=service&state[gt]=0&sort=-host_name")
    assert [row["host_name"] for row in rows if row["host_name"] != "Web Shop"] == [
        "web02",
        "web01",
    ]
    assert admin.get("/csv/mon/bp/2/objects?columns=host_name").text.splitlines() == [
        "#host_name",
        "Web Shop",
        "db01",
    ]
    create(admin, {"name": "Nothing"})
    assert admin.rows("/mon/bp/3/objects") == []
    refused(admin.get("/mon/bp/4/objects"), 404, "no such business process")


def test_groups_patterns_and_searches_refer_to_objects(admin):
    alive(
        admin,
        {
            "nodes": [
                {"label": "a", "function": "groupstatus('hostgroup', 'web')"},
                {"label": "b", "function": "groupstatus('servicegroup', 'pings')"},
                {"label": "c", "function": "status('router1', 'up*')"},
                {
                    "label": "d",
                    "function": [
                        "statusfilter",
                        "worst",
                        "hosts",
                        [{"text_filter": [{"type": "host", "value": "leaf01"}]}],
                    ],
                },
            ]
        },
    )
    rows = admin.rows("/mon/bp/1/objects?columns=_type,host_name,description")
    found = {(row["host_name"], row["description"]) for row in rows}
    assert {host for host, service in found if service is None} == {"web01", "web02", "leaf01"}
    pings = {(row["host_name"], "ping") for row in admin.rows("/services?description=ping")}
    web = {
        (row["host_name"], row["description"])
        for row in admin.rows("/services?host_groups[gte]=web")
    }
    assert {one for one in found if one[1]} == pings | web | {("router1", "uplink 1+1")}
    nodes = refreshed(admin, 1)["nodes"]
    assert nodes[0]["status_text"] == (
        "CRITICAL - 1/2 hosts up, 4/6 services up|"
        "hosts_up=1 hosts_down=1 services_up=4 services_down=2"
    )
    assert nodes[1]["status_text"] == "CRITICAL - 3/5 services up|services_up=3 services_down=2"
    assert nodes[2]["short_desc"] == "worst of router1: ~ up*"
    assert nodes[3]["status_text"] == (
        "CRITICAL - 0/1 hosts up|hosts_up=0 hosts_down=1"
        "\n[UNREACHABLE] leaf01 - DOWN - behind a router"
    )
    assert nodes[3]["short_desc"] == "host=leaf01"


def test_cycles_are_refused_and_named(admin):
    alive(admin, SHOP)
    alive(admin, LINKED)
    back = {"nodes": {"4": {"function": "status('Company', 'Company')"}}}
    error = patch(admin, 1, back)
    refused(error, 409, "linked business processes form a cycle", "Company (2)")
    assert "Web Shop (1) -> Company (2) -> Web Shop (1)" in error.json["description"]
    assert by_id(admin.rows("/mon/bp/1"))["db"]["function_args"] == ["db01", "ping"]
    itself = {"name": "me", "nodes": [{"label": "x", "function": "status('me', 'x')"}]}
    refused(admin.post_json("/mon/bp", itself), 409, "linked", "me (3) -> me (3)")
    ring = [
        {"label": "a", "depends": ["b"], "function": "worst()"},
        {"id": "b", "label": "b", "depends": ["node1"], "function": "worst()"},
    ]
    refused(
        admin.post_json("/mon/bp", {"nodes": ring}),
        400,
        "circular dependency",
        "node1 -> b -> node1",
    )
