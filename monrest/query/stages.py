"""What is done with rows one after the other (docs/spec/query.md, "Order of evaluation").

Filter, disaggregation, aggregation, sort and selection, each for as many rows as there are at a
time.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import repeat
from operator import itemgetter
from typing import Any, Protocol

from attrs import define, evolve, field, frozen

from monrest.base.values import Column, Document, Expand, Row, Rows
from monrest.query.aggregate import Groups
from monrest.query.bind import Bound, BoundSort, CheckTree, NamedColumn, Selected
from monrest.query.column_names import (
    PEER_COLUMNS,
    CoreColumn,
    CoreSource,
    Derived,
    Getter,
    PerfValueSource,
    SiteSource,
    expander,
    getter,
    labels,
    mask,
)
from monrest.query.expressions import described, references
from monrest.query.limit import Limit
from monrest.query.model import Ref, leaves
from monrest.query.order import by_value
from monrest.query.plan import Layout, SitePlan
from monrest.query.select import ELEMENT, Reader, items_of

_ELEMENTS = 500
"""Elements of lists that are filtered together, so that few of them are in memory."""


class Stored(Protocol):
    """Rows that are made when they are gone through."""

    def batches(self) -> Iterator[list[Row]]:
        """Give the rows in their order. Raises BrokenRowsError."""
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


@define(eq=False)
class UnknownColumns:
    """Names in ``columns`` and ``sort`` that no row has, for they may be typing errors.

    Without any row a label of performance data or a custom variable counts as known.
    """

    reader: Reader
    _left: dict[NamedColumn, list[Getter]] | None = field(init=False, default=None)

    def look(self, rows: list[Row]) -> None:
        if not rows:
            return
        if self._left is None:
            self._left = {
                one: [
                    self.reader.read(Ref(name, quoted=True))
                    for name in (one.name, one.whole)
                    if name
                ]
                for one in self.reader.bound.doubtful
            }
        left = self._left
        for row in rows:
            if not left:
                break
            self.reader.limit.check()
            for one, reads in list(left.items()):
                if any(read(row) is not None for read in reads):
                    del left[one]

    @property
    def warnings(self) -> tuple[str, ...]:
        """One for each name that no row had."""
        return tuple(one.warning for one in (*self.reader.bound.unknown, *(self._left or ())))


def filtered(
    reader: Reader,
    shape: Layout,
    part: SitePart,
    rows: list[Row],
    filtering: Sequence[Getter] = (),
) -> list[Row]:
    """The rows of one site that pass the row filter, with the constants of the site behind.

    ``rows`` are some of the ``part``. ``filtering`` are the computed values that the filter looks
    at.
    """
    reader.limit.more(len(rows))
    reader.limit.check()
    if shape.constants:
        values = [part.constants[name] for name in shape.constants]
        for row in rows:
            row += values
    trees = () if part.plan.filtered else reader.bound.row_filter
    return kept(reader, trees, rows, filtering)


def kept(
    reader: Reader, trees: Sequence[CheckTree], rows: list[Row], cells: Sequence[Getter]
) -> list[Row]:
    """The rows that pass; ``cells`` are the values that the checks look at beside columns."""
    reader.fill(rows, cells)
    return reader.passing(trees, rows)


def order_of(bound: Bound, index: Mapping[str, int]) -> list[int]:
    """Where the columns of the default order stand in a row."""
    return [index[name] for name in bound.names.schema.order if name in index]


@define(eq=False)
class Unpacking:
    """``to_rows``: a row for each element of a list; to be made after the filter was placed."""

    reader: Reader
    _read: Getter = field(init=False)
    _cells: tuple[Getter, ...] = field(init=False)

    def __attrs_post_init__(self) -> None:
        reader, bound = self.reader, self.reader.bound
        assert bound.unpack is not None
        self._read = reader.read(bound.unpack)
        reader.index[ELEMENT] = reader.width
        self._cells = reader.place(items_of(bound.element_filter))

    def of(self, rows: list[Row]) -> list[Row]:
        """The elements of these rows that pass the filter of elements."""
        reader, trees = self.reader, self.reader.bound.element_filter
        result: list[Row] = []
        waiting: list[Row] = []
        for row in rows:
            elements = self._read(row)
            for element in elements if isinstance(elements, list) else ():
                waiting.append([*row, element])
                if len(waiting) >= _ELEMENTS:
                    result += kept(reader, trees, waiting, self._cells)
                    waiting = []
        return result + kept(reader, trees, waiting, self._cells)


def of_groups(
    bound: Bound, groups: Groups, warnings: tuple[str, ...], limit: Limit
) -> Rows | Document:
    """The answer that is made of groups: filtered, sorted and cut."""
    result: list[Row] = []
    if groups.groups or not groups.grouped:
        result = groups.result()
    columns = groups.columns
    position = {
        at: new
        for new, at in enumerate(
            at for at, one in enumerate(bound.selected or ()) if one.kind != "uniq"
        )
    }
    if bound.aggregate_filter:
        groups_reader = Reader(bound, {}, position, limit=limit)
        result = groups_reader.passing(bound.aggregate_filter, result)
    if not groups.grouped:
        value = dict(zip([one.name for one in columns], result[0], strict=True)) if result else {}
        return Document(value=value, columns=columns, order=tuple(value), warnings=warnings)
    for key in reversed(bound.sort):
        if key.item in position:
            at = position[key.item]
            result = by_value(
                result,
                [row[at] for row in result],
                descending=key.descending,
                textual=textual(bound, key),
            )
    return Rows(columns=columns, rows=cut(bound, result), warnings=warnings)


def cut(bound: Bound, rows: list[Row]) -> list[Row]:
    """The page that is wanted of rows in their order."""
    query = bound.query
    end = None if query.limit is None else query.offset + query.limit
    return rows if not query.offset and end is None else rows[query.offset : end]


def textual(bound: Bound, key: BoundSort) -> bool:
    """Whether a sort key is text by declaration, whatever its values look like."""
    expression = key.expression
    if key.item >= 0 and bound.selected is not None:
        one = bound.selected[key.item]
        expression = one.inner if one.kind == "value" else None
    if not isinstance(expression, Ref):
        return False
    source = bound.names.find(expression.name)
    return isinstance(source, SiteSource) or (
        isinstance(source, CoreSource) and source.core_type == "string"
    )


def sorting(reader: Reader) -> tuple[Getter, ...]:
    """Give what sorting looks at a place in a row; it is filled before ``in_wanted_order``."""
    return reader.place(key.item for key in reader.bound.sort if key.item >= 0)


def in_wanted_order(reader: Reader, rows: list[Row]) -> list[Row]:
    """Rows by the sort keys of the query, ties as they were."""
    bound = reader.bound
    for key in reversed(bound.sort):
        keys = sort_keys(reader, key, rows)
        wanted = textual(bound, key)
        rows = by_value(rows, keys, descending=key.descending, textual=wanted)
    return rows


def sort_keys(reader: Reader, key: BoundSort, rows: list[Row]) -> list[Any]:
    if key.item >= 0:
        read = reader.item(key.item)
    else:
        assert key.expression is not None
        read = reader.read(key.expression)
    return [read(row) for row in rows]


def chosen(bound: Bound, shape: Layout, reader: Reader, rows: list[Row]) -> Rows:
    """The answer made of rows that are filtered, sorted and cut: their columns.

    Without a column list these are all defaults sorted by name, and the expanded keys.
    """
    if bound.selected is None:
        whole = evolve(_whole(bound, shape), inserted=None)
        return Rows(columns=whole.columns, rows=whole.finished(rows), expand=whole.expand)
    last = {one.item.key: at for at, one in enumerate(bound.selected)}
    chosen = [bound.selected[at] for at in last.values()]
    columns = tuple(_measured(bound, reader, one, rows) for one in chosen)
    positions = [_position(bound, reader.index, one.inner) for one in chosen]
    result: list[Row] = []
    if positions == list(range(reader.width)):
        result = rows
    elif None not in positions and positions:
        pick = itemgetter(*positions)
        single = len(positions) == 1
        result = [[pick(row)] for row in rows] if single else [list(pick(row)) for row in rows]
    else:
        result = reader.values(rows, [reader.item(at) for at in last.values()])
    return Rows(columns=columns, rows=result)


def _measured(bound: Bound, reader: Reader, one: Selected, rows: list[Row]) -> Column:
    """The column of an item; labels of performance data have the units that rows give them."""
    assert one.inner is not None

    def column_of(name: str) -> Column | None:
        source = bound.names.find(name)
        if not isinstance(source, PerfValueSource):
            return None if source is None else source.column
        return _label(reader, name, rows[:_MEASURED])

    labels = (bound.names.find(ref.name) for ref in references(one.inner))
    if not rows or not any(isinstance(source, PerfValueSource) for source in labels):
        return one.column
    return described(one.inner, one.item.key, column_of)


def _label(reader: Reader, name: str, rows: Sequence[Row]) -> Column:
    """Type and unit of a label by the first row that has it."""
    value, unit = (reader.read(Ref(one, quoted=True)) for one in (name, f"{name}_unit"))
    for row in rows:
        found = value(row)
        if found is not None:
            if isinstance(found, str) and name.endswith("_unit"):
                return Column(name, "string")
            return Column(name, "number", unit(row) or "")
    return Column(name)


_MEASURED = 100
"""Rows that are looked at for the type and unit of a label."""


def _position(bound: Bound, index: Mapping[str, int], expression: Any) -> int | None:
    """Where a plain, unmasked column stands in the row; None for everything computed."""
    if not isinstance(expression, Ref):
        return None
    source = bound.names.find(expression.name)
    if isinstance(source, CoreSource) and not bound.view.masks(source.name):
        return index[source.name]
    if isinstance(source, SiteSource):
        return index[source.column.name]
    return None


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
                map(itemgetter(one), rows) if isinstance(one, int) else repeat(constants[one])
                for one in self.sources
            ],
        )


@frozen(kw_only=True)
class Recipe:
    """How a row of a core becomes one of the answer.

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
            computed = [list(one.values(rows, constants)) for one in self.inserted]
            at, peers = self.peers_at, [constants[name] for name in self.peers]
            for row in rows if peers else ():
                row[at:at] = peers
            for one, values in zip(self.inserted, computed, strict=True):
                at = one.at
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


