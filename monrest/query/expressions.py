"""Looking at expressions: the columns they name, what they unpack, what their results are."""

from __future__ import annotations

import re
from collections.abc import Callable

from attrs import evolve

from monrest.base.values import Column
from monrest.query.column_names import ColumnNames, CoreSource
from monrest.query.model import Calculation, Call, Expression, Literal_, Ref


def parts(expression: Expression) -> list[Expression]:
    """An expression and everything that it is made of, in the order in which it is written."""
    every: list[Expression] = [expression]
    if isinstance(expression, Calculation):
        every += parts(expression.first)
        for _, operand in expression.steps:
            every += parts(operand)
    elif isinstance(expression, Call):
        for argument in expression.arguments:
            every += parts(argument)
    return every


def references(expression: Expression) -> list[Ref]:
    return [part for part in parts(expression) if isinstance(part, Ref)]


def calls(expression: Expression) -> list[Call]:
    return [part for part in parts(expression) if isinstance(part, Call)]


_SEARCHES = 20_000


def effort(expression: Expression) -> int:
    """How many functions and operands an expression has; ``s`` may search thousands of times."""
    total = 0
    for part in parts(expression):
        if isinstance(part, Calculation):
            total += 1 + len(part.steps)
        elif isinstance(part, Call):
            total += _SEARCHES if part.function == "s" else 1
    return total


def unpacked(expression: Expression) -> Expression | None:
    """The argument of ``to_rows`` inside an expression, or None."""
    return next(
        (call.arguments[0] for call in calls(expression) if call.function == "to_rows"), None
    )


def blanks_as_plus(expression: Expression, names: ColumnNames) -> Expression:
    """``up down`` of numbers is what is left of an unescaped ``up+down``, wherever it stands."""
    if isinstance(expression, Calculation):
        steps = tuple((op, blanks_as_plus(operand, names)) for op, operand in expression.steps)
        return Calculation(blanks_as_plus(expression.first, names), steps)
    if isinstance(expression, Call):
        arguments = tuple(blanks_as_plus(argument, names) for argument in expression.arguments)
        return Call(expression.function, arguments)
    if not isinstance(expression, Ref) or expression.quoted or " " not in expression.name:
        return expression
    operands: list[Expression] = []
    for part in expression.name.split():
        source = names.find(part)
        if _DIGITS.fullmatch(part) and operands:
            operands.append(Literal_(int(part)))
        elif isinstance(source, CoreSource) and source.core_type in ("int", "float", "time"):
            operands.append(Ref(part))
        else:
            return expression
    if len(operands) < 2:
        return expression
    return Calculation(operands[0], tuple(("+", operand) for operand in operands[1:]))


_DIGITS = re.compile(r"[0-9]{1,15}")
_TEXT_FUNCTIONS = frozenset(
    {"lower", "upper", "substr", "s", "concat", "fmt", "duration", "utc", "date"}
    | {"hoststate", "servicestate"}
)


def described(
    expression: Expression, key: str, column_of: Callable[[str], Column | None]
) -> Column:
    """Type and unit of what an expression gives, from those of the columns that it names."""
    if isinstance(expression, Ref):
        column = column_of(expression.name)
        return Column(key) if column is None else evolve(column, name=key)
    if isinstance(expression, Calculation):
        name = described(expression.first, key, column_of)
        for op, operand in expression.steps:
            name = _combined(op, name, described(operand, key, column_of))
        return evolve(name, name=key, description="")
    if isinstance(expression, Literal_):
        return Column(key)
    function, arguments = expression.function, expression.arguments
    inner = described(arguments[0], key, column_of) if arguments else Column(key)
    if function in _TEXT_FUNCTIONS:
        return Column(key, "string")
    if function == "age":
        return Column(key, "number", "s")
    if function == "unit":
        unit = arguments[1] if len(arguments) > 1 else None
        text = getattr(unit, "value", None) or getattr(unit, "name", "")
        return Column(key, "number", str(text))
    if function == "to_rows":
        return Column(key)
    if function == "calc":
        op = str(getattr(arguments[1], "value", "")).strip() or "+"
        return _combined(op, inner, Column(key))
    if function in ("min", "max") and inner.type == "time":
        return Column(key, "time")
    return Column(key, "number", "" if function == "count" else inner.unit)


def _combined(op: str, left: Column, right: Column) -> Column:
    """The result of an operation: sums keep times and units, all other results are plain numbers.

    A number that is written has no unit, and may be added to anything.
    """
    if op not in ("+", "-"):
        return Column(left.name, "number")
    times = (left.type == "time", right.type == "time")
    if all(times):
        return Column(left.name, "number", "s" if op == "-" else "")
    if any(times):
        return Column(left.name, "time" if times[0] or op == "+" else "number")
    units = {column.unit for column in (left, right) if column.type}
    return Column(left.name, "number", units.pop() if len(units) == 1 else "")
