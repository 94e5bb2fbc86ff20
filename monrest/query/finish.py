"""Finishing: from the answers of the sites, or from records, to the answer of the request.

What is done with rows is in ``stages``; here is in which order, which depends on how the rows of
several sites become one list. Log lines are another matter, see ``lines``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from attrs import evolve

from monrest.base.values import Document, Row, Rows
from monrest.query import stages
from monrest.query.aggregate import Groups
from monrest.query.bind import Bound
from monrest.query.limit import Limit
from monrest.query.lines import Lines
from monrest.query.order import by_columns
from monrest.query.plan import Layout, core_type
from monrest.query.select import Reader, items_of
from monrest.query.stages import Doubts, SitePart, Unpacking


def finish(bound: Bound, shape: Layout, parts: Sequence[SitePart], limit: Limit) -> Rows | Document:
    """The answer: a Document for an aggregation without groups, Rows for everything else."""
    limit.more(sum(part.count for part in parts))
    if bound.names.schema.merge == "logs":
        return _of_lines(bound, shape, parts, limit)
    reader = Reader(bound, dict(shape.index), limit=limit)
    groups = Groups(bound)
    whole = [part for part in parts if not part.plan.pushed.stats]
    for part in parts:
        if part.plan.pushed.stats:
            groups.stats_into(part.plan.pushed, part.rows, part.constants)
    rows: list[Row] = []
    if whole or not bound.aggregates:
        rows = _merged(reader, shape, whole)
    # One core may have sorted already; rows of several are sorted together.
    presorted = len(parts) == 1 and parts[0].plan.sorted and bound.names.schema.merge == "concat"
    return _answer(reader, shape, rows, groups, presorted=presorted)


def of_records(
    bound: Bound, names: Sequence[str], rows: list[Row], limit: Limit, *, ordered: bool = False
) -> Rows | Document:
    """The answer made of rows that no core has: their values are those of the columns ``names``.

    ``ordered``: they come as they shall be shown to who asks for no order.
    """
    limit.more(len(rows))
    columns = tuple((name, core_type(bound, name)) for name in names)
    shape = Layout(columns=columns, constants=())
    reader = Reader(bound, dict(shape.index), limit=limit)
    filtering = reader.place(items_of(bound.row_filter))
    rows = stages.kept(reader, bound.row_filter, rows, filtering)
    if not bound.aggregates and (bound.sort or not ordered):
        rows = by_columns(rows, stages.order_of(bound, shape.index))
    return _answer(reader, shape, rows, Groups(bound))


def _merged(reader: Reader, shape: Layout, parts: Sequence[SitePart]) -> list[Row]:
    """All rows that pass the filter of rows, in default order."""
    bound = reader.bound
    filtering = reader.place(items_of(bound.row_filter))
    order = stages.order_of(bound, shape.index)
    if bound.names.schema.merge == "groups":
        rows = merge_groups([(part.rows, part.constants) for part in parts], shape)
        rows = stages.kept(reader, bound.row_filter, rows, filtering)
        rows = by_columns(rows, order)
    else:
        rows = []
        for part in parts:
            mine = stages.filtered(reader, shape, part, filtering)
            if not part.plan.sorted and not bound.aggregates:
                mine = by_columns(mine, order)
            rows = mine if not rows else rows + mine
    return rows


def _answer(
    reader: Reader, shape: Layout, rows: list[Row], groups: Groups, *, presorted: bool = False
) -> Rows | Document:
    """The answer made of rows that pass; an aggregation adds them to ``groups``."""
    bound = reader.bound
    doubts = Doubts(reader)
    # Of a list that no row has there are no elements to look at.
    doubts.look(rows)
    if bound.unpack is not None:
        rows = Unpacking(reader).of(rows)
    if bound.aggregates:
        if rows:
            groups.rows_into(reader, rows)
        return stages.of_groups(bound, groups, doubts.warnings, reader.limit)
    if not presorted:
        reader.fill(rows, stages.sorting(reader))
        rows = stages.in_wanted_order(reader, rows)
    answer = stages.chosen(bound, shape, reader, stages.cut(bound, rows))
    return evolve(answer, warnings=doubts.warnings)


def _of_lines(
    bound: Bound, shape: Layout, parts: Sequence[SitePart], limit: Limit
) -> Rows | Document:
    """The answer made of log lines that are all there."""
    lines = Lines(bound, shape, len(parts), limit=limit)
    sites = []
    for part in parts:
        sites.append(lines.site())
        sites[-1].take(part)
    return lines.answer(sites)


# -------------------------------------------------------------------- groups of several sites

_PEERS = ("peer_key", "peer_name", "peer_section")


def merge_groups(sites: Sequence[tuple[list[Row], Mapping[str, Any]]], shape: Layout) -> list[Row]:
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
                    [one] if name in _PEERS else one
                    for name, one in zip(shape.constants, own, strict=True)
                ]
                continue
            for at, name in enumerate(names):
                present[at] = _joined(name, present[at], row[at])
            for offset, name in enumerate(shape.constants):
                if name in _PEERS:
                    present[width + offset] = [*present[width + offset], own[offset]]
    return list(merged.values())


def _joined(name: str, first: Any, second: Any) -> Any:
    if name.startswith("num_"):
        return first + second
    if name.startswith("worst_"):
        return max(first, second)
    if name in ("members", "members_with_state"):
        return [*first, *second]
    return first
