"""A request to the body of its answer: rows, their order, and statistics over them.

Statistics have Naemon's results, the odd ones included. An answer is a generator, so that a large
one lets other connections in between: its rows are living objects, which a thread must not look at
while they change.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Generator, Sequence
from operator import itemgetter
from typing import Any, TypeAlias

from monrest.lql.filters import RequestError, RowCondition, every
from monrest.lql.formats import CellWriter, Format
from monrest.lql.request import Aggregate, Request
from monrest.lql.tables import Column, Rows, ValueOf

AnswerSteps: TypeAlias = Generator[None, None, bytes]

_FILTERED_AT_ONCE = 2000
_CELLS_AT_ONCE = 20_000
_LARGEST_ANSWER = 500 * 1024 * 1024
"""Bytes of the largest answer."""


def answer(request: Request, seconds: Callable[[], float]) -> AnswerSteps:
    """Make the body; every ``yield`` is a pause of at most some milliseconds of work.

    Raises RequestError 413 after the time limit, by the clock ``seconds``, or above the largest
    size.
    """
    rows = yield from _matching(request, seconds)
    layout = Format(request.format, request.separators)
    if request.stats:
        return (yield from _statistics(rows, request, layout))
    total = len(rows)
    keys: list[tuple[ValueOf, bool]] = []
    for name, descending in request.sort:
        declared = request.table.find(name)
        if declared is not None and declared.type not in ("list", "dict"):
            keys.append((declared.getter(), descending))
    rows = _cut(_sorted(rows, keys), request)
    columns = request.output_columns()
    writer = CellWriter(layout, [column for _, column in columns])
    pieces: list[str] = []
    size = 0
    step = max(_CELLS_AT_ONCE // max(len(columns), 1), 1)
    for start in range(0, len(rows), step):
        pieces.append(writer.write(rows[start : start + step]))
        size += len(pieces[-1])
        if size > _LARGEST_ANSWER:
            raise RequestError(413, f"Maximum response size of {_LARGEST_ANSWER} bytes exceeded!")
        request.check_time(seconds())
        yield
    names = [name for name, _ in columns] if request.shows_headers else None
    return layout.whole(names, pieces, total)


def _matching(request: Request, seconds: Callable[[], float]) -> Generator[None, None, Rows]:
    table, condition = request.table, every(request.filters)
    if any(condition.is_misread for condition in request.filters):
        rows: Rows = []
    elif condition.rows is not None:
        rows = condition.rows()
    elif table.between is not None:
        rows = table.between(condition.since, condition.until)
    else:
        rows = table.rows()
    if request.auth_user is not None and table.visible is not None:
        rows = list(filter(table.visible(request.auth_user), rows))
    if not request.filters:
        return rows
    matching: Rows = []
    for start in range(0, len(rows), _FILTERED_AT_ONCE):
        matching += filter(condition.holds, rows[start : start + _FILTERED_AT_ONCE])
        if start:
            request.check_time(seconds())
            yield
    return matching


def _sorted(rows: Rows, keys: Sequence[tuple[ValueOf, bool]]) -> Rows:
    for get, descending in reversed(keys):
        rows = sorted(rows, key=get, reverse=descending)
    return rows


def _cut(rows: Rows, request: Request) -> Rows:
    if request.limit is None:
        # Naemon forgets the offset of a sorted answer without a limit.
        return rows if request.sort else rows[request.offset or 0 :]
    offset = request.offset or 0
    return rows[offset : offset + request.limit]


def _statistics(rows: Rows, request: Request, layout: Format) -> AnswerSteps:
    """A result row for each group, by its texts: these, then the values."""
    groups = yield from _grouped(rows, request)
    functions = [_function(stat) for stat in request.stats]
    results: list[list[Any]] = []
    for key in sorted(groups):
        result: list[Any] = list(key)
        for function in functions:
            result.append(function(groups[key]))
            yield
        results.append(result)
    names = [name for name, _ in request.columns]
    names += [f"stats_{number}" for number in range(1, len(request.stats) + 1)]
    keys = [
        (itemgetter(names.index(name)), descending)
        for name, descending in request.sort
        if name in names
    ]
    total = len(results)
    texts = [layout.results(result) for result in _cut(_sorted(results, keys), request)]
    pieces = [layout.rows(texts)] if texts else []
    return layout.whole(names if request.shows_headers else None, pieces, total)


def _grouped(rows: Rows, request: Request) -> Generator[None, None, dict[tuple[str, ...], Rows]]:
    if not request.columns:
        return {(): rows}
    plain = Format("csv", request.separators)
    texts = [_group_text(column, plain) for _, column in request.columns]
    groups: dict[tuple[str, ...], Rows] = {}
    for number, row in enumerate(rows, 1):
        groups.setdefault(tuple([text(row) for text in texts]), []).append(row)
        if number % _FILTERED_AT_ONCE == 0:
            yield
    return groups


def _group_text(column: Column | None, plain: Format) -> Callable[[Any], str]:
    """The text of a group by a column: lists and counters are no groups for a real core."""
    if column is None:
        return lambda _row: ""
    if column.style == "counter" or (column.type in ("list", "dict") and column.bits is None):
        return lambda _row: "invalid"
    get, encode = column.getter(), plain.encoder(column)
    return lambda row: encode(get(row))


_SMALLEST = -9223372036854775808


def _function(stat: RowCondition | Aggregate) -> Callable[[Rows], Any]:
    if isinstance(stat, RowCondition):
        holds = stat.holds
        return lambda rows: sum(map(bool, map(holds, rows)))
    column, function = stat.column, stat.function
    if column is None:
        return lambda _rows: 0
    get = column.getter()
    if column.style == "perf":
        return lambda rows: _perf(function, list(map(get, rows)))
    if column.type not in ("int", "float"):
        return len
    real = column.type == "float" or column.style == "micro"

    def over(rows: Rows) -> int | float:
        value = _aggregate(function, list(map(get, rows)))
        return float(value) if real and value != _SMALLEST else value

    return over


def _aggregate(function: str, values: Sequence[int | float]) -> int | float:
    """One of sum, min, max, avg, std, suminv, avginv over numbers."""
    count = len(values)
    if function == "sum":
        return sum(values)
    if function in ("min", "max"):
        return (min if function == "min" else max)(values, default=0)
    if function == "avg":
        return sum(values) / count if count else math.nan
    if function == "std":
        if count < 2:
            return math.nan
        mean = sum(values) / count
        return math.sqrt(sum((value - mean) ** 2 for value in values) / (count - 1))
    inverse = sum(1 / value if value else math.inf for value in values)
    if function == "suminv":
        return float(inverse)
    return inverse / count if count else _SMALLEST


_PERF = re.compile(r"('[^']*'|[^\s=']+)=([-+]?[0-9.]+)")


def _perf(function: str, texts: Sequence[str]) -> str:
    values: dict[str, list[float]] = {}
    for text in texts:
        for label, number in _PERF.findall(text):
            try:
                values.setdefault(label.strip("'"), []).append(float(number))
            except ValueError:
                continue
    return " ".join(
        f"{label}={_aggregate(function, numbers):.8f}" for label, numbers in values.items()
    )
