"""Rows of sites, and how each of them becomes one row of the answer.

Most answers need no more than that: the rows of a core in the order in which they came, with
columns taken out and put in. Everything else is done with rows in ``stages``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import repeat
from operator import itemgetter
from typing import Any, Protocol

from attrs import evolve, frozen

from monrest.base.values import Column, Expand, Row, nothing
from monrest.query.bind import Bound
from monrest.query.column_names import (
    PEER_COLUMNS,
    CoreColumn,
    CoreSource,
    Derived,
    Getter,
    SiteSource,
    expander,
    getter,
    mask,
)
from monrest.query.model import Ref
from monrest.query.plan import Layout, SitePlan


class Stored(Protocol):
    """Rows that are made when they are gone through."""

    def batches(self) -> Iterator[list[Row]]:
        """Return the rows in their order. Raises BrokenRowsError."""
        ...  # the body of a protocol


@frozen(kw_only=True)
class SitePart:
    """The rows of one site in the common layout (or its Stats) and what is constant for it.

    ``stored`` has the rows of a large answer, of which ``rows`` has none; it is None where no
    answer to the question is large.
    """

    plan: SitePlan
    rows: list[Row]
    constants: Mapping[str, Any]
    stored: Stored | None = None

    def batches(self) -> Iterator[list[Row]]:
        """All rows, of which only some are in memory at a time; each time as they were."""
        if self.rows:
            # Beside stored rows the answer may be made again, of rows that are not changed.
            yield self.rows if self.stored is None else [[*row] for row in self.rows]
        if self.stored is not None:
            yield from self.stored.batches()


@frozen
class Inserted:
    """A computed column that is put into the rows at a place, once those before it are there.

    ``sources`` are places in the rows of the core, or names of what is constant for their site.
    """

    at: int
    compute: Callable[..., Any]
    sources: tuple[int | str, ...]

    def values(self, rows: list[Row], constants: Mapping[str, Any]) -> Iterator[Any]:
        return map(
            self.compute,
            *[
                map(itemgetter(source), rows)
                if isinstance(source, int)
                else repeat(constants[source])
                for source in self.sources
            ],
        )


@frozen(kw_only=True)
class Recipe:
    """The way from a row of a core to one of the answer.

    ``constants`` and ``derived`` are added to it, ``pick`` takes the columns out of that, None
    where they are all of it; ``masks`` are what is cut out of the columns at these places. Where
    the columns of the answer are those of the core in their order with others between them, these
    are put in: ``peers`` from the place ``peers_at`` on, then ``inserted``.
    """

    columns: tuple[Column, ...]
    constants: tuple[str, ...]
    pick: Getter | None
    derived: tuple[Getter, ...] = ()
    masks: tuple[tuple[int, Getter], ...] = ()
    expand: Expand | None = None
    inserted: tuple[Inserted, ...] | None = None
    peers: tuple[str, ...] = ()
    peers_at: int = 0

    def of(self, rows: list[Row], constants: Mapping[str, Any]) -> list[Row]:
        """The rows of the answer made of those of a site, which may be changed for it."""
        if self.inserted is not None:
            computed = [list(insertion.values(rows, constants)) for insertion in self.inserted]
            at, peers = self.peers_at, [constants[name] for name in self.peers]
            for row in rows if peers else ():
                row[at:at] = peers
            for insertion, values in zip(self.inserted, computed, strict=True):
                at = insertion.at
                for row, value in zip(rows, values, strict=True):
                    row.insert(at, value)
        elif self.constants:
            values = [constants[name] for name in self.constants]
            for row in rows:
                row += values
        return self.finished(rows)

    def finished(self, rows: list[Row]) -> list[Row]:
        """The rows of the answer, whose constants are there."""
        if self.inserted is None:
            for row in rows if self.derived else ():
                row += [read(row) for read in self.derived]
            if self.pick is not None:
                rows = list(map(list, map(self.pick, rows)))
        for at, cut in self.masks:
            for row in rows:
                row[at] = cut(row)
        return rows


def straight(bound: Bound, shape: Layout) -> Recipe | None:
    """The recipe for rows of the answer; None where the values of the core's row are not enough."""
    if bound.names.schema.merge != "concat" or bound.aggregates or bound.unpack or bound.doubtful:
        return None
    if bound.selected is None:
        return whole_recipe(bound, shape)
    last = {selected.item.key: selected for selected in bound.selected}
    positions = [position_of(bound, shape.index, item.inner) for item in last.values()]
    if None in positions:
        return None
    pick = None if positions == list(range(shape.width)) else picker(positions)
    columns = tuple(item.column for item in last.values())
    return Recipe(columns=columns, constants=shape.constants, pick=pick)


