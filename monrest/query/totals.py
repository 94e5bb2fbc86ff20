"""Statistics resources: counts and sums that cores compute (docs/spec/query.md, "Statistics").

A specification is a list of named fields, each a count, sum, minimum or maximum over the rows
that match a condition on core columns. A core that understands all of it gets Stats lines;
otherwise the same conditions are evaluated here over rows.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal

from attrs import evolve, frozen

from monrest.base.values import Capabilities, Row
from monrest.query.evaluate import all_of, any_of
from monrest.query.model import CoreFilter, Group, Pushed, Stat, Test, columns_of, rewritten
from monrest.query.pushdown import Pushable, both
from monrest.query.scalars import number_of
from monrest.query.sendable import PENDING_COLUMNS, harmless, in_icinga

START = "{program_start}"
"""Operand that stands for the start of the site's core."""


@frozen
class StatsField:
    """One number: ``function`` of ``column`` over rows matching ``condition`` (None: all)."""

    name: str
    condition: CoreFilter | None
    function: Literal["count", "sum", "min", "max"] = "count"
    column: str = ""

    @property
    def counts_all(self) -> bool:
        return self.function == "count" and self.condition is None


@frozen
class StatsSpec:
    """The fields of a statistics resource; names are unique."""

    fields: tuple[StatsField, ...]

    def columns(self) -> tuple[str, ...]:
        """Every core column that the fields read."""
        columns: dict[str, None] = {}
        for figure in self.fields:
            columns.update(dict.fromkeys(columns_of(figure.condition)))
            if figure.column:
                columns[figure.column] = None
        return tuple(columns)


def asks_for_start(spec: StatsSpec) -> bool:
    """Whether the conditions depend on the start of a core."""
    return any(started(figure.condition, 0) != figure.condition for figure in spec.fields)


def batches(spec: StatsSpec) -> tuple[StatsSpec, ...]:
    """The fields split into queries: all counts together, functions by their condition.

    A Stats line that sums cannot have a condition of its own, so those fields need the condition as
    the filter of a query.
    """
    by_condition: dict[CoreFilter | None, list[StatsField]] = {}
    counts: list[StatsField] = []
    for figure in spec.fields:
        if figure.function == "count":
            counts.append(figure)
        else:
            by_condition.setdefault(figure.condition, []).append(figure)
    groups = [counts] if counts else []
    return tuple(StatsSpec(tuple(group)) for group in [*groups, *by_condition.values()])


def _asked(spec: StatsSpec) -> list[StatsField]:
    """The numbers that are asked of a core for a batch, behind the count of all rows."""
    return [figure for figure in spec.fields if not figure.counts_all]


def plan_stats(
    spec: StatsSpec,
    table: str,
    part: Pushable,
    forced: CoreFilter | None,
    capabilities: Capabilities,
    program_start: int = 0,
) -> Pushed | None:
    """One batch as Stats for one core, or None where the core cannot do all of it exactly."""
    if not part.exact:
        return None
    stats: list[Stat] = [Stat("count")]
    common: CoreFilter | None = None
    for figure in _asked(spec):
        condition = portable(started(figure.condition, program_start), table, capabilities)
        if condition is None and figure.condition is not None:
            return None
        if figure.function == "count":
            stats.append(Stat("count", "", condition))
        else:
            common = condition
            if not capabilities.has(table, figure.column) or not harmless(table, figure.column):
                return None
            stats.append(Stat(figure.function, figure.column))
    return Pushed(table=table, filter=both(both(forced, part.filter), common), stats=tuple(stats))


def started(condition: CoreFilter | None, program_start: int) -> CoreFilter | None:
    """``condition`` with the start of the core filled in."""
    if condition is None:
        return None
    start = str(program_start)
    return rewritten(
        condition, lambda test: evolve(test, value=start) if test.value == START else test
    )


def portable(
    condition: CoreFilter | None, table: str, capabilities: Capabilities
) -> CoreFilter | None:
    """``condition`` in terms whose answer on this core is the API's, None where there are none."""
    if condition is None or isinstance(condition, Test):
        if condition is None or not capabilities.has(table, condition.column):
            return None
        if not harmless(table, condition.column):
            return None
        if capabilities.icinga2 and condition.column in PENDING_COLUMNS:
            return in_icinga(condition)
        return condition
    items = []
    for item in condition.items:
        test = portable(item, table, capabilities)
        if test is None:
            return None
        items.append(test)
    return Group(condition.connector, tuple(items))


_COMPARE: Mapping[str, Callable[[Any, Any], bool]] = {
    "=": operator.eq, "!=": operator.ne, ">": operator.gt,
    "<": operator.lt, ">=": operator.ge, "<=": operator.le, "!>=": operator.lt,
}  # fmt: skip


def core_test(condition: CoreFilter | None, index: Mapping[str, int]) -> Callable[[Row], bool]:
    """A core filter as a test of rows, with the core's own rules."""
    if condition is None:
        return lambda _row: True
    if isinstance(condition, Group):
        tests = [core_test(item, index) for item in condition.items]
        return all_of(tests) if condition.connector == "and" else any_of(tests)
    at, op, text = index[condition.column], condition.op, condition.value
    compare, number = _COMPARE[op], number_of(text)

    def holds(row: Row) -> bool:
        value = row[at]
        if isinstance(value, list):
            if text == "":
                return compare(len(value), 0)
            return (text in value) == (op == ">=")
        if number is not None and isinstance(value, int | float):
            return compare(value, number)
        return compare("" if value is None else str(value), text)

    return holds


def count_rows(
    spec: StatsSpec, rows: Sequence[Row], index: Mapping[str, int], program_start: int = 0
) -> list[Any]:
    """The fields of a batch over rows, in the shape of a Stats answer: the row count first."""
    common = None if spec.fields[0].function == "count" else spec.fields[0].condition
    matches = core_test(started(common, program_start), index)
    fields = _asked(spec)
    tests = [core_test(started(figure.condition, program_start), index) for figure in fields]
    count = 0
    result: list[Any] = [None if figure.function in ("min", "max") else 0 for figure in fields]
    for row in rows:
        count += matches(row)
        for at, figure in enumerate(fields):
            if not tests[at](row):
                continue
            if figure.function == "count":
                result[at] += 1
                continue
            value = number_of(row[index[figure.column]]) or 0
            if figure.function == "sum":
                result[at] += value
            elif result[at] is None:
                result[at] = value
            else:
                result[at] = (min if figure.function == "min" else max)(result[at], value)
    return [count, *(0 if number is None else number for number in result)]


def merge_stats(spec: StatsSpec, answers: Iterable[Sequence[Any]]) -> dict[str, Any]:
    """The fields over all sites: counts and sums added, extremes over sites that had rows."""
    merged: dict[str, Any] = {}
    for values in answers:
        rows = int(values[0])
        numbers = iter(values[1:])
        for figure in spec.fields:
            value = values[0] if figure.counts_all else next(numbers)
            if figure.function in ("count", "sum"):
                merged[figure.name] = merged.get(figure.name, 0) + value
            elif rows:
                best = min if figure.function == "min" else max
                merged[figure.name] = best(merged.get(figure.name, value), value)
    return {figure.name: merged.get(figure.name, 0) for figure in spec.fields}
