"""A GET request's lines to a value, conditions as Naemon evaluates them.

Per type, per operator, bytewise: docs/spec/demo.md, "What it does as a Naemon does".
"""

from __future__ import annotations

import operator
import re
from collections import deque
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from typing import Any, TypeAlias

import re2
from attrs import define, field, frozen

from monrest.demo.core_tables import CoreTable, ShownColumn, TableRows, ValueOf
from monrest.demo.objects import MODIFIED
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
class RowCondition:
    """What a row must be, from one line or joined from several.

    ``holds`` says it of a row. ``rows`` gives rows among which all matches are, where an index
    finds them. ``since`` and ``until`` are the span of log times that is looked at. ``is_misread``:
    a real core looks up the host that must not be, and so finds nothing.
    """

    holds: Predicate
    rows: Callable[[], TableRows] | None = None
    since: float | None = None
    until: float | None = None
    is_misread: bool = False


def every(conditions: Sequence[RowCondition]) -> RowCondition:
    """All of them hold; true without any."""
    checks = [one.holds for one in conditions]
    indexed = [one.rows for one in conditions if one.rows is not None]
    since, until = _span(conditions)
    return RowCondition(
        checks[0] if len(checks) == 1 else lambda row: all(check(row) for check in checks),
        (lambda: min((rows() for rows in indexed), key=len)) if indexed else None,
        since,
        until,
    )


def some(conditions: Sequence[RowCondition]) -> RowCondition:
    """At least one of them holds; false without any.

    Naemon takes times from anywhere in the filter, so two ranges joined by Or lose rows; a client
    that is tested against this core must cope.
    """
    checks = [one.holds for one in conditions]
    indexed = [one.rows for one in conditions if one.rows is not None]
    since, until = _span(conditions)

    def united() -> TableRows:
        return list({id(row): row for rows in indexed for row in rows()}.values())

    return RowCondition(
        checks[0] if len(checks) == 1 else lambda row: any(check(row) for check in checks),
        united if indexed and len(indexed) == len(conditions) else None,
        since,
        until,
    )


def negated(condition: RowCondition) -> RowCondition:
    return RowCondition(lambda row: not condition.holds(row))


def _span(conditions: Sequence[RowCondition]) -> tuple[float | None, float | None]:
    """The intersection of all spans of time."""
    since = [one.since for one in conditions if one.since is not None]
    until = [one.until for one in conditions if one.until is not None]
    return max(since, default=None), min(until, default=None)


_COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    "=": operator.eq,
    "<": operator.lt,
    ">": operator.gt,
    "<=": operator.le,
    ">=": operator.ge,
}
_OPERATORS = frozenset({*_COMPARE, "=~", "~", "~~"})


def read_condition(line: str, table: CoreTable, shift: int = 0) -> RowCondition:
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
    if column.base.style == "counter":
        raise RequestError(400, f"cannot create filter on table {table.name}")
    if column.base.deadly is not None and column.base.deadly():
        raise CoreDiedError(f"GET {table.name}, filter {line}")
    negate = word != op
    holds = _comparison(column.compared().shifted(shift), op, value, negate)
    if negate:
        is_misread = (op, table.name, column.name) == ("=", "services", "host_name")
        return RowCondition(holds, is_misread=is_misread)
    lookup = table.indexes.get(column.name) if op == "=" else None
    moment = _in_32_bits(number_of(value)) if column.name == "time" else None
    return RowCondition(
        holds,
        None if lookup is None else partial(lookup, value),
        since=moment if op in (">", ">=", "=") else None,
        until=moment if op in ("<", "<=", "=") else None,
    )


def _comparison(column: ShownColumn, op: str, value: str, negate: bool) -> Predicate:
    get, base = column.getter(), column.base
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


def _number(get: ValueOf, op: str, wanted: float, negate: bool) -> Predicate:
    compare = _COMPARE.get(op)
    if compare is None:
        return lambda _row: not negate
    if negate:
        return lambda row: not compare(get(row), wanted)
    return lambda row: compare(get(row), wanted)


def _text(get: ValueOf, op: str, wanted: str, negate: bool) -> Predicate:
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


def _bits(get: ValueOf, op: str, value: str, negate: bool) -> Predicate:
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


_FUNCTIONS = frozenset({"sum", "min", "max", "avg", "std", "suminv", "avginv"})
_FORMATS = ("csv", "json", "wrapped_json", "python")
_TRIGGERS = ("check", "state", "log", "downtime", "comment", "command", "program", "all")


@frozen
class Aggregate:
    """A Stats function over a column, which is None when the table has no such column."""

    function: str
    column: ShownColumn | None


