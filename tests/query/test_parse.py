"""All parameters together, and filters by parameter: names, operators, and what cannot be read."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given

from monrest.base.errors import BadRequest
from monrest.base.values import Parameters
from monrest.query.model import Condition, Group, Item, Query, Ref, SortKey
from monrest.query.parse import RESERVED, parse_parameter, parse_query
from tests import strategies
from tests.table import each

A = Condition("a", "=", "1")
B = Condition("b", "=", "2")


def filtered(*trees: Condition | Group) -> Group:
    return Group("and", trees)


def refusal(*parameters: tuple[str, str]) -> str:
    with pytest.raises(BadRequest) as caught:
        parse_query(parameters)
    assert caught.value.message == "error during request"
    return caught.value.description


def test_nothing_asked_for() -> None:
    assert parse_query(()) == Query()
    assert parse_query((("", "x"), (" ", ""), ("q", ""), ("columns", ""), ("sort", ""))) == Query()


@each(
    ("parameters", "expected"),
    [
        ([("limit", "x"), ("limit", " 3 ")], {"limit": 3}),
        ([("limit", "9" * 18)], {"limit": 10**18 - 1}),
        ([("offset", "1"), ("offset", "2")], {"offset": 2}),
        ([("backends", "a, b ,,c")], {"backends": ("a", "b", "c")}),
        ([("backends", "a"), ("backends", "b")], {"backends": ("a", "b")}),
        ([("backend", "a"), ("backends", "b")], {"backends": ("a",)}),
        ([("backend", ""), ("backends", "b")], {"backends": ("b",)}),
        ([("backends", "")], {"backends": ()}),
        ([("backends", " ALL ")], {"backends": ("ALL",)}),
        ([("CSRFtoken", "x"), ("logcache", "0"), ("pretty", "1")], {}),
        ([("columns", "a"), ("columns", "b:x")], {
            "items": (Item(Ref("a"), "a", "a"), Item(Ref("b"), "x", "b", renamed=True))}),
        ([("columns", " , ")], {"items": None}),
        ([("a", "1")], {"filter": filtered(Condition("a", "=", "1", "a"))}),
        ([("a[ne]", "1"), ("a[ne]", "2")], {"filter": filtered(
            Condition("a", "!=", "1", "a[ne]"), Condition("a", "!=", "2", "a[ne]"))}),
        ([("a[>", "]=1")], {"filter": filtered(Condition("a", ">=", "1", "a[>"))}),
        ([("q", "a = 1")], {"filter": filtered(A)}),
        ([("q", "***a = 1***")], {"filter": filtered(A)}),
        ([("q", "\ta\r\n=\n1")], {"filter": filtered(A)}),
        ([("q", "a = 1"), ("q", "()"), ("q", "b = 2 or a = 1")], {
            "filter": filtered(A, Group("or", (B, A)))}),
        ([("c", ""), ("q", "a = 1")], {"filter": filtered(Condition("c", "=", "", "c"), A)}),
        ([("Limit", "1")], {"filter": filtered(Condition("Limit", "=", "1", "Limit"))}),
        ([("limit[gt]", "1")], {"filter": filtered(Condition("limit", ">", "1", "limit[gt]"))}),
        ([("view_mode", "json")], {"filter": filtered(
            Condition("view_mode", "=", "json", "view_mode"))}),
    ],
)  # fmt: skip
def test_options(parameters: list[tuple[str, str]], expected: dict[str, Any]) -> None:
    assert parse_query(tuple(parameters)) == Query(**expected)


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([" name"], [SortKey("name")]),
        (["- name , state,,"], [SortKey("name", descending=True), SortKey("state")]),
        (["name", "-state"], [SortKey("name"), SortKey("state", descending=True)]),
        (["substr(name,0,3),b"], [SortKey("substr(name,0,3)"), SortKey("b")]),
        (["-`C: used, x`"], [SortKey("C: used, x", descending=True)]),
        (["`-x`"], [SortKey("-x")]),
        (["it's,$x>"], [SortKey("it's"), SortKey("$x>")]),
        (["-", "+", ","], []),
    ],
)
def test_sort(values: list[str], expected: list[SortKey]) -> None:
    assert parse_query(tuple(("sort", value) for value in values)).sort == tuple(expected)


@pytest.mark.parametrize("name", ["limit", "offset"])
def test_huge_counts(name: str) -> None:
    for value in ("1" * 19, "9" * 10_000):
        expected = f"{name} must be a non-negative integer of at most 18 digits"
        assert refusal((name, value)) == expected


@pytest.mark.parametrize(
    ("parameters", "description"),
    [
        ([("name[foo]", "x")], "name[foo]: unknown operator 'foo', expected one of = eq != ne ~ "),
        ([("[eq]", "x")], "[eq]: unreadable parameter name"),
        ([("q", "a =")], "q: unexpected end of query after = (character 4)"),
        ([("columns", "foo(a)")], "columns: unknown function: foo"),
        ([("x" * 5000, "1")], "x" * 100 + "…: at most 4096 characters are accepted in a name"),
        ([("a[ne]", "1")] * 1001, "a[ne]: at most 1000 conditions are accepted"),
        ([("a", "1"), ("q", "a = 1 " * 1000)], "q: at most 1000 conditions are accepted"),
        ([("sort", "a,b"), ("sort", "a," * 499)], "sort: at most 500 keys are accepted, got 501"),
        ([("sort", "a" * 70_000)], "sort: at most 32768 characters are accepted"),
        ([("a", "x" * 600_000), ("b", "y" * 500_000)],
         "a: at most 1048576 characters are accepted in a query"),
        ([("columns", "a," * 501)], "columns: at most 500 items are accepted, got 501"),
    ],
)  # fmt: skip
def test_errors_name_the_parameter(parameters: list[tuple[str, str]], description: str) -> None:
    assert refusal(*parameters).startswith(description)


def test_long_requests_are_read_as_well() -> None:
    value = "x" * 100_000
    assert parse_query((("a", value),)) == Query(filter=filtered(Condition("a", "=", value, "a")))
    blank = (("", "x"),) * 20_000
    assert parse_query((*blank, ("limit", "1"))) == Query(limit=1)


@given(strategies.parameters)
def test_right_parameters_give_the_same_query_every_time(parameters: Parameters) -> None:
    query = parse_query(parameters)
    assert parse_query(parameters) == query
    assert parse_query((*parameters, ("", "x"))) == query
    filters = [name for name, _ in parameters if name not in RESERVED]
    assert len(query.filter.items) == len(filters) + sum(name == "q" for name, _ in parameters)


@given(strategies.broken_parameters)
def test_nothing_but_a_refusal_is_raised(parameters: Parameters) -> None:
    try:
        query = parse_query(parameters)
    except BadRequest as error:
        refused = error.description
    else:
        assert parse_query(parameters) == query
        return
    assert refused


@pytest.mark.parametrize(
    ("name", "column", "op"),
    [
        ("name", "name", "="),
        (" name ", "name", "="),
        ("name [ne]", "name", "!="),
        ("_WORKER", "_WORKER", "="),
        ("count(*)[gt]", "count(*)", ">"),
        ("avg(execution_time)[gt]", "avg(execution_time)", ">"),
        ("to_rows(services)[sregex]", "to_rows(services)", "~"),
        ("substr(name,-2)", "substr(name,-2)", "="),
        ("`C: used`[gt]", "C: used", ">"),
        ("`a[eq]`", "a[eq]", "="),
        ("/var", "/var", "="),
        ("used %[gt]", "used %", ">"),
        ("Größe", "Größe", "="),
        ("disk[0][gt]", "disk[0]", ">"),
        ("a[b]c", "a[b]c", "="),
        ("q[eq]", "q", "="),
        ("limit[gt]", "limit", ">"),
    ],
)
def test_names(name: str, column: str, op: str) -> None:
    assert parse_parameter(name, " v ") == Condition(column, op, " v ", name)


@pytest.mark.parametrize(
    ("name", "value", "op"),
    [
        ("name[", "]=5", "="),
        ("name[!", "]=5", "!="),
        ("name[>", "]=5", ">="),
        ("name[<", "]=5", "<="),
        ("name[!>", "]=5", "!>="),
    ],
)
def test_operators_that_were_cut_at_their_equals_sign(name: str, value: str, op: str) -> None:
    assert parse_parameter(name, value) == Condition("name", op, "5", name)


@pytest.mark.parametrize("name", ["", " ", "\t"])
def test_blank_names_are_ignored(name: str) -> None:
    assert parse_parameter(name, "x") is None


@pytest.mark.parametrize(
    ("name", "description"),
    [
        ("name[]", "name[]: unknown operator '', expected one of "),
        ("disk[0]", "disk[0]: unknown operator '0'"),
        ("name[==]", "name[==]: unknown operator '=='"),
        ("name[~", "name[~: unreadable parameter name, expected column or column[operator]"),
        ("name]", "name]: unreadable parameter name"),
        ("a[b]c[", "a[b]c[: unreadable parameter name"),
        (" [eq]", " [eq]: unreadable parameter name"),
        ("``[eq]", "``[eq]: unreadable parameter name"),
        ("x\n[y]", "x\ufffd[y]: unknown operator 'y'"),
    ],
)
def test_names_that_cannot_be_read(name: str, description: str) -> None:
    with pytest.raises(BadRequest) as caught:
        parse_parameter(name, "x")
    assert caught.value.message == "error during request"
    assert caught.value.description.startswith(description)


@given(strategies.anything, strategies.anything)
def test_no_name_is_dropped(name: str, value: str) -> None:
    try:
        condition = parse_parameter(name, value)
    except BadRequest:
        return
    assert (condition is None) == (not name.strip())


@given(strategies.parameter_filters)
def test_right_filters_are_accepted(parameter: tuple[str, str]) -> None:
    condition = parse_parameter(*parameter)
    assert condition is not None
    assert condition.column in strategies.COLUMNS
    assert condition.value == parameter[1]
