"""Answers whose rows are made while they are read (docs/spec/memory.md)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain

from attrs import evolve

from monrest.base.values import LateRows, Row, Rows
from monrest.query import stages
from monrest.query.bind import Bound
from monrest.query.plan import Layout
from monrest.query.select import Reader
from monrest.query.stages import SitePart
from monrest.query.steps import Steps, finished

_TURN = 500


def flows(bound: Bound, shape: Layout, parts: Sequence[SitePart]) -> bool:
    """Whether each row of the answer is one row of a core, in the order in which they came.

    Then no row needs another one, and nothing can go wrong with one but what went wrong before.
    """
    presorted = all(part.plan.sorted for part in parts) and (len(parts) == 1 or not bound.sort)
    return (
        bound.names.schema.merge == "concat"
        and presorted
        and all(part.plan.filtered for part in parts)
        and not (bound.aggregates or bound.unpack or bound.doubtful)
        and stages.is_plain(bound, shape)
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
