"""Finishing: from the answers of the sites to the answer of the request.

What is done with rows is in ``stages``; here is in which order, which depends on how the rows of
several sites become one list. Log lines are another matter, see ``lines``.
"""

from __future__ import annotations

from collections.abc import Sequence

from attrs import evolve

from monrest.base.values import Document, Row, Rows
from monrest.query import stages
from monrest.query.aggregate import Groups
from monrest.query.bind import Bound
from monrest.query.lines import Lines
from monrest.query.order import by_columns
from monrest.query.plan import Layout
from monrest.query.select import Reader, items_of
from monrest.query.sitegroups import merge_groups
from monrest.query.stages import Doubts, SitePart, Unpacking
from monrest.query.steps import Steps

_TURN = 500


def finish(bound: Bound, shape: Layout, parts: Sequence[SitePart]) -> Steps[Rows | Document]:
    """The answer: a Document for an aggregation without groups, Rows for everything else."""
    if bound.names.schema.merge == "logs":
        return (yield from _of_lines(bound, shape, parts))
    reader = Reader(bound, dict(shape.index))
    doubts = Doubts(reader)
    if bound.aggregates:
        groups = Groups(bound)
        whole = [part for part in parts if not part.plan.pushed.stats]
        for part in parts:
            if part.plan.pushed.stats:
                yield from groups.stats_into(part.plan.pushed, part.rows, part.constants)
        if whole:
            rows = yield from _base(bound, shape, reader, whole)
            yield from doubts.look(rows)
            yield from groups.rows_into(reader, rows)
        return (yield from stages.of_groups(bound, groups, doubts.warnings))
    rows = yield from _base(bound, shape, reader, parts)
    yield from doubts.look(rows)
    # One core may have sorted already; rows of several are sorted together.
    presorted = len(parts) == 1 and parts[0].plan.sorted and bound.names.schema.merge == "concat"
    if not presorted:
        cells = stages.sorting(reader)
        for start in range(0, len(rows) if cells else 0, _TURN):
            yield from reader.fill(rows[start : start + _TURN], cells)
        rows = yield from stages.in_wanted_order(reader, rows)
    answer = yield from stages.chosen(bound, shape, reader, stages.cut(bound, rows))
    return evolve(answer, warnings=doubts.warnings)


def _base(
    bound: Bound, shape: Layout, reader: Reader, parts: Sequence[SitePart]
) -> Steps[list[Row]]:
    """All rows that pass the filters, in default order, elements unpacked."""
    filtering = reader.place(items_of(bound.row_filter))
    order = stages.order_of(bound, shape.index)
    if bound.names.schema.merge == "groups":
        rows = yield from merge_groups([(part.rows, part.constants) for part in parts], shape)
        rows = yield from stages.kept(reader, bound.row_filter, rows, filtering)
        rows = yield from by_columns(rows, order)
    else:
        rows = []
        for part in parts:
            mine = yield from stages.filtered(reader, shape, part, filtering)
            if not part.plan.sorted and not bound.aggregates:
                mine = yield from by_columns(mine, order)
            rows = mine if not rows else rows + mine
    if bound.unpack is not None:
        rows = yield from Unpacking(reader).of(rows)
    return rows


def _of_lines(bound: Bound, shape: Layout, parts: Sequence[SitePart]) -> Steps[Rows | Document]:
    """The answer made of log lines that are all there."""
    lines = Lines(bound, shape, len(parts))
    sites = []
    for part in parts:
        sites.append(lines.site())
        yield from sites[-1].take(part)
    return (yield from lines.answer(sites))
