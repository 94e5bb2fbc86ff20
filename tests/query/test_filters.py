"""Filters by parameter: names, operators, and names that cannot be read."""

from __future__ import annotations

import pytest
from hypothesis import given

from monrest.base.errors import BadRequest
from monrest.query.model import OPERATORS, Condition
from monrest.query.parse import parse_parameter
from tests import strategies
from tests.table import each

TABLE = {
    "=": ["=", "eq"],
    "!=": ["!=", "ne"],
    "~": ["~", "sregex"],
    "!~": ["!~", "snregex"],
    "~~": ["~~", "regex", "like"],
    "!~~": ["!~~", "nregex", "unlike"],
    ">": [">", "gt"],
    "<": ["<", "lt"],
    ">=": [">=", "gte"],
    "<=": ["<=", "lte"],
    "!>=": ["!>=", "notin"],
}


@each(("sign", "word"), [(sign, word) for sign, words in TABLE.items() for word in words])
def test_every_operator_in_any_case(sign: str, word: str) -> None:
    for spelling in (word, word.upper(), f" {word} "):
        name = f"state[{spelling}]"
        assert parse_parameter(name, "1") == Condition("state", sign, "1", name)


def test_the_table_is_complete() -> None:
    assert {word for words in TABLE.values() for word in words} == set(OPERATORS)


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
        ("name[foo]", "name[foo]: unknown operator 'foo', expected one of = eq != ne ~ "),
        ("name[]", "name[]: unknown operator '', expected one of "),
        ("disk[0]", "disk[0]: unknown operator '0'"),
        ("name[==]", "name[==]: unknown operator '=='"),
        ("name[~", "name[~: unreadable parameter name, expected column or column[operator]"),
        ("name]", "name]: unreadable parameter name"),
        ("a[b]c[", "a[b]c[: unreadable parameter name"),
        ("[eq]", "[eq]: unreadable parameter name"),
        (" [eq]", " [eq]: unreadable parameter name"),
        ("``[eq]", "``[eq]: unreadable parameter name"),
        ("x\n[y]", "x\ufffd[y]: unknown operator 'y'"),
    ],
)
def test_errors_name_the_parameter(name: str, description: str) -> None:
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
