"""A query bound to a collection: names resolved, operands turned into numbers, stages separated.

Binding happens once a request and before anything is fetched, so that every mistake of the client
is answered without asking a core. The result says which core columns the rows need and how each
stage of the evaluation (docs/spec/query.md, "Order of evaluation") reads them.
"""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from typing import Literal, TypeAlias

from attrs import define, field, frozen

from monrest.base.errors import BadRequest
from monrest.base.truth import EXPECTED, truth
from monrest.base.values import Column
from monrest.query.column_names import (
    ColumnNames,
    ColumnSource,
    CoreSource,
    Derived,
    PerfValueSource,
    Variable,
    View,
    needs,
)
from monrest.query.columns import (
    blanks_as_plus,
    described,
    effort,
    parts,
    unpacked,
)
from monrest.query.evaluate import Operand
from monrest.query.functions import AGGREGATES, Moment
from monrest.query.model import (
    Calculation,
    Call,
    Condition,
    Expression,
    FilterTree,
    Group,
    Item,
    Query,
    Ref,
    Tree,
    conjuncts,
    leaves,
)
from monrest.query.q import MOST_CONDITIONS
from monrest.query.regex import MOST_WEIGHT, Pattern, compile_pattern
from monrest.query.scalars import number_of
from monrest.query.scan import printable
from monrest.query.states import as_numbers
from monrest.query.times import parse_duration, parse_time

Stage: TypeAlias = Literal["row", "element", "aggregate"]

TYPO = "possible typo in filter"
"""The message for names in filters that nothing has."""

_ORDERING = frozenset({">", "<", ">=", "<="})


@frozen
class Check:
    """A condition with what it tests: a source, or a selected item at the position ``item``.

    ``operand`` is a number for times and durations, a pattern for operators that look for one,
    otherwise the value as sent.
    """

    condition: Condition
    stage: Stage
    source: ColumnSource | None = None
    operand: Operand = ""
    item: int = -1


CheckTree: TypeAlias = Tree[Check]


@frozen(kw_only=True)
class Selected:
    """An item of ``columns`` with its declaration for the output.

    ``kind``: a plain value, an aggregation function, or ``uniq`` which is no column at all.
    """

    item: Item
    kind: Literal["value", "count", "sum", "min", "max", "avg", "uniq"]
    inner: Expression | None
    column: Column


@frozen(kw_only=True)
class BoundSort:
    """A sort key: a selected item, or an expression of its own; unknown names have neither."""

    item: int = -1
    expression: Expression | None = None
    descending: bool = False


@frozen
class NamedColumn:
    """A column that the request names in ``parameter``, which is ``columns`` or ``sort``.

    ``whole`` is the calculation that names it, for a label such as ``used-pct`` looks like one.
    """

    parameter: str
    name: str
    whole: str = ""

    @property
    def warning(self) -> str:
        """The warning when no row has it."""
        return f"{self.parameter}: no row has a column {printable(self.name)}"


@frozen(kw_only=True)
class Bound:
    """A query ready to be planned and finished. ``needed`` are core and constant columns."""

    query: Query
    names: ColumnNames
    view: View
    moment: Moment
    selected: tuple[Selected, ...] | None
    row_filter: tuple[CheckTree, ...] = ()
    element_filter: tuple[CheckTree, ...] = ()
    aggregate_filter: tuple[CheckTree, ...] = ()
    sort: tuple[BoundSort, ...] = ()
    needed: tuple[str, ...] = ()
    unpack: Expression | None = None
    """The list column of ``to_rows``, when one is selected."""

    aggregates: bool = False
    """Whether the selection aggregates."""
    timeless: bool = False
    """Whether it means the same at any moment, so that it may be used again."""
    unknown: tuple[NamedColumn, ...] = ()
    """Names in ``columns`` and ``sort`` that nothing on this collection has."""
    doubtful: tuple[NamedColumn, ...] = ()
    """Names that only rows can have: labels of performance data and custom variables."""
    effort: int = 0
    """The number of values that are computed or compared for each row; a pattern counts as many."""


def bind(
    query: Query, names: ColumnNames, view: View, moment: Moment, extra: tuple[FilterTree, ...] = ()
) -> Bound:
    """Resolve all of ``query``; ``extra`` are conditions that the path adds.

    Raises BadRequest for unknown filter columns, aliases in filters and unusable operands.
    """
    return _Binder(query, names, view, moment).bound(extra)


