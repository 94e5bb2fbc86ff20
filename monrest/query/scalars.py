"""What a value is as text and as a number (docs/spec/query.md, "Filters")."""

from __future__ import annotations

import re
from math import isfinite
from typing import Any

import orjson

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
