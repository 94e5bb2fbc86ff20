"""Looking at expressions: the columns they name, what they unpack, what their results are."""

from __future__ import annotations

from collections.abc import Iterable

from monrest.query.model import Calculation, Call, Expression, Ref
from monrest.query.resolve import Core, Names
from monrest.values import Column


def references(expression: Expression) -> Iterable[Ref]:
    """Every column that an expression names."""
    if isinstance(expression, Ref):
        yield expression
    elif isinstance(expression, Calculation):
        yield from references(expression.first)
        for _, operand in expression.steps:
            yield from references(operand)
    elif isinstance(expression, Call):
        for argument in expression.arguments:
            yield from references(argument)


def calls(expression: Expression) -> Iterable[Call]:
    """Every function call in an expression, itself included."""
    if isinstance(expression, Calculation):
        yield from calls(expression.first)
        for _, operand in expression.steps:
            yield from calls(operand)
    elif isinstance(expression, Call):
        yield expression
        for argument in expression.arguments:
            yield from calls(argument)


def unpacked(expression: Expression) -> Expression | None:
    """The argument of ``to_rows`` inside an expression, or None."""
    if isinstance(expression, Call):
        if expression.function == "to_rows":
            return expression.arguments[0]
        for argument in expression.arguments:
            found = unpacked(argument)
            if found is not None:
                return found
    return None


def uses_clock(expression: Expression) -> bool:
    """Whether the value depends on when it is computed."""
    if isinstance(expression, Calculation):
        operands = [operand for _, operand in expression.steps]
        return uses_clock(expression.first) or any(map(uses_clock, operands))
    if isinstance(expression, Call):
        return expression.function == "age" or any(map(uses_clock, expression.arguments))
    return False


def blank_is_plus(expression: Expression, names: Names) -> Expression:
    """``up down`` of numeric columns is what is left of an unescaped ``up+down`` (section 6.2)."""
    if isinstance(expression, Ref) and not expression.quoted and " " in expression.name:
        parts = expression.name.split()
        sources = (names.find(part) for part in parts)
        if len(parts) > 1 and all(
            isinstance(one, Core) and one.core_type in ("int", "float") for one in sources
        ):
            first, *others = [Ref(part) for part in parts]
            return Calculation(first, tuple(("+", other) for other in others))
    return expression


_TEXT_FUNCTIONS = frozenset(
    {"lower", "upper", "substr", "s", "concat", "fmt", "duration", "utc", "date"}
    | {"hoststate", "servicestate"}
)


def described_call(call: Call, inner: Column, key: str) -> Column:
    """Type and unit of a function's result, from those of its first argument."""
    function = call.function
    if function in _TEXT_FUNCTIONS:
        return Column(key, "string")
    if function == "age":
        return Column(key, "number", "s")
    if function == "unit":
        unit = call.arguments[1] if len(call.arguments) > 1 else None
        text = getattr(unit, "value", None) or getattr(unit, "name", "")
        return Column(key, "number", str(text))
    if function == "to_rows":
        return Column(key)
    if function in ("min", "max") and inner.type == "time":
        return Column(key, "time")
    return Column(key, "number", "" if function == "count" else inner.unit)
