"""Answers of which each row is one row of a core, in the order in which those came."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from monrest.base.values import Row, nothing
from monrest.query import stages
from monrest.query.bind import Bound
from monrest.query.plan import Layout
from monrest.query.stages import Recipe, SitePart


def straight(bound: Bound, shape: Layout) -> Recipe | None:
    """How a row of a core becomes one of the answer; None when rows need each other."""
    if bound.names.schema.merge != "concat" or bound.aggregates or bound.unpack or bound.doubtful:
        return None
    return stages.recipe(bound, shape)


def flows(bound: Bound, parts: Sequence[SitePart]) -> bool:
    """Whether the cores have left nothing to filter or to sort."""
    in_order = all(part.plan.sorted and part.plan.filtered for part in parts)
    return in_order and (len(parts) == 1 or not bound.sort)


def flow(
    bound: Bound,
    recipe: Recipe,
    parts: Sequence[SitePart],
    check: Callable[[], object] = nothing,
) -> Iterator[Row]:
    """The rows of the answer; those of the parts may be changed for it.

    ``check`` is called for each batch of them.
    """
    query, at = bound.query, 0
    end = None if query.limit is None else query.offset + query.limit
    for part in parts:
        for batch in part.batches():
            check()
            if end is not None and at >= end:
                return
            first, last = max(0, query.offset - at), None if end is None else end - at
            wanted = batch[first:last] if first or last is not None else batch
            at += len(batch)
            yield from recipe.of(wanted, part.constants)
