"""Labels of performance data that a filter names and no row has: typing errors.

Only the rows can tell, and all of them may have to be read, so this is done in slices.

Rules: docs/spec/query.md, "Filters".
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from monrest.base.values import Row
from monrest.query.bind import Bound
from monrest.query.column_access import labels
from monrest.query.model import leaves
from monrest.query.plan import Layout
from monrest.query.resolve import PerfValueSource
from monrest.query.stages import SitePart
from monrest.query.steps import CAREFUL, Steps


def absent_labels(bound: Bound, shape: Layout, parts: Sequence[SitePart]) -> Steps[tuple[str, ...]]:
    """Labels of performance data that a filter names and that no fetched row has."""
    wanted: dict[str, PerfValueSource] = {}
    for check in leaves(bound.row_filter):
        if isinstance(check.source, PerfValueSource):
            wanted[check.source.key] = check.source
    if not wanted:
        return ()
    index = shape.index
    places = {(index[name], prefix) for one in wanted.values() for name, prefix in one.sources}
    rows = (row for part in parts for row in part.rows)
    return (yield from unseen_labels(wanted, rows, tuple(places)))


def unseen_labels(
    names: Iterable[str], rows: Iterable[Row], places: Sequence[tuple[int, str]]
) -> Steps[tuple[str, ...]]:
    """Those of ``names`` that are a label in no row.

    ``places``: where in a row performance data stands, and the prefix of its labels.
    """
    missing = dict.fromkeys(names)
    for at, row in enumerate(rows):
        for place, prefix in places:
            if row[place]:
                found = labels(row[place], prefix)
                for name in [one for one in missing if one in found]:
                    del missing[name]
        if not missing:
            break
        if at % CAREFUL == 0:
            yield
    return tuple(missing)
