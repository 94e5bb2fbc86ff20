"""What is done with rows one after the other (docs/spec/query.md, "Order of evaluation").

Filter, disaggregation, aggregation, sort and selection, each for as many rows as there are at a
time.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

from attrs import define, evolve, field

from monrest.base.values import Column, Document, Row, Rows
from monrest.query.aggregate import Groups
from monrest.query.bind import Bound, BoundSort, CheckTree, NamedColumn, Selected
from monrest.query.column_names import (
    CoreSource,
    Getter,
    PerfValueSource,
    SiteSource,
    labels,
)
from monrest.query.expressions import described, references
from monrest.query.flow import SitePart, picker, position_of, whole_recipe
from monrest.query.limit import Limit
from monrest.query.model import Ref, leaves
from monrest.query.order import by_value
from monrest.query.plan import Layout
from monrest.query.select import ELEMENT, Reader, items_of

_ELEMENTS = 500
"""Elements of lists that are filtered together, so that few of them are in memory."""


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
                column: [
                    self.reader.read(Ref(name, quoted=True))
                    for name in (column.name, column.whole)
                    if name
                ]
                for column in self.reader.bound.doubtful
            }
        left = self._left
        for row in rows:
            if not left:
                break
            self.reader.limit.check()
            for column, reads in list(left.items()):
                if any(read(row) is not None for read in reads):
                    del left[column]

    @property
    def warnings(self) -> tuple[str, ...]:
        """One for each name that no row had."""
        return tuple(column.warning for column in (*self.reader.bound.unknown, *(self._left or ())))


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
            at for at, item in enumerate(bound.selected or ()) if item.kind != "uniq"
        )
    }
    if bound.aggregate_filter:
        groups_reader = Reader(bound, {}, position, limit=limit)
        result = groups_reader.passing(bound.aggregate_filter, result)
    if not groups.grouped:
        value = (
            dict(zip([column.name for column in columns], result[0], strict=True)) if result else {}
        )
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
    """Whether a sort key is text by its declaration."""
    expression = key.expression
    if key.item >= 0 and bound.selected is not None:
        item = bound.selected[key.item]
        expression = item.inner if item.kind == "value" else None
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
        whole = evolve(whole_recipe(bound, shape), inserted=None)
        return Rows(columns=whole.columns, rows=whole.finished(rows), expand=whole.expand)
    last = {selected.item.key: at for at, selected in enumerate(bound.selected)}
    wanted = [bound.selected[at] for at in last.values()]
    columns = tuple(_measured(bound, reader, item, rows) for item in wanted)
    positions = [position_of(bound, reader.index, item.inner) for item in wanted]
    if None in positions or not positions:
        rows = reader.values(rows, [reader.item(at) for at in last.values()])
    elif positions != list(range(reader.width)):
        rows = list(map(list, map(picker(positions), rows)))
    return Rows(columns=columns, rows=rows)


def _measured(bound: Bound, reader: Reader, selected: Selected, rows: list[Row]) -> Column:
    """The column of a selected item; labels of performance data have the units that rows give."""
    assert selected.inner is not None

    def column_of(name: str) -> Column | None:
        source = bound.names.find(name)
        if not isinstance(source, PerfValueSource):
            return None if source is None else source.column
        return _label(reader, name, rows[:_MEASURED])

    labels = (bound.names.find(ref.name) for ref in references(selected.inner))
    if not rows or not any(isinstance(source, PerfValueSource) for source in labels):
        return selected.column
    return described(selected.inner, selected.item.key, column_of)


def _label(reader: Reader, name: str, rows: Sequence[Row]) -> Column:
    """Type and unit of a label by the first row that has it."""
    value, unit = (reader.read(Ref(column, quoted=True)) for column in (name, f"{name}_unit"))
    for row in rows:
        text = value(row)
        if text is not None:
            if isinstance(text, str) and name.endswith("_unit"):
                return Column(name, "string")
            return Column(name, "number", unit(row) or "")
    return Column(name)


_MEASURED = 100
"""Rows that are looked at for the type and unit of a label."""


def filters_by_label(bound: Bound) -> bool:
    """Whether a filter names a label of performance data."""
    return any(
        isinstance(condition.source, PerfValueSource) for condition in leaves(bound.row_filter)
    )


def absent_labels(bound: Bound, shape: Layout, parts: Sequence[SitePart]) -> tuple[str, ...]:
    """Labels of performance data that a filter names and that no fetched row has."""
    checks = [check.source for check in leaves(bound.row_filter)]
    wanted = {check.key: check for check in checks if isinstance(check, PerfValueSource)}
    if not wanted:
        return ()
    index = shape.index
    sources = {
        (index[name], prefix) for source in wanted.values() for name, prefix in source.sources
    }
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
                labels = keys(row[place])
                for name in [label for label in missing if label in labels]:
                    del missing[name]
        if not missing:
            break
    return tuple(missing)
