"""Output templates, sums of results, performance data and thresholds, rule by rule."""

import json
import math
import time

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from monrest.cli.output import UsageError
from monrest.cli.plugin import (
    MISSING,
    Fetched,
    ThresholdError,
    label_filter,
    look_up,
    performance_data,
    render,
    state,
    summed,
    threshold,
    unit,
)
from tests.table import each

FIRST = {
    "up": 17,
    "total": 20,
    "name": "h{up}",
    "flag": True,
    "off": False,
    "none": None,
    "ratio": 0.1,
    "list": [{"c": 5}, "two"],
    "deep": {"b": {"x": 1}, "a.b": 9},
    "my-key": 8,
    "time": 1_700_000_000,
    "line": "a\\nb",
}
SECOND = {"up": 3, "ratio": 0.2, "name": "second", "none": 4, "deep": {"b": {"x": 2}}}
BODIES = [json.dumps(FIRST).encode(), json.dumps(SECOND).encode(), b"[1,2]", b"no \xff json"]


def filled(template, *, status=0):
    results = [
        Fetched(body, data)
        for body, data in zip(BODIES, [FIRST, SECOND, [1, 2], None], strict=True)
    ]
    return render(template, summed(one.data for one in results), results, status)[0]


RULES = {
    "plain": "plain",
    "{up}": "20",
    "{1:up}": "17",
    "{2:up} of {1:total}": "3 of 20",
    "{3:1}": "2",
    "{4:x}": "{error:x does not exist}",
    "{9:up}": "{error:9:up does not exist}",
    "{0:up}": "{error:0:up does not exist}",
    "{ratio}": "0.3",
    "{deep.b.x}": "3",
    "{deep::b::x}": "3",
    "{1:deep.b.x}": "1",
    "{deep.a.b}": "9",
    "{list.0.c}": "5",
    "{list::1}": "two",
    "{list.2}": "{error:list.2 does not exist}",
    "{list}": '[{"c":5},"two"]',
    "{2:deep}": '{"b":{"x":2}}',
    "{1:none}": "(null)",
    "{none}": "4",
    "{flag}{off}": "10",
    "{name}": "h{up}",
    "{line}": "a\\nb",
    "a\\nb": "a\nb",
    "{missing}": "{error:missing does not exist}",
    "{missing%.2f}": "{error:missing does not exist}",
    "{two words}": "{error:two words does not exist}",
    "{up + 1}": "21",
    "{1:up / 2}": "8.5",
    "{up/total*100}": "100",
    "{(up + 4) * 2}": "48",
    "{missing + 1}": "1",
    "{none + none}": "8",
    "{1:none + 1}": "1",
    "{flag + 1}": "2",
    "{up / 0}": "(error)",
    "{up +}": "(error)",
    "{name + 1}": "(error)",
    "{my-key}": "8",
    '{"my-key" / 2}': "4",
    "{up%d}": "20",
    "{up%05d}": "00020",
    "{up%.2f}": "20.00",
    "{1:up / total * 100%.1f%%}": "85.0%",
    "{up%x}": "14",
    "{up%s} up": "20 up",
    "{up%-5d|}": "20   |",
    "{up%u}": "20",
    "{up%ld}": "20",
    "{1:up / 2%d}": "8",
    "{name%s}": "h{up}",
    "{name%d}": "(error)",
    "{1:none%d}": "0",
    "{1:none%s}": "(null)",
    "{up%}": "(error)",
    "{up%y}": "(error)",
    "{up%d %d}": "(error)",
    "{up%*d}": "(error)",
    "{up%99999d}": "(error)",
    "{up / 0%d}": "(error)",
    "{name%strftime:%Y}": "(error)",
    "{STATUS}": "OK",
    "{RAW}": BODIES[0].decode(),
    "{RAW1}": BODIES[0].decode(),
    "{RAW3}": "[1,2]",
    "{RAW9}": "{error:RAW9 does not exist}",
    "{RAW4}": "no \udcff json",
    "{}": "{}",
    "{": "{",
    "}{": "}{",
    "ä€": "ä€",
}


@each("template", RULES)
def test_rules(template):
    assert filled(template) == RULES[template]


@each(("status", "word"), [(0, "OK"), (1, "WARNING"), (2, "CRITICAL"), (3, "UNKNOWN")])
def test_status(status, word):
    assert filled("<{STATUS}>", status=status) == f"<{word}>"


def test_local_time(monkeypatch):
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    time.tzset()
    try:
        assert filled("{time%strftime:%Y-%m-%d %H:%M:%S}") == "2023-11-15 07:13:20"
        assert filled("{time + 60%strftime:%H:%M}") == "07:14"
        assert filled("{time * 1000000000%strftime:%H}") == "(error)"
    finally:
        monkeypatch.undo()
        time.tzset()