@define(eq=False)
class Request:
    """What a client asks of one of ``tables``: at the date ``now``, ``started`` by the clock.

    ``fixed16`` and ``keep_alive`` say how to answer, after an error too. ``columns`` pairs each
    name with its column, None when unknown. A condition in ``stats`` counts the rows for which it
    holds. ``limit`` and ``offset`` are None when not given. ``shift`` are the seconds of
    Localtime. ``time_limit`` is in seconds, ``wait_timeout`` in milliseconds, 0 for ever.
    """

    tables: Mapping[str, CoreTable]
    now: float
    started: float
    table: CoreTable = field(init=False)
    fixed16: bool = False
    keep_alive: bool = False
    columns: list[tuple[str, ShownColumn | None]] = field(factory=list)
    headers: bool | None = None
    filters: list[RowCondition] = field(factory=list)
    stats: list[RowCondition | Aggregate] = field(factory=list)
    sort: list[tuple[str, bool]] = field(factory=list)
    limit: int | None = None
    offset: int | None = None
    format: str = "csv"
    separators: tuple[str, ...] = ("\n", ";", ",", "|")
    auth_user: str | None = None
    time_limit: int | None = None
    shift: int = 0
    wait_object: object = None
    wait_trigger: str = ""
    wait_timeout: int = 0
    wait_conditions: list[RowCondition] = field(factory=list)

    @property
    def shows_headers(self) -> bool:
        """Whether the first row holds the names."""
        if self.headers is not None:
            return self.headers
        return not self.columns and not self.stats

    def shown(self) -> list[tuple[str, ShownColumn | None]]:
        """The columns that a row shows: all of the table without Columns and Stats."""
        if self.columns or self.stats:
            return self.columns
        return [(name, item.shifted(self.shift)) for name, item in self.table.columns.items()]

    def read(self, lines: deque[str]) -> None:
        """Read ``GET table`` and its headers, taking the lines one by one.

        Raises RequestError and CoreDiedError. Lines after the one at fault stay in the queue,
        where they become the beginning of the next request, as Naemon has it.
        """
        name = lines.popleft()[4:].strip()
        # An unknown table is reported after the headers, which say in what form.
        known = name in self.tables
        if known:
            self.table = self.tables[name]
        while lines:
            line = lines.popleft()
            if not line.strip():
                # A carriage return alone: no empty line, but no header either.
                continue
            word, colon, value = line.partition(":")
            if not colon:
                raise RequestError(400, f"Missing colon in request header '{line}'")
            if known or word in ("KeepAlive", "ResponseHeader"):
                self._header(word, value.strip())
        if not known:
            raise _no_table(name)

    def _header(self, word: str, value: str) -> None:
        if word in _VALUES:
            attribute, reader = _VALUES[word]
            setattr(self, attribute, reader(word, value))
        elif word in _STACKS:
            attribute, change = _STACKS[word]
            change(self, getattr(self, attribute), word, value)
        elif word in _OTHERS:
            _OTHERS[word](self, value)
        else:
            raise RequestError(400, f"Undefined request header '{word}'")


def _no_table(name: str) -> RequestError:
    if name == "statehist":
        return RequestError(452, "Start of timeframe required. e.g. Filter: time > 1234567890")
    if not name:
        return RequestError(400, "Invalid GET request, missing tablename")
    return RequestError(404, f"Invalid GET request, no such table '{name}'")


def _plain(_word: str, value: str) -> str:
    return value


def _whole(word: str, value: str) -> int:
    if not value.isdigit():
        raise RequestError(400, f"Invalid value for {word}: '{value}', must be a number >= 0")
    return int(value)


def _switch(word: str, value: str) -> bool:
    if value not in ("on", "off"):
        raise RequestError(400, f"Invalid value for {word}: must be 'on' or 'off'")
    return value == "on"


def _fixed16(word: str, value: str) -> bool:
    if value not in ("off", "fixed16"):
        raise RequestError(400, f"Invalid value for {word}: must be 'off' or 'fixed16'")
    return value == "fixed16"


def _seconds(word: str, value: str) -> int:
    seconds = _whole(word, value)
    if seconds == 0:
        raise RequestError(413, "Maximum query time of 0 seconds exceeded!")
    return seconds


def _one_of(what: str, words: Collection[str]) -> Callable[[str, str], str]:
    def read(_word: str, value: str) -> str:
        if value not in words:
            raise RequestError(400, f"Invalid {what} '{value}', use one of {', '.join(words)}")
        return value

    return read


