"""Business processes over real sockets: written, calculated from a core, sent back to it, linked."""

import json
import threading

from harness.expect import ODD, refused
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
from harness.waiting import until

from tests.examples import some
from tests.table import each

__all__ = ["admin", "core", "daemon"]


def test_a_draft_has_every_field(admin):
    made = create(
        admin, {**SHOP, "template": " tpl ", "rankDir": "LR", "filter": ["unknown_filter"]}
    )
    nodes = made.pop("nodes")
    assert made == {
        "affected_peers": None,
        "bp_backend": None,
        "create_host_object": 1,
        "draft": 1,
        "filter": ["unknown_filter"],
        "id": "1",
        "last_check": 0,
        "last_state_change": 0,
        "name": "Web Shop",
        "rankDir": "LR",
        "state_type": "both",
        "status": 4,
        "status_text": "not yet checked",
        "template": "tpl",
        "time": 0.0,
    }
    assert nodes[0] == {
        "acknowledged": 0,
        "bp_ref": None,
        "bp_ref_peer": None,
        "create_obj": 1,
        "depends": ["fronts", "db"],
        "function": "worst",
        "id": "node1",
        "label": "Shop",
        "last_check": 0,
        "last_state_change": 0,
        "scheduled_downtime_depth": 0,
        "short_desc": "",
        "status": 4,
        "status_text": "not yet checked",
    }
    assert nodes[1]["function_args"] == [2, 1]
    assert admin.rows("/mon/bp/1")["name"] == "Web Shop"
    assert admin.rows("/mon/bp?columns=id,draft") == [{"id": "1", "draft": 1}]


def test_names_and_numbers_of_new_ones(admin):
    assert create(admin, {"name": " Fn <Test>, (x)`~!$%^&*|'\"?= "})["name"] == "Fn Test x"
    assert create(admin, {"name": "Fn Test x"})["name"] == "Fn Test x 2"
    assert create(admin, {})["name"] == "New Business Process"
    assert create(admin, {"id": 7})["id"] == "7"
    assert create(admin, {"id": "7"})["id"] == "8"
    assert admin.request("DELETE", "/mon/bp/2").json == {
        "message": "business process successfully removed"
    }
    assert create(admin, {"name": "A"})["id"] == "2"
    assert admin.values("/mon/bp", "name") == [
        "A",
        "Fn Test x",
        "New Business Process",
        "New Business Process 2",
        "New Business Process 3",
    ]
    # A change keeps the own name and gives way to others.
    assert patch(admin, 2, {"name": "Fn Test x"}).status == 200
    assert admin.rows("/mon/bp/2")["name"] == "Fn Test x 2"
    assert patch(admin, 2, {"name": "Fn Test x 2"}).status == 200
    assert admin.rows("/mon/bp/2")["name"] == "Fn Test x 2"


def test_a_process_is_calculated_from_the_core_and_its_results_reach_it(admin, core):
    number = alive(admin, SHOP)
    assert number == "1"
    found = refreshed(admin, number)
    assert found["status"] == 2
    assert found["status_text"] == "CRITICAL - Front ends critical"
    assert found["affected_peers"] == ["s1"]
    assert found["bp_backend"] == "s1"
    assert found["draft"] == 0
    assert found["last_check"] > 0
    assert found["last_state_change"] == found["last_check"]
    assert found["time"] > 0
    nodes = by_id(found)
    assert nodes["w1"]["status"] == 2
    assert nodes["w1"]["status_text"] == "CRITICAL - 503\n"
    assert nodes["w1"]["acknowledged"] == 1
    assert nodes["w2"]["status"] == 1
    assert nodes["fronts"]["status_text"] == (
        "CRITICAL - 0/2 nodes are available|good=0;2.000000;1.000000;0;2"
    )
    assert nodes["fronts"]["short_desc"] == ">= 2,1"
    assert nodes["node1"]["status_text"] == (
        "CRITICAL - Worst state is CRITICAL: Front ends"
        "\n- [Front ends] CRITICAL - CRITICAL - 0/2 nodes are available"
        "| services_ok=1 services_warning=0 services_unknown=0 services_critical=1 "
        "services_pending=0"
    )
    assert admin.rows("/mon/bp/1") == found

    def states():
        rows = core.ask(
            "GET services\nColumns: description state plugin_output\nFilter: host_name = Web Shop"
        )
        return {name: (state, text) for name, state, text in rows}

    until(lambda: states()["Shop"][0] == 2, "the core has the results")
    assert states() == {
        "Shop": (2, "CRITICAL - Front ends critical"),
        "Front ends": (2, "CRITICAL - 0/2 nodes are available"),
    }
    (host,) = core.ask("GET hosts\nColumns: state plugin_output\nFilter: name = Web Shop")
    assert host[0] == 0
    assert host[1].startswith("OK - business process calculation of 5 nodes complete in 0.000s")