@given(st.text(alphabet='{}:.%"ab1+-*/()up sdf', max_size=30))
def test_any_template_gives_text(template):
    assert isinstance(filled(template), str)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-99, 99) | st.text("ab.:", max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("ab.:", max_size=3), inner, max_size=3),
    max_leaves=8,
)  # fmt: skip


def every_path(value, prefix=()):
    items = (
        value.items()
        if isinstance(value, dict)
        else enumerate(value)
        if isinstance(value, list)
        else ()
    )
    for key, inner in items:
        yield (*prefix, str(key)), inner
        yield from every_path(inner, (*prefix, str(key)))


@given(JSON, st.sampled_from([".", "::"]))
def test_every_value_has_a_path(value, separator):
    for path, inner in every_path(value):
        if all(part and not set(part) & set(".:") for part in path):
            found = look_up(value, separator.join(path))
            assert found is not MISSING
            if not any(
                "." in part or ":" in part for other, _ in every_path(value) for part in other
            ):
                assert found == inner


@given(st.lists(JSON, max_size=4), st.text("ab.:019", max_size=6))
def test_sums_and_names_of_anything(values, path):
    total = summed(values)
    assert isinstance(total, dict)
    look_up(total, path)


def test_sums():
    one = {"n": 1, "t": "x", "null": None, "o": {"a": 1}, "b": True}
    two = {"n": 2.5, "t": "y", "null": 3, "o": {"a": 2, "b": 1}, "b": True, "more": 1}
    total = {"n": 3.5, "t": "x", "null": 3, "o": {"a": 3, "b": 1}, "b": 2, "more": 1}
    assert summed([one, [1], None, two]) == total
    assert one["o"] == {"a": 1}


def numbers(total, thresholds=(), units=(), filters=()):
    return performance_data(
        total,
        [threshold(*one) for one in thresholds],
        [unit(one) for one in units],
        [label_filter(one) for one in filters],
    )


def test_numbers_are_sorted_and_the_rest_is_skipped():
    total = {"b": 2, "a": 1.5, "text": "x", "list": [1], "none": None, "flag": True}
    assert numbers(total) == "'a'=1.5;;;; 'b'=2;;;; 'flag'=1;;;; 'none'=U;;;;"


def test_nested_labels_and_their_thresholds():
    given = [
        ("warning", "a.b:1:5"),
        ("critical", "{a::b}@7:9"),
        ("warning", "c:3"),
        ("warning", "c:4"),
    ]
    assert numbers({"a": {"b": 1}, "c": 2}, given) == "'a::b'=1;1:5;@7:9;; 'c'=2;3;;;"


def test_units():
    total = {"time": 1, "time_a": 2, "other": None, "x(": 3}
    units = ["time.*:s", "other:B", "x(:%"]
    assert numbers(total, units=units) == "'other'=U;;;; 'time'=1s;;;; 'time_a'=2s;;;; 'x('=3%;;;;"
    assert numbers({"times": 1}, units=["time:s"]) == "'times'=1;;;;"
    assert numbers({"a:b": 1}, units=["a:b:KB"]) == "'a:b'=1KB;;;;"


def test_filters():
    total = {"up": 1, "down": 2, "a": {"up": 3, "x": 4}}
    assert numbers(total, filters=["^up"]) == "'up'=1;;;;"
    assert numbers(total, filters=["own", "::up"]) == "'a::up'=3;;;; 'down'=2;;;;"
    assert numbers(total, filters=["^a$"]) == "'a::up'=3;;;; 'a::x'=4;;;;"


def test_labels_cannot_break_the_line():
    assert numbers({"it's=a|b\n": 1}) == "'it''s_a_b_'=1;;;;"


@each("text", ["", "x", ":s"])
def test_wrong_units(text):
    with pytest.raises(UsageError, match="--perfunit: expected LABEL:UNIT"):
        unit(text)


def test_a_wrong_filter():
    with pytest.raises(UsageError, match="--perffilter: '\\(' is no regular expression"):
        label_filter("(")


RANGES = {
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


@each("text", RANGES)
def test_ranges(text):
    quiet, alerting = RANGES[text]
    one = threshold("warning", text)
    assert [state((one,), {"k": value}) for value in quiet] == [0] * len(quiet)
    assert [state((one,), {"k": value}) for value in alerting] == [1] * len(alerting)


@each(
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


@each("value", [None, "text", "99", [], {}])
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


@each("data", [{}, None, [], {"a": {}}, {"a": 1}, "text"])
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
