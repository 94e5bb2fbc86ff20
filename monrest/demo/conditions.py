"""Conditions as Naemon evaluates them: per type, per operator, bytewise.

Rules: docs/spec/demo.md, "What it does as a Naemon does".
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, TypeAlias

import re2
from attrs import frozen

from monrest.demo.objects import MODIFIED
from monrest.demo.tables import Field, Getter, Rows, Table
from monrest.objectconfig.attributes import number_of

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
class Condition:
    """What a row must be, from one line or joined from several.

    ``holds`` says it of a row. ``rows`` gives rows among which all matches are, where an index
    finds them. ``since`` and ``until`` are the span of log times that is looked at. ``is_misread``:
    a real core looks up the host that must not be, and so finds nothing.
    """

    holds: Predicate
    rows: Callable[[], Rows] | None = None
    since: float | None = None
    until: float | None = None
    is_misread: bool = False


def every(conditions: Sequence[Condition]) -> Condition:
    """All of them hold; true without any."""
    checks = [one.holds for one in conditions]
    indexed = [one.rows for one in conditions if one.rows is not None]
    since, until = _span(conditions)
    return Condition(
        checks[0] if len(checks) == 1 else lambda row: all(check(row) for check in checks),
        (lambda: min((rows() for rows in indexed), key=len)) if indexed else None,
        since,
        until,
    )


def some(conditions: Sequence[Condition]) -> Condition:
    """At least one of them holds; false without any.

    Naemon takes times from anywhere in the filter, so two ranges joined by Or lose rows; a client
    that is tested against this core must cope.
    """
    checks = [one.holds for one in conditions]
    indexed = [one.rows for one in conditions if one.rows is not None]
    since, until = _span(conditions)

    def united() -> Rows:
        return list({id(row): row for rows in indexed for row in rows()}.values())

    return Condition(
        checks[0] if len(checks) == 1 else lambda row: any(check(row) for check in checks),
        united if indexed and len(indexed) == len(conditions) else None,
        since,
        until,
    )


def negated(condition: Condition) -> Condition:
    """The condition does not hold."""
    return Condition(lambda row: not condition.holds(row))


def _span(conditions: Sequence[Condition]) -> tuple[float | None, float | None]:
    """The intersection of all spans of time."""
    since = [one.since for one in conditions if one.since is not None]
    until = [one.until for one in conditions if one.until is not None]
    return max(since, default=None), min(until, default=None)


# -------------------------------------------------------------------- one line

_COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    "=": operator.eq,
    "<": operator.lt,
    ">": operator.gt,
    "<=": operator.le,
    ">=": operator.ge,
}
_OPERATORS = frozenset({*_COMPARE, "=~", "~", "~~"})


def read_condition(line: str, table: Table, shift: int = 0) -> Condition:
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
    field = table.find(name)
    if field is None:
        # A real core compares with whatever is in memory there; mostly that is no row.
        return Condition(lambda _row: False)
    if field.base.style == "counter":
        raise RequestError(400, f"cannot create filter on table {table.name}")
    if field.base.deadly is not None and field.base.deadly():
        raise CoreDiedError(f"GET {table.name}, filter {line}")
    negate = word != op
    holds = _comparison(field.shifted(shift), op, value, negate)
    if negate:
        is_misread = (op, table.name, field.name) == ("=", "services", "host_name")
        return Condition(holds, is_misread=is_misread)
    lookup = table.indexes.get(field.name) if op == "=" else None
    moment = _in_32_bits(number_of(value)) if field.name == "time" else None
    return Condition(
        holds,
        None if lookup is None else partial(lookup, value),
        since=moment if op in (">", ">=", "=") else None,
        until=moment if op in ("<", "<=", "=") else None,
    )


def _comparison(field: Field, op: str, value: str, negate: bool) -> Predicate:
    get, base = field.getter(), field.base
    if base.style == "bits":
        return _bits(get, op, value, negate)
    if base.type == "string":
        return _text(get, op, value, negate)
    if base.type == "list":
        return _list(get, op, value, negate, pairs=base.style == "pairs")
    if base.type == "dict":
        name, _, rest = value.partition(" ")
        return _text(lambda row: get(row).get(name, ""), op, rest.lstrip(" "), negate)
    number = number_of(value)
    return _number(get, op, _in_32_bits(number) if base.type == "int" else number, negate)


def _in_32_bits(number: float) -> float:
    """The operand as a real core reads it: the lowest 32 bits of a whole number."""
    if abs(number) < 2**31:
        return number
    if abs(number) >= 2**63:
        return -1 if number > 0 else 0
    return (int(number) + 2**31) % 2**32 - 2**31


def _number(get: Getter, op: str, wanted: float, negate: bool) -> Predicate:
    compare = _COMPARE.get(op)
    if compare is None:
        return lambda _row: not negate
    if negate:
        return lambda row: not compare(get(row), wanted)
    return lambda row: compare(get(row), wanted)


def _text(get: Getter, op: str, wanted: str, negate: bool) -> Predicate:
    if op in ("~", "~~"):
        search = _regex(wanted, ignore_case=op == "~~")
        if negate:
            return lambda row: not search(get(row))
        return lambda row: search(get(row))
    if op == "=~":
        folded = _fold(wanted)
        return lambda row: (_fold(get(row)) == folded) is not negate
    compare = _COMPARE[op]
    if op == "=":
        if negate:
            return lambda row: get(row) != wanted
        return lambda row: get(row) == wanted
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


def _list(get: Getter, op: str, value: str, negate: bool, *, pairs: bool) -> Predicate:
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


def _bits(get: Getter, op: str, value: str, negate: bool) -> Predicate:
    words = [word for word in re.split(r"[\s,]+", value) if word]
    wanted = sum(int(word) if word.isdigit() else MODIFIED.get(word, 0) for word in words)
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
    return lambda row: check(sum(map(MODIFIED.__getitem__, get(row)))) is not negate
