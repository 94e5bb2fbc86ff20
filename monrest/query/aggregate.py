"""Aggregation as mergeable groups (docs/spec/query.md, "Aggregation").

Groups are fed with rows, or with the Stats answers of cores that could aggregate themselves;
both kinds of one query meet in the same groups, so sites with different cores add up.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from attrs import define, field

from monrest.base.values import Column, Row
from monrest.query.bind import Bound, Selected
from monrest.query.column_names import CONSTANTS, ColumnSource, CoreSource
from monrest.query.model import Pushed, Ref, Stat
from monrest.query.scalars import in_order, number_of, text_of
from monrest.query.select import Reader


@define(eq=False)
class _Group:
    values: list[Any]
    count: int = 0
    cells: list[Any] = field(factory=list)


@define(eq=False)
class Groups:
    """All groups of one aggregation; ``columns`` are those of its result."""

    bound: Bound
    groups: dict[tuple[str, ...], _Group] = field(factory=dict)
    _keys: list[Selected] = field(init=False)
    _cells: list[Selected] = field(init=False)

    def __attrs_post_init__(self) -> None:
        selected = self.bound.selected or ()
        self._keys = [item for item in selected if item.kind == "value"]
        self._cells = [item for item in selected if item.kind not in ("value", "uniq", "count")]

    @property
    def grouped(self) -> bool:
        """Whether the result is a list of groups and not one object."""
        return bool(self._keys)

    @property
    def columns(self) -> tuple[Column, ...]:
        """The columns of the result, in the order of the selection; ``uniq`` is none."""
        return tuple(item.column for item in self.bound.selected or () if item.kind != "uniq")

    def _group(self, values: list[Any]) -> _Group:
        key = tuple([value if type(value) is str else text_of(value) for value in values])
        group = self.groups.get(key)
        if group is None:
            # A missing group value shows as empty text, not null.
            values = ["" if values is None else values for values in values]
            group = self.groups[key] = _Group(
                values, 0, [_EMPTY_CELL[c.kind]() for c in self._cells]
            )
        return group

    def rows_into(self, reader: Reader, rows: list[Row]) -> None:
        """Add rows one by one; expressions are computed per row, then aggregated."""
        if not rows:
            return
        selected = list(enumerate(self.bound.selected or ()))
        keys = [at for at, item in selected if item.kind == "value"]
        aggregated = [at for at, item in selected if item.kind in _ADD]
        cells = [reader.item(at) for at in (*keys, *aggregated)]
        adding = [(at, _ADD[cell.kind]) for at, cell in enumerate(self._cells)]
        for values in reader.values(rows, cells):
            group = self._group(values[: len(keys)])
            group.count += 1
            for (at, add), value in zip(adding, values[len(keys) :], strict=True):
                number = value if type(value) in (int, float) else number_of(value)
                if number is not None:
                    group.cells[at] = add(group.cells[at], number, value)

    def stats_into(self, asked: Pushed, rows: list[Row], constants: Mapping[str, Any]) -> None:
        """Add what a core aggregated: group columns first, then one value per Stats line."""
        at_column = {name: position for position, name in enumerate(asked.columns)}
        offset = len(asked.columns)
        at_stat = {stat: offset + position for position, stat in enumerate(asked.stats)}
        readers = [self._stats_key(key, at_column, constants) for key in self._keys]
        at_count = at_stat[Stat("count")]
        cells = []
        for position, cell in enumerate(self._cells):
            function = "sum" if cell.kind == "avg" else cell.kind
            stat = Stat(function, self._source(cell).column.name)  # type: ignore[arg-type]  # sum, min or max
            cells.append((position, _MERGE[cell.kind], at_stat[stat]))
        for row in rows:
            count = int(row[at_count])
            if count == 0:
                continue
            group = self._group([read(row) for read in readers])
            group.count += count
            for position, add, at in cells:
                group.cells[position] = add(group.cells[position], int(row[at]), count)

    def groups_into(self, others: Groups) -> None:
        """Add the groups of the same aggregation over other rows."""
        for other in others.groups.values():
            group = self._group(other.values)
            group.count += other.count
            for position, cell in enumerate(self._cells):
                join = _JOIN[cell.kind]
                group.cells[position] = join(group.cells[position], other.cells[position])

    def _source(self, item: Selected) -> ColumnSource:
        """The column that a core groups by or aggregates."""
        assert isinstance(item.inner, Ref)
        source = self.bound.names.find(item.inner.name)
        assert source is not None
        return source

    def _stats_key(
        self, item: Selected, at: Mapping[str, int], constants: Mapping[str, Any]
    ) -> Any:
        """The reader of a group value in a row of Stats."""
        source = self._source(item)
        name = source.column.name
        if name in CONSTANTS:
            value = constants[name]
            return lambda _row: value
        position = at[name]
        if isinstance(source, CoreSource) and source.core_type in ("int", "time"):
            # Naemon gives group values of all types as text.
            return lambda row: _whole(row[position])
        return lambda row: row[position]

    def result(self) -> list[Row]:
        """One row per group in text order of the group values; one row when nothing groups."""
        if not self._keys and not self.groups:
            self._group([])
        rows: list[Row] = []
        for key in in_order(list(self.groups), lambda key: key, reverse=False):
            group = self.groups[key]
            values, cells = iter(group.values), iter(group.cells)
            row: Row = []
            for item in self.bound.selected or ():
                if item.kind == "value":
                    row.append(next(values))
                elif item.kind == "count":
                    row.append(group.count)
                elif item.kind != "uniq":
                    row.append(_FINISH[item.kind](next(cells)))
            rows.append(row)
        return rows


def _whole(value: Any) -> int:
    """A group value of a number column; what is no number is 0, as in rows."""
    try:
        return int(value)
    except (TypeError, ValueError, OverflowError):
        return 0


def _add_min(cell: Any, number: float, value: Any) -> Any:
    return (number, value) if cell is None or number < cell[0] else cell


def _add_max(cell: Any, number: float, value: Any) -> Any:
    return (number, value) if cell is None or number > cell[0] else cell


_EMPTY_CELL: Mapping[str, Any] = {
    "sum": lambda: 0, "avg": lambda: (0, 0), "min": lambda: None, "max": lambda: None,
}  # fmt: skip
_ADD: Mapping[str, Any] = {
    "sum": lambda cell, number, _value: cell + number,
    "avg": lambda cell, number, _value: (cell[0] + number, cell[1] + 1),
    "min": _add_min,
    "max": _add_max,
}
_MERGE: Mapping[str, Any] = {
    "sum": lambda cell, value, _count: cell + value,
    "avg": lambda cell, value, count: (cell[0] + value, cell[1] + count),
    "min": lambda cell, value, _count: _add_min(cell, value, value),
    "max": lambda cell, value, _count: _add_max(cell, value, value),
}
_JOIN: Mapping[str, Any] = {
    "sum": lambda cell, other: cell + other,
    "avg": lambda cell, other: (cell[0] + other[0], cell[1] + other[1]),
    "min": lambda cell, other: cell if other is None else _add_min(cell, *other),
    "max": lambda cell, other: cell if other is None else _add_max(cell, *other),
}
_FINISH: Mapping[str, Any] = {
    "sum": lambda cell: cell,
    "avg": lambda cell: cell[0] / cell[1] if cell[1] else None,
    "min": lambda cell: None if cell is None else cell[1],
    "max": lambda cell: None if cell is None else cell[1],
}
