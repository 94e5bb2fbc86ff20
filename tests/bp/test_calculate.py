"""Whole calculations over rows: what each kind of node finds, filters, texts, bookkeeping."""

from __future__ import annotations

import subprocess
import sys

import pytest

from monrest.bp.core_rows import SERVICE_COLUMNS, CoreQuestion, CoreRows, Needs
from monrest.bp.custom import load
from monrest.bp.model import read
from monrest.bp.node_state import NodeState
from tests.bp.town import NOW, Town, leaf, row, town
from tests.table import each

__all__ = ["town"]


def test_a_service_by_name(town):
    town.service("h", "s", 1, acknowledged=1, scheduled_downtime_depth=3, long_plugin_output="more")
    found = town.calculate(leaf("status('h', 's')"))
    assert found.nodes["node1"] == NodeState(1, "s says\nmore", "s says", 5, 4, 1, 1)
    assert found.affected_peers == ("s1",)
    assert (found.last_check, found.last_state_change) == (NOW, NOW)


@pytest.mark.parametrize(
    ("function", "reason"),
    [
        ("status('h', 'gone')", "no such service"),
        ("status('gone')", "no such host"),
        ("status('h', 'xx*')", "no matching hosts/services found"),
        ("groupstatus('hostgroup', 'gone')", "no such hostgroup"),
        ("groupstatus('servicegroup', 'gone')", "no such servicegroup"),
    ],
)
def test_what_is_not_there_is_unknown(town, function, reason):
    town.host("h").service("h", "s")
    found = town.calculate(leaf(function))
    assert (found.status, found.status_text) == (3, reason)
    assert found.affected_peers == ()


@pytest.mark.parametrize(("state", "status"), [(0, 0), (1, 2), (2, 2), ("lie", 3), (9, 3)])
def test_hosts_that_are_down_are_critical(town, state, status):
    town.host("h", state, plugin_output="out")
    assert town.calculate(leaf("status('h')")).status == status


def test_only_services_tell_of_linked_processes(town):
    town.host("h", custom_variables={"MON_BP_ID": "3"})
    town.service("h", "s", host_custom_variables={"MON_BP_ID": "3"})
    nodes = [
        *leaf("worst", depends=["a", "b"]),
        {"id": "a", "function": "status('h', 's')"},
        {"id": "b", "function": "status('h')"},
    ]
    found = town.calculate(nodes)
    assert (found.nodes["a"].bp_ref, found.nodes["a"].bp_ref_peer) == ("3", "s1")
    assert (found.nodes["b"].bp_ref, found.nodes["b"].bp_ref_peer) == (None, None)


def test_hard_states_only(town):
    soft = {"state_type": 0, "last_hard_state": 0, "last_hard_state_change": 3}
    town.service("h", "s", 2, **soft)
    found = town.calculate(leaf("status('h', 's')"), state_type="hard")
    assert (found.status, found.status_text) == (0, "no plugin output yet")
    assert found.nodes["node1"].last_state_change == 3
    town.services.clear()
    town.service("h", "s", 2)
    assert town.calculate(leaf("status('h', 's')"), state_type="hard").status == 2
    town.services.clear()
    town.service("h", "s", 0, **{**soft, "last_hard_state": 2})
    found = town.calculate(leaf("status('h', 's')"), state_type="hard")
    assert (found.status, found.status_text) == (2, "s says\n")  # the text of before stays


@pytest.mark.parametrize(
    ("arguments", "status", "short"),
    [
        ("'h', 's*'", 2, "worst of h: ~ s*"),
        ("'h', 'b:s*'", 0, "best of h: ~ s*"),
        ("'h', 's1', '!='", 2, "worst of h: != s1"),
        ("'h', 'S1', '~'", 0, "worst of h: ~ S1"),
        ("'h', '*2', '~'", 2, "worst of h: ~ *2"),
        ("'h', 's2|x', '!='", 0, "worst of h: !~ s2|x"),
    ],
)
def test_services_of_a_host_by_pattern(town, arguments, status, short):
    town.service("h", "s1").service("h", "s2", 2).service("h", "x", 1).service("other", "s3", 3)
    found = town.calculate(leaf(f"status({arguments})"))
    assert found.status == status
    assert found.nodes["node1"].short_desc == short


def test_the_first_site_counts(town):
    town.service("h", "s", 2, site="s2").service("h", "s", 0, site="s1").service(
        "h", "t", 1, site="s2"
    )
    found = town.calculate(leaf("status('h', '*')"))
    assert found.status == 1
    assert found.affected_peers == ("s1", "s2")