def test_a_draft_is_calculated_and_reaches_no_core(admin, core):
    create(admin, {**SHOP, "nodes": [{"label": "Shop", "function": "fixed(1, 'half')"}]})
    core.command("PROCESS_SERVICE_CHECK_RESULT;Web Shop;Shop;3;before")
    until(
        lambda: core.ask("GET services\nColumns: state\nFilter: description = Shop") == [[3]],
        "the core knows a state",
    )
    found = refreshed(admin, 1)
    assert (found["status"], found["status_text"], found["draft"]) == (1, "half", 1)
    # The core answers in order: what was sent before would be seen now.
    core.command("ADD_HOST_COMMENT;Company;1;admin;after the refresh")
    until(
        lambda: core.ask("GET comments\nColumns: id\nFilter: comment = after the refresh"),
        "a later command is seen",
    )
    assert core.ask("GET services\nColumns: state\nFilter: description = Shop") == [[3]]


def test_a_change_of_the_state_is_noticed(admin, core):
    number = alive(admin, {"nodes": [{"label": "x", "function": "status('db01', 'ping')"}]})
    assert refreshed(admin, number)["status"] == 0
    core.command("PROCESS_SERVICE_CHECK_RESULT;db01;ping;2;CRITICAL - gone")
    try:
        until(
            lambda: (
                core.ask(
                    "GET services\nColumns: state\nFilter: host_name = db01\nFilter: description = ping"
                )
                == [[2]]
            ),
            "the core knows it",
        )
        found = refreshed(admin, number)
        assert found["status"] == 2
        assert found["status_text"] == "CRITICAL - gone\n"
    finally:
        core.command("PROCESS_SERVICE_CHECK_RESULT;db01;ping;0;OK - 12 ms|rta=12.5ms;100;500;0;")


def test_patch_merges_and_replace_replaces(admin):
    number = alive(admin, SHOP)
    assert patch(admin, number, {"nodes": [{"label": "Our shop"}], "rankDir": "LR"}).status == 200
    found = admin.rows(f"/mon/bp/{number}")
    assert (found["rankDir"], found["name"], len(found["nodes"])) == ("LR", "Web Shop", 5)
    assert found["nodes"][0]["label"] == "Our shop"
    assert found["nodes"][0]["depends"] == ["fronts", "db"]
    # A new function has its own arguments, not those of the old one.
    assert patch(admin, number, {"nodes": {"2": {"function": "fixed('OK')"}}}).status == 200
    node = by_id(admin.rows(f"/mon/bp/{number}"))["w1"]
    assert (node["function"], node["function_args"]) == ("fixed", ["OK"])
    assert patch(admin, number, {"nodes": {"4": None}}).status == 200
    assert set(by_id(admin.rows(f"/mon/bp/{number}"))) == {"node1", "fronts", "w1", "w2"}
    response = admin.post_json(f"/mon/bp/{number}", {"name": "Other", "state_type": True})
    assert response.json == {"message": "business process successfully updated"}
    found = admin.rows(f"/mon/bp/{number}")
    assert (found["name"], found["rankDir"], found["nodes"]) == ("Other", "TB", [])
    assert found["state_type"] == "hard"
    refused(admin.post_json(f"/mon/bp/{number}", {"rankDir": "LR"}), 400, "invalid name")
    assert admin.rows(f"/mon/bp/{number}")["name"] == "Other"
    refreshed(admin, number)
    assert admin.rows(f"/mon/bp/{number}")["status_text"] == "no nodes"


