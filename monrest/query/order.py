"""Sorting rows by the rules of docs/spec/query.md, "Sort".

A long list is sorted in runs that are merged afterwards: one call that sorts 200,000 rows would
keep the interpreter from the reactor's thread for a tenth of a second.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from heapq import merge
from operator import itemgetter
from typing import Any, TypeVar

from monrest.base.values import Row
from monrest.query.scalars import number_of, text_of

T = TypeVar("T")

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
    """What numbers are compared by; None when a value is no number."""
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