@define
class _Binder:
    query: Query
    names: ColumnNames
    view: View
    moment: Moment
    needed: dict[str, None] = field(factory=dict)
    unknown: dict[NamedColumn, None] = field(factory=dict)
    doubtful: dict[NamedColumn, None] = field(factory=dict)
    timeless: bool = True
    weight: int = 0
    states: int = 0
    """Conditions that names of states have become."""
    _by_text: dict[str, int] = field(factory=dict)
    _by_alias: dict[str, Item] = field(factory=dict)

    def __attrs_post_init__(self) -> None:
        for position, item in enumerate(self.query.items or ()):
            expression = item.expression
            if isinstance(expression, Ref):
                # A plain column is found by its name.
                comparable = item.text != expression.name
            else:
                comparable = not (isinstance(expression, Call) and expression.function == "uniq")
            if comparable:
                self._by_text.setdefault(item.text, position)
            if item.renamed:
                self._by_alias.setdefault(item.key, item)

    def bound(self, extra: tuple[FilterTree, ...]) -> Bound:
        items = self.query.items
        selected = None if items is None else tuple(self._item(item) for item in items)
        stages: dict[Stage, list[CheckTree]] = {"row": [], "element": [], "aggregate": []}
        unknown: list[str] = []
        for tree in conjuncts([*extra, self.query.filter]):
            checked = self._tree(tree, unknown)
            stages[_stage(checked)].append(checked)
        if unknown:
            raise typo(unknown)
        unpack = None
        aggregates = False
        for column in selected or ():
            unpack = unpack or unpacked(column.item.expression)
            aggregates = aggregates or column.kind != "value"
        sort = tuple(self._sort(aggregates=aggregates))
        nowhere = []
        for named in self.unknown:
            if self.names.impossible(named.name):
                near = get_close_matches(named.name, self.names.schema.columns, 1)
                hint = f", did you mean {near[0]}?" if near else ""
                nowhere.append(
                    f"{named.parameter}: there is no column {printable(named.name)}{hint}"
                )
        if nowhere:
            raise no_such_column(nowhere)
        if self.names.schema.merge == "groups" or not aggregates:
            # Rows come in the default order, and groups of several sites are joined by name.
            for name in self.names.schema.order:
                self.needed.setdefault(name)
        return Bound(
            query=self.query,
            names=self.names,
            view=self.view,
            moment=self.moment,
            selected=selected,
            row_filter=tuple(stages["row"]),
            element_filter=tuple(stages["element"]),
            aggregate_filter=tuple(stages["aggregate"]),
            sort=sort,
            needed=tuple(self.needed),
            unpack=unpack,
            aggregates=aggregates,
            timeless=self.timeless,
            unknown=tuple(self.unknown),
            doubtful=tuple(self.doubtful),
            effort=self.weight
            + sum(effort(item.inner) for item in selected or () if item.inner is not None)
            + sum(1 for trees in stages.values() for _ in leaves(trees)),
        )

    def _item(self, item: Item) -> Selected:
        expression = blanks_as_plus(item.expression, self.names)
        if isinstance(expression, Call) and expression.function in AGGREGATES:
            inner = expression.arguments[0] if expression.arguments else None
            if expression.function in ("count", "uniq"):
                # Neither looks at its argument, except that elements of a list are rows first.
                if inner is not None and unpacked(inner):
                    self._use(inner, "columns")
            elif inner is not None:
                self._use(inner, "columns")
            kind = expression.function
            column = self._describe(expression, item.key)
            return Selected(item=item, kind=kind, inner=inner, column=column)  # type: ignore[arg-type]  # AGGREGATES holds exactly these words
        whole = item.text if isinstance(expression, Calculation) else ""
        self._use(expression, "columns", whole)
        return Selected(
            item=item, kind="value", inner=expression, column=self._describe(expression, item.key)
        )

    def _use(self, expression: Expression, parameter: str, whole: str = "") -> None:
        doubtful = []
        for part in parts(expression):
            if isinstance(part, Call) and part.function == "age":
                self.timeless = False
            if not isinstance(part, Ref):
                continue
            source = self.names.find(part.name)
            if source is None:
                self.unknown.setdefault(NamedColumn(parameter, part.name))
                continue
            if isinstance(source, PerfValueSource | Variable):
                doubtful.append(part.name)
            for name in needs(source, self.view):
                self.needed.setdefault(name)
        label = self.names.find(whole) if doubtful and whole else None
        if label is not None and not self.needed.keys() >= set(needs(label, self.view)):
            # What is read has no labels: none of its parts is meant for one.
            whole = ""
        for name in doubtful:
            self.doubtful.setdefault(NamedColumn(parameter, name, whole))

    def _describe(self, expression: Expression, key: str) -> Column:
        return described(expression, key, self._column)

    def _column(self, name: str) -> Column | None:
        source = self.names.find(name)
        return None if source is None else source.column

    def _tree(self, tree: FilterTree, unknown: list[str]) -> CheckTree:
        if isinstance(tree, Group):
            items = tuple(self._tree(item, unknown) for item in tree.items)
            if len({_stage(item) == "aggregate" for item in items}) > 1:
                raise BadRequest(
                    "error during request",
                    "q: conditions on aggregated and on plain columns can only be joined by a "
                    "top-level and",
                )
            return Group(tree.connector, items)
        return self._condition(tree, unknown)

    def _condition(self, condition: Condition, unknown: list[str]) -> CheckTree:
        position = self._by_text.get(condition.column)
        if position is not None:
            chosen = (self.query.items or ())[position]
            return self._on_item(condition, position, chosen, unknown)
        source = self.names.find(condition.column, in_q=condition.parameter == "q")
        if source is None or isinstance(source, PerfValueSource):
            item = self._by_alias.get(condition.column)
            if item is not None:
                raise BadRequest(
                    "alias column name used in filter",
                    "alias column names cannot be used in filter, use "
                    f"'{item.text}' instead of '{item.key}'",
                )
        if condition.column == "duration" and not isinstance(source, CoreSource):
            return self._duration(condition)
        if source is None or (isinstance(source, PerfValueSource) and "(" in condition.column):
            unknown.append(condition.column)
            return Group("and", ())
        named = self._by_names(condition, source)
        if named is not None:
            return self._tree(named, unknown)
        for name in needs(source, self.view):
            self.needed.setdefault(name)
        operand = self._operand(condition, source.column, numeric=_numeric(source))
        return Check(condition, "row", source, operand)

    def _by_names(self, condition: Condition, source: ColumnSource | None) -> FilterTree | None:
        """A condition that names states, in their numbers; None for any other condition."""
        if not isinstance(source, CoreSource):
            return None
        named = as_numbers(condition, source, self.names)
        if named is not None:
            self.states += sum(1 for _ in leaves([named]))
            if self.states > MOST_CONDITIONS:
                raise BadRequest(
                    "error during request",
                    f"{printable(condition.parameter)}: at most {MOST_CONDITIONS} states are "
                    "accepted in all conditions",
                )
        return named

    def _on_item(
        self, condition: Condition, position: int, item: Item, unknown: list[str]
    ) -> CheckTree:
        source = self._same_values(item.expression)
        named = self._by_names(condition, source)
        # A name that means more than a number is none of what an item is.
        if named is not None and all(leaf.column == condition.column for leaf in leaves([named])):
            return self._tree(named, unknown)
        expression = item.expression
        function = expression.function if isinstance(expression, Call) else ""
        stage: Stage = "row"
        if function in AGGREGATES:
            stage = "aggregate"
        elif unpacked(expression):
            stage = "element"
        column = self._describe(blanks_as_plus(expression, self.names), item.key)
        numeric = (
            isinstance(expression, Calculation)
            or function in ("count", "sum", "avg")
            or (source is not None and _numeric(source))
        )
        operand = self._operand(condition, column, numeric=numeric)
        return Check(condition, stage, None, operand, position)

    def _same_values(self, expression: Expression) -> ColumnSource | None:
        """The column of which an expression has a value, as it is or the least or largest one."""
        while isinstance(expression, Call) and expression.function in ("min", "max"):
            (expression,) = expression.arguments
        return self.names.find(expression.name) if isinstance(expression, Ref) else None

    def _operand(self, condition: Condition, column: Column, *, numeric: bool) -> Operand:
        text = condition.value
        if condition.op.endswith("~"):
            return self._pattern(condition)
        if column.type == "time":
            self.timeless = self.timeless and number_of(text) is not None
            moment = parse_time(text, self.moment.now, self.moment.zone)
            if moment is not None:
                return moment
            if condition.op in _ORDERING or (numeric and text.strip()):
                raise BadRequest(
                    "error during request",
                    f"{condition.parameter}: cannot parse time '{text}', expected a unix time, "
                    "a relative time such as -10m or now-1h, or a date",
                )
        elif column.unit == "s" and number_of(text) is None:
            seconds = parse_duration(text)
            if seconds is not None:
                return seconds
        if numeric and text.strip() and number_of(text) is None:
            return self._flag(condition, column)
        return text

    def _flag(self, condition: Condition, column: Column) -> float:
        """1 or 0 for a word that means yes or no; raise BadRequest for any other text."""
        flag = truth(condition.value) if column.type == "boolean" else None
        if flag is None:
            expected = EXPECTED if column.type == "boolean" else "a number"
            if column.unit == "s":
                expected = "a number of seconds or a duration such as 1m"
            raise BadRequest(
                "error during request",
                f"{printable(condition.parameter)}: {printable(condition.column)} holds numbers, "
                f"expected {expected}, got '{printable(condition.value)}'",
            )
        return int(flag)

    def _pattern(self, condition: Condition) -> Pattern:
        folded = condition.op.endswith("~~")
        pattern = compile_pattern(
            condition.value, ignore_case=folded, parameter=condition.parameter
        )
        self.weight += pattern.weight
        if self.weight > MOST_WEIGHT:
            raise BadRequest(
                "error during request",
                f"{printable(condition.parameter)}: the regular expressions of a request are too "
                "large together",
            )
        return pattern

    def _duration(self, condition: Condition) -> CheckTree:
        """``duration``: time since the last state change."""
        source = self.names.find("last_state_change")
        seconds = parse_duration(condition.value)
        flipped = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}
        if not isinstance(source, CoreSource):
            raise typo([condition.column])
        if condition.op not in flipped or seconds is None:
            raise BadRequest(
                "error during request",
                f"{condition.parameter}: duration is compared with < <= > >= and a duration "
                f"such as 1d or 90, got {condition.op} '{condition.value}'",
            )
        self.needed.setdefault(source.name)
        self.timeless = False
        since = int(self.moment.now - seconds)
        changed = Condition("last_state_change", "!=", "0", condition.parameter)
        limit = Condition(
            "last_state_change",
            flipped[condition.op],  # type: ignore[arg-type]  # the values above are operators
            str(since),
            condition.parameter,
        )
        return Group(
            "and",
            (
                Check(changed, "row", source, 0),
                Check(limit, "row", source, since),
            ),
        )

    def _sort(self, *, aggregates: bool) -> Iterable[BoundSort]:
        positions: dict[str, int] = {}
        for position, item in enumerate(self.query.items or ()):
            positions.setdefault(item.key, position)
            positions.setdefault(item.text, position)
        for key in self.query.sort:
            place = positions.get(key.name)
            if place is not None:
                yield BoundSort(item=place, descending=key.descending)
            elif aggregates:
                # Groups have the selected columns and no others.
                self.unknown.setdefault(NamedColumn("sort", key.name))
            else:
                expression = Ref(key.name, quoted=True)
                self._use(expression, "sort")
                yield BoundSort(expression=expression, descending=key.descending)


def _numeric(source: ColumnSource) -> bool:
    """Whether a column holds numbers and nothing else."""
    if isinstance(source, CoreSource):
        return source.core_type in ("int", "float", "time")
    return isinstance(source, Derived) and source.column.type in ("number", "time")


def no_such_column(warnings: Iterable[str]) -> BadRequest:
    """The error for names in ``columns`` and ``sort`` that nothing has."""
    return BadRequest("unknown column", "; ".join(warnings))


def typo(names: Iterable[str]) -> BadRequest:
    """The error for filter columns that no row has."""
    listed = ", ".join(dict.fromkeys(names))
    return BadRequest(TYPO, f"no data row has attribute(s) named: {listed}")


def _stage(tree: CheckTree) -> Stage:
    stages = {check.stage for check in leaves([tree])}
    if "aggregate" in stages:
        return "aggregate"
    return "element" if "element" in stages else "row"