def recipe(bound: Bound, shape: Layout) -> Recipe | None:
    """How the rows of a query become those of the answer; None where a column is computed."""
    if bound.selected is None:
        return _whole(bound, shape)
    last = {one.item.key: one for one in bound.selected}
    positions = [_position(bound, shape.index, one.inner) for one in last.values()]
    if None in positions:
        return None
    pick = None if positions == list(range(shape.width)) else _picker(positions)
    columns = tuple(one.column for one in last.values())
    return Recipe(columns=columns, constants=shape.constants, pick=pick)


def _picker(positions: Sequence[Any]) -> Getter:
    """Take the values at these places out of a row."""
    if len(positions) == 1:
        return itemgetter(slice(positions[0], positions[0] + 1))
    return itemgetter(*positions)


def _whole(bound: Bound, shape: Layout) -> Recipe:
    """All defaults sorted by name; made once for each layout and view."""
    key = (shape, bound.view)
    made: Recipe | None = bound.names.made.get(key)
    if made is not None:
        return made
    schema = bound.names.schema
    index = dict(shape.index)
    found: dict[str, Column] = {}
    derived: dict[str, Derived] = {}
    for name, spec in schema.columns.items():
        if not spec.default:
            continue
        if isinstance(spec, CoreColumn):
            if name in index:
                found[name] = spec.column
        elif all(one in shape.index for one in spec.sources):
            derived[name] = Derived(spec)
            index[name] = shape.width + len(derived) - 1
            found[name] = spec.column
    for name in PEER_COLUMNS:
        peer = bound.names.find(name)
        if name in index and peer is not None:
            found[name] = peer.column
    names = sorted(found)
    final = {name: at for at, name in enumerate(names)}
    # Values of variables are cut by their names, so the names themselves are cut last.
    masks = tuple(
        (final[name], mask(name, itemgetter(final[name]), final, bound.view))
        for name in sorted(names, key=lambda one: one.endswith("_names"))
        if name in shape.index and bound.view.masks(name)
    )
    made = Recipe(
        columns=tuple(found[name] for name in names),
        constants=shape.constants,
        pick=_picker([index[name] for name in names]),
        derived=tuple(getter(one, shape.index, bound.view) for one in derived.values()),
        masks=masks,
        expand=expander(final, bound.view, schema.perf, schema.custom)
        if schema.perf or schema.custom
        else None,
    )
    made = _with_insertions(bound, shape, made, derived)
    bound.names.keep(key, made)
    return made


