"""Reading definitions: syntax of functions, ids, names, order, cycles, links, exports."""

from __future__ import annotations

import pytest

from monrest.base.errors import BadRequest, Conflict
from monrest.bp.core_objects import exported, joined
from monrest.bp.function import StatusObjects, parse
from monrest.bp.model import read
from monrest.bp.store import check_links
from monrest.objectconfig.document import ConfigFile
from tests.table import each


@each(
    ("text", "name", "arguments"),
    [
        ("worst()", "worst", ()),
        ("Worst", "worst", ()),
        ("at_least(50%)", "at_least", (50,)),
        ("at_least(-1)", "at_least", (1,)),
        ("at_least(1.5)", "at_least", (1, 5)),
        ("at_least('50%', 2)", "at_least", ("50%", 2)),
        ("status('h (a)', \"it's\", '=')", "status", ("h (a)", "it's", "=")),
        ("fixed('OK', '')", "fixed", ("OK", "")),
        ("equals('7')", "equals", (7,)),
        (" best ( ) ", "best", ()),
    ],
)
def test_functions_as_text(text, name, arguments):
    found = parse(text)
    assert (found.name, found.arguments) == (name, arguments)


def test_functions_as_list_and_arguments_that_override():
    assert parse(["status", "h", 5]).arguments == ("h", 5)
    assert parse("status('a')", ["b"]).arguments == ("b",)
    assert parse("status('a')", []).arguments == ("a",)


@each("given", ["none()", ["Worst"], 5, [], [1], "worst) (", {"a": 1}])
def test_what_is_no_function(given):
    with pytest.raises(BadRequest):
        parse(given)


@each(
    ("service", "op", "found"),
    [
        ("ping", "", ("=", "ping", False)),
        ("p*", "", ("~", "p*", False)),
        ("p*", "!=", ("!~", "p*", False)),
        ("b:ping", "~", ("~", "ping", True)),
        ("w:ping", "!=", ("!=", "ping", False)),
        ("b:ping", "=", ("=", "b:ping", False)),
        ("b:p*", "", ("~", "p*", True)),
        ("b:", "~", ("~", "", True)),
        ("", "~", ("", "", False)),
    ],
)
def test_operators_of_status(service, op, found):
    wanted = StatusObjects.of(("h", service, op))
    assert (wanted.op, wanted.service, wanted.best) == found


def test_ids_and_the_root():
    made = read({"name": "a", "nodes": [{"label": "x"}, {"id": "node2", "label": "y"}, {}]})
    assert [node.id for node in made.nodes] == ["node1", "node2", "node3"]
    assert [node.create_obj for node in made.nodes] == [1, 0, 0]
    assert made.nodes[2].label == "node3"


def test_children_come_first_in_any_order():
    made = read(
        {
            "name": "a",
            "nodes": [
                {"label": "r", "depends": ["a", "b", "gone"]},
                {"id": "a", "depends": ["c"]},
                {"id": "b", "depends": ["c"]},
                {"id": "c"},
            ],
        }
    )
    assert [node.id for node in made.order] == ["c", "a", "b", "node1"]
    assert [node.id for node in made.children(made.by_id["node1"])] == ["a", "b"]


def test_a_deep_chain_is_no_problem():
    nodes = [{"depends": ["n0"]}] + [
        {"id": f"n{at}", "depends": [f"n{at + 1}"]} for at in range(4000)
    ]
    assert len(read({"name": "a", "nodes": nodes}).order) == 4001


def test_what_is_stored_is_read_as_it_was():
    document = {
        "name": "Shop",
        "template": "t",
        "rankDir": "LR",
        "state_type": "hard",
        "filter": ["unknown_filter"],
        "create_host_object": 0,
        "nodes": [
            {
                "id": "node1",
                "label": "x",
                "create_obj": 1,
                "function": "at_least",
                "function_args": ["50%", 2],
                "depends": ["b"],
                "contacts": ["a", "b"],
                "max_check_attempts": "3",
                "data": {"free": [1]},
                "service_object_attributes": {"notes": "n"},
            },
            {"id": "b", "label": "y", "function": "fixed", "function_args": [0]},
        ],
    }
    assert read(document).document() == document
    assert read({**document, "unknown": 5}).document() == document


def node(*arguments):
    return {"id": "n", "label": "n", "function": "status", "function_args": list(arguments)}


def linked(name, *references):
    return {"name": name, "nodes": [{"id": "node1", "label": name}, *references]}


def test_cycles_of_links_are_named():
    documents = {
        1: linked("A", node("B", "B")),
        2: linked("B", node("C", "C*")),
        3: linked("C", node("A", "A")),
    }
    with pytest.raises(Conflict) as caught:
        check_links(2, documents)
    assert "B (2) -> C (3) -> A (1) -> B (2)" in caught.value.description
    # A host alone, another service, and what others do among themselves are no cycle of this one.
    check_links(1, {1: linked("A", node("B", "B")), 2: linked("B", node("A"))})
    check_links(1, {1: linked("A", node("B", "B")), 2: linked("B", node("A", "other"))})
    check_links(4, {**documents, 4: linked("D", node("A", "A"))})


def test_objects_of_the_core():
    shop = read(
        {
            "name": "Shop",
            "nodes": [
                {"label": "All", "contacts": ["b", "a"], "notification_period": "24x7"},
                {"id": "x", "label": "part", "create_obj": 1, "template": "mine"},
                {"id": "y", "label": "part", "create_obj": 1},
                {"id": "z", "label": "inner"},
            ],
        }
    )
    other = read({"name": "Above", "create_host_object": 0, "nodes": [{"label": "All"}]})
    both = exported("7", shop, "mon", "nagios"), exported("2", other, "mon", "nagios")
    file = ConfigFile.parse("bp.cfg", joined(both[0].blocks | both[1].blocks, "nagios"))
    who = {"contacts": "b,a", "notification_period": "24x7"}

    def service(host, name, number, node, **more):
        names = {"host_name": host, "service_description": name, "display_name": name}
        marks = {"_MON_BP_ID": number, "_MON_NODE_ID": node}
        return "service", {**names, "use": "mon-bp-node-template", **marks, **more}

    assert [(one.type, one.attributes) for one in file.blocks] == [
        (
            "host",
            {
                "host_name": "Shop",
                "alias": "Business Process: All",
                "use": "mon-bp-template",
                "_MON_BP_ID": "7",
                "_MON_NODE_ID": "node1",
                **who,
            },
        ),
        service("Above", "All", "2", "node1"),
        service("Shop", "All", "7", "node1", **who),
        service("Shop", "part", "7", "x", use="mine"),
    ]