GROUP = {
    "num_services": 6, "num_services_ok": 2, "num_services_warn": 1, "num_services_crit": 1,
    "num_services_unknown": 1, "num_services_pending": 1, "worst_service_state": 2,
    "num_hosts": 3, "num_hosts_up": 1, "num_hosts_down": 1, "num_hosts_pending": 1,
    "worst_host_state": 1,
}  # fmt: skip


def test_a_host_group(town):
    town.group("g", **GROUP)
    found = town.calculate(leaf("groupstatus('hostgroup', 'g')"))
    assert found.nodes["node1"].short_desc == "g (hostgroup)"
    assert found.status_text == (
        "CRITICAL - 2/3 hosts up, 4/6 services up|"
        "hosts_up=2 hosts_down=1 services_up=4 services_down=2"
    )
    assert town.calculate(leaf("groupstatus('hostgroup', 'g', 2, 3, 3)")).status == 0
    assert town.calculate(leaf("groupstatus('hostgroup', 'g', 1, '50%')")).status == 1


def test_with_a_filter_the_members_of_a_group_are_counted(town):
    town.host("h", 1, groups=["g"], scheduled_downtime_depth=1)
    town.service("h", "a", 2, host_groups=["g"], scheduled_downtime_depth=1)
    town.service("h", "b", 3, host_groups=["g"]).service("k", "c", 2, host_groups=[])
    function = "groupstatus('hostgroup', 'g')"
    assert town.calculate(leaf(function), filter=["downtime_filter"]).status_text == (
        "UNKNOWN - 1/1 hosts up, 1/2 services up|"
        "hosts_up=1 hosts_down=0 services_up=1 services_down=1"
    )
    both = leaf(function, filter=["unknown_filter"])
    assert town.calculate(both, default_filter=("downtime_filter",)).status == 0


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("downtime_filter", {"scheduled_downtime_depth": 1}),
        ("acknowledged_filter", {"acknowledged": 1}),
        ("unknown_filter", {"state": 3}),
    ],
)
def test_filters(town, name, values):
    town.service("h", "s", **{"state": 2, **values})
    nodes = [*leaf("worst", depends=["a"]), {"id": "a", "function": "status('h', 's')"}]
    assert town.calculate(nodes).status == values.get("state", 2)
    found = town.calculate(nodes, filter=[name])
    assert (found.status, found.nodes["a"].status) == (0, 0)
    assert found.nodes["a"].status_text == "s says\n"  # the text stays
    nodes[0]["filter"] = [name]
    found = town.calculate(nodes)
    assert (found.status, found.nodes["a"].status) == (0, values.get("state", 2))


def test_the_text_of_a_process(town):
    town.service("h", "a", 2).service("h", "b", 2).service("h", "c", 0)
    names = ["a", "b", "c"]
    nodes = [
        *leaf("worst", depends=names),
        *({"id": one, "label": one.upper(), "function": f"status('h', '{one}')"} for one in names),
    ]
    assert town.calculate(nodes).status_text == "CRITICAL - A and B critical"
    nodes[0]["function"] = "best"
    assert town.calculate(nodes).status_text == "OK - everything is fine"
    nodes[0]["function"] = "at_least(2, 0)"
    assert town.calculate(nodes).status_text == (
        "WARNING - WARNING - 1/3 nodes are available|good=1;2.000000;0.000000;0;3"
    )


def test_times_of_changes(town):
    nodes = [*leaf("worst", depends=["a"]), {"id": "a", "function": "fixed('OK')"}]
    first = town.calculate(nodes)
    assert first.nodes["a"].last_state_change == NOW
    town.now += 60
    again = town.calculate(nodes)
    assert (again.last_check, again.last_state_change) == (NOW + 60, NOW)
    assert again.nodes["a"].last_state_change == NOW
    town.now += 60
    nodes[1]["function"] = "fixed('CRITICAL')"
    after = town.calculate(nodes)
    assert (after.status, after.last_state_change) == (2, NOW + 120)
    assert after.nodes["node1"].last_state_change == NOW + 120


