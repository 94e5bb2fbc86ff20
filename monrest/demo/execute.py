"""A request to the body of its answer, in steps between which other work may be done."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Generator, Sequence
from operator import itemgetter
from typing import Any

from attrs import frozen

from monrest.demo.core import Core
from monrest.demo.filters import (
    Every,
    Predicate,
    RequestError,
    candidates,
    compile_filter,
    misread,
    time_bounds,
)
from monrest.demo.output import Format, RowWriter
from monrest.demo.request import Request
from monrest.demo.stats import compute, write_value

Steps = Generator[None, None, bytes]

_FILTERED_AT_ONCE = 2000
_CELLS_AT_ONCE = 20_000
MAX_RESPONSE = 500 * 1024 * 1024
"""Bytes of the largest answer."""


def execute(core: Core, request: Request) -> Steps:
    """Make the body; every ``yield`` is a pause of at most some milliseconds of work.

    Raises RequestError 413 after the time limit or above the largest size.
    """
    rows = yield from _matching(core, request)
    layout = Format(request.format, request.separators)
    if request.stats:
        return (yield from _stats(rows, request, layout))
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
        if size > MAX_RESPONSE:
            raise RequestError(413, f"Maximum response size of {MAX_RESPONSE} bytes exceeded!")
        _check_time(core, request)
        yield
    names = [name for name, _ in shown] if request.shows_headers else None
    return layout.whole(names, pieces, total)


def _check_time(core: Core, request: Request) -> None:
    limit = request.time_limit
    if limit is not None and core.wall.now() - request.now > limit:
        raise RequestError(413, f"Maximum query time of {limit} seconds exceeded!")


def _matching(core: Core, request: Request) -> Generator[None, None, list[Any]]:
    table, node = request.table, request.filter
    rows = [] if misread(request.filters, table) else candidates(node, table)
    if rows is None:
        if table.name == "log":
            since, until = time_bounds(node)
            rows = core.log.newest_first(since, until)
        else:
            rows = table.rows()
    if request.auth_user is not None and table.visible is not None:
        rows = list(filter(table.visible(request.auth_user), rows))
    if isinstance(node, Every) and not node.items:
        return rows
    check: Predicate = compile_filter(node)
    found: list[Any] = []
    for start in range(0, len(rows), _FILTERED_AT_ONCE):
        found += filter(check, rows[start : start + _FILTERED_AT_ONCE])
        if start:
            _check_time(core, request)
            yield
    return found


def _stats(rows: list[Any], request: Request, layout: Format) -> Steps:
    results: list[list[Any]] = []
    for result in compute(rows, request):
        if result is None:
            yield
        else:
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
    texts = [between.join([write_value(value, layout) for value in row]) for row in results]
    pieces = [layout.rows(texts)] if texts else []
    return layout.whole(names if request.shows_headers else None, pieces, total)


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
