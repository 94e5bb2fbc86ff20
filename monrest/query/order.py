"""Sorting rows in slices, by the rules of docs/spec/query.md, "Sort".

Sorting 200,000 rows in one go would hold the reactor, so long lists are sorted in runs that are
merged afterwards; both are stable.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from heapq import merge
from operator import itemgetter
from typing import Any

from monrest.base.values import Row
from monrest.query.functions import number_of, text_of
from monrest.query.steps import Steps, T

_RUN = 10_000
_RUN_SIZE = 4_000_000
"""Characters of all texts that are sorted in one go: equal ones are compared to their ends."""
_LEAST_RUN = 100
_ANY_TEXT = 16
_TURN = 1_000
_TURN_SIZE = 1_000_000


def by_columns(rows: list[Row], positions: Sequence[int]) -> Steps[list[Row]]:
    """Rows in ascending order of the columns at ``positions``; text by code point."""
    if not positions or len(rows) < 2:
        return rows
    key: Callable[[Row], Any] = itemgetter(*positions)
    try:
        return (yield from in_order(rows, key, reverse=False))
    except TypeError:
        # A site sent values of several types in one column.
        return (
            yield from in_order(
                rows, lambda row: tuple(text_of(row[at]) for at in positions), reverse=False
            )
        )


def by_value(
    rows: list[Row], keys: list[Any], *, descending: bool, textual: bool
) -> Steps[list[Row]]:
    """Rows by one value of each, stable; null before everything ascending and after it descending.

    Numeric when every value is a number, unless the column is ``textual`` by declaration.
    """
    ordered: list[tuple[bool, Any]] | None = None if textual else []
    for start in range(0, len(keys), _TURN):
        if ordered is None:
            break
        turn = keys[start : start + _TURN]
        numbers = [None if one is None else number_of(one) for one in turn]
        if any(n is None and k is not None for n, k in zip(numbers, turn, strict=True)):
            ordered = None
        else:
            ordered += [(one is not None, one or 0) for one in numbers]
        yield
    run = _RUN
    if ordered is None:
        ordered, size = [], 0
        for key in keys:
            text = text_of(key)
            ordered.append((key is not None, text))
            size += len(text) + _ANY_TEXT
            if len(ordered) % _TURN == 0 or size // _TURN_SIZE > (size - len(text)) // _TURN_SIZE:
                yield
        run = max(_LEAST_RUN, min(_RUN, len(keys) * _RUN_SIZE // max(1, size)))
    order = yield from in_order(range(len(rows)), ordered.__getitem__, reverse=descending, run=run)
    return [rows[at] for at in order]


def in_order(
    items: Sequence[T], key: Callable[[T], Any], *, reverse: bool, run: int = _RUN
) -> Steps[list[T]]:
    """``items`` sorted by ``key``, stable; others have their turn after each ``run`` of them."""
    if len(items) <= run:
        return sorted(items, key=key, reverse=reverse)
    runs = []
    for start in range(0, len(items), run):
        runs.append(sorted(items[start : start + run], key=key, reverse=reverse))
        yield
    result: list[T] = []
    for at, item in enumerate(merge(*runs, key=key, reverse=reverse)):
        result.append(item)
        if at % _TURN == 0:
            yield
    return result