def _with_insertions(
    bound: Bound, shape: Layout, made: Recipe, derived: Mapping[str, Derived]
) -> Recipe:
    """The same, putting values into rows where that makes the answer of them; else as it is.

    To take 120 values out of each row costs more than to put a few in.
    """
    core = [name for name, _ in shape.columns]
    names = [one.name for one in made.columns]
    peers = tuple(name for name in names if name in PEER_COLUMNS)
    own = [name for name in names if name not in derived and name not in peers]
    beside = [name for name in names if name not in derived]
    peers_at = beside.index(peers[0]) if peers else 0
    if own != core or list(peers) != beside[peers_at : peers_at + len(peers)]:
        return made
    places = {name: at for at, name in enumerate(core)}
    inserted = [
        Inserted(
            names.index(name),
            one.spec.compute,
            tuple(places.get(source, source) for source in one.spec.sources),
        )
        for name, one in derived.items()
    ]
    if any(bound.view.masks(source) for one in derived.values() for source in one.spec.sources):
        return made
    ordered = tuple(sorted(inserted, key=lambda one: one.at))
    return evolve(made, inserted=ordered, peers=peers, peers_at=peers_at)


def filters_by_label(bound: Bound) -> bool:
    """Whether a filter names a label of performance data."""
    return any(isinstance(one.source, PerfValueSource) for one in leaves(bound.row_filter))


def absent_labels(bound: Bound, shape: Layout, parts: Sequence[SitePart]) -> tuple[str, ...]:
    """Labels of performance data that a filter names and that no fetched row has."""
    checks = [check.source for check in leaves(bound.row_filter)]
    wanted = {one.key: one for one in checks if isinstance(one, PerfValueSource)}
    if not wanted:
        return ()
    index = shape.index
    sources = {(index[name], prefix) for one in wanted.values() for name, prefix in one.sources}
    places = [(at, partial(labels, prefix=prefix)) for at, prefix in sources]
    rows = (row for part in parts for batch in part.batches() for row in batch)
    return unseen_labels(wanted, rows, places)


def unseen_labels(
    names: Iterable[str],
    rows: Iterable[Row],
    places: Sequence[tuple[int, Callable[[Any], Collection[str]]]],
) -> tuple[str, ...]:
    """Those of ``names`` that are a label in no row.

    ``places``: where in a row performance data or variables stand, and what gives their keys.
    """
    missing = dict.fromkeys(names)
    for row in rows:
        for place, keys in places:
            if row[place]:
                found = keys(row[place])
                for name in [one for one in missing if one in found]:
                    del missing[name]
        if not missing:
            break
    return tuple(missing)
