"""What a contact may not see is not told by way of a business process or a report either.

bea holds the role for business processes and is a contact of nothing; olga is a contact of the host
web01, of the service ping on db01, and of the service that shows the process "Web Shop".
"""

import json

import pytest
from harness.daemon import site
from harness.expect import refused
from harness.processes import EXPORTED, SHOP, alive, by_id, core, patch, refreshed

__all__ = ["core"]

HIDDEN = "not visible"
NOTHING = {
    "status": 4,
    "status_text": HIDDEN,
    "short_desc": HIDDEN,
    "last_state_change": 0,
    "acknowledged": 0,
    "scheduled_downtime_depth": 0,
    "bp_ref": None,
    "bp_ref_peer": None,
}
ALL = {"text_filter": [{"type": "host", "op": "~", "value": "."}]}
KINDS = {
    "name": "Kinds",
    "nodes": [
        {
            "label": "root",
            "function": "worst()",
            "depends": ["own", "none", "host", "pattern", "group", "search", "fixed", "pair"],
        },
        {"id": "own", "label": "own", "function": "status('db01', 'ping')"},
        {"id": "none", "label": "none", "function": "status('web02', 'http')"},
        {"id": "host", "label": "host", "function": "status('web02')"},
        {"id": "pattern", "label": "pattern", "function": "status('db01', '.*', '~')"},
        {"id": "group", "label": "group", "function": "groupstatus('hostgroup', 'linux')"},
        {"id": "search", "label": "search", "function": ["statusfilter", "worst", "both", ALL]},
        {"id": "gone", "label": "gone", "function": "status('no such host', 'x')"},
        {"id": "fixed", "label": "fixed", "function": "fixed('OK')"},
        {"id": "pair", "label": "pair", "function": "best()", "depends": ["own", "none"]},
        {"id": "mine", "label": "mine", "function": "best()", "depends": ["own", "fixed"]},
    ],
}


@pytest.fixture(scope="module")
def daemon(core, shared):
    return shared.daemon(
        [site("s1", core)],
        sections={
            "bp": {"refresh_interval": 0},
            "auth.roles": {
                "business_processes": ["bea", "olga", "full"],
                "all_hosts": ["full"],
                "all_services": ["full"],
                "reports": ["bea"],
            },
        },
    ).start()


@pytest.fixture(scope="module")
def numbers(daemon):
    """The processes, calculated."""
    assert "Web Shop" in EXPORTED
    with daemon.client() as admin:
        made = {one["name"]: alive(admin, one) for one in (SHOP, KINDS)}
        single = {"name": "Single", "nodes": [{"label": "x", "function": "status('web02')"}]}
        made["Single"] = alive(admin, single)
        for number in made.values():
            refreshed(admin, number)
    return made


def process(daemon, user, number):
    with daemon.client(user) as client:
        return client.rows(f"/mon/bp/{number}")


def hidden(found):
    return {
        number
        for number, node in by_id(found).items()
        if all(node[name] == value for name, value in NOTHING.items())
    }


def test_nodes_show_what_their_reader_may_see(daemon, numbers):
    whole = process(daemon, "admin", numbers["Kinds"])
    assert hidden(whole) == set()
    assert process(daemon, "full", numbers["Kinds"]) == whole
    theirs = process(daemon, "olga", numbers["Kinds"])
    assert hidden(theirs) == {"none", "host", "pattern", "group", "search", "gone", "pair"}
    for name in ("own", "fixed", "mine"):
        assert by_id(theirs)[name] == by_id(whole)[name]
    assert hidden(process(daemon, "bea", numbers["Kinds"])) == {
        *("own", "none", "host", "pattern", "group", "search", "gone", "pair", "mine"),
    }


def test_the_state_of_the_whole_is_shown_and_not_of_what_it_is_made(daemon, numbers):
    whole, theirs = (process(daemon, who, numbers["Kinds"]) for who in ("admin", "bea"))
    assert (theirs["status"], theirs["status_text"]) == (whole["status"], HIDDEN)
    root = by_id(theirs)["node1"]
    assert (root["status"], root["status_text"]) == (whole["status"], HIDDEN)
    # What is read can be sent back: the definition is whole.
    for name in ("function", "function_args", "depends"):
        assert [node.get(name) for node in theirs["nodes"]] == [
            node.get(name) for node in whole["nodes"]
        ]


def test_a_process_that_is_one_object_says_nothing_of_it(daemon, numbers):
    theirs = process(daemon, "bea", numbers["Single"])
    assert (theirs["status"], theirs["status_text"]) == (4, HIDDEN)
    assert (theirs["last_state_change"], hidden(theirs)) == (0, {"node1"})


def test_what_the_core_shows_of_a_process_is_shown(daemon, numbers):
    """olga is a contact of the service that stands for its root."""
    whole, theirs = (process(daemon, who, numbers["Web Shop"]) for who in ("admin", "olga"))
    assert by_id(theirs)["node1"] == by_id(whole)["node1"]
    assert theirs["status_text"] == whole["status_text"]
    assert "w2" in hidden(theirs)


@pytest.mark.parametrize("prefix", ["", "/wrapped_json", "/csv", "/text"])
def test_no_format_and_no_filter_tells_more(daemon, numbers, prefix):
    with daemon.client("bea") as bea, daemon.client() as admin:
        secrets = {
            node["status_text"].strip()
            for node in admin.rows(f"/mon/bp/{numbers['Kinds']}")["nodes"]
            if node["id"] in ("none", "host", "group") and node["status_text"].strip()
        }
        assert secrets
        for path in ("/mon/bp", f"/mon/bp/{numbers['Kinds']}"):
            text = bea.get(prefix + path).text
            assert not [one for one in secrets if one in text or json.dumps(one)[1:-1] in text]
        whole = admin.rows(f"/mon/bp/{numbers['Kinds']}")["status_text"]
        assert bea.rows("/mon/bp", {"status_text": whole}) == []
        assert bea.rows(f"/mon/bp/{numbers['Kinds']}/objects") == []
        calculated = refreshed(bea, numbers["Kinds"])
        assert calculated["status_text"] == HIDDEN
        assert patch(bea, numbers["Kinds"], {}).status == 200
        refreshed(admin, numbers["Kinds"])


def test_a_report_of_a_process_sees_what_its_owner_sees(daemon, numbers):
    params = {"businessprocess": "Web Shop", "timeperiod": "last24hours"}
    with daemon.client("bea") as bea:
        report = {"template": "sla_business_process.tt", "params": params}
        number = bea.post_json("/mon/reports", report).json["id"]
        answer = bea.get(f"/mon/reports/{number}/report?type=json")
        assert answer.status != 200 or "Shop" not in json.dumps(answer.json.get("availability"))
        by_path = {
            "template": "report_from_url.tt",
            "params": {"url": f"/mon/r/mon/bp/{numbers['Kinds']}"},
        }
        number = bea.post_json("/mon/reports", by_path).json["id"]
        found = bea.rows(f"/mon/reports/{number}/report?type=json")
        assert found["status_text"] == HIDDEN


def test_who_sees_no_process_learns_nothing_of_it(daemon, numbers):
    with daemon.client("nobody") as nobody:
        assert nobody.rows("/mon/bp") == []
        for number in numbers.values():
            refused(nobody.get(f"/mon/bp/{number}"), 404, "no such business process")
