"""The arithmetic of node functions, value by value."""

from __future__ import annotations

from monrest.bp import node_functions as functions
from monrest.bp.core_rows import NodeTally
from monrest.bp.node_functions import at_least, equals, limits, not_more
from monrest.bp.node_state import DEFAULT_ORDER, NodeState, listed
from tests.table import each

STATES = ("ok", "warning", "critical", "unknown", "pending")


def items(*words):
    """Children by words such as ``critical``, ``critical+ack``, ``ok+down``."""
    made = []
    for at, word in enumerate(words):
        state, *flags = word.split("+")
        made.append(
            (
                f"c{at}",
                NodeState(
                    status=STATES.index(state),
                    status_text=f"text {at}|perf=1",
                    acknowledged=int("ack" in flags),
                    scheduled_downtime_depth=int("down" in flags),
                ),
            )
        )
    return made


@each(
    ("children", "worst", "best"),
    [
        (["ok", "ok"], 0, 0),
        (["ok", "critical"], 2, 0),
        (["critical", "unknown"], 3, 2),  # unknown is worse than critical
        (["warning", "critical+ack"], 1, 2),  # an unhandled warning than a handled critical
        (["critical+ack", "critical+down"], 2, 2),
        (["ok", "ok+down"], 0, 0),
        (["ok", "pending"], 0, 4),  # best prefers pending
        (["pending"], 4, 4),
        (["critical+down", "ok"], 2, 0),
    ],
)
def test_worst_and_best(children, worst, best):
    found = functions.worst_of(items(*children), DEFAULT_ORDER)
    assert found.status == worst
    assert functions.worst_of(items(*children), DEFAULT_ORDER, best=True).status == best


def test_the_text_of_worst():
    """Children that are fine have no lines."""
    found = functions.worst_of(items("ok", "ok"), DEFAULT_ORDER)
    assert found.text.startswith("OK - Worst state is OK: c0 and c1| services_ok=2 ")
    found = functions.worst_of(items("ok", "critical", "critical"), DEFAULT_ORDER)
    assert found.short == "worst of"
    assert found.text == (
        "CRITICAL - Worst state is CRITICAL: c1 and c2"
        "\n- [c1] CRITICAL - text 1\n- [c2] CRITICAL - text 2"
        "| services_ok=1 services_warning=0 services_unknown=0 services_critical=2 "
        "services_pending=0"
    )


def test_flags_of_the_first_one_are_passed_on():
    found = functions.worst_of(items("ok", "ok+down"), DEFAULT_ORDER)
    assert (found.status, found.scheduled_downtime_depth) == (0, 1)  # downtime_ok is worse than ok
    found = functions.worst_of(items("critical+ack", "ok"), DEFAULT_ORDER)
    assert (found.status, found.acknowledged) == (2, 1)
    found = functions.worst_of(items("critical+ack", "ok"), DEFAULT_ORDER, flags=False)
    assert (found.status, found.acknowledged) == (2, 0)


@each("children", [[], ["pending+ack"]])
def test_nothing_to_compare(children):
    """Acknowledged and pending is in no group of the order."""
    found = functions.worst_of(items(*children), DEFAULT_ORDER)
    assert (found.status, found.short, found.text) == (3, "no dependent nodes", "")


