"""Answers of which each row is one row of a core, in the order in which those came.

Few of them are made in one go, many while they are read (docs/spec/memory.md).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import Any

from attrs import evolve, frozen

from monrest.base.values import LateRows, Row, Rows
from monrest.query import stages
from monrest.query.bind import Bound
from monrest.query.plan import Layout
from monrest.query.stages import Recipe, SitePart

_TURN = 500


FEW = 200
"""Rows of which the answer is made in one go."""


@frozen(kw_only=True, eq=False)
class Straight:
    """How an answer is made of rows whose order and filter are left to the cores.

    ``single``: that is only so for the rows of one site. ``end`` counts from ``offset``.
    ``only_picks``: columns are taken out of the rows and nothing is added.
    """

    recipe: Recipe
    only_picks: bool
    single: bool
    offset: int
    end: int | None
    warnings: tuple[str, ...]

    def rows(self, found: Sequence[tuple[list[Row], Mapping[str, Any]]]) -> list[Row]:
        """The rows of the answer made of those of each site, with what is constant for it."""
        rows: list[Row] = []
        pick = self.recipe.pick
        for mine, constants in found:
            if self.only_picks:
                made = list(map(list, map(pick, mine))) if pick is not None else mine
            else:
                made = self.recipe.of(mine, constants)
            rows = made if not rows else rows + made
        if self.offset or self.end is not None:
            rows = rows[self.offset : self.end]
        return rows


def straight(bound: Bound, shape: Layout) -> Straight | None:
    """How few rows become the answer; None when they need each other, or other work."""
    if bound.names.schema.merge != "concat" or not _each_alone(bound, shape):
        return None
    query, recipe = bound.query, stages.recipe(bound, shape)
    adds = recipe.inserted is not None or recipe.constants or recipe.derived or recipe.masks
    return Straight(
        recipe=recipe,
        only_picks=not adds,
        single=bool(bound.sort),
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
    recipe = stages.recipe(bound, shape)

    def make() -> Iterator[Row]:
        return chain.from_iterable(_batches(recipe, parts, first, end))

    return Rows(
        columns=recipe.columns,
        rows=LateRows(make, end - first),
        expand=recipe.expand,
        blanks=recipe.blanks,
        warnings=tuple(one.warning for one in bound.unknown),
    )


def _batches(
    recipe: Recipe, parts: Sequence[SitePart], first: int, end: int
) -> Iterator[list[Row]]:
    """The rows of the answer that are made of those from ``first`` to before ``end``."""
    at = 0
    for part in parts:
        packed = part.packed.batches() if part.packed is not None else iter(())
        # Those that stay in memory may be wanted again.
        rows = (
            [[*row] for row in part.rows[start : start + _TURN]]
            for start in range(0, len(part.rows), _TURN)
        )
        for batch in chain(packed, rows):
            if at >= end:
                return
            wanted = batch[max(0, first - at) : end - at]
            at += len(batch)
            if wanted:
                yield recipe.of(wanted, part.constants)


def unpacked(parts: Sequence[SitePart]) -> list[SitePart]:
    """Make all parts parts of rows in memory."""
    whole = []
    for part in parts:
        if part.packed is not None and part.packed.count:
            rows: list[Row] = []
            for batch in part.packed.batches():
                rows += batch
            part = evolve(part, rows=rows + part.rows, packed=None)
        whole.append(part)
    return whole
