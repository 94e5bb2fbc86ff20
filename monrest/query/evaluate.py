"""Conditions to predicates: the local, authoritative meaning of a filter.

Every predicate is a function of one value; trees of them become functions of one row.

Rules: docs/spec/query.md, "Filters".
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from monrest.base.errors import BadRequest
from monrest.base.values import Row
from monrest.query.model import Condition, Operator
from monrest.query.regex import Pattern
from monrest.query.scalars import number_of, text_of

RowTest: TypeAlias = Callable[[Row], bool]
Operand: TypeAlias = str | float | Pattern
"""The operand of a comparison: a text, its number, or the pattern to look for."""
ValueTest: TypeAlias = Callable[[Any], bool]

_ORDER: dict[str, Callable[[Any, Any], bool]] = {
    ">": operator.gt,
    "<": operator.lt,
    ">=": operator.ge,
    "<=": operator.le,
}
_NEGATED: dict[str, Operator] = {"!=": "=", "!~": "~", "!~~": "~~"}


def value_test(condition: Condition, operand: Operand, *, listed: bool, folded: bool) -> ValueTest:
    """The test of one value.

    ``operand`` is the condition's value, already turned into a number where the column is a time
    or a duration, and into a pattern for operators that look for one. ``listed``: the column is
    a list. ``folded``: ``=`` ignores case.
    """
    op = condition.op
    if op in _NEGATED:
        positive = Condition(condition.column, _NEGATED[op], condition.value, condition.parameter)
        wanted = value_test(positive, operand, listed=listed, folded=folded)
        return lambda value: not wanted(value)
    if listed:
        return _list_test(condition, operand, folded=folded)
    scalar = _scalar_test(condition, operand, folded=folded)
    # Derived columns and labels may hold a list where none was declared.
    as_list: list[ValueTest] = []

    def test(value: Any) -> bool:
        if isinstance(value, list):
            if not as_list:
                as_list.append(_list_test(condition, operand, folded=folded))
            return as_list[0](value)
        return scalar(value)

    return test


def _scalar_test(condition: Condition, operand: Operand, *, folded: bool) -> ValueTest:
    op = condition.op
    if op == "=":
        return _equality(operand, folded=folded)
    if op in ("~", "~~"):
        assert isinstance(operand, Pattern)
        matches = operand.matches
        return lambda value: matches(value if type(value) is str else text_of(value))
    if op == "!>=":
        raise BadRequest(
            "error during request",
            f"{condition.parameter}: operator {op} (notin) needs a list column, "
            f"{condition.column} is none",
        )
    compare, number, text = _ORDER[op], number_of(operand), text_of(operand)

    def ordered(value: Any) -> bool:
        if value is None:
            return False
        other = value if type(value) in (int, float) else number_of(value)
        if number is not None:
            return other is not None and compare(other, number)
        return other is None and compare(text_of(value), text)

    return ordered


def _equality(operand: Operand, *, folded: bool) -> ValueTest:
    number = number_of(operand)
    text = text_of(operand)
    if folded:
        text = text.casefold()
        return lambda value: (
            value == number
            if number is not None and type(value) in (int, float)
            else text_of(value).casefold() == text
        )

    def equal(value: Any) -> bool:
        if type(value) is str:
            return bool(value == text)
        if number is not None and type(value) in (int, float):
            return bool(value == number)
        return text_of(value) == text

    return equal


def _list_test(condition: Condition, operand: Operand, *, folded: bool) -> ValueTest:
    op = condition.op
    if op in ("~", "~~"):
        assert isinstance(operand, Pattern)
        matches = operand.matches
        return lambda value: any(
            matches(text) for element in _elements(value) for text in _texts(element)
        )
    equal = _equality(operand, folded=folded)
    if op == "=":
        if condition.value == "":
            return lambda value: not value
        return lambda value: (
            isinstance(value, list) and len(value) == 1 and _plain(value[0]) and equal(value[0])
        )

    def contains(value: Any) -> bool:
        return any(_plain(element) and equal(element) for element in _elements(value))

    if op == ">=":
        return contains
    if op in ("<=", "!>="):
        return lambda value: not contains(value)
    raise BadRequest(
        "error during request",
        f"{condition.parameter}: operator '{op}' not implemented for lists, {condition.column} "
        "is one; expected one of = != ~ !~ ~~ !~~ >= <= !>=",
    )


def mixed_test(condition: Condition, operand: Operand) -> ValueTest:
    """The test of a value that is a text in some rows, a list in others and missing in the rest.

    Case is ignored by ``=``. A list is compared as lists are; what is none is ordered only where
    both sides are numbers, so that ``>=`` means "contains" and nothing else for texts.
    """
    op = condition.op
    if op in _NEGATED:
        positive = Condition(condition.column, _NEGATED[op], condition.value, condition.parameter)
        wanted = mixed_test(positive, operand)
        return lambda value: not wanted(value)
    if op == "!>=":
        equal = _equality(operand, folded=True)
        without = _list_test(condition, operand, folded=True)
        return lambda value: without(value) if isinstance(value, list) else not equal(value)
    scalar = _scalar_test(condition, operand, folded=True)
    if op in _ORDER:
        numeric = number_of(operand) is not None
        single = scalar if numeric else _never
        of_list = _never if op in (">", "<") else _list_test(condition, operand, folded=True)
    else:
        single, of_list = scalar, _list_test(condition, operand, folded=True)
    return lambda value: of_list(value) if isinstance(value, list) else single(value)


def _never(_value: Any) -> bool:
    return False


def _elements(value: Any) -> Sequence[Any]:
    """The elements of a list; another value of a core counts as an empty list."""
    return value if isinstance(value, list) else ()


def _texts(element: Any) -> list[str]:
    """The texts of an element in which patterns are looked for: those of an object are its values.

    Elements that are lists themselves are never matched.
    """
    if isinstance(element, dict):
        return [text_of(value) for value in element.values()]
    return [] if isinstance(element, list) else [text_of(element)]


def _plain(value: Any) -> bool:
    """Elements that are lists themselves are never matched."""
    return not isinstance(value, list | dict)


def all_of(tests: list[RowTest]) -> RowTest:
    if len(tests) == 1:
        return tests[0]
    if len(tests) == 2:
        first, second = tests
        return lambda row: first(row) and second(row)
    return lambda row: all(test(row) for test in tests)


def any_of(tests: list[RowTest]) -> RowTest:
    if len(tests) == 1:
        return tests[0]
    return lambda row: any(test(row) for test in tests)