@each(
    ("function", "arguments", "good", "bad", "status", "short"),
    [
        (at_least, [1, 0], 1, 2, 1, ">= 1,0"),  # the limit itself is bad already
        (at_least, [1, 0], 2, 1, 0, ">= 1,0"),
        (at_least, [1, 0], 0, 3, 2, ">= 1,0"),
        (at_least, [2], 2, 1, 2, ">= 2"),
        (at_least, [2], 3, 0, 0, ">= 2"),
        (at_least, ["0"], 0, 0, 2, ">= 0"),  # no children and nothing wanted is critical
        (at_least, ["50%", "25%"], 2, 2, 1, ">= 50%,25%"),
        (at_least, ["50%", "25%"], 1, 3, 2, ">= 50%,25%"),
        (at_least, ["50%", "25%"], 3, 1, 0, ">= 50%,25%"),
        (at_least, ["-5%"], 1, 0, 0, ">= -5%"),
        (at_least, ["1.5"], 2, 0, 0, ">= 1.5"),
        (at_least, [], 1, 0, 3, "warning threshold must be numeric"),
        (at_least, [1, "x"], 1, 0, 3, "critical threshold must be numeric"),
        (not_more, [1, 2], 1, 0, 0, "<= 1,2"),
        (not_more, [1, 2], 2, 0, 1, "<= 1,2"),
        (not_more, [1, 2], 3, 0, 2, "<= 1,2"),
        (not_more, [2], 3, 0, 2, "<= 2"),
        (not_more, ["1 %"], 1, 0, 3, "warning threshold must be numeric"),
        (equals, [2], 2, 1, 0, "= 2"),
        (equals, ["50%"], 1, 1, 0, "= 50%"),
        (equals, [1], 2, 0, 2, "= 1"),
        (equals, ["x"], 1, 0, 3, "threshold must be numeric"),
        (equals, [1], 0, 0, 3, "no dependent nodes"),
    ],
)
def test_counting_children(function, arguments, good, bad, status, short):
    found = function(arguments, items(*["ok"] * good, *["critical"] * bad))
    assert (found.status, found.short) == (status, short)


@each(
    ("function", "arguments", "text"),
    [
        (at_least, [2, 1], "WARNING - 2/3 nodes are available|good=2;2.000000;1.000000;0;3"),
        (not_more, ["0", 1], "CRITICAL - 2/3 nodes are available|good=2;0.000000;1.000000;0;3"),
        (equals, [2], "OK - 2/3 nodes are available|good=2;2.000000;2.000000;0;3"),
    ],
)
def test_counts_as_performance_data(function, arguments, text):
    assert function(arguments, items("ok", "pending", "warning")).text == text


@each(
    ("arguments", "status", "text"),
    [
        ([0], 0, "OK"),
        (["Ok"], 0, "OK"),
        (["WARNING", "half"], 1, "half"),
        (["down"], 2, "CRITICAL"),
        ([2], 2, "CRITICAL"),
        ([7], 3, "UNKNOWN"),
        ([], 3, "UNKNOWN"),
    ],
)
def test_fixed(arguments, status, text):
    found = functions.fixed(arguments)
    assert (found.status, found.short, found.text) == (status, "fixed", text)


def test_random():
    found = functions.random(1)
    assert (found.status, found.short) == (1, "random")
    assert found.text == "WARNING - Random state is WARNING"


@each(
    ("arguments", "hosts", "services", "status"),
    [
        (["", "", "", ""], (10, 5), (10, 5), None),
        ([3, 6, "", ""], (10, 3), (10, 9), 1),
        ([3, 6, "", ""], (10, 6), (10, 0), 2),
        ([3, 6, "", ""], (10, 2), (10, 9), 0),
        (["", 1, 1, ""], (10, 1), (10, 1), 2),  # a warning of services does not lower it
        (["", "", "10%", "50%"], (10, 9), (10, 1), 1),
        (["", "", "10%", "50%"], (10, 9), (10, 5), 2),
        (["", "", "0.5", ""], (10, 0), (10, 1), 1),
        ([1, 1, "", ""], None, (10, 9), None),  # limits of hosts are not for service groups
    ],
)
def test_limits_of_groups(arguments, hosts, services, status):
    sides = [given and NodeTally(total=given[0], bad=given[1]) for given in (hosts, services)]
    assert limits(arguments, *sides) == (status, "")
    wrong = limits(["", "", "", "many"], NodeTally(total=1), NodeTally(total=1))
    assert wrong == (3, "UNKNOWN - service critical threshold must be numeric")


@each(
    ("text", "total", "number"),
    [
        *(("2", 9, 2), ("-1", 9, -1), ("1.5", 9, 1.5), ("50%", 4, 2), ("0%", 4, 0), ("-5%", 4, 0)),
        *((text, 10, None) for text in ("", "x", "1e3", "1,5", "%", "5 %", "٣")),
    ],
)
def test_limits_as_numbers(text, total, number):
    assert functions.limit_of(text, total) == number


def test_labels():
    assert listed(["a"]) == "a"
    assert listed(["a", "b"]) == "a and b"
    assert listed(["a", "b", "c"]) == "a, b and c"
    assert listed(["x" * 150]) == "x" * 150
    assert listed(["x" * 151]) == "x" * 147 + "..."
