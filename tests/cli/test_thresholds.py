"""Thresholds in all of their forms."""

import math

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from monrest.cli.plugin import ThresholdError, state, threshold
from tests.table import each

CASES = {
    # threshold: (values that do not alert, values that alert)
    "k:10": ([0, 5, 10], [-1, 10.5, 11]),
    "k:1.5": ([0, 1.5], [1.6, -0.1]),
    "k:-5": ([], [-6, -5, 0, 1]),
    "k:0": ([0], [1, -1]),
    "k:10:": ([10, 11, 1e9], [9, -1]),
    "k::10": ([0, 10], [-1, 11]),
    "k:~:10": ([-1e9, 10], [11]),
    "k:10:20": ([10, 15, 20], [9, 21]),
    "k:-5:5": ([-5, 0, 5], [-6, 6]),
    "k:@10:20": ([9, 21], [10, 15, 20]),
    "k:@10": ([-1, 11], [0, 10]),
    "k:@~:0": ([1], [0, -1]),
    "k:~:": ([-1e9, 1e9], []),
    "{k}10": ([10], [11]),
    "{k}:10": ([0, 10], [11]),
}


@pytest.mark.parametrize("text", CASES)
def test_ranges(text):
    quiet, alerting = CASES[text]
    one = threshold("warning", text)
    assert [state((one,), {"k": value}) for value in quiet] == [0] * len(quiet)
    assert [state((one,), {"k": value}) for value in alerting] == [1] * len(alerting)


@pytest.mark.parametrize(
    ("text", "data"),
    [
        ("a.b:5", {"a": {"b": 6}}),
        ("{a::b}5", {"a": {"b": 6}}),
        ("{a.b}5", {"a": {"b": 6}}),
        ("a.0.b:5", {"a": [{"b": 6}]}),
        ("a.b:5", {"a.b": 6}),
        ("0.b:5", [{"b": 6}]),
        ("k:5", {"k": True, "other": 1}),
    ],
)
def test_names(text, data):
    expected = 0 if data == {"k": True, "other": 1} else 2
    assert state((threshold("critical", text),), data) == expected


@pytest.mark.parametrize("value", [None, "text", "99", [], {}])
def test_what_is_no_number_counts_as_zero(value):
    assert state((threshold("warning", "k:0"),), {"k": value}) == 0
    assert state((threshold("warning", "k:1:"),), {"k": value}) == 1


def test_the_worst_counts():
    some = (threshold("critical", "k:10"), threshold("warning", "k:1"))
    assert [state(some, {"k": value}) for value in (1, 5, 11)] == [0, 1, 2]
    assert state(some[::-1], {"k": 11}) == 2


@each(
    "text",
    ["", "k", "k:", "{k}", ":5", "{}5", "a::b:5", "k:x", "k:5:1", "k:1-2", "k:@", "k:~", "k:~5", "k:5:6:7",
     "k:1,5", "k:--5", "k:.", "k: 5", "k:1e3", "k:inf", "k:nan", "{k5"],
)  # fmt: skip
def test_bad_forms(text):
    with pytest.raises(ThresholdError) as refused:
        threshold("warning", text)
    assert str(refused.value) == (
        f"unknown threshold format, syntax is --warning={{key}}threshold, got: {text}"
    )


@pytest.mark.parametrize("data", [{}, None, [], {"a": {}}, {"a": 1}, "text"])
def test_unknown_names(data):
    with pytest.raises(ThresholdError) as refused:
        state((threshold("critical", "a.b:5"),), data)
    assert str(refused.value) == (
        "unknown variable a.b in thresholds, syntax is --critical=key:value"
    )


NUMBERS = st.integers(-1000, 1000) | st.floats(-1e6, 1e6).map(lambda value: round(value, 3))


@given(NUMBERS, NUMBERS, NUMBERS, st.booleans(), st.booleans(), st.booleans())
def test_ranges_against_their_meaning(start, end, value, inside, open_start, open_end):
    assume(open_start or open_end or start <= end)
    assume("e" not in f"{start}{end}")
    text = f"k:{'@' if inside else ''}{'~' if open_start else start}:{'' if open_end else end}"
    within = (open_start or value >= start) and (open_end or value <= end)
    expected = within if inside else not within
    assert state((threshold("warning", text),), {"k": value}) == int(expected)


@given(st.text(alphabet="k{}:.@~-0123456789 x", max_size=12))
def test_any_text_is_read_or_refused(text):
    try:
        one = threshold("warning", text)
    except ThresholdError:
        return
    assert one.key
    assert not math.isnan(one.start)
    assert not math.isnan(one.end)