def test_the_tree_of_all_that_is_wrong(town):
    below = read(
        {
            "name": "B",
            "nodes": [
                {"label": "B", "function": "worst", "depends": ["x"]},
                {"id": "x", "label": "deep", "function": "status('P', 'root')"},
            ],
        }
    )
    town.service("P", "root", 2, host_custom_variables={"MON_BP_ID": "7"})
    town.service("B", "B", 2, host_custom_variables={"MON_BP_ID": "9"})
    states = Town()
    states.service("P", "root", 2, host_custom_variables={"MON_BP_ID": "7"})
    theirs = states.calculate([*below.document()["nodes"]])
    nodes = [
        *leaf("worst", depends=["link", "fine"], filter=["add_recursive_output_filter"]),
        {"id": "link", "label": "to B", "function": "status('B', 'B')"},
        {"id": "fine", "label": "fine", "function": "fixed(0)"},
    ]
    found = town.calculate(nodes, known={"9": (below, theirs.nodes)})
    indent = "\u2002" * 3
    assert found.status_text == (
        "CRITICAL - to B critical\n- [to B] CRITICAL - B says\n"
        f"{indent}- [deep] CRITICAL - root says [CIRCULAR DEPENDENCY]"
    )


CODE = """
def half_function(context, process, node, args, children, livedata):
    host = livedata.host("h")
    return 1, f"{args[0]} of {host['name']}", "", {"output": "instead", "long_output": "and more"}

def broken_function(*_):
    raise RuntimeError("no luck")

def quiet_filter(stage, context, process, node, children, outcome):
    if stage == "input":
        for child in children:
            child["status"] = 0
    elif outcome["status"] == 3:
        outcome["status"] = 1
"""


def _unreadable_for_a_while(folder, known):
    """What is known stays, and is read again afterwards."""
    away = folder.rename(folder.with_name("away"))
    missing = load(str(folder), known)
    assert missing.functions is known.functions
    assert missing.filters is known.filters
    assert missing.problems == (f"{folder}: No such file or directory",)
    away.rename(folder)
    again = load(str(folder), missing)
    assert again.functions.keys() == known.functions.keys()
    assert again.problems == known.problems
    return again


def test_functions_and_filters_of_ones_own(town, tmp_path):
    (tmp_path / "own.py").write_text(CODE)
    (tmp_path / "wrong.py").write_text("def (")
    town.extensions = load(str(tmp_path))
    assert len(town.extensions.problems) == 1
    assert "wrong.py" in town.extensions.problems[0]
    assert load(str(tmp_path), town.extensions) is town.extensions
    town.extensions = _unreadable_for_a_while(tmp_path, town.extensions)
    town.host("h")
    nodes = [
        *leaf("custom('half_function', 5)", depends=["a"]),
        {"id": "a", "function": "status('h')"},
    ]
    found = town.calculate(nodes)
    assert (found.status, found.status_text) == (1, "instead\nand more")
    assert found.nodes["node1"].short_desc == "5 of h"
    found = town.calculate(leaf("custom('broken_function')"))
    assert (found.status, found.status_text) == (3, "no luck")
    found = town.calculate(leaf("custom('none_function')"))
    assert (found.status, found.nodes["node1"].short_desc) == (3, "UNKNOWN")
    assert found.status_text == "no file found for custom function: none_function"
    bad = {"id": "a", "function": "fixed(2)"}
    assert town.calculate([*leaf("worst", depends=["a"]), bad], filter=["quiet_filter"]).status == 0
    assert town.calculate(leaf("fixed('x')"), filter=["quiet_filter"]).status == 1


def test_functions_keep_what_they_assert_where_the_unit_starts_the_daemon(tmp_path):
    (tmp_path / "own.py").write_text("def sure_function(*_):\n    assert False, 'as expected'")
    call = "load(sys.argv[1]).functions['sure_function']()"
    line = f"import sys; from monrest.bp.custom import load; {call}"
    command = [sys.executable, "-OO", "-c", line, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.stderr.endswith("AssertionError: as expected\n")


def test_many_names_need_few_questions():
    needs = Needs()
    needs.hosts |= {f"h{at}" for at in range(60)}
    needs.services_of |= {"a"}
    needs.hostgroups |= {"g"}
    found = needs.questions()
    assert [one.table for one in found] == ["hosts", "services", "hostgroups"]
    # Of many names all rows come faster than those that have one of them.
    assert [one.filter is None for one in found] == [True, False, False]


@each("values", [{"host_name": []}, {"host_name": 5}, {"description": None}])
def test_a_site_that_lies_about_its_names(values):
    question = CoreQuestion("services", SERVICE_COLUMNS, None)
    rows = [row(SERVICE_COLUMNS), row(SERVICE_COLUMNS, **values)]
    with pytest.raises(TypeError):
        CoreRows().take(question, "s", rows)
