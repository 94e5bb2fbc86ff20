"""Functions of the column language (query-engine.md, sections 6.2, 6.3 and 7)."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, tzinfo
from typing import Any, TypeAlias

import orjson
from attrs import frozen

from monrest.errors import BadRequest
from monrest.query.model import Literal_
from monrest.query.regex import compile_pattern
from monrest.query.times import format_duration, format_time
from monrest.values import Row

CANONICAL: Mapping[str, str] = {
    **{name: name for name in ("lower", "upper", "substr", "calc", "s", "concat", "fmt", "unit")},
    **{name: name for name in ("age", "duration", "utc", "date", "hoststate", "servicestate")},
    **{name: name for name in ("count", "sum", "avg", "min", "max", "uniq", "to_rows")},
    "lc": "lower", "uc": "upper", "substring": "substr", "hststate": "hoststate",
    "svcstate": "servicestate", "as_rows": "to_rows",
}  # fmt: skip
AGGREGATES = frozenset({"count", "sum", "avg", "min", "max", "uniq"})
DISAGGREGATES = frozenset({"to_rows"})
ROW_FUNCTIONS = frozenset(CANONICAL.values()) - AGGREGATES - DISAGGREGATES

Reader: TypeAlias = Callable[[Row], Any]
Argument: TypeAlias = Literal_ | Reader

_NUMERIC = re.compile(r"\s*[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?\s*\Z", re.ASCII)


@frozen
class Moment:
    """The present of a request: Unix time, and the zone of ``date``."""

    now: float
    zone: tzinfo


def text_of(value: Any) -> str:
    """The text form of a value (section 4.2): null is empty, booleans 1/0, lists joined."""
    if isinstance(value, str):
        return value
    if value is None:
        return ""
    if isinstance(value, bool):
        return "1" if value else "0"
    if isinstance(value, float):
        return str(int(value)) if value.is_integer() and abs(value) < 1e15 else repr(value)
    if isinstance(value, list):
        return ",".join(text_of(one) for one in value)
    if isinstance(value, dict):
        return orjson.dumps(value, option=orjson.OPT_SORT_KEYS).decode()
    return str(value)


def number_of(value: Any) -> int | float | None:
    """The number that a value is or looks like, None if it does neither."""
    if isinstance(value, bool):
        return int(value)
    if isinstance(value, int | float):
        return value
    if isinstance(value, str) and len(value) < 64 and _NUMERIC.match(value):
        try:
            return int(value)
        except ValueError:
            return float(value)
    return None


def _refuse(description: str) -> BadRequest:
    return BadRequest("error during request", description)


def build(name: str, arguments: Sequence[Argument], moment: Moment) -> Reader:
    """A function of a row. Raises BadRequest for missing or wrong literal arguments."""
    return _BUILDERS[name](list(arguments), moment)


def _reader(argument: Argument) -> Reader:
    if isinstance(argument, Literal_):
        value = argument.value
        return lambda _row: value
    return argument


def _literal(arguments: Sequence[Argument], at: int) -> str | int | float | None:
    if at >= len(arguments):
        return None
    one = arguments[at]
    return one.value if isinstance(one, Literal_) else None


def _first(arguments: Sequence[Argument], usage: str) -> Reader:
    if not arguments:
        raise _refuse(f"usage: {usage}")
    return _reader(arguments[0])


def _mapped(usage: str, change: Callable[[Any], Any]) -> Callable[[list[Argument], Moment], Reader]:
    def make(arguments: list[Argument], _moment: Moment) -> Reader:
        read = _first(arguments, usage)

        def apply(row: Row) -> Any:
            value = read(row)
            return None if value is None else change(value)

        return apply

    return make


def _on_number(read: Reader, change: Callable[[int | float], Any]) -> Reader:
    def apply(row: Row) -> Any:
        value = read(row)
        number = number_of(value)
        if number is None:
            return text_of(value) if isinstance(value, list) else value
        return change(number)

    return apply


def _integer(value: Any) -> int:
    number = number_of(value)
    return 0 if number is None else int(number)


def _substr(arguments: list[Argument], _moment: Moment) -> Reader:
    if len(arguments) < 2:
        raise _refuse("usage: substr(column, start[, length])")
    read = _reader(arguments[0])
    offset = _integer(_literal(arguments, 1))
    length = _integer(_literal(arguments, 2)) if len(arguments) > 2 else None

    def apply(row: Row) -> Any:
        value = read(row)
        if value is None:
            return None
        text = text_of(value)
        start = offset if offset >= 0 else len(text) + offset
        if start > len(text) or (start == len(text) and len(text) > 0 and offset >= 0):
            return None
        start = max(0, start)
        if length is None:
            return text[start:]
        return text[start : start + length] if length >= 0 else text[start : len(text) + length]

    return apply


_OPERATORS = "+-*/"


def _compute(op: str, left: int | float, right: int | float, by_zero: Any) -> Any:
    try:
        if op == "+":
            return left + right
        if op == "-":
            return left - right
        if op == "*":
            return left * right
        if right == 0:
            return by_zero
        if isinstance(left, int) and isinstance(right, int) and left % right == 0:
            return left // right
        return left / right
    except OverflowError:
        return None


def _calc(arguments: list[Argument], _moment: Moment) -> Reader:
    if len(arguments) < 3:
        raise _refuse("usage: calc(column, 'operator', 'value')")
    op = text_of(_literal(arguments, 1)).strip() or "+"
    if op not in _OPERATORS or len(op) != 1:
        raise _refuse("unsupported operator, use one of: + - * /")
    right = number_of(_literal(arguments, 2)) or 0
    return _on_number(_reader(arguments[0]), lambda left: _compute(op, left, right, None))


def _replace(arguments: list[Argument], _moment: Moment) -> Reader:
    pattern = text_of(_literal(arguments, 1))
    if len(arguments) < 3 or not pattern:
        raise _refuse("usage: s(column, 'regexp', 'replacement')")
    if len(pattern) > 1 and pattern[0] == pattern[-1] == "/":
        pattern = pattern[1:-1]
    compiled = compile_pattern(pattern, ignore_case=False, parameter="columns")
    replacement = text_of(_literal(arguments, 2))
    read = _reader(arguments[0])

    def apply(row: Row) -> Any:
        value = read(row)
        return None if value is None else compiled.sub(replacement, text_of(value))

    return apply


def _concat(arguments: list[Argument], _moment: Moment) -> Reader:
    if not arguments:
        raise _refuse("usage: concat(column, ...)")
    reads = [_reader(one) for one in arguments]
    return lambda row: "".join([text_of(read(row)) for read in reads])


_FORMAT = re.compile(r"%([-+ 0#]*)(\d*)(?:\.(\d*))?([A-Za-z%])")


def _fmt(arguments: list[Argument], _moment: Moment) -> Reader:
    if len(arguments) < 2 or not isinstance(arguments[0], Literal_):
        raise _refuse("usage: fmt(format_string, arg1, arg2, ...)")
    template = text_of(arguments[0].value)
    for found in _FORMAT.finditer(template):
        if found[4] == "n":
            raise _refuse("fmt: %n is not supported")
        if int(found[2] or 0) > 999 or int(found[3] or 0) > 999:
            raise _refuse("fmt: width and precision are at most 999")
    reads = [_reader(one) for one in arguments[1:]]

    def apply(row: Row) -> Any:
        values = iter([read(row) for read in reads])
        return _FORMAT.sub(lambda match: _formatted(match, values), template)

    return apply


def _formatted(match: re.Match[str], values: Any) -> str:
    kind = match[4]
    if kind == "%":
        return "%"
    if kind not in "sdiufFeEgGxXoc":
        return match[0]
    value = next(values, None)
    precision = "" if match[3] is None else "." + match[3]
    spec = "%" + match[1] + match[2] + precision
    if kind == "s":
        return (spec + "s") % text_of(value)
    number = number_of(value) or 0
    try:
        if kind == "c":
            return (spec + "s") % chr(int(number) % 0x110000)
        if kind in "diuxXo":
            return (spec + ("d" if kind in "iu" else kind)) % int(number)
        return (spec + kind) % float(number)
    except (ValueError, OverflowError):
        return text_of(value)


def _unit(arguments: list[Argument], _moment: Moment) -> Reader:
    return _first(arguments, "unit(column, unit)")


def _age(arguments: list[Argument], moment: Moment) -> Reader:
    now = moment.now
    return _on_number(_first(arguments, "age(column)"), lambda value: int(now - value))


def _duration(arguments: list[Argument], _moment: Moment) -> Reader:
    return _on_number(_first(arguments, "duration(column)"), format_duration)


def _dated(
    zone_of: Callable[[Moment], tzinfo], name: str
) -> Callable[[list[Argument], Moment], Reader]:
    def make(arguments: list[Argument], moment: Moment) -> Reader:
        read = _first(arguments, f"{name}(column[, format])")
        given = _literal(arguments, 1)
        pattern = None if given is None else text_of(given)
        zone = zone_of(moment)
        return _on_number(read, lambda value: format_time(value, pattern, zone))

    return make


def _stated(words: Sequence[str], name: str) -> Callable[[list[Argument], Moment], Reader]:
    def state(value: int | float) -> str | None:
        return words[int(value)] if value == int(value) and 0 <= value < len(words) else None

    return lambda arguments, _moment: _on_number(_first(arguments, f"{name}(column)"), state)


_BUILDERS: Mapping[str, Callable[[list[Argument], Moment], Reader]] = {
    "lower": _mapped("lower(column)", lambda value: text_of(value).lower()),
    "upper": _mapped("upper(column)", lambda value: text_of(value).upper()),
    "substr": _substr,
    "calc": _calc,
    "s": _replace,
    "concat": _concat,
    "fmt": _fmt,
    "unit": _unit,
    "age": _age,
    "duration": _duration,
    "utc": _dated(lambda _moment: UTC, "utc"),
    "date": _dated(lambda moment: moment.zone, "date"),
    "hoststate": _stated(("UP", "DOWN", "UNREACHABLE", "UNKNOWN", "PENDING"), "hoststate"),
    "servicestate": _stated(("OK", "WARNING", "CRITICAL", "UNKNOWN", "PENDING"), "servicestate"),
}


def calculate(first: Argument, steps: Sequence[tuple[str, Argument]]) -> Reader:
    """``first op operand …`` from left to right; what is no number counts as 0."""
    start = _reader(first)
    rest = [(op, _reader(operand)) for op, operand in steps]

    def apply(row: Row) -> Any:
        result: Any = number_of(start(row)) or 0
        for op, read in rest:
            result = _compute(op, number_of(result) or 0, number_of(read(row)) or 0, "")
        return result

    return apply
