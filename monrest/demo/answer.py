"""A request to the body of its answer: the rows, their order, and statistics over them.

Statistics have Naemon's results, the odd ones included. Work is done in steps between which other
work may be done.
"""

from __future__ import annotations

import heapq
import math
import re
from collections.abc import Callable, Generator, Sequence
from operator import itemgetter
from typing import Any, TypeAlias

from attrs import frozen

from monrest.demo.conditions import Condition, RequestError, every
from monrest.demo.core import Core
from monrest.demo.output import Format, RowWriter
from monrest.demo.request import Aggregate, Request
from monrest.demo.tables import Field

Steps: TypeAlias = Generator[None, None, bytes]

_FILTERED_AT_ONCE = 2000
_CELLS_AT_ONCE = 20_000
_LARGEST_ANSWER = 500 * 1024 * 1024
"""Bytes of the largest answer."""


def answer(core: Core, request: Request) -> Steps:
    """Make the body; every ``yield`` is a pause of at most some milliseconds of work.

    Raises RequestError 413 after the time limit or above the largest size.
    """
    rows = yield from _matching(core, request)
    layout = Format(request.format, request.separators)
    if request.stats:
        return (yield from _statistics(rows, request, layout))
    total = len(rows)
    rows = _cut(_sorted(rows, request), request)
    shown = request.shown()
    writer = RowWriter(layout, [item for _, item in shown])
    pieces: list[str] = []
    size = 0
    step = max(_CELLS_AT_ONCE // max(len(shown), 1), 1)
    for start in range(0, len(rows), step):
        pieces.append(writer.write(rows[start : start + step]))
        size += len(pieces[-1])
        if size > _LARGEST_ANSWER:
            raise RequestError(413, f"Maximum response size of {_LARGEST_ANSWER} bytes exceeded!")
        _check_time(core, request)
        yield
    names = [name for name, _ in shown] if request.shows_headers else None
    return layout.whole(names, pieces, total)


def _check_time(core: Core, request: Request) -> None:
    limit = request.time_limit
    if limit is not None and core.clock.seconds() - request.started > limit:
        raise RequestError(413, f"Maximum query time of {limit} seconds exceeded!")


def _matching(core: Core, request: Request) -> Generator[None, None, list[Any]]:
    table, condition = request.table, every(request.filters)
    if any(one.is_misread for one in request.filters):
        rows: list[Any] = []
    elif condition.rows is not None:
        rows = condition.rows()
    elif table.name == "log":
        rows = core.log.newest_first(condition.since, condition.until)
    else:
        rows = table.rows()
    if request.auth_user is not None and table.visible is not None:
        rows = list(filter(table.visible(request.auth_user), rows))
    if not request.filters:
        return rows
    found: list[Any] = []
    for start in range(0, len(rows), _FILTERED_AT_ONCE):
        found += filter(condition.holds, rows[start : start + _FILTERED_AT_ONCE])
        if start:
            _check_time(core, request)
            yield
    return found


# -------------------------------------------------------------------- order


def _sorted(rows: list[Any], request: Request) -> list[Any]:
    keys = []
    for name, descending in request.sort:
        found = request.table.find(name)
        if found is not None and found.base.type not in ("list", "dict"):
            keys.append((found.getter(), descending))
    wanted = None if request.limit is None else request.limit + (request.offset or 0)
    return _order(rows, keys, wanted)


def _order(
    rows: list[Any], keys: Sequence[tuple[Callable[[Any], Any], bool]], wanted: int | None
) -> list[Any]:
    if not keys:
        return rows
    directions = {descending for _, descending in keys}
    gets = [get for get, _ in keys]
    if len(directions) == 1:
        (descending,) = directions
        key: Callable[[Any], Any] = (
            gets[0] if len(gets) == 1 else lambda row: tuple([get(row) for get in gets])
        )
    else:
        descending = False

        def key(row: Any) -> Any:
            return tuple([_Down(get(row)) if down else get(row) for get, down in keys])

    if wanted is not None and wanted < len(rows):
        pick = heapq.nlargest if descending else heapq.nsmallest
        return pick(wanted, rows, key=key)
    return sorted(rows, key=key, reverse=descending)


@frozen(order=False)
class _Down:
    """A sort value in descending order."""

    value: Any

    def __lt__(self, other: _Down) -> bool:
        return bool(other.value < self.value)


def _cut(rows: list[Any], request: Request) -> list[Any]:
    offset = request.offset or 0
    if request.sort and request.limit is None:
        # Naemon forgets the offset of a sorted answer without a limit.
        offset = 0
    end = None if request.limit is None else offset + request.limit
    return rows[offset:end]


# -------------------------------------------------------------------- statistics

_PERF = re.compile(r"('[^']*'|[^\s=']+)=([-+]?[0-9.]+)")
_SMALLEST = -9223372036854775808


def _statistics(rows: list[Any], request: Request, layout: Format) -> Steps:
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
    results = _cut(_order(results, keys, None), request)
    between = layout.between_cells
    texts = [between.join([_written(value, layout) for value in row]) for row in results]
    pieces = [layout.rows(texts)] if texts else []
    return layout.whole(names if request.shows_headers else None, pieces, total)


def _grouped(
    rows: list[Any], request: Request
) -> Generator[None, None, dict[tuple[str, ...], list[Any]]]:
    if not request.columns:
        return {(): rows}
    plain = Format("csv", request.separators)
    tell = [_group_text(item, plain) for _, item in request.columns]
    groups: dict[tuple[str, ...], list[Any]] = {}
    for number, row in enumerate(rows, 1):
        groups.setdefault(tuple([text(row) for text in tell]), []).append(row)
        if number % _FILTERED_AT_ONCE == 0:
            yield
    return groups


def _group_text(item: Field | None, plain: Format) -> Callable[[Any], str]:
    """How a group is told by a column: lists and counters are no groups for a real core."""
    if item is None:
        return lambda _row: ""
    base = item.base
    if base.style == "counter" or (base.type in ("list", "dict") and base.style != "bits"):
        return lambda _row: "invalid"
    get, encode = item.getter(), plain.encoder(base)
    return lambda row: encode(get(row))


def _written(value: Any, layout: Format) -> str:
    """A group text or a stats value; infinite and undefined ones break JSON, as they do there."""
    if isinstance(value, str):
        return layout.strings(value)
    if isinstance(value, int):
        return str(value)
    if math.isnan(value):
        return "-nan"
    return f"{value:.10e}"


def _function(stat: Condition | Aggregate) -> Callable[[list[Any]], Any]:
    if isinstance(stat, Condition):
        holds = stat.holds
        return lambda rows: sum(map(bool, map(holds, rows)))
    if stat.field is None:
        return lambda _rows: 0
    base = stat.field.base
    get = stat.field.getter()
    if base.style == "perf":
        return lambda rows: _perf(stat.function, list(map(get, rows)))
    if base.type not in ("int", "float"):
        return len
    real = base.type == "float" or base.style == "micro"

    def over(rows: list[Any]) -> int | float:
        value = _aggregate(stat.function, list(map(get, rows)))
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


def _perf(function: str, texts: Sequence[str]) -> str:
    values: dict[str, list[float]] = {}
    for text in texts:
        for label, number in _PERF.findall(text):
            try:
                values.setdefault(label.strip("'"), []).append(float(number))
            except ValueError:
                continue
    return " ".join(f"{label}={_aggregate(function, found):.8f}" for label, found in values.items())
