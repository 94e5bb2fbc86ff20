"""Filters on values that are a text in one row, a list in the next and missing in a third."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from monrest.query.columns import parse_columns
from monrest.query.evaluate import mixed_test, value_test
from monrest.query.model import OPERATORS, Condition, Ref
from monrest.query.parse import parse_query
from monrest.query.regex import compile_pattern

VALUES = st.one_of(
    st.none(), st.text(max_size=4), st.integers(0, 99).map(str), st.lists(st.text(max_size=3))
)


def holds(value, op, wanted):
    return mixed_test(Condition("a", op, wanted), operand(op, wanted))(value)


def operand(op, wanted):
    if not op.endswith("~"):
        return wanted
    return compile_pattern(wanted, ignore_case=op.endswith("~~"), parameter="a")


@pytest.mark.parametrize(
    ("op", "wanted", "yes", "no"),
    [
        ("=", "web", ["web", "WEB", ["web"], ["Web"]], [None, "webs", ["web", "b"], []]),
        ("=", "", [None, "", []], ["a", ["a"]]),
        ("=", "5", ["5", ["5"]], ["50", None]),
        ("!=", "web", [None, "x", ["web", "b"], []], ["WEB", ["web"]]),
        (">=", "web", [["a", "WEB"], ["web"]], [None, "web", "webs", [], "zebra", "5"]),
        (">=", "5", ["5", "6", "7.5", ["5"]], [None, "4", "x", "", ["6"]]),
        ("<=", "5", ["5", "4", ["6"], []], [None, "6", "x", ["5"]]),
        (">", "5", ["6"], [None, "5", "x", ["6"], []]),
        ("<", "web", [], [None, "a", "5", ["a"]]),
        ("!>=", "web", [None, "x", ["a"], []], ["web", "WEB", ["a", "web"]]),
        ("~", "^w", ["web", ["a", "w1"]], [None, "Web", ["a"]]),
        ("~~", "^w", ["Web", ["a", "W1"]], [None, "a"]),
        ("!~", "^w", [None, "Web", ["a"]], ["web", ["w"]]),
    ],
)
def test_operators(op, wanted, yes, no):
    for value in yes:
        assert holds(value, op, wanted), value
    for value in no:
        assert not holds(value, op, wanted), value


@given(VALUES, st.text(max_size=4), st.sampled_from(["=", "~", "~~"]))
def test_negations_are_the_opposite(value, wanted, op):
    wanted = "".join(letter for letter in wanted if letter.isalnum())
    assert holds(value, f"!{op}", wanted) is not holds(value, op, wanted)


@given(
    st.lists(st.text(max_size=3)), st.text(max_size=3), st.sampled_from(["=", ">=", "<=", "!>="])
)
def test_lists_compare_as_lists_do(value, wanted, op):
    condition = Condition("a", op, wanted)
    assert holds(value, op, wanted) == value_test(condition, wanted, listed=True, folded=True)(
        value
    )


@given(VALUES, st.text(max_size=4), st.sampled_from(sorted(set(OPERATORS.values()))))
def test_nothing_fails_on_any_value(value, wanted, op):
    wanted = "".join(letter for letter in wanted if letter.isalnum())
    assert holds(value, op, wanted) in (True, False)


def test_a_colon_in_front_belongs_to_the_name():
    items = parse_columns([":ID,:FILE:file,`:TYPE`,lower(:TYPE),:READONLY as ro,name:n"])
    assert [(one.key, one.text) for one in items] == [
        (":ID", ":ID"),
        ("file", ":FILE"),
        (":TYPE", ":TYPE"),
        ("lower(:TYPE)", "lower(:TYPE)"),
        ("ro", ":READONLY"),
        ("n", "name"),
    ]
    assert items[0].expression == Ref(":ID")
    query = parse_query((("q", ":TYPE = host and a = b"), (":ID[ne]", "x"), ("sort", "-:ID")))
    columns = [one.column for one in query.filter.items[0].items]
    assert columns == [":TYPE", "a"]
    assert query.sort[0].name == ":ID"
