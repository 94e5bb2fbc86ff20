"""The arithmetic of node functions, value by value."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from monrest.bp import node_functions as functions
from monrest.bp.core_rows import NodeTally
from monrest.bp.node_functions import limits
from monrest.bp.node_state import DEFAULT_ORDER, NodeState, listed

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


@pytest.mark.parametrize(
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


def test_children_that_are_fine_have_no_lines():
    for best in (False, True):
        found = functions.worst_of(items("ok", "ok"), DEFAULT_ORDER, best=best)
        name = "Best" if best else "Worst"
        assert found.text.startswith(f"OK - {name} state is OK: c0 and c1| services_ok=2 ")


def test_the_text_of_worst():
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


@pytest.mark.parametrize("children", [[], ["pending+ack"]])
def test_nothing_to_compare(children):
    """Acknowledged and pending is in no group of the order."""
    found = functions.worst_of(items(*children), DEFAULT_ORDER)
    assert (found.status, found.short, found.text) == (3, "no dependent nodes", "")


@given(st.lists(st.sampled_from(STATES), min_size=1))
def test_the_worst_is_one_of_the_children_and_best_is_its_opposite(words):
    made = items(*words)
    worst = functions.worst_of(made, DEFAULT_ORDER)
    best = functions.worst_of(made, DEFAULT_ORDER, best=True)
    order = [DEFAULT_ORDER.index(word) for word in words]
    assert DEFAULT_ORDER[min(order)] == STATES[worst.status]
    assert DEFAULT_ORDER[max(order)] == STATES[best.status]


@pytest.mark.parametrize(
    ("arguments", "good", "bad", "status", "short"),
    [
        ([1, 0], 1, 2, 1, ">= 1,0"),  # the limit itself is bad already
        ([1, 0], 2, 1, 0, ">= 1,0"),
        ([1, 0], 0, 3, 2, ">= 1,0"),
        ([2], 2, 1, 2, ">= 2"),
        ([2], 3, 0, 0, ">= 2"),
        (["0"], 0, 0, 2, ">= 0"),  # no children and nothing wanted is critical
        (["50%", "25%"], 2, 2, 1, ">= 50%,25%"),
        (["50%", "25%"], 1, 3, 2, ">= 50%,25%"),
        (["50%", "25%"], 3, 1, 0, ">= 50%,25%"),
        (["-5%"], 1, 0, 0, ">= -5%"),
        (["1.5"], 2, 0, 0, ">= 1.5"),
    ],
)
def test_at_least(arguments, good, bad, status, short):
    found = functions.at_least(arguments, items(*["ok"] * good, *["critical"] * bad))
    assert (found.status, found.short) == (status, short)


@pytest.mark.parametrize(
    ("arguments", "good", "status", "short"),
    [
        ([1, 2], 1, 0, "<= 1,2"),
        ([1, 2], 2, 1, "<= 1,2"),
        ([1, 2], 3, 2, "<= 1,2"),
        ([2], 3, 2, "<= 2"),
    ],
)
def test_not_more(arguments, good, status, short):
    found = functions.not_more(arguments, items(*["ok"] * good))
    assert (found.status, found.short) == (status, short)


def test_counts_as_performance_data():
    made = items("ok", "pending", "warning")
    word = "WARNING - 2/3 nodes are available|good=2;2.000000;1.000000;0;3"
    assert functions.at_least([2, 1], made).text == word
    word = "CRITICAL - 2/3 nodes are available|good=2;0.000000;1.000000;0;3"
    assert functions.not_more(["0", 1], made).text == word
    word = "OK - 2/3 nodes are available|good=2;2.000000;2.000000;0;3"
    assert functions.equals([2], made).text == word
    assert functions.equals([2], made).short == "= 2"


@pytest.mark.parametrize(
    ("call", "reason"),
    [
        (lambda: functions.at_least([], items("ok")), "warning threshold must be numeric"),
        (lambda: functions.at_least([1, "x"], items("ok")), "critical threshold must be numeric"),
        (lambda: functions.not_more(["1 %"], items("ok")), "warning threshold must be numeric"),
        (lambda: functions.equals(["x"], items("ok")), "threshold must be numeric"),
        (lambda: functions.equals([1], []), "no dependent nodes"),
    ],
)
def test_wrong_limits_are_unknown(call, reason):
    found = call()
    assert (found.status, found.short) == (3, reason)


def test_equals():
    assert functions.equals([2], items("ok", "critical", "ok")).status == 0
    assert functions.equals(["50%"], items("ok", "critical")).status == 0
    assert functions.equals([1], items("ok", "ok")).status == 2


@pytest.mark.parametrize(
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


@pytest.mark.parametrize(
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


def test_a_limit_of_a_group_that_is_no_number():
    found = limits(["", "", "", "many"], NodeTally(total=1), NodeTally(total=1))
    assert found == (3, "UNKNOWN - service critical threshold must be numeric")


@pytest.mark.parametrize(
    ("text", "total", "number"),
    [("2", 9, 2), ("-1", 9, -1), ("1.5", 9, 1.5), ("50%", 4, 2), ("0%", 4, 0), ("-5%", 4, 0)],
)
def test_limits_as_numbers(text, total, number):
    assert functions.limit_of(text, total) == number


@pytest.mark.parametrize("text", ["", "x", "1e3", "1,5", "%", "5 %", "٣"])
def test_what_is_no_limit(text):
    assert functions.limit_of(text, 10) is None


def test_labels():
    assert listed(["a"]) == "a"
    assert listed(["a", "b"]) == "a and b"
    assert listed(["a", "b", "c"]) == "a, b and c"
    assert listed(["x" * 150]) == "x" * 150
    assert listed(["x" * 151]) == "x" * 147 + "..."
