"""Expressions and checks of a bound query as functions of a row (query-engine.md, 4.2 and 6)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from operator import itemgetter
from typing import Any

from attrs import field, frozen

from monrest.errors import BadRequest
from monrest.query.access import Getter, Index, getter
from monrest.query.bind import Bound, Check, CheckTree, Selected
from monrest.query.evaluate import RowTest, all_of, any_of, mixed_test, value_test
from monrest.query.expressions import blank_is_plus, references
from monrest.query.functions import Budget, build, calculate
from monrest.query.model import Calculation, Expression, Literal_, Ref
from monrest.query.resolve import Core, Peer, PerfValue

ELEMENT = "\0element"
"""Index entry of the element that ``to_rows`` appends to a row."""


@frozen
class Reader:
    """Compiles expressions and checks against one index of columns, for one answer."""

    bound: Bound
    index: Index
    budget: Budget = field(factory=Budget, eq=False)

    def read(self, expression: Expression) -> Getter:
        """A function that computes ``expression`` for a row; unknown columns are null."""
        expression = blank_is_plus(expression, self.bound.names)
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
        return self.budget.metered(expression.function, made)

    def _argument(self, expression: Expression) -> Literal_ | Getter:
        return expression if isinstance(expression, Literal_) else self.read(expression)

    def _column(self, name: str) -> Getter:
        source = self.bound.names.find(name)
        if source is None:
            return lambda _row: None
        return getter(source, self.index, self.bound.view)

    def item(self, one: Selected) -> Getter:
        """A function that computes a selected item, or what an aggregate is computed from."""
        assert one.inner is not None
        if isinstance(one.inner, Calculation) and one.inner is one.item.expression:
            return self._calculation(one.inner, one.item.text)
        return self.read(one.inner)

    def _calculation(self, expression: Calculation, text: str = "") -> Getter:
        compute = calculate(
            self.read(expression.first),
            [(op, self._argument(operand)) for op, operand in expression.steps],
        )
        if not text or not any(
            isinstance(self.bound.names.find(ref.name), PerfValue) for ref in references(expression)
        ):
            return compute
        # A label such as `used-pct` is a column of exactly that name and no subtraction.
        label = self._column(text)

        def read(row: list[Any]) -> Any:
            value = label(row)
            return compute(row) if value is None else value

        return read

    # ------------------------------------------------------------ checks

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
        assert check.expression is not None
        return self.read(check.expression)

    def check(self, check: Check, read: Getter) -> RowTest:
        """The check applied to what ``read`` gives."""
        source = check.source
        if self.bound.names.schema.mixed and source is not None:
            mixed = mixed_test(check.condition, check.operand)
            return lambda row: mixed(read(row))
        test = value_test(
            check.condition,
            check.operand,
            listed=(isinstance(source, Core) and source.core_type == "list")
            or (isinstance(source, Peer) and source.listed),
            folded=self.bound.names.schema.folded,
        )
        return lambda row: test(read(row))


def select_from_object(
    value: Mapping[str, Any], bound: Bound
) -> tuple[dict[str, Any], tuple[str, ...]]:
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
    selected = {
        one.item.key: reader.item(one)(row)
        for one in bound.selected
        if one.kind == "value" and one.inner is not None
    }
    return selected, tuple(one.warning for one in bound.unknown if one.name not in value)


@frozen
class ObjectReader(Reader):
    """A reader of the keys of one object instead of the columns of a collection."""

    def _column(self, name: str) -> Getter:
        at = self.index.get(name)
        return itemgetter(at) if at is not None else lambda _row: None
