"""Sorting rows in slices, by the rules of query-engine.md, section 9.1.

Sorting 200,000 rows in one go would hold the reactor, so long lists are sorted in runs that are
merged afterwards; both are stable.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from heapq import merge
from operator import itemgetter
from typing import Any, TypeAlias, TypeVar

from monrest.query.access import Getter
from monrest.query.functions import number_of, text_of
from monrest.values import Row

T = TypeVar("T")
Steps: TypeAlias = Generator[None, None, T]
"""Work that yields at points where something else may run, and returns its result."""

CAREFUL = 25
"""Rows a turn where expressions of clients run: a pattern may take a millisecond for a text."""

_RUN = 10_000
_TURN = 1_000


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


def by_value(rows: list[Row], read: Getter, *, descending: bool, textual: bool) -> Steps[list[Row]]:
    """Rows by one value, stable; null before everything ascending and after it descending.

    Numeric when every value is a number, unless the column is ``textual`` by declaration.
    """
    keys: list[Any] = []
    for start in range(0, len(rows), CAREFUL):
        keys += [read(row) for row in rows[start : start + CAREFUL]]
        yield
    numbers: list[Any] | None = None
    if not textual:
        numbers = []
        for start in range(0, len(keys), _TURN):
            numbers += [
                None if one is None else number_of(one) for one in keys[start : start + _TURN]
            ]
            yield
        if any(n is None and k is not None for n, k in zip(numbers, keys, strict=True)):
            numbers = None
    ordered = (
        [(value is not None, value if value is not None else 0) for value in numbers]
        if numbers is not None
        else [(one is not None, text_of(one)) for one in keys]
    )
    order = yield from in_order(range(len(rows)), ordered.__getitem__, reverse=descending)
    return [rows[at] for at in order]


def in_order(
    items: Sequence[T], key: Callable[[T], Any], *, reverse: bool
) -> Generator[None, None, list[T]]:
    """``items`` sorted by ``key``, stable; a turn of the reactor may come after each run."""
    if len(items) <= _RUN:
        return sorted(items, key=key, reverse=reverse)
    runs = []
    for start in range(0, len(items), _RUN):
        runs.append(sorted(items[start : start + _RUN], key=key, reverse=reverse))
        yield
    result: list[T] = []
    for at, item in enumerate(merge(*runs, key=key, reverse=reverse)):
        result.append(item)
        if at % _TURN == 0:
            yield
    return result
