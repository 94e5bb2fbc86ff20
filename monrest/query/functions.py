"""The functions of the column language (docs/spec/query.md, "Functions").

A function is built once per request from its arguments, literal values or readers of a row, and
is then called for every row. What is wrong with the literals is refused when it is built. Null
stays null except in ``concat`` and ``fmt``; lists count as their elements joined with commas.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, tzinfo
from math import floor, isfinite
from typing import Any, Literal, TypeAlias

from attrs import frozen

from monrest.base.errors import BadRequest
from monrest.base.values import Row
from monrest.query.model import Literal_
from monrest.query.regex import Pattern, compile_pattern, unlimited
from monrest.query.scalars import number_of, text_of, within
from monrest.query.times import format_duration, format_time

CANONICAL: Mapping[str, str] = {
    "lc": "lower", "uc": "upper", "substring": "substr", "hststate": "hoststate",
    "svcstate": "servicestate", "as_rows": "to_rows",
}  # fmt: skip
"""Second names of functions to their canonical names."""

AGGREGATES = frozenset({"count", "sum", "avg", "min", "max", "uniq"})
DISAGGREGATES = frozenset({"to_rows"})

_HOST_STATES: Mapping[float, str] = {
    0: "UP", 1: "DOWN", 2: "UNREACHABLE", 3: "UNKNOWN", 4: "PENDING",
}  # fmt: skip
_SERVICE_STATES: Mapping[float, str] = {
    0: "OK", 1: "WARNING", 2: "CRITICAL", 3: "UNKNOWN", 4: "PENDING",
}  # fmt: skip

MOST_ITEMS = 500
"""Items of ``columns``, arguments of a function and operands of a calculation."""

MOST_MADE = 65_536
"""Characters by which a function may make a text longer than its longest argument."""

RowReader: TypeAlias = Callable[[Row], Any]
CallArgument: TypeAlias = Literal_ | RowReader
ValueKind: TypeAlias = Literal["value", "text", "number"]

_MOST_FORMAT = 1_024


@frozen
class Moment:
    """The present of a request: Unix time in seconds, and the time zone of ``date``."""

    now: float
    zone: tzinfo


Maker: TypeAlias = Callable[[Sequence[CallArgument], Moment], RowReader]


@frozen
class Function:
    """How a function is called, and ``make`` that makes a function of a row from its arguments.

    ``kinds`` are those of its arguments in order, the last one repeated: a value of the row
    (column, calculation, call or literal), a text taken as it is, or a number; the last two are
    literals. ``least`` and ``most`` bound how many there are; ``usage`` is the parameter list for
    error texts. What works on many rows has no ``make``, nor has ``s``, which checks the time.
    """

    kinds: tuple[ValueKind, ...]
    least: int
    most: int
    usage: str
    make: Maker | None = None

    def kind(self, position: int) -> ValueKind:
        return self.kinds[min(position, len(self.kinds) - 1)]


def build(
    name: str,
    arguments: Sequence[CallArgument],
    moment: Moment,
    check: Callable[[], None] = unlimited,
) -> RowReader:
    """The function ``name`` of ``FUNCTIONS`` as a function of a row.

    What takes long calls ``check`` now and then. Raises BadRequest for literals that it cannot
    use; the reader itself raises it only for a text that grows beyond ``MOST_MADE``.
    """
    if name == "s":
        return _replace(arguments, check)
    make = FUNCTIONS[name].make
    assert make is not None
    return make(arguments, moment)


def _refused(description: str) -> BadRequest:
    return BadRequest("error during request", description)


def _reader(argument: CallArgument) -> RowReader:
    if isinstance(argument, Literal_):
        value = argument.value
        return lambda _row: value
    return argument


def _literal(argument: CallArgument) -> str | int | float:
    assert isinstance(argument, Literal_)
    return argument.value


def _too_long(function: str) -> BadRequest:
    """The error for a text that is far longer than what it is made of: many rows would not fit."""
    return _refused(f"{function}: makes a text longer than {MOST_MADE} characters")


def _on_text(change: Callable[[str], Any]) -> Maker:
    def make(arguments: Sequence[CallArgument], _moment: Moment) -> RowReader:
        read = _reader(arguments[0])

        def apply(row: Row) -> Any:
            value = read(row)
            return None if value is None else change(text_of(value))

        return apply

    return make


def _on_number(change: Callable[[int | float], Any]) -> Maker:
    """``change`` for what looks like a number; everything else passes as it is."""

    def make(arguments: Sequence[CallArgument], _moment: Moment) -> RowReader:
        read = _reader(arguments[0])

        def apply(row: Row) -> Any:
            value = read(row)
            if isinstance(value, list | dict):
                value = text_of(value)
            number = number_of(value)
            return value if number is None else change(number)

        return apply

    return make


def _substr(arguments: Sequence[CallArgument], moment: Moment) -> RowReader:
    offset = _whole(_literal(arguments[1]))
    length = _whole(_literal(arguments[2])) if len(arguments) > 2 else None

    def cut(text: str) -> str | None:
        size = len(text)
        start = offset if offset >= 0 else size + offset
        end = size if length is None else length + (start if length >= 0 else size)
        if start > size or (start < 0 and end < 0):
            return None
        start = max(start, 0)
        return text[start : max(start, end)]

    return _on_text(cut)(arguments, moment)


def _whole(value: Any) -> int:
    number = number_of(value)
    return 0 if number is None else int(number)


def pattern_of(arguments: Sequence[CallArgument]) -> Pattern:
    """The pattern among the arguments of ``s``, compiled."""
    text = text_of(_literal(arguments[1]))
    if len(text) > 1 and text[0] == text[-1] == "/":
        text = text[1:-1]
    if not text:
        raise _refused(f"usage: s({FUNCTIONS['s'].usage})")
    return compile_pattern(text, ignore_case=False, parameter="columns")


def _replace(arguments: Sequence[CallArgument], check: Callable[[], None]) -> RowReader:
    read, compiled = _reader(arguments[0]), pattern_of(arguments)
    replacement = text_of(_literal(arguments[2]))

    def apply(row: Row) -> str | None:
        value = read(row)
        if value is None:
            return None
        text = text_of(value)
        result = compiled.replaced(replacement, text, MOST_MADE, check)
        if result is None or len(result) > len(text) + MOST_MADE:
            raise _too_long("s")
        return result

    return apply


def _concat(arguments: Sequence[CallArgument], _moment: Moment) -> RowReader:
    reads = [_reader(argument) for argument in arguments]

    def apply(row: Row) -> str:
        texts = [text_of(read(row)) for read in reads]
        sizes = [len(text) for text in texts]
        if sum(sizes) > max(sizes) + MOST_MADE:
            raise _too_long("concat")
        return "".join(texts)

    return apply


def _fmt(arguments: Sequence[CallArgument], _moment: Moment) -> RowReader:
    template = FormatTemplate.parse(text_of(_literal(arguments[0])))
    reads = [_reader(argument) for argument in arguments[1:]]

    def apply(row: Row) -> str:
        values = [read(row) for read in reads]
        result = template.fill(values)
        if len(result) > MOST_MADE:
            longest = max([len(value) for value in values if isinstance(value, str)] or [0])
            if len(result) > longest + MOST_MADE:
                raise _too_long("fmt")
        return result

    return apply


def _calc(arguments: Sequence[CallArgument], moment: Moment) -> RowReader:
    op = text_of(_literal(arguments[1])).strip() or "+"
    right = number_of(_literal(arguments[2])) or 0
    if op not in _OPERATIONS:
        raise _refused("unsupported operator, use one of: + - * /")
    operation = _OPERATIONS[op]
    return _on_number(lambda left: operation(left, right))(arguments, moment)


def _unit(arguments: Sequence[CallArgument], _moment: Moment) -> RowReader:
    """The value itself; the unit concerns the declaration of the column only."""
    return _reader(arguments[0])


def _age(arguments: Sequence[CallArgument], moment: Moment) -> RowReader:
    now = moment.now
    return _on_number(lambda value: within(floor(now - value)))(arguments, moment)


def _dated(name: str) -> Maker:
    def make(arguments: Sequence[CallArgument], moment: Moment) -> RowReader:
        fmt = text_of(_literal(arguments[1])) if len(arguments) > 1 else ""
        if len(fmt) > _MOST_FORMAT:
            raise _refused(f"{name}: the format has at most {_MOST_FORMAT} characters")
        zone = UTC if name == "utc" else moment.zone
        return _on_number(lambda value: format_time(value, fmt or None, zone))(arguments, moment)

    return make


def _divide(left: int | float, right: int | float) -> int | float | None:
    if right == 0:
        return None
    if isinstance(left, int) and isinstance(right, int) and left % right == 0:
        return left // right
    return left / right


def _kept(
    operate: Callable[[int | float, int | float], int | float | None],
) -> Callable[[int | float, int | float], int | float | None]:
    """``operate`` with None for results that no output could show."""

    def operation(left: int | float, right: int | float) -> int | float | None:
        result = operate(left, right)
        return within(result) if result is not None and isfinite(result) else None

    return operation


_OPERATIONS: Mapping[str, Callable[[int | float, int | float], int | float | None]] = {
    "+": _kept(lambda left, right: left + right),
    "-": _kept(lambda left, right: left - right),
    "*": _kept(lambda left, right: left * right),
    "/": _kept(_divide),
}


def calculate(first: CallArgument, steps: Sequence[tuple[str, CallArgument]]) -> RowReader:
    """``first op operand …`` from left to right without precedence.

    What is no number counts as 0, null included. The result is an integer when all operands are
    and every division is exact; it is empty text after a division by zero or an overflow.
    """
    start = _reader(first)
    rest = [(_OPERATIONS[op], _reader(operand)) for op, operand in steps]

    def apply(row: Row) -> int | float | str:
        result = number_of(start(row)) or 0
        for operation, read in rest:
            number = operation(result, number_of(read(row)) or 0)
            if number is None:
                return ""
            result = number
        return result

    return apply


# The format comes from a client. It is cut into pieces once; each conversion is then made by
# Python's own formatting of one value, so that no format can read or write what it should not.

MOST_WIDTH = 999
"""Largest width and largest precision."""

_CONVERSION = re.compile(r"%(?:%|([-+ 0#]*)([0-9]*)(?:\.([0-9]*))?(?:hh|h|ll|l)?([a-zA-Z]))")
_UNSIGNED = 2**64
_SURROGATES = range(0xD800, 0xE000)
_MOST_LETTER = 0x10FFFF


@frozen
class _Conversion:
    """One ``%…`` of a format: its letter, and flags, width and precision for Python."""

    letter: str
    spec: str
    width: str

    def text(self, value: Any) -> str:
        if self.letter == "s":
            return f"{self.spec}s" % text_of(value)
        number = number_of(text_of(value) if isinstance(value, list | dict) else value)
        if self.letter == "c":
            code = -1 if number is None else int(number)
            text = "" if number is None else "\ufffd"
            if 0 <= code <= _MOST_LETTER and code not in _SURROGATES:
                text = chr(code)
            return f"{self.width}s" % text
        if number is None:
            number = 0
        if self.letter in "feEgG":
            return f"{self.spec}{self.letter}" % float(number)
        whole = int(number)
        if self.letter in "di":
            return f"{self.spec}d" % whole
        if whole < 0:
            whole %= _UNSIGNED
        return f"{self.spec}{'d' if self.letter == 'u' else self.letter}" % whole


@frozen
class FormatTemplate:
    """A parsed format; ``fill`` may be called for any number of rows."""

    pieces: tuple[str | _Conversion, ...]

    @classmethod
    def parse(cls, text: str) -> FormatTemplate:
        """Cut ``text`` at its conversions ``s d i u f e E g G x X o c`` and ``%%``.

        Other conversions stay as they are, except that ``%n`` raises BadRequest, as do a width
        or a precision of more than 999.
        """
        pieces: list[str | _Conversion] = []
        end = 0
        for match in _CONVERSION.finditer(text):
            letter = match[4]
            if letter == "n":
                raise _refused("fmt: %n is not accepted")
            if letter is not None and letter not in "sdiufeEgGxXoc":
                continue
            pieces.append(text[end : match.start()])
            end = match.end()
            if letter is None:
                pieces.append("%")
                continue
            flags, width, precision = match[1], match[2], match[3]
            for digits in (width, precision or ""):
                if len(digits.lstrip("0")) > len(str(MOST_WIDTH)):
                    raise _refused(f"fmt: width and precision are at most {MOST_WIDTH}")
            before = f"%{flags}{width}"
            spec = before if precision is None else f"{before}.{precision}"
            pieces.append(_Conversion(letter, spec, before))
        pieces.append(text[end:])
        return cls(tuple(piece for piece in pieces if piece != ""))

    def fill(self, values: Sequence[Any]) -> str:
        """The format with ``values`` in order; missing ones are empty or 0, others left over."""
        following = iter(values)
        return "".join(
            [
                piece if isinstance(piece, str) else piece.text(next(following, None))
                for piece in self.pieces
            ]
        )


_VALUE: tuple[ValueKind, ...] = ("value",)
_TEXT: tuple[ValueKind, ...] = ("value", "text")

FUNCTIONS: Mapping[str, Function] = {
    "lower": Function(_VALUE, 1, 1, "column", _on_text(str.lower)),
    "upper": Function(_VALUE, 1, 1, "column", _on_text(str.upper)),
    "substr": Function(("value", "number"), 2, 3, "column, start[, length]", _substr),
    "calc": Function(("value", "text", "number"), 3, 3, "column, 'operator', 'value'", _calc),
    "s": Function(_TEXT, 3, 3, "column, 'regexp', 'replacement'"),
    "concat": Function(_VALUE, 1, MOST_ITEMS, "column or 'text', ...", _concat),
    "fmt": Function(("text", "value"), 2, MOST_ITEMS, "format_string, arg1, arg2, ...", _fmt),
    "unit": Function(_TEXT, 1, 2, "column, unit", _unit),
    "age": Function(_VALUE, 1, 1, "column", _age),
    "duration": Function(_VALUE, 1, 1, "column", _on_number(format_duration)),
    "utc": Function(_TEXT, 1, 2, "column[, format]", _dated("utc")),
    "date": Function(_TEXT, 1, 2, "column[, format]", _dated("date")),
    "hoststate": Function(_VALUE, 1, 1, "column", _on_number(_HOST_STATES.get)),
    "servicestate": Function(_VALUE, 1, 1, "column", _on_number(_SERVICE_STATES.get)),
    "count": Function(_VALUE, 0, 1, "*"),
    "sum": Function(_VALUE, 1, 1, "column"),
    "avg": Function(_VALUE, 1, 1, "column"),
    "min": Function(_VALUE, 1, 1, "column"),
    "max": Function(_VALUE, 1, 1, "column"),
    "uniq": Function(_VALUE, 0, MOST_ITEMS, ""),
    "to_rows": Function(_VALUE, 1, 1, "column"),
}
"""Every function by its canonical name."""