_VALUES: Mapping[str, tuple[str, Callable[[str, str], Any]]] = {
    "AuthUser": ("auth_user", _plain),
    "ColumnHeaders": ("headers", _switch),
    "KeepAlive": ("keep_alive", _switch),
    "Limit": ("limit", _whole),
    "Offset": ("offset", _whole),
    "OutputFormat": ("format", _one_of("output format", _FORMATS)),
    "ResponseHeader": ("fixed16", _fixed16),
    "Timelimit": ("time_limit", _seconds),
    "WaitTimeout": ("wait_timeout", _whole),
    "WaitTrigger": ("wait_trigger", _one_of("wait trigger", _TRIGGERS)),
}
"""Header to the attribute that it sets, and what reads its value."""


Stack: TypeAlias = list[Any]


def _put(request: Request, stack: Stack, _word: str, value: str) -> None:
    stack.append(read_condition(value, request.table, request.shift))


def _put_stat(request: Request, stack: Stack, word: str, value: str) -> None:
    words = value.split()
    if not words:
        raise RequestError(400, "empty stats line")
    if words[0] not in _FUNCTIONS:
        _put(request, stack, word, value)
        return
    if len(words) != 2:
        raise RequestError(400, f"Invalid stats: {words[0]} needs one column")
    found = request.table.find(words[1])
    if found is not None and found.base.style == "counter":
        raise CoreDiedError(f"GET {request.table.name}, Stats: {value}")
    stack.append(Aggregate(words[0], found))


def _joining(
    joint: Callable[[Sequence[RowCondition]], RowCondition],
) -> Callable[[Request, Stack, str, str], None]:
    """Replace as many conditions as the header says by one."""

    def join(_request: Request, stack: Stack, word: str, value: str) -> None:
        count = _whole(word, value)
        stack[len(stack) - count :] = [joint(_last(stack, word, count))]

    return join


def _negate(_request: Request, stack: Stack, word: str, _value: str) -> None:
    (condition,) = _last(stack, word, 1)
    stack[-1] = negated(condition)


def _last(stack: Stack, word: str, count: int) -> list[RowCondition]:
    last = stack[max(len(stack) - count, 0) :]
    if len(last) < count or not all(isinstance(one, RowCondition) for one in last):
        raise RequestError(400, f"Cannot use '{word}:' of {count} conditions, too few are there")
    return last


_STACKS: Mapping[str, tuple[str, Callable[[Request, Stack, str, str], None]]] = {
    "Filter": ("filters", _put),
    "Stats": ("stats", _put_stat),
    "WaitCondition": ("wait_conditions", _put),
    **{
        f"{prefix}{word}": (attribute, change)
        for prefix, attribute in (
            ("", "filters"),
            ("Stats", "stats"),
            ("WaitCondition", "wait_conditions"),
        )
        for word, change in (("And", _joining(every)), ("Or", _joining(some)), ("Negate", _negate))
    },
}
"""Header to the list that it changes, and how."""


def _columns(request: Request, value: str) -> None:
    for name in value.split():
        found = request.table.find(name)
        request.columns.append((name, found and found.shifted(request.shift)))


def _sort(request: Request, value: str) -> None:
    name, _, direction = value.partition(" ")
    direction = direction.strip()
    if not name or direction not in ("", "asc", "desc"):
        raise RequestError(400, f"Invalid value for Sort: '{value}', column [asc|desc] expected")
    request.sort.append((name, direction == "desc"))


def _separators(request: Request, value: str) -> None:
    marks = []
    for word in value.split()[:4]:
        number = _whole("Separators", word)
        if number > 255:
            raise RequestError(400, "Invalid value for Separators: bytes expected")
        marks.append(bytes((number,)).decode("utf-8", "surrogateescape"))
    request.separators = (*marks, *request.separators[len(marks) :])


def _localtime(request: Request, value: str) -> None:
    difference = _whole("Localtime", value) - request.now
    request.shift = round(difference / 1800) * 1800
    if abs(request.shift) >= 86400:
        raise RequestError(400, "Invalid value for Localtime: timezone difference too large")


def _wait_object(request: Request, value: str) -> None:
    find = request.table.wait_object
    request.wait_object = find(value) if find is not None else None
    if request.wait_object is None:
        raise RequestError(400, f"WaitObject: no object '{value}' in {request.table.name}")


_OTHERS: Mapping[str, Callable[[Request, str], None]] = {
    "Columns": _columns,
    "Localtime": _localtime,
    "Separators": _separators,
    "Sort": _sort,
    "StatsGroupBy": _columns,
    "WaitObject": _wait_object,
}