def test_a_record_can_be_sent_back_as_it_was_read(admin):
    number = alive(admin, SHOP)
    before = refreshed(admin, number)
    assert admin.post_json(f"/mon/bp/{number}", before).status == 200
    assert admin.rows(f"/mon/bp/{number}") == before


def test_forms_are_taken_too(admin):
    form = [
        ("name", "By form"),
        ("filter", "unknown_filter"),
        ("filter", "downtime_filter"),
        ("create_host_object", "0"),
        ("nodes", json.dumps([{"label": "n", "function": "fixed(0)"}])),
    ]
    assert admin.post_form("/mon/bp", form).status == 200
    found = admin.rows("/mon/bp/1")
    assert found["filter"] == ["unknown_filter", "downtime_filter"]
    assert found["create_host_object"] == 0
    assert found["nodes"][0]["function_args"] == [0]
    refused(admin.post_form("/mon/bp", [("nodes", "{")]), 400, "invalid nodes", "nodes")


def test_who_may_see_and_change_what(daemon, admin):
    alive(admin, SHOP)
    alive(admin, LINKED)
    create(admin, {"name": "draft"})
    with daemon.client("bea") as bea, daemon.client("olga") as olga, daemon.client("hugo") as hugo:
        assert bea.values("/mon/bp", "name") == ["Company", "Web Shop", "draft"]
        assert patch(bea, 1, {}).status == 200
        # A contact of a service of the process, without any role.
        assert olga.values("/mon/bp", "name") == ["Web Shop"]
        assert olga.rows("/mon/bp/1")["name"] == "Web Shop"
        refused(olga.get("/mon/bp/2"), 404, "no such business process")
        refused(olga.get("/mon/bp/3"), 404, "no such business process")
        rows = olga.rows("/mon/bp/1/objects?columns=host_name,description")
        found = {(row["host_name"], row["description"]) for row in rows}
        assert found == {("db01", "ping"), ("web01", "http")}
        refused(patch(olga, 1, {}), 403, "not authorized", "authorized_for_business_processes")
        refused(olga.post_json("/mon/bp", SHOP), 403, "not authorized")
        refused(olga.post_json("/mon/bp/1", SHOP), 403, "not authorized")
        refused(olga.request("DELETE", "/mon/bp/1"), 403, "not authorized")
        assert refreshed(olga, 1)["status"] == 2  # a contact of the host may send it commands
        assert hugo.rows("/mon/bp") == []
        refused(hugo.post_json("/mon/bp/1/refresh", {}), 404, "no such business process")
    assert admin.values("/mon/bp", "name") == ["Company", "Web Shop", "draft"]


