"""What a text will cost when it is read, by counting what separates its values. Pure.

A byte of ``[],[],…`` becomes thirty in memory, and a parser in C keeps the interpreter until it is
through. So the separators are counted first: the count copies the text once and makes no objects.
"""

from __future__ import annotations

from monrest.base.errors import BadRequest

MOST_VALUES = 100_000
"""Values of one body, of JSON in a field, and of what separates values within texts."""

_SEPARATORS = b",[{"
_ONE_VALUE = 200
"""Bytes of a value in memory, at most: a new name in an object with its number."""
_ONE_LETTER = 4
"""Bytes of a letter of a text with any emoji."""


def count_values(raw: bytes) -> int:
    """Count the values that JSON may hold; commas and brackets in texts count as well."""
    return len(raw) - len(raw.translate(None, _SEPARATORS))


def check_values(raw: bytes, what: str) -> None:
    """Raise BadRequest for a text, called ``what``, that may hold too many values of JSON."""
    if count_values(raw) > MOST_VALUES:
        raise BadRequest(
            "too many values",
            f"{what}: expected at most {MOST_VALUES:,} commas and opening brackets together",
        )


def parsed_size(raw: bytes) -> int:
    """Give the bytes that the values of a text take in memory, at most, if it is not refused."""
    plain = raw.isascii() and b"\\u" not in raw and b"%" not in raw
    values = min(count_values(raw) + raw.count(b"&"), MOST_VALUES)
    return (1 if plain else _ONE_LETTER) * len(raw) + _ONE_VALUE * values
