"""From the rows of the sites, or from records, to the answer of a request.

The stages (docs/spec/query.md, "Order of evaluation") are filter, disaggregation, aggregation, sort
and selection, each for as many rows as there are at a time. Log lines come in batches and are
another matter, see ``lines``.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

from attrs import define, evolve, field

from monrest.base.errors import BadRequest
from monrest.base.values import Column, Document, Row, Rows
from monrest.query.aggregate import Groups
from monrest.query.bind import Bound, BoundSort, NamedColumn, Selected
from monrest.query.column_names import (
    PEER_COLUMNS,
    CoreSource,
    Getter,
    PerfValueSource,
    SiteSource,
    labels,
)
from monrest.query.columns import described, references
from monrest.query.flow import SitePart, picker, position_of, whole_recipe
from monrest.query.limit import Limit
from monrest.query.model import Ref, leaves
from monrest.query.plan import Layout, core_type
from monrest.query.scalars import by_columns, by_value
from monrest.query.select import ELEMENT, Reader, items_of

_ELEMENTS = 500
"""Elements of lists that are filtered together, so that few of them are in memory."""


def finish(bound: Bound, shape: Layout, parts: Sequence[SitePart], limit: Limit) -> Rows | Document:
    """The answer: a Document for an aggregation without groups, Rows for everything else.

    Of large answers only the rows that pass the filter are in memory, and of these none that an
    aggregation has counted.
    """
    stages = Stages(bound, shape, limit)
    groups = Groups(bound)
    for part in parts:
        if part.plan.pushed.stats:
            for batch in part.batches():
                groups.stats_into(part.plan.pushed, batch, part.constants)
    whole = [part for part in parts if not part.plan.pushed.stats]
    if bound.names.schema.merge == "groups":
        batches = [(batch, part.constants) for part in whole for batch in part.batches()]
        limit.more(sum(len(batch) for batch, _ in batches))
        merged = stages.passing(_merge_groups(batches, shape))
        return stages.answer(by_columns(merged, stages.order), groups)
    rows: list[Row] = []
    for part in whole:
        mine: list[Row] = []
        for batch in part.batches():
            some = stages.filtered(part, batch)
            if bound.aggregates:
                groups.rows_into(stages.reader, stages.elements(some))
            else:
                mine = some if not mine else mine + some
        if not part.plan.sorted:
            mine = by_columns(mine, stages.order)
        rows = mine if not rows else rows + mine
    # One core may have sorted already; rows of several are sorted together.
    return stages.answer(rows, groups, presorted=len(parts) == 1 and parts[0].plan.sorted)


def of_records(
    bound: Bound, names: Sequence[str], rows: list[Row], limit: Limit, *, ordered: bool = False
) -> Rows | Document:
    """The answer made of rows that no core has: their values are those of the columns ``names``.

    ``ordered``: they come as the answer shows them when the request has no order.
    """
    limit.more(len(rows))
    columns = tuple((name, core_type(bound, name)) for name in names)
    stages = Stages(bound, Layout(columns=columns, constants=()), limit)
    rows = stages.passing(rows)
    if not bound.aggregates and (bound.sort or not ordered):
        rows = by_columns(rows, stages.order)
    return stages.answer(rows, Groups(bound))


def of_object(
    bound: Bound, value: Mapping[str, Any], limit: Limit
) -> tuple[dict[str, Any], tuple[str, ...]]:
    """The selected items of one object: renames, functions and calculations of its keys.

    ``bound`` must be bound to names that declare its keys. With the new object come warnings of
    names that the old one does not have. Raises BadRequest for ``to_rows``.
    """
    if bound.unpack is not None:
        raise BadRequest(
            "error during request",
            "columns: to_rows needs a list of rows, this resource answers one object",
        )
    assert bound.selected is not None
    items = {item.item.key: at for at, item in enumerate(bound.selected) if item.kind == "value"}
    reader = Reader(bound, {name: at for at, name in enumerate(value)}, limit=limit)
    (values,) = reader.values([[*value.values()]], [reader.item(at) for at in items.values()])
    return dict(zip(items, values, strict=True)), tuple(name.warning for name in bound.unknown)


def _merge_groups(sites: Sequence[tuple[list[Row], Mapping[str, Any]]], shape: Layout) -> list[Row]:
    """Rows of all sites merged by name; the constants of the sites become lists."""
    names = [name for name, _ in shape.columns]
    by_name = names.index("name")
    width = len(names)
    merged: dict[Any, Row] = {}
    for rows, constants in sites:
        own = [constants[name] for name in shape.constants]
        for row in rows:
            present = merged.get(row[by_name])
            if present is None:
                merged[row[by_name]] = row + [
                    [constant] if name in PEER_COLUMNS else constant
                    for name, constant in zip(shape.constants, own, strict=True)
                ]
                continue
            for at, name in enumerate(names):
                if name.startswith("num_"):
                    present[at] += row[at]
                elif name.startswith("worst_"):
                    present[at] = max(present[at], row[at])
                elif name in ("members", "members_with_state"):
                    present[at] = [*present[at], *row[at]]
            for offset, name in enumerate(shape.constants):
                if name in PEER_COLUMNS:
                    present[width + offset] = [*present[width + offset], own[offset]]
    return list(merged.values())


@define(eq=False)
class Stages:
    """The stages of one answer, for some rows at a time.

    What a stage computes of a row has its place behind the row, in the order of the stages.
    """

    bound: Bound
    shape: Layout
    limit: Limit
    reader: Reader = field(init=False)
    order: list[int] = field(init=False)
    """The positions of the columns of the default order in a row."""
    _filtering: tuple[Getter, ...] = field(init=False)
    _elements: Getter | None = field(init=False, default=None)
    _of_elements: tuple[Getter, ...] = field(init=False)
    _sorting: tuple[Getter, ...] = field(init=False, default=())
    _unseen: dict[NamedColumn, list[Getter]] | None = field(init=False, default=None)
    """Names in ``columns`` and ``sort`` that no row had so far; None before the first row."""

    def __attrs_post_init__(self) -> None:
        bound, index = self.bound, self.shape.index
        self.reader = reader = Reader(bound, dict(index), limit=self.limit)
        self.order = [index[name] for name in bound.names.schema.order if name in index]
        self._filtering = reader.place(items_of(bound.row_filter))
        if bound.unpack is not None:
            self._elements = reader.read(bound.unpack)
            reader.index[ELEMENT] = reader.width
        self._of_elements = reader.place(items_of(bound.element_filter))
        if not bound.aggregates:
            self._sorting = reader.place(key.item for key in bound.sort if key.item >= 0)

    def filtered(self, part: SitePart, rows: list[Row]) -> list[Row]:
        """The rows of a site that pass the row filter, with its constants behind."""
        self.limit.more(len(rows))
        self.limit.check()
        if self.shape.constants:
            values = [part.constants[name] for name in self.shape.constants]
            for row in rows:
                row += values
        return self.passing(rows, filtered=part.plan.filtered)

    def passing(self, rows: list[Row], *, filtered: bool = False) -> list[Row]:
        """The complete rows that pass the row filter, all of them where a core has filtered."""
        self.reader.fill(rows, self._filtering)
        return rows if filtered else self.reader.passing(self.bound.row_filter, rows)

    def elements(self, rows: list[Row]) -> list[Row]:
        """The rows, or with ``to_rows`` one for each element that passes the filter of elements."""
        # Of a list that no row has there are no elements to look at.
        self._look(rows)
        if self._elements is None:
            return rows
        result: list[Row] = []
        waiting: list[Row] = []
        for row in rows:
            elements = self._elements(row)
            for element in elements if isinstance(elements, list) else ():
                waiting.append([*row, element])
                if len(waiting) >= _ELEMENTS:
                    result += self._passing_elements(waiting)
                    waiting = []
        return result + self._passing_elements(waiting)

    def _passing_elements(self, rows: list[Row]) -> list[Row]:
        self.reader.fill(rows, self._of_elements)
        return self.reader.passing(self.bound.element_filter, rows)

    def _look(self, rows: list[Row]) -> None:
        """See which names the rows have, for others may be typing errors."""
        if not rows:
            return
        if self._unseen is None:
            self._unseen = {
                column: [
                    self.reader.read(Ref(name, quoted=True))
                    for name in (column.name, column.whole)
                    if name
                ]
                for column in self.bound.doubtful
            }
        for row in rows:
            if not self._unseen:
                break
            self.limit.check()
            for column, reads in list(self._unseen.items()):
                if any(read(row) is not None for read in reads):
                    del self._unseen[column]

    @property
    def warnings(self) -> tuple[str, ...]:
        """A warning for each name that no row had.

        Without any row a label of performance data or a custom variable counts as known.
        """
        return tuple(column.warning for column in (*self.bound.unknown, *(self._unseen or ())))

    def fill(self, rows: list[Row]) -> None:
        """Compute what sorting looks at, before ``in_wanted_order``."""
        self.reader.fill(rows, self._sorting)

    def in_wanted_order(self, rows: list[Row]) -> list[Row]:
        """Rows by the sort keys of the query, ties as they were."""
        for key in reversed(self.bound.sort):
            keys, text = self.sort_keys(key, rows), textual(self.bound, key)
            rows = by_value(rows, keys, descending=key.descending, textual=text)
        return rows

    def sort_keys(self, key: BoundSort, rows: list[Row]) -> list[Any]:
        if key.item >= 0:
            read = self.reader.item(key.item)
        else:
            assert key.expression is not None
            read = self.reader.read(key.expression)
        return [read(row) for row in rows]

    def answer(
        self, rows: list[Row], groups: Groups, *, presorted: bool = False
    ) -> Rows | Document:
        """The answer made of all rows that pass the filter, or of the groups."""
        rows = self.elements(rows)
        if self.bound.aggregates:
            groups.rows_into(self.reader, rows)
            return self.of_groups(groups)
        if not presorted:
            self.fill(rows)
            rows = self.in_wanted_order(rows)
        return self.chosen(cut(self.bound, rows))

    def of_groups(self, groups: Groups) -> Rows | Document:
        """The answer that is made of groups: filtered, sorted and cut."""
        bound, columns, warnings = self.bound, groups.columns, self.warnings
        result: list[Row] = []
        if groups.groups or not groups.grouped:
            result = groups.result()
        position = {
            at: new
            for new, at in enumerate(
                at for at, item in enumerate(bound.selected or ()) if item.kind != "uniq"
            )
        }
        if bound.aggregate_filter:
            groups_reader = Reader(bound, {}, position, limit=self.limit)
            result = groups_reader.passing(bound.aggregate_filter, result)
        if not groups.grouped:
            names = [column.name for column in columns]
            value = dict(zip(names, result[0], strict=True)) if result else {}
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

    def chosen(self, rows: list[Row]) -> Rows:
        """The answer made of rows that are filtered, sorted and cut: their columns.

        Without a column list these are all defaults sorted by name, and the expanded keys.
        """
        bound, reader, warnings = self.bound, self.reader, self.warnings
        if bound.selected is None:
            whole = evolve(whole_recipe(bound, self.shape), inserted=None)
            rows = whole.finished(rows)
            return Rows(columns=whole.columns, rows=rows, expand=whole.expand, warnings=warnings)
        last = {selected.item.key: at for at, selected in enumerate(bound.selected)}
        wanted = [bound.selected[at] for at in last.values()]
        columns = tuple(_measured(bound, reader, item, rows) for item in wanted)
        positions = [position_of(bound, reader.index, item.inner) for item in wanted]
        if None in positions or not positions:
            rows = reader.values(rows, [reader.item(at) for at in last.values()])
        elif positions != list(range(reader.width)):
            rows = list(map(list, map(picker(positions), rows)))
        return Rows(columns=columns, rows=rows, warnings=warnings)


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


def _measured(bound: Bound, reader: Reader, selected: Selected, rows: list[Row]) -> Column:
    """The column of a selected item; labels of performance data have the units of the rows."""
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

    ``places``: where in a row performance data or variables stand, and the function for their keys.
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
