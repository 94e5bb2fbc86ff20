"""Conditions of a request as Naemon evaluates them: per type, per operator, bytewise."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, TypeAlias

import re2
from attrs import evolve, frozen

from monrest.lql.tables import Column, Rows, Table, ValueOf
from monrest.query.sendable import LOOKED_UP

Predicate: TypeAlias = Callable[[Any], bool]


class RequestError(Exception):
    """A request that is refused: status code and text for the client."""

    def __init__(self, code: int, text: str) -> None:
        super().__init__(text)
        self.code = code
        self.text = text


class CoreDiedError(Exception):
    """A line that a real core would not have survived."""

    def __init__(self, line: str) -> None:
        super().__init__(line)
        self.line = line


@frozen(eq=False)
class RowCondition:
    """A condition on rows, from one line or joined from several.

    ``holds`` says it of a row. ``rows`` returns rows among which all matches are, where an index
    finds them. ``since`` and ``until`` are the span of times that is looked at. ``is_misread``:
    a real core looks up the host that must not be, and so finds nothing.
    """

    holds: Predicate
    rows: Callable[[], Rows] | None = None
    since: float | None = None
    until: float | None = None
    is_misread: bool = False


def every(conditions: Sequence[RowCondition]) -> RowCondition:
    """All of them hold; true without any."""
    checks = [condition.holds for condition in conditions]
    indexed = [condition.rows for condition in conditions if condition.rows is not None]
    return RowCondition(
        checks[0] if len(checks) == 1 else lambda row: all(check(row) for check in checks),
        (lambda: min((rows() for rows in indexed), key=len)) if indexed else None,
        *_span(conditions),
    )


def some(conditions: Sequence[RowCondition]) -> RowCondition:
    """At least one of them holds; false without any.

    Naemon takes times from anywhere in the filter, so two ranges joined by Or lose rows; a client
    that is tested against this must cope.
    """
    checks = [condition.holds for condition in conditions]
    indexed = [condition.rows for condition in conditions if condition.rows is not None]

    def united() -> Rows:
        return list({id(row): row for rows in indexed for row in rows()}.values())

    return RowCondition(
        checks[0] if len(checks) == 1 else lambda row: any(check(row) for check in checks),
        united if indexed and len(indexed) == len(conditions) else None,
        *_span(conditions),
    )


def negated(condition: RowCondition) -> RowCondition:
    return RowCondition(lambda row: not condition.holds(row))


def _span(conditions: Sequence[RowCondition]) -> tuple[float | None, float | None]:
    """The intersection of all spans of time."""
    since = [condition.since for condition in conditions if condition.since is not None]
    until = [condition.until for condition in conditions if condition.until is not None]
    return max(since, default=None), min(until, default=None)


_COMPARE: Mapping[str, Callable[[Any, Any], bool]] = {
    "=": operator.eq,
    "<": operator.lt,
    ">": operator.gt,
    "<=": operator.le,
    ">=": operator.ge,
}
_OPERATORS = frozenset({*_COMPARE, "=~", "~", "~~"})


def read_condition(line: str, table: Table, shift: int = 0) -> RowCondition:
    """Read ``column op value``; ``shift`` are the seconds by which times are moved.

    Raises RequestError 400 and CoreDiedError.
    """
    name, _, rest = line.partition(" ")
    word, _, value = rest.lstrip(" ").partition(" ")
    value = value.strip(" \t")
    if not name:
        raise RequestError(400, "empty filter line")
    if not word:
        raise RequestError(400, f"Missing operator for filter on column '{name}'")
    op = word.removeprefix("!")
    if op not in _OPERATORS:
        raise RequestError(400, f"Unknown operator '{word}'")
    column = table.find(name)
    if column is None:
        # A real core compares with random memory there; mostly that is no row.
        return RowCondition(lambda _row: False)
    if column.style == "counter":
        raise RequestError(400, f"cannot create filter on table {table.name}")
    if column.deadly is not None and column.deadly():
        raise CoreDiedError(f"GET {table.name}, filter {line}")
    compared = column if column.compared is None else evolve(column, get=column.compared)
    negate = word != op
    holds = _comparison(compared.shifted(shift), op, value, negate)
    if negate:
        is_misread = op == "=" and (table.name, column.name) in LOOKED_UP
        return RowCondition(holds, is_misread=is_misread)
    lookup = table.indexes.get(column.name) if op == "=" else None
    moment = _in_32_bits(_number_of(value)) if column.name == "time" else None
    return RowCondition(
        holds,
        None if lookup is None else partial(lookup, value),
        since=moment if op in (">", ">=", "=") else None,
        until=moment if op in ("<", "<=", "=") else None,
    )


def _comparison(column: Column, op: str, value: str, negate: bool) -> Predicate:
    get = column.getter()
    if column.bits is not None:
        return _bits(get, column.bits, op, value, negate)
    if column.type == "string":
        return _text(get, op, value, negate)
    if column.type == "list":
        return _list(get, op, value, negate, pairs=column.style == "pairs")
    if column.type == "dict":
        name, _, rest = value.partition(" ")
        return _text(lambda row: get(row).get(name, ""), op, rest.lstrip(" "), negate)
    compare = _COMPARE.get(op)
    if compare is None:
        return lambda _row: not negate
    number = _number_of(value)
    wanted = _in_32_bits(number) if column.type == "int" else number
    if negate:
        return lambda row: not compare(get(row), wanted)
    return lambda row: compare(get(row), wanted)


_NUMBER = re.compile(r"\s*[-+]?(\d+(\.\d*)?|\.\d+)([eE][-+]?\d+)?")


def _number_of(text: str) -> float:
    """The leading number of a text; other text reads as 0."""
    match = _NUMBER.match(text)
    return float(match[0]) if match is not None else 0.0


def _in_32_bits(number: float) -> float:
    """The operand as a real core reads it: the lowest 32 bits of a whole number."""
    if abs(number) < 2**31:
        return number
    if abs(number) >= 2**63:
        return -1 if number > 0 else 0
    return (int(number) + 2**31) % 2**32 - 2**31


def _text(get: ValueOf, op: str, wanted: str, negate: bool) -> Predicate:
    if op in ("~", "~~"):
        search = _regex(wanted, ignore_case=op == "~~")
        if negate:
            return lambda row: not search(get(row))
        return lambda row: search(get(row))
    if op == "=~":
        folded = _fold(wanted)
        return lambda row: (_fold(get(row)) == folded) is not negate
    if op == "=":
        if negate:
            return lambda row: get(row) != wanted
        return lambda row: get(row) == wanted
    compare = _COMPARE[op]
    # Code points of valid text sort as their UTF-8 bytes do.
    return lambda row: compare(get(row), wanted) is not negate


_LETTERS = {upper: upper + 32 for upper in range(ord("A"), ord("Z") + 1)}


def _fold(text: str) -> str:
    """Lower case of ASCII letters only, as a bytewise comparison ignoring case does."""
    return text.translate(_LETTERS)


def _regex(pattern: str, *, ignore_case: bool) -> Callable[[str], bool]:
    """A POSIX extended expression over bytes. Raises RequestError 400 for one that is refused."""
    if "{" in pattern or "}" in pattern:
        raise RequestError(400, f"Regular expression '{pattern}' must not contain {{ or }}")
    options = re2.Options()
    options.posix_syntax = True
    options.perl_classes = True
    options.word_boundary = True
    options.one_line = True
    options.dot_nl = True
    options.log_errors = False
    options.case_sensitive = not ignore_case
    options.encoding = re2.Options.Encoding.LATIN1
    try:
        compiled = re2.compile(pattern.encode("utf-8", "surrogateescape"), options)
    except re2.error:
        raise RequestError(400, f"Invalid regular expression '{pattern}'") from None
    search = compiled.search
    return lambda text: search(text.encode("utf-8", "surrogateescape")) is not None


def _list(get: ValueOf, op: str, value: str, negate: bool, *, pairs: bool) -> Predicate:
    if op == "=":
        if value:
            return lambda _row: False
        return lambda row: bool(get(row)) is negate
    if op not in ("<", ">="):
        return lambda _row: True
    wanted: Any = tuple(value.split("|", 1)) if pairs and "|" in value else value
    contains = (op == ">=") is not negate
    if value.isdigit():
        number = int(value)
        return lambda row: (wanted in (items := get(row)) or number in items) is contains
    return lambda row: (wanted in get(row)) is contains


def _bits(get: ValueOf, bits: Mapping[str, int], op: str, value: str, negate: bool) -> Predicate:
    words = [word for word in re.split(r"[\s,]+", value) if word]
    wanted = sum(int(word) if word.isdigit() else bits.get(word, 0) for word in words)
    checks: dict[str, Callable[[int], bool]] = {
        "=": lambda number: number == wanted,
        "~": lambda number: number & wanted == wanted,
        "~~": lambda number: bool(number & wanted),
        ">=": lambda number: number & wanted == wanted,
        "<": lambda number: number & wanted != wanted,
    }
    check = checks.get(op)
    if check is None:
        return lambda _row: True
    return lambda row: check(sum(map(bits.__getitem__, get(row)))) is not negate