@each(
    ("document", "words"),
    [
        ({"name": 5.5}, "name"),
        ({"name": "a;b"}, "name"),
        ({"name": "()"}, "name"),
        ({"name": "x" * 300}, "name"),
        ({"rankDir": "UP"}, "rankDir"),
        ({"state_type": "some"}, "state_type"),
        ({"create_host_object": 2}, "create_host_object"),
        ({"filter": "a b"}, "filter"),
        ({"filter": {"a": 1}}, "filter"),
        ({"id": 0}, "id"),
        ({"nodes": {"a": 1}}, "nodes"),
        ({"nodes": [1]}, "nodes[0]"),
        ({"nodes": [{"id": "x", "label": "no root"}]}, "node1"),
        (
            {"nodes": [{"label": "a"}, {"id": "node1", "label": "b"}, {"id": "node1"}]},
            "nodes[2].id",
        ),
        ({"nodes": [{"label": "a", "function": "nothing()"}]}, "nodes[0].function"),
        ({"nodes": [{"label": "a", "function": ["Worst"]}]}, "nodes[0].function"),
        ({"nodes": [{"label": "a", "function": "status()"}]}, "nodes[0].function"),
        ({"nodes": [{"label": "a", "function": "status('h', '[', '~')"}]}, "nodes[0].function"),
        ({"nodes": [{"label": "a", "function": "status('h', 's', '>')"}]}, "nodes[0].function"),
        ({"nodes": [{"label": "a", "function": ["statusfilter", "worst", "all"]}]}, "argument 2"),
        ({"nodes": [{"label": "a", "function": ["statusfilter", "worst", "both"]}]}, "argument 3"),
        ({"nodes": [{"label": "a;b"}]}, "nodes[0].label"),
        ({"nodes": [{"label": "a", "max_check_attempts": "few"}]}, "nodes[0].max_check_attempts"),
        ({"nodes": [{"service_object_attributes": {"host_name": "x"}}]}, "expected no host_name"),
        ({"nodes": [{"label": "a", "depends": "b", "contacts": [1]}]}, "nodes[0].contacts"),
    ],
)
def test_what_is_wrong_is_refused_by_name(admin, document, words):
    response = admin.post_json("/mon/bp", document)
    assert response.status == 400, response
    assert words in response.json["description"], response
    assert admin.rows("/mon/bp") == []


def test_every_change_and_every_refused_one_is_an_audit_line(daemon, admin):
    before = daemon.log.count(" audit ")
    alive(admin, {"name": "Audited"})
    refused(admin.post_json("/mon/bp", {"name": "Wrong;name"}), 400)
    refused(patch(admin, 1, {"rankDir": "UP"}), 400)
    assert admin.request("DELETE", "/mon/bp/1").status == 200
    refused(admin.request("DELETE", "/mon/bp/1"), 404)
    lines = [line for line in daemon.log.splitlines() if " audit " in line][before:]
    for line, *words in zip(
        lines,
        ("create", "change", "create", "change", "delete", "delete"),
        ("1", "1", '""', "1", "1", "1"),
        ("ok", "ok", '"invalid name"', '"invalid rankDir"', "ok", '"no such business process"'),
        strict=True,
    ):
        action, target, result = words
        assert f'audit action="bp {action}" user=admin ' in line
        assert f" target={target} result={result} " in line
    assert "name=Wrong;name" in lines[2]


def odd_documents(odd):
    return (
        {"name": odd},
        {"nodes": [{"label": odd, "function": f"status('{odd}', '{odd}')"}]},
        {"nodes": [{"label": "a", "function": odd, "template": odd, "depends": [odd]}]},
        {"filter": [odd], "template": odd, "rankDir": odd},
    )


def test_odd_values_do_no_harm(admin):
    for document in some((one for odd in ODD for one in odd_documents(odd)), 0.5):
        response = admin.post_json("/mon/bp", document)
        assert response.status in (200, 400), (document, response)
        if response.status == 200:
            number = response.json["data"]["id"]
            assert admin.post_json(f"/mon/bp/{number}/refresh", {}).status == 200
            assert admin.get(f"/mon/bp/{number}/objects").status == 200
            assert admin.request("DELETE", f"/mon/bp/{number}").status == 200
    for path in ("/mon/bp/x", "/mon/bp/0", "/mon/bp/-1", "/mon/bp/99999999999", "/mon/bp/1%2F"):
        assert admin.get(path).status == 404, path
    refused(admin.post_json("/mon/bp", [1]), 400, "invalid value", "request body")


def test_many_write_at_once(daemon, admin):
    """Forty drafts at the same time get forty numbers and forty names."""
    answers = []

    def make():
        with daemon.client() as client:
            made = [client.post_json("/mon/bp", {"name": "same"}) for _ in range(5)]
            answers.extend(one.json["data"] for one in made)

    threads = [threading.Thread(target=make) for _ in range(8)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert sorted(int(one["id"]) for one in answers) == list(range(1, 41))
    assert len({one["name"] for one in answers}) == 40


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
