"""Filters as Naemon evaluates them: per type, per operator, bytewise.

Rules: docs/spec/demo.md, "What it does as a Naemon does".
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable
from typing import Any, TypeAlias

import re2
from attrs import frozen

from monrest.demo.objects import MODIFIED
from monrest.demo.tables import Field, Table
from monrest.objectconfig.definitions import number_of

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


@frozen
class Test:
    """One Filter line. ``field`` is None for a column that the table does not have.

    ``op`` is the operator without a leading exclamation mark, which is ``negate``.
    """

    field: Field | None
    op: str
    negate: bool
    value: str


@frozen
class Every:
    """All items hold; true without any."""

    items: tuple[Node, ...]


@frozen
class Some:
    """At least one item holds; false without any."""

    items: tuple[Node, ...]


@frozen
class Not:
    """The item does not hold."""

    item: Node


Node: TypeAlias = Test | Every | Some | Not

_OPERATORS = frozenset({"=", "=~", "~", "~~", "<", ">", "<=", ">="})
_NUMERIC: dict[str, Callable[[Any, Any], bool]] = {
    "=": operator.eq,
    "<": operator.lt,
    ">": operator.gt,
    "<=": operator.le,
    ">=": operator.ge,
}


def read_test(line: str, table: Table, shift: int = 0) -> Test:
    """``column op value`` to a Test. Raises RequestError 400 and CoreDiedError."""
    name, _, rest = line.partition(" ")
    op, _, value = rest.lstrip(" ").partition(" ")
    if not name:
        raise RequestError(400, "empty filter line")
    if not op:
        raise RequestError(400, f"Missing operator for filter on column '{name}'")
    negate = op.startswith("!")
    plain = op[1:] if negate else op
    if plain not in _OPERATORS:
        raise RequestError(400, f"Unknown operator '{op}'")
    field = table.find(name)
    if field is not None and field.base.style == "counter":
        raise RequestError(400, f"cannot create filter on table {table.name}")
    if field is not None and field.base.deadly is not None and field.base.deadly():
        raise CoreDiedError(f"GET {table.name}, filter {line}")
    test = Test(field and field.shifted(shift), plain, negate, value.strip(" \t"))
    compile_filter(test)
    return test


def compile_filter(node: Node) -> Predicate:
    """A function from a row to whether the filter holds. Raises RequestError on a bad regex."""
    if isinstance(node, Test):
        return _test(node)
    if isinstance(node, Not):
        inner = compile_filter(node.item)
        return lambda row: not inner(row)
    checks = [compile_filter(item) for item in node.items]
    if len(checks) == 1:
        return checks[0]
    if isinstance(node, Every):
        return lambda row: all(check(row) for check in checks)
    return lambda row: any(check(row) for check in checks)


def _test(test: Test) -> Predicate:
    if test.field is None:
        # A real core compares with whatever is in memory there; mostly that is no row.
        return lambda _row: False
    get = test.field.getter()
    base = test.field.base
    if base.style == "bits":
        return _bits(get, test)
    if base.type == "string":
        return _text(get, test)
    if base.type == "list":
        return _list(get, test, pairs=base.style == "pairs")
    if base.type == "dict":
        name, _, rest = test.value.partition(" ")
        return _text(lambda row: get(row).get(name, ""), _with_value(test, rest.lstrip(" ")))
    return _number(get, test)


def _in_32_bits(number: float) -> float:
    """The operand as a real core reads it: the lowest 32 bits of a whole number."""
    if abs(number) < 2**31:
        return number
    if abs(number) >= 2**63:
        return -1 if number > 0 else 0
    return (int(number) + 2**31) % 2**32 - 2**31


def _with_value(test: Test, value: str) -> Test:
    return Test(test.field, test.op, test.negate, value)


def _number(get: Callable[[Any], Any], test: Test) -> Predicate:
    compare = _NUMERIC.get(test.op)
    negate = test.negate
    if compare is None:
        return lambda _row: not negate
    wanted = number_of(test.value)
    if test.field is not None and test.field.base.type == "int":
        wanted = _in_32_bits(wanted)
    if negate:
        return lambda row: not compare(get(row), wanted)
    return lambda row: compare(get(row), wanted)


def _text(get: Callable[[Any], str], test: Test) -> Predicate:
    op, negate, wanted = test.op, test.negate, test.value
    if op in ("~", "~~"):
        search = _regex(wanted, ignore_case=op == "~~")
        if negate:
            return lambda row: not search(get(row))
        return lambda row: search(get(row))
    if op == "=~":
        folded = _fold(wanted)
        return lambda row: (_fold(get(row)) == folded) is not negate
    compare = _NUMERIC[op]
    if op == "=":
        if negate:
            return lambda row: get(row) != wanted
        return lambda row: get(row) == wanted
    # Code points of valid text sort as their UTF-8 bytes do.
    return lambda row: compare(get(row), wanted) is not negate


_FOLD = {upper: upper + 32 for upper in range(ord("A"), ord("Z") + 1)}


def _fold(text: str) -> str:
    """Lower case of ASCII letters only, as a bytewise comparison ignoring case does."""
    return text.translate(_FOLD)


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


def _list(get: Callable[[Any], Any], test: Test, *, pairs: bool) -> Predicate:
    op, negate, value = test.op, test.negate, test.value
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


def _bits(get: Callable[[Any], tuple[str, ...]], test: Test) -> Predicate:
    words = [word for word in re.split(r"[\s,]+", test.value) if word]
    wanted = sum(int(word) if word.isdigit() else MODIFIED.get(word, 0) for word in words)
    checks: dict[str, Callable[[int], bool]] = {
        "=": lambda number: number == wanted,
        "~": lambda number: number & wanted == wanted,
        "~~": lambda number: bool(number & wanted),
        ">=": lambda number: number & wanted == wanted,
        "<": lambda number: number & wanted != wanted,
    }
    check = checks.get(test.op)
    if check is None:
        return lambda _row: True
    return lambda row: check(sum(map(MODIFIED.__getitem__, get(row)))) is not test.negate


# ---------------------------------------------------------------- shortcuts


def candidates(node: Node, table: Table) -> list[Any] | None:
    """Rows among which all matches are, found by an index; None when none applies."""
    if isinstance(node, Test):
        if node.field is None or node.op != "=" or node.negate:
            return None
        lookup = table.indexes.get(node.field.name)
        return None if lookup is None else lookup(node.value)
    if isinstance(node, Every):
        found = [rows for item in node.items if (rows := candidates(item, table)) is not None]
        return min(found, key=len) if found else None
    if isinstance(node, Some) and node.items:
        parts = [candidates(item, table) for item in node.items]
        if any(part is None for part in parts):
            return None
        united = {id(row): row for part in parts for row in part or ()}
        return list(united.values())
    return None


def misread(filters: list[Node], table: Table) -> bool:
    """Whether a real core looks up the host that must not be, and so finds nothing."""
    return table.name == "services" and any(
        isinstance(node, Test)
        and (node.op, node.negate) == ("=", True)
        and node.field is not None
        and node.field.name == "host_name"
        for node in filters
    )


def time_bounds(node: Node) -> tuple[float | None, float | None]:
    """The span of log times that is looked at: the intersection of all conditions on ``time``.

    Naemon takes them from anywhere in the filter, so two ranges joined by Or lose rows; a client
    that is tested against this core must cope.
    """
    if isinstance(node, Test):
        return _bounds_of(node)
    if isinstance(node, Not):
        return None, None
    bounds = [time_bounds(item) for item in node.items]
    since = [low for low, _ in bounds if low is not None]
    until = [high for _, high in bounds if high is not None]
    return max(since, default=None), min(until, default=None)


def _bounds_of(test: Test) -> tuple[float | None, float | None]:
    if test.field is None or test.field.name != "time" or test.negate:
        return None, None
    moment = _in_32_bits(number_of(test.value))
    low = moment if test.op in (">", ">=", "=") else None
    high = moment if test.op in ("<", "<=", "=") else None
    return low, high


def combine(stack: list[Node], connector: str, count: int) -> None:
    """Replace the last ``count`` nodes by their And or Or. Raises RequestError 400."""
    if count > len(stack):
        raise RequestError(
            400, f"Cannot combine {count} filters with '{connector}:': only {len(stack)} there"
        )
    items = tuple(stack[len(stack) - count :])
    del stack[len(stack) - count :]
    stack.append(Every(items) if connector == "And" else Some(items))
