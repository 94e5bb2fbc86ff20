"""Values as text and as numbers, and the order of rows by their values.

Rules: docs/spec/query.md, "Filters" and "Sort".
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from heapq import merge
from math import isfinite
from operator import itemgetter
from typing import Any, TypeVar

import orjson

from monrest.base.values import Row

T = TypeVar("T")

MOST_INTEGER = 2**64
"""Integers from here on are floats: neither cores nor JSON readers know larger ones."""

_NUMBER = re.compile(r"[ \t\n]*([+-]?(?:[0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?)[ \t\n]*")
_FEW_DIGITS = 18
_DEEPEST = 20


def text_of(value: Any) -> str:
    """The text form: null is empty, booleans are 1 and 0, numbers as short as possible.

    Elements of a list are joined with commas; an object is compact JSON with sorted keys.
    """
    if isinstance(value, str):
        return value
    if value is None:
        return ""
    if isinstance(value, bool):
        return "1" if value else "0"
    if isinstance(value, float):
        return str(int(value)) if value.is_integer() and abs(value) < 1e15 else repr(value)
    if isinstance(value, list | tuple):
        return _joined(value, 1)
    if isinstance(value, dict):
        try:
            return orjson.dumps(value, option=orjson.OPT_SORT_KEYS).decode()
        except TypeError:
            # Deeper than any core nests, or a number that JSON cannot write.
            return ""
    return str(value)


def _joined(elements: list[Any] | tuple[Any, ...], depth: int) -> str:
    if depth > _DEEPEST:
        # A site may send thousands of brackets; no column nests more than two.
        return ""
    return ",".join(
        [
            _joined(element, depth + 1) if isinstance(element, list | tuple) else text_of(element)
            for element in elements
        ]
    )


def number_of(value: Any) -> int | float | None:
    """The number that a value is, or that its text looks like; None for everything else.

    Texts may have blanks around them, a sign, a fraction and an exponent; ``inf``, ``nan``,
    hexadecimal digits and digits of other scripts are no numbers.
    """
    if isinstance(value, str):
        match = _NUMBER.fullmatch(value)
        if match is None:
            return None
        digits, fraction, exponent = match.groups()
        if fraction is None and exponent is None and digits[0] != "." and digits[1:2] != ".":
            if len(digits) <= _FEW_DIGITS:
                return int(digits)
            if len(digits) < 2 * _FEW_DIGITS:
                return within(int(digits))
        value = float(digits)
    if isinstance(value, bool):
        return int(value)
    if isinstance(value, int):
        if -MOST_INTEGER < value < MOST_INTEGER:
            return value
        try:
            return float(value)
        except OverflowError:
            return None
    if isinstance(value, float):
        return value if isfinite(value) else None
    return None


def within(number: int | float) -> int | float:
    """``number`` with integers that are too large for the outputs as floats."""
    return (
        number if type(number) is float or -MOST_INTEGER < number < MOST_INTEGER else float(number)
    )


# A long list is sorted in runs that are merged afterwards: one call that sorts 200,000 rows would
# keep the interpreter from the reactor's thread for a tenth of a second.

_RUN = 10_000
_RUN_SIZE = 4_000_000
"""Characters of all texts that are sorted in one call: equal ones are compared to their ends."""
_LEAST_RUN = 100
_ANY_TEXT = 16


def by_columns(rows: list[Row], positions: Sequence[int]) -> list[Row]:
    """Rows in ascending order of the columns at ``positions``; text by code point."""
    if not positions or len(rows) < 2:
        return rows
    try:
        return in_order(rows, itemgetter(*positions), reverse=False)
    except TypeError:
        # A site sent values of several types in one column.
        return in_order(
            rows, lambda row: tuple(text_of(row[at]) for at in positions), reverse=False
        )


def by_value(rows: list[Row], keys: list[Any], *, descending: bool, textual: bool) -> list[Row]:
    """Rows by one value of each, stable; null before everything ascending and after it descending.

    Numeric when every value is a number, unless the column is ``textual`` by declaration.
    """
    run = _RUN
    ordered = None if textual else _numbers(keys)
    if ordered is None:
        ordered = [(key is not None, text_of(key)) for key in keys]
        size = sum(len(text) + _ANY_TEXT for _, text in ordered)
        run = max(_LEAST_RUN, min(_RUN, len(keys) * _RUN_SIZE // max(1, size)))
    order = in_order(range(len(rows)), ordered.__getitem__, reverse=descending, run=run)
    return [rows[at] for at in order]


def _numbers(keys: list[Any]) -> list[tuple[bool, Any]] | None:
    """The value by which numbers are compared; None when it is no number."""
    ordered: list[tuple[bool, Any]] = []
    for key in keys:
        number = None if key is None else number_of(key)
        if number is None and key is not None:
            return None
        ordered.append((number is not None, number or 0))
    return ordered


def in_order(
    items: Sequence[T], key: Callable[[T], Any], *, reverse: bool, run: int = _RUN
) -> list[T]:
    """``items`` sorted by ``key``, stable; ``run`` of them in one call."""
    if len(items) <= run:
        return sorted(items, key=key, reverse=reverse)
    runs = [
        sorted(items[start : start + run], key=key, reverse=reverse)
        for start in range(0, len(items), run)
    ]
    return list(merge(*runs, key=key, reverse=reverse))
