"""Expressions and checks of a bound query as functions of a row (docs/spec/query.md, "Filters")."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from operator import itemgetter
from typing import Any

from attrs import define, field

from monrest.base.values import Row
from monrest.query.bind import Bound, Check, CheckTree
from monrest.query.column_names import (
    CoreSource,
    Getter,
    PerfValueSource,
    SiteSource,
    getter,
)
from monrest.query.columns import references
from monrest.query.evaluate import RowTest, all_of, any_of, mixed_test, value_test
from monrest.query.functions import build, calculate
from monrest.query.limit import Limit
from monrest.query.model import Calculation, Expression, Literal_, Ref, leaves

_FEW = 25
"""Rows after which the limit is looked at where they are filtered."""

ELEMENT = "\0element"
"""Index entry of the element that ``to_rows`` appends to a row."""


@define(eq=False)
class Reader:
    """Compiles expressions and checks against one index of columns, for one answer.

    Computed items that filters and sorting look at are computed once: ``place`` gives them a
    position behind what a row has, ``fill`` computes them. ``positions`` are those of items.
    """

    bound: Bound
    index: dict[str, int]
    positions: dict[int, int] = field(factory=dict)
    limit: Limit = field(factory=Limit)

    @property
    def width(self) -> int:
        """The number of values of a row."""
        return len(self.index) + len(self.positions)

    def read(self, expression: Expression) -> Getter:
        """A function that computes ``expression`` for a row; unknown columns are null."""
        if isinstance(expression, Literal_):
            value = expression.value
            return lambda _row: value
        if isinstance(expression, Ref):
            return self._column(expression.name)
        if isinstance(expression, Calculation):
            return calculate(
                self._argument(expression.first),
                [(op, self._argument(operand)) for op, operand in expression.steps],
            )
        if expression.function == "to_rows":
            return itemgetter(self.index[ELEMENT])
        function = build(
            expression.function,
            [self._argument(argument) for argument in expression.arguments],
            self.bound.moment,
            self.limit.check,
        )
        return self.limit.counted(function)

    def _argument(self, expression: Expression) -> Literal_ | Getter:
        return expression if isinstance(expression, Literal_) else self.read(expression)

    def _column(self, name: str) -> Getter:
        source = self.bound.names.find(name)
        if source is None:
            return lambda _row: None
        read = getter(source, self.index, self.bound.view)
        if isinstance(source, CoreSource | SiteSource) and not self.bound.view.masks(
            source.column.name
        ):
            return read
        return self.limit.counted(read)

    def _labelled(self, expression: Calculation, text: str, compute: Getter) -> Getter:
        """``compute`` unless a row has a label of exactly this text."""
        if not any(
            isinstance(self.bound.names.find(ref.name), PerfValueSource)
            for ref in references(expression)
        ):
            return compute
        # A label such as `used-pct` is a column of exactly that name and no subtraction.
        label = self._column(text)

        def read(row: list[Any]) -> Any:
            value = label(row)
            return compute(row) if value is None else value

        return read

    def item(self, at: int) -> Getter:
        """The reader of the selected item at ``at``, or of the operand of an aggregate."""
        if at in self.positions:
            return itemgetter(self.positions[at])
        assert self.bound.selected is not None
        item = self.bound.selected[at]
        assert item.inner is not None
        read = self.read(item.inner)
        if isinstance(item.inner, Calculation) and item.kind == "value":
            return self._labelled(item.inner, item.item.text, read)
        return read

    def values(self, rows: Iterable[Row], cells: Sequence[Getter]) -> list[Row]:
        check = self.limit.check
        result: list[Row] = []
        for row in rows:
            check()
            result.append([read(row) for read in cells])
        return result

    def place(self, items: Iterable[int]) -> tuple[Getter, ...]:
        """Give computed items a position behind each row; return the readers of new ones."""
        cells: list[Getter] = []
        selected = self.bound.selected or ()
        for at in items:
            if at not in self.positions and not isinstance(selected[at].inner, Ref):
                cells.append(self.item(at))
                self.positions[at] = self.width
        return tuple(cells)

    def fill(self, rows: list[Row], cells: Sequence[Getter]) -> None:
        """Append to each row what ``place`` promised."""
        if cells:
            for row, values in zip(rows, self.values(rows, cells), strict=True):
                row += values

    def passing(self, trees: Sequence[CheckTree], rows: list[Row]) -> list[Row]:
        """The rows for which all of ``trees`` hold, which look at what is placed and filled."""
        test = self.tests(trees)
        if test is None:
            return rows
        check = self.limit.check
        kept: list[Row] = []
        for start in range(0, len(rows), _FEW):
            check()
            kept += filter(test, rows[start : start + _FEW])
        return kept

    def tests(self, trees: Iterable[CheckTree]) -> RowTest | None:
        """One row test for checks that all have to hold; None when there are none."""
        compiled = [self._tree(tree) for tree in trees]
        return all_of(compiled) if compiled else None

    def _tree(self, tree: CheckTree) -> RowTest:
        if isinstance(tree, Check):
            if tree.source is None:
                return self.check(tree, self.item(tree.item))
            return self.check(tree, getter(tree.source, self.index, self.bound.view))
        items = [self._tree(item) for item in tree.items]
        if not items:
            return lambda _row: True
        return all_of(items) if tree.connector == "and" else any_of(items)

    def check(self, check: Check, read: Getter) -> RowTest:
        """The check applied to the value of ``read``."""
        source = check.source
        if self.bound.names.schema.mixed and source is not None:
            mixed = mixed_test(check.condition, check.operand)
            return lambda row: mixed(read(row))
        test = value_test(
            check.condition,
            check.operand,
            listed=(isinstance(source, CoreSource) and source.core_type == "list")
            or (isinstance(source, SiteSource) and source.listed),
            folded=self.bound.names.schema.folded,
        )
        return lambda row: test(read(row))


def items_of(trees: Iterable[CheckTree]) -> Iterable[int]:
    """The selected items that conditions look at."""
    return (check.item for check in leaves(trees) if check.item >= 0)
