"""Expressions and checks of a bound query as functions of a row (docs/spec/query.md, "Filters")."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from operator import itemgetter
from typing import Any, TypeAlias

from attrs import define, field, frozen

from monrest.base.errors import BadRequest
from monrest.base.values import Row
from monrest.query.bind import Bound, Check, CheckTree
from monrest.query.column_names import (
    CoreSource,
    Getter,
    PerfList,
    PerfValueSource,
    SiteSource,
    Variable,
    getter,
)
from monrest.query.evaluate import RowTest, all_of, any_of, mixed_test, value_test
from monrest.query.expressions import calls, references
from monrest.query.functions import build, calculate, substitution, text_of
from monrest.query.model import Calculation, Call, Expression, Literal_, Ref, leaves
from monrest.query.regex import QUICK, Pattern
from monrest.query.steps import A_CALL, CAREFUL, TURN, Budget, Steps

ELEMENT = "\0element"
"""Index entry of the element that ``to_rows`` appends to a row."""

_CELLS = 2_000
"""Values a turn, where each is quick."""

_A_LABEL = 8
"""What taking one piece of performance data apart costs, in function calls."""

_FEW_CHECKS = 40
_AN_ELEMENT = 40
"""Characters that an element of a list is taken to have."""

InSteps: TypeAlias = Callable[[Row], Steps[Any]]


@frozen
class Cell:
    """How a value of a row is computed: at once, or in steps where a pattern replaces."""

    read: Getter | None
    in_steps: InSteps | None = None


@define(eq=False)
class Reader:
    """Compiles expressions and checks against one index of columns, for one answer.

    Computed items that filters and sorting look at are computed once: ``place`` gives them a
    position behind what a row has, ``fill`` computes them. ``positions`` are those of items.
    """

    bound: Bound
    index: dict[str, int]
    positions: dict[int, int] = field(factory=dict)
    budget: Budget = field(factory=Budget)

    @property
    def width(self) -> int:
        """How many values a row has."""
        return len(self.index) + len(self.positions)

    # ------------------------------------------------------------ expressions

    def read(self, expression: Expression) -> Getter:
        """A function that computes ``expression`` for a row; unknown columns are null."""
        if isinstance(expression, Literal_):
            value = expression.value
            return lambda _row: value
        if isinstance(expression, Ref):
            return self._column(expression.name)
        if isinstance(expression, Calculation):
            return self._calculation(expression)
        if expression.function == "to_rows":
            return itemgetter(self.index[ELEMENT])
        made = build(
            expression.function,
            [self._argument(one) for one in expression.arguments],
            self.bound.moment,
        )
        return self.budget.metered(made)

    def _argument(self, expression: Expression) -> Literal_ | Getter:
        return expression if isinstance(expression, Literal_) else self.read(expression)

    def _column(self, name: str) -> Getter:
        source = self.bound.names.find(name)
        if source is None:
            return lambda _row: None
        read = getter(source, self.index, self.bound.view)
        if isinstance(source, PerfList):
            return self._list(read)
        if isinstance(source, PerfValueSource | Variable) or not self._computed(source):
            return read
        return self.budget.metered(read)

    def _computed(self, source: Any) -> bool:
        return not isinstance(source, CoreSource | SiteSource) or self.bound.view.masks(
            source.column.name
        )

    def _list(self, read: Getter) -> Getter:
        """All performance data of a row, at the price of taking every piece apart."""
        spend = self.budget.spend

        def apply(row: Row) -> Any:
            value = read(row)
            spend(A_CALL * _A_LABEL * len(value or ()))
            return value

        return apply

    def _calculation(self, expression: Calculation) -> Getter:
        spend = self.budget.spend
        work = A_CALL * (1 + len(expression.steps))
        operate = calculate(
            self._argument(expression.first),
            [(op, self._argument(operand)) for op, operand in expression.steps],
        )

        def compute(row: Row) -> Any:
            spend(work)
            return operate(row)

        return compute

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

    def item(self, at: int) -> Cell:
        """How the selected item at ``at`` is computed, or what an aggregate is computed from."""
        if at in self.positions:
            return Cell(itemgetter(self.positions[at]))
        assert self.bound.selected is not None
        one = self.bound.selected[at]
        assert one.inner is not None
        cell = self._cell(one.inner)
        if isinstance(one.inner, Calculation) and one.kind == "value" and cell.read is not None:
            return Cell(self._labelled(one.inner, one.item.text, cell.read))
        return cell

    # ------------------------------------------------------------ in steps

    def _cell(self, expression: Expression) -> Cell:
        """The same in steps for an expression with ``s``, at once for every other."""
        if not any(call.function == "s" for call in calls(expression)):
            return Cell(self.read(expression))
        assert isinstance(expression, Call | Calculation)
        if isinstance(expression, Call) and expression.function == "s":
            return self._substituted(expression)
        if isinstance(expression, Call):
            arguments = expression.arguments
            compute = self.budget.metered(
                build(expression.function, _from_list(arguments), self.bound.moment)
            )
        else:
            arguments = (expression.first, *(operand for _, operand in expression.steps))
            first, *others = _from_list(arguments)
            operators = [op for op, _ in expression.steps]
            compute = calculate(first, list(zip(operators, others, strict=True)))
        cells = [self._cell(one) for one in arguments]

        def in_steps(row: Row) -> Steps[Any]:
            values: list[Any] = []
            for cell in cells:
                if cell.in_steps is not None:
                    values.append((yield from cell.in_steps(row)))
                elif cell.read is not None:
                    values.append(cell.read(row))
            return compute(values)

        return Cell(None, in_steps)

    def _substituted(self, expression: Call) -> Cell:
        first, *literals = expression.arguments
        cell = self._cell(first)
        replaced = substitution([_nothing, *[self._argument(one) for one in literals]])

        def in_steps(row: Row) -> Steps[Any]:
            if cell.in_steps is not None:
                value = yield from cell.in_steps(row)
            else:
                assert cell.read is not None
                value = cell.read(row)
            if value is None:
                return None
            return (yield from replaced(text_of(value), self.budget))

        return Cell(None, in_steps)

    def values(self, rows: Iterable[Row], cells: Sequence[Cell]) -> Steps[list[Row]]:
        """The values of ``cells`` for each row, with a turn for others within a row as well."""
        budget = self.budget
        result: list[Row] = []
        mark, count = budget.left - TURN, 0
        for row in rows:
            made: Row = []
            budget.begin()
            for cell in cells:
                if cell.in_steps is not None:
                    made.append((yield from cell.in_steps(row)))
                elif cell.read is not None:
                    made.append(cell.read(row))
                if budget.left < mark:
                    yield
                    mark, count = budget.left - TURN, 0
            count += len(cells)
            if count >= _CELLS:
                yield
                mark, count = budget.left - TURN, 0
            result.append(made)
        return result

    # ------------------------------------------------------------ placed values

    def place(self, items: Iterable[int]) -> tuple[Cell, ...]:
        """Give computed items a position behind each row; how those that had none are made."""
        cells: list[Cell] = []
        selected = self.bound.selected or ()
        for at in items:
            if at not in self.positions and not isinstance(selected[at].inner, Ref):
                cells.append(self.item(at))
                self.positions[at] = self.width
        return tuple(cells)

    def fill(self, rows: list[Row], cells: Sequence[Cell]) -> Steps[None]:
        """Append to each row what ``place`` promised."""
        if cells:
            found = yield from self.values(rows, cells)
            for row, values in zip(rows, found, strict=True):
                row += values

    # ------------------------------------------------------------ checks

    def passing(self, trees: Sequence[CheckTree], rows: list[Row]) -> Steps[list[Row]]:
        """The rows for which all of ``trees`` hold; what they look at has been placed and filled.

        Long texts are searched aside, because some patterns take a second for 64 KiB.
        """
        test = self.tests(trees)
        if test is None:
            return rows
        checks = list(leaves(trees))
        searched = [
            (self._check_getter(check), check.operand.weight)
            for check in checks
            if isinstance(check.operand, Pattern)
        ]
        turn = max(1, CAREFUL * _FEW_CHECKS // (_FEW_CHECKS + len(checks)))
        kept: list[Row] = []
        for start in range(0, len(rows), turn):
            some = rows[start : start + turn]
            if searched and any(_long(row, searched) for row in some):
                for row in some:
                    passes = yield from self.budget.aside(partial(test, row))
                    kept += [row] if passes else []
            else:
                kept += [row for row in some if test(row)]
                yield
        return kept

    def tests(self, trees: Iterable[CheckTree]) -> RowTest | None:
        """One row test for checks that all have to hold; None when there are none."""
        compiled = [self._tree(tree) for tree in trees]
        return all_of(compiled) if compiled else None

    def _tree(self, tree: CheckTree) -> RowTest:
        if isinstance(tree, Check):
            return self.check(tree, self._check_getter(tree))
        items = [self._tree(item) for item in tree.items]
        if not items:
            return lambda _row: True
        return all_of(items) if tree.connector == "and" else any_of(items)

    def _check_getter(self, check: Check) -> Getter:
        if check.source is not None:
            return getter(check.source, self.index, self.bound.view)
        read = self.item(check.item).read
        assert read is not None, "what takes steps was placed before"
        return read

    def check(self, check: Check, read: Getter) -> RowTest:
        """The check applied to what ``read`` gives."""
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


def _long(row: Row, searched: Iterable[tuple[Getter, int]]) -> bool:
    """Whether the searches in a row may take long."""
    work = 0
    for read, weight in searched:
        value = read(row)
        if type(value) is str:
            work += len(value) * weight
        elif type(value) is list:
            work += len(value) * _AN_ELEMENT * weight
    return work > QUICK


def _from_list(arguments: Sequence[Expression]) -> list[Literal_ | Getter]:
    """Arguments that are read from a list of their values."""
    return [
        one if isinstance(one, Literal_) else itemgetter(at) for at, one in enumerate(arguments)
    ]


def _nothing(_row: Row) -> None:
    """Stands for the argument that is computed apart."""


def select_from_object(
    value: Mapping[str, Any], bound: Bound
) -> Steps[tuple[dict[str, Any], tuple[str, ...]]]:
    """Step 9 of the evaluation for an object: renames, functions and calculations of its keys.

    ``bound`` must be bound to names that declare no core column, so that each name reads a key.
    With the new object come warnings of names that the old one does not have. Raises BadRequest
    for a disaggregation, which makes rows of rows.
    """
    if bound.unpack is not None:
        raise BadRequest(
            "error during request",
            "columns: to_rows needs a list of rows, this resource answers one object",
        )
    row = list(value.values())
    reader = ObjectReader(bound, {name: at for at, name in enumerate(value)})
    assert bound.selected is not None
    items = {one.item.key: at for at, one in enumerate(bound.selected) if one.kind == "value"}
    (values,) = yield from reader.values([row], [reader.item(at) for at in items.values()])
    selected = dict(zip(items, values, strict=True))
    return selected, tuple(one.warning for one in bound.unknown if one.name not in value)


@define(eq=False)
class ObjectReader(Reader):
    """A reader of the keys of one object instead of the columns of a collection."""

    def _column(self, name: str) -> Getter:
        at = self.index.get(name)
        return itemgetter(at) if at is not None else lambda _row: None
