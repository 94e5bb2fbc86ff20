"""Answers of which each row is one row of a core, in the order in which those came.

Few of them are made in one go, many while they are read (docs/spec/memory.md).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any

from attrs import evolve, frozen

from monrest.base.values import Column, Expand, LateRows, Row, Rows
from monrest.query import stages
from monrest.query.bind import Bound
from monrest.query.column_names import Getter
from monrest.query.plan import Layout
from monrest.query.select import Reader
from monrest.query.stages import SitePart
from monrest.query.steps import Steps, finished

_TURN = 500


FEW = 200
"""Rows of which the answer is made in one go."""


@frozen(kw_only=True, eq=False)
class Straight:
    """How an answer is made of rows whose order and filter are left to the cores.

    ``single``: that is only so for the rows of one site. ``pick`` takes the columns out of a row
    after ``derived`` was added; None when they are all of it. ``masks`` are what is cut out of
    the columns at these places. ``limit`` counts from ``offset``.
    """

    columns: tuple[Column, ...]
    single: bool
    pick: Callable[[Row], Iterable[Any]] | None
    derived: tuple[Getter, ...]
    masks: tuple[tuple[int, Getter], ...]
    expand: Expand | None
    constants: tuple[str, ...]
    offset: int
    end: int | None
    warnings: tuple[str, ...]

    def rows(self, found: Sequence[tuple[list[Row], Mapping[str, Any]]]) -> list[Row]:
        """The rows of the answer made of those of each site, with what is constant for it."""
        rows: list[Row] = []
        for mine, constants in found:
            if self.constants:
                values = [constants[name] for name in self.constants]
                for row in mine:
                    row += values
            rows = mine if not rows else rows + mine
        if self.offset or self.end is not None:
            rows = rows[self.offset : self.end]
        for row in rows if self.derived else ():
            row += [read(row) for read in self.derived]
        if self.pick is not None:
            rows = list(map(list, map(self.pick, rows)))
        for at, cut in self.masks:
            for row in rows:
                row[at] = cut(row)
        return rows


def straight(bound: Bound, shape: Layout) -> Straight | None:
    """How few rows become the answer; None when they need each other, or other work."""
    if bound.names.schema.merge != "concat" or not _each_alone(bound, shape):
        return None
    whole = stages.recipe(bound, shape)
    query = bound.query
    return Straight(
        columns=whole.columns,
        single=bool(bound.sort),
        pick=whole.pick,
        derived=whole.derived,
        masks=whole.masks,
        expand=whole.expand,
        constants=shape.constants,
        offset=query.offset,
        end=None if query.limit is None else query.offset + query.limit,
        warnings=tuple(one.warning for one in bound.unknown),
    )


def _each_alone(bound: Bound, shape: Layout) -> bool:
    """Whether a row of the answer is nothing but columns of one row of a core."""
    return not (bound.aggregates or bound.unpack or bound.doubtful) and stages.is_plain(
        bound, shape
    )


def flows(bound: Bound, shape: Layout, parts: Sequence[SitePart]) -> bool:
    """Whether each row of the answer is one row of a core, in the order in which they came.

    Then no row needs another one, and nothing can go wrong with one but what went wrong before.
    """
    presorted = all(part.plan.sorted for part in parts) and (len(parts) == 1 or not bound.sort)
    return (
        bound.names.schema.merge == "concat"
        and presorted
        and all(part.plan.filtered for part in parts)
        and _each_alone(bound, shape)
    )


def flow(bound: Bound, shape: Layout, parts: Sequence[SitePart]) -> Rows:
    """The answer that ``flows``; its rows may be gone through more than once."""
    first = bound.query.offset
    count = sum(part.count for part in parts)
    if bound.query.limit is not None:
        count = min(count, first + bound.query.limit)
    end = max(first, count)
    reader = Reader(bound, dict(shape.index))

    def selected(rows: list[Row]) -> Rows:
        return finished(stages.chosen(bound, shape, reader, rows))

    def make() -> Iterator[Row]:
        batches = _batches(shape, parts, first, end)
        return chain.from_iterable(selected(batch).rows for batch in batches)

    warnings = tuple(one.warning for one in bound.unknown)
    return evolve(selected([]), rows=LateRows(make, end - first), warnings=warnings)


def _batches(shape: Layout, parts: Sequence[SitePart], first: int, end: int) -> Iterator[list[Row]]:
    """Copies of the rows from ``first`` to before ``end``, with the constants of their sites."""
    at = 0
    for part in parts:
        values = [part.constants[name] for name in shape.constants]
        packed = part.packed.batches() if part.packed is not None else iter(())
        rows = (part.rows[start : start + _TURN] for start in range(0, len(part.rows), _TURN))
        for batch in chain(packed, rows):
            if at >= end:
                return
            wanted = batch[max(0, first - at) : end - at]
            at += len(batch)
            if wanted:
                yield [row + values for row in wanted]


def unpacked(parts: Sequence[SitePart]) -> Steps[list[SitePart]]:
    """Make all parts parts of rows in memory."""
    whole = []
    for part in parts:
        if part.packed is not None and part.packed.count:
            rows: list[Row] = []
            for batch in part.packed.batches():
                rows += batch
                yield
            part.packed.forget()
            part = evolve(part, rows=rows + part.rows, packed=None)
        whole.append(part)
    return whole