def position_of(bound: Bound, index: Mapping[str, int], expression: Any) -> int | None:
    """The position of a plain, unmasked column in the row; None for everything computed."""
    if not isinstance(expression, Ref):
        return None
    source = bound.names.find(expression.name)
    if isinstance(source, CoreSource) and not bound.view.masks(source.name):
        return index[source.name]
    if isinstance(source, SiteSource):
        return index[source.column.name]
    return None


def picker(positions: Sequence[Any]) -> Getter:
    """Take the values at these places out of a row."""
    if len(positions) == 1:
        return itemgetter(slice(positions[0], positions[0] + 1))
    return itemgetter(*positions)


def whole_recipe(bound: Bound, shape: Layout) -> Recipe:
    """All defaults sorted by name; made once for each layout and view."""
    key = (shape, bound.view)
    recipe: Recipe | None = bound.names.kept.get(key)
    if recipe is not None:
        return recipe
    schema = bound.names.schema
    index = dict(shape.index)
    columns: dict[str, Column] = {}
    derived: dict[str, Derived] = {}
    for name, spec in schema.columns.items():
        if not spec.default:
            continue
        if isinstance(spec, CoreColumn):
            if name in index:
                columns[name] = spec.column
        elif all(source in shape.index for source in spec.sources):
            derived[name] = Derived(spec)
            index[name] = shape.width + len(derived) - 1
            columns[name] = spec.column
    for name in PEER_COLUMNS:
        peer = bound.names.find(name)
        if name in index and peer is not None:
            columns[name] = peer.column
    names = sorted(columns)
    final = {name: at for at, name in enumerate(names)}
    # Values of variables are cut by their names, so the names themselves are cut last.
    masks = tuple(
        (final[name], mask(name, itemgetter(final[name]), final, bound.view))
        for name in sorted(names, key=lambda name: name.endswith("_names"))
        if name in shape.index and bound.view.masks(name)
    )
    recipe = Recipe(
        columns=tuple(columns[name] for name in names),
        constants=shape.constants,
        pick=picker([index[name] for name in names]),
        derived=tuple(getter(column, shape.index, bound.view) for column in derived.values()),
        masks=masks,
        expand=expander(final, bound.view, schema.perf, schema.custom)
        if schema.perf or schema.custom
        else None,
    )
    recipe = _with_insertions(bound, shape, recipe, derived)
    bound.names.keep(key, recipe)
    return recipe


def _with_insertions(
    bound: Bound, shape: Layout, recipe: Recipe, derived: Mapping[str, Derived]
) -> Recipe:
    """The recipe that puts values into the rows of the core, where these are in its order.

    To take 120 values out of each row costs more than to put a few in.
    """
    if any(
        bound.view.masks(source) for column in derived.values() for source in column.spec.sources
    ):
        return recipe
    core = [name for name, _ in shape.columns]
    names = [column.name for column in recipe.columns]
    peers = tuple(name for name in names if name in PEER_COLUMNS)
    own = [name for name in names if name not in derived and name not in peers]
    beside = [name for name in names if name not in derived]
    peers_at = beside.index(peers[0]) if peers else 0
    if own != core or list(peers) != beside[peers_at : peers_at + len(peers)]:
        return recipe
    places = {name: at for at, name in enumerate(core)}
    inserted = [
        Inserted(
            names.index(name),
            column.spec.compute,
            tuple(places.get(source, source) for source in column.spec.sources),
        )
        for name, column in derived.items()
    ]
    ordered = tuple(sorted(inserted, key=lambda insertion: insertion.at))
    return evolve(recipe, inserted=ordered, peers=peers, peers_at=peers_at)


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
