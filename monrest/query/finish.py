"""Finishing: from the answers of the sites, or from records, to the answer of the request.

What is done with rows is in ``stages``; here is in which order, which depends on how the rows of
several sites become one list. Log lines are another matter, see ``lines``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from attrs import define, evolve, field

from monrest.base.values import Document, Row, Rows
from monrest.query import stages
from monrest.query.aggregate import Groups
from monrest.query.bind import Bound
from monrest.query.flow import SitePart
from monrest.query.limit import Limit
from monrest.query.lines import Lines
from monrest.query.order import by_columns
from monrest.query.plan import Layout, core_type
from monrest.query.select import Reader, items_of
from monrest.query.stages import UnknownColumns, Unpacking


def finish(bound: Bound, shape: Layout, parts: Sequence[SitePart], limit: Limit) -> Rows | Document:
    """The answer: a Document for an aggregation without groups, Rows for everything else.

    Of large answers only the rows that pass the filter are in memory, and of these none that an
    aggregation has counted.
    """
    if bound.names.schema.merge == "logs":
        lines = Lines(bound, shape, len(parts), limit=limit)
        sites = []
        for part in parts:
            sites.append(lines.site())
            sites[-1].take(part)
        return lines.answer(sites)
    reader = Reader(bound, dict(shape.index), limit=limit)
    filtering = reader.place(items_of(bound.row_filter))
    end = _End(reader, shape)
    order = stages.order_of(bound, shape.index)
    rows: list[Row] = []
    for part in parts:
        if part.plan.pushed.stats:
            for batch in part.batches():
                end.groups.stats_into(part.plan.pushed, batch, part.constants)
    whole = [part for part in parts if not part.plan.pushed.stats]
    if bound.names.schema.merge == "groups":
        batches = [(batch, part.constants) for part in whole for batch in part.batches()]
        limit.more(sum(len(batch) for batch, _ in batches))
        rows = stages.kept(reader, bound.row_filter, _merge_groups(batches, shape), filtering)
        return end.answer(by_columns(rows, order))
    for part in whole:
        mine: list[Row] = []
        for batch in part.batches():
            some = stages.filtered(reader, shape, part, batch, filtering)
            if bound.aggregates:
                end.count(some)
            else:
                mine = some if not mine else mine + some
        if not part.plan.sorted:
            mine = by_columns(mine, order)
        rows = mine if not rows else rows + mine
    # One core may have sorted already; rows of several are sorted together.
    return end.answer(rows, presorted=len(parts) == 1 and parts[0].plan.sorted)


def of_records(
    bound: Bound, names: Sequence[str], rows: list[Row], limit: Limit, *, ordered: bool = False
) -> Rows | Document:
    """The answer made of rows that no core has: their values are those of the columns ``names``.

    ``ordered``: they come as the answer shows them when the request has no order.
    """
    limit.more(len(rows))
    columns = tuple((name, core_type(bound, name)) for name in names)
    shape = Layout(columns=columns, constants=())
    reader = Reader(bound, dict(shape.index), limit=limit)
    filtering = reader.place(items_of(bound.row_filter))
    end = _End(reader, shape)
    rows = stages.kept(reader, bound.row_filter, rows, filtering)
    if not bound.aggregates and (bound.sort or not ordered):
        rows = by_columns(rows, stages.order_of(bound, shape.index))
    return end.answer(rows)


@define(eq=False)
class _End:
    """What is done with the rows that pass; to be made when what the filter reads is placed."""

    reader: Reader
    shape: Layout
    groups: Groups = field(init=False)
    _unknown: UnknownColumns = field(init=False)
    _unpacking: Unpacking | None = field(init=False)

    def __attrs_post_init__(self) -> None:
        bound = self.reader.bound
        self.groups, self._unknown = Groups(bound), UnknownColumns(self.reader)
        self._unpacking = None if bound.unpack is None else Unpacking(self.reader)

    def _elements(self, rows: list[Row]) -> list[Row]:
        # Of a list that no row has there are no elements to look at.
        self._unknown.look(rows)
        return rows if self._unpacking is None else self._unpacking.of(rows)

    def count(self, rows: list[Row]) -> None:
        """Add rows to the groups of an aggregation."""
        if rows := self._elements(rows):
            self.groups.rows_into(self.reader, rows)

    def answer(self, rows: list[Row], *, presorted: bool = False) -> Rows | Document:
        """The answer made of all rows, or of the groups."""
        reader, bound = self.reader, self.reader.bound
        if bound.aggregates:
            self.count(rows)
            return stages.of_groups(bound, self.groups, self._unknown.warnings, reader.limit)
        rows = self._elements(rows)
        if not presorted:
            reader.fill(rows, stages.sorting(reader))
            rows = stages.in_wanted_order(reader, rows)
        answer = stages.chosen(bound, self.shape, reader, stages.cut(bound, rows))
        return evolve(answer, warnings=self._unknown.warnings)


_PEERS = ("peer_key", "peer_name", "peer_section")


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
                    [constant] if name in _PEERS else constant
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
                if name in _PEERS:
                    present[width + offset] = [*present[width + offset], own[offset]]
    return list(merged.values())
