"""Results as passive checks, acknowledgements and downtimes."""

from __future__ import annotations

from monrest.bp.delivery import Present, output_of, passive_checks, presents, synchronised
from monrest.bp.model import read
from monrest.bp.node_state import NodeState, ProcessResult

SHOP = read(
    {
        "name": "Shop",
        "nodes": [
            {"label": "All", "depends": ["x", "y"], "function": "worst"},
            {"id": "x", "label": "part", "create_obj": 1, "host_name": "other"},
            {"id": "y", "label": "inner"},
        ],
    }
)


def test_commands_of_one_process():
    found = ProcessResult(
        status=4,
        status_text="PENDING - all",
        nodes={"x": NodeState(status=2, status_text="bad\nvery;bad\n", short_desc="b")},
    )
    assert [(one.name, one.fields, one.last) for one in passive_checks(SHOP, found, 0.25)] == [
        (
            "PROCESS_HOST_CHECK_RESULT",
            (
                "Shop",
                "0",
                "OK - business process calculation of 3 nodes complete in 0.250s|runtime=0.250s",
            ),
            "output",
        ),
        ("PROCESS_SERVICE_CHECK_RESULT", ("Shop", "All", "0", "PENDING - all"), "output"),
        ("PROCESS_SERVICE_CHECK_RESULT", ("other", "part", "2", "bad\\nvery;bad"), "output"),
    ]


def test_a_short_text_where_there_is_no_long_one():
    found = ProcessResult(nodes={"x": NodeState(status=1, short_desc="short")})
    assert list(passive_checks(SHOP, found, 0))[2].fields[3] == "short"


def test_output_is_one_line_without_control_characters():
    assert output_of("a\tb\x00c\r\nd\n\n") == "a b c \\nd"
    assert len(output_of("x" * 100_000)) == 8000


NODE = SHOP.by_id["x"]


def synchronise(state, present):
    return [
        (one.name, one.fields) for one in synchronised(SHOP, NODE, state, present, "(mon)", 1000)
    ]


def test_downtimes_follow_the_node():
    down = NodeState(scheduled_downtime_depth=1)
    comment = "automatic downtime, all child nodes are in downtime."
    fields = ("other", "part", "1000", "87400", "1", "0", "86400", "(mon)", comment)
    assert synchronise(down, Present()) == [("SCHEDULE_SVC_DOWNTIME", fields)]
    assert synchronise(down, Present(((7, 2800.0),))) == [("SCHEDULE_SVC_DOWNTIME", fields)]
    assert synchronise(down, Present(((7, 2801.0),))) == []
    assert synchronise(NodeState(), Present(((7, 9000.0),))) == [("DEL_SVC_DOWNTIME", ("7",))]
    assert synchronise(NodeState(), Present()) == []


def test_acknowledgements_follow_the_node():
    acknowledged = NodeState(status=2, acknowledged=1)
    comment = "automatic acknowledgment, all child nodes are acknowledged."
    fields = ("other", "part", "1", "1", "0", "(mon)", comment)
    assert synchronise(acknowledged, Present()) == [("ACKNOWLEDGE_SVC_PROBLEM", fields)]
    assert synchronise(acknowledged, Present(acknowledged=True)) == []
    removed = [("REMOVE_SVC_ACKNOWLEDGEMENT", ("other", "part"))]
    assert synchronise(NodeState(), Present(acknowledged=True, ours=True)) == removed
    assert synchronise(NodeState(), Present(acknowledged=True)) == []  # somebody else's


def test_what_a_core_has():
    found = presents(
        [("h", "a", 1), ("h", "b", 0)],
        [("h", "a", 5, 100), ("h", "a", 6, 200), ("h", "b", None, 1)],
        [("h", "a"), ("h", "b")],
    )
    assert found == {
        ("h", "a"): Present(((5, 100.0), (6, 200.0)), acknowledged=True, ours=True),
        ("h", "b"): Present(),
    }
