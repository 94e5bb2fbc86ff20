"""A GET request's lines to a value."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, TypeAlias

from attrs import define, field, frozen

from monrest.demo.conditions import (
    Condition,
    CoreDiedError,
    RequestError,
    every,
    negated,
    read_condition,
    some,
)
from monrest.demo.tables import Field, Table

_FUNCTIONS = frozenset({"sum", "min", "max", "avg", "std", "suminv", "avginv"})
_FORMATS = ("csv", "json", "wrapped_json", "python")
_TRIGGERS = ("check", "state", "log", "downtime", "comment", "command", "program", "all")


@frozen
class Aggregate:
    """A Stats function over a field, which is None when the table has no such column."""

    function: str
    field: Field | None


@define(eq=False)
class Request:
    """What a client asks of one of ``tables``: at the date ``now``, ``started`` by the clock.

    ``fixed16`` and ``keep_alive`` say how to answer, after an error too. ``columns`` pairs each
    name with its field, None when unknown. A condition in ``stats`` counts the rows for which it
    holds. ``limit`` and ``offset`` are None when not given. ``shift`` are the seconds of
    Localtime. ``time_limit`` is in seconds, ``wait_timeout`` in milliseconds, 0 for ever.
    """

    tables: Mapping[str, Table]
    now: float
    started: float
    table: Table = field(init=False)
    fixed16: bool = False
    keep_alive: bool = False
    columns: list[tuple[str, Field | None]] = field(factory=list)
    headers: bool | None = None
    filters: list[Condition] = field(factory=list)
    stats: list[Condition | Aggregate] = field(factory=list)
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
    wait_conditions: list[Condition] = field(factory=list)

    @property
    def shows_headers(self) -> bool:
        """Whether the first row holds the names."""
        if self.headers is not None:
            return self.headers
        return not self.columns and not self.stats

    def shown(self) -> list[tuple[str, Field | None]]:
        """The columns that a row shows: all of the table without Columns and Stats."""
        if self.columns or self.stats:
            return self.columns
        return [(name, item.shifted(self.shift)) for name, item in self.table.fields.items()]

    def read(self, lines: deque[str]) -> None:
        """Read ``GET table`` and its headers, taking the lines one by one.

        Raises RequestError and CoreDiedError. Lines after the one at fault stay in the queue,
        where they become the beginning of the next request, as Naemon has it.
        """
        name = lines.popleft()[4:].strip()
        # An unknown table is told after the headers, which say how it is to be told.
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


# -------------------------------------------------------------------- headers with one value


def _text(_word: str, value: str) -> str:
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
    "AuthUser": ("auth_user", _text),
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


# -------------------------------------------------------------------- conditions on a stack

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
    joint: Callable[[Sequence[Condition]], Condition],
) -> Callable[[Request, Stack, str, str], None]:
    """Replace as many conditions as the header says by one."""

    def join(_request: Request, stack: Stack, word: str, value: str) -> None:
        count = _whole(word, value)
        stack[len(stack) - count :] = [joint(_last(stack, word, count))]

    return join


def _negate(_request: Request, stack: Stack, word: str, _value: str) -> None:
    (condition,) = _last(stack, word, 1)
    stack[-1] = negated(condition)


def _last(stack: Stack, word: str, count: int) -> list[Condition]:
    last = stack[max(len(stack) - count, 0) :]
    if len(last) < count or not all(isinstance(one, Condition) for one in last):
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


# -------------------------------------------------------------------- the others


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
