"""A GET request's lines to a value (docs/spec/demo.md, "What it does as a Naemon does")."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

from attrs import define, field, frozen

from monrest.lql.filters import (
    CoreDiedError,
    RequestError,
    RowCondition,
    every,
    negated,
    read_condition,
    some,
)
from monrest.lql.tables import Column, Table

_FUNCTIONS = frozenset({"sum", "min", "max", "avg", "std", "suminv", "avginv"})


@frozen
class Aggregate:
    """A Stats function over a column, which is None when the table has no such column."""

    function: str
    column: Column | None


@define(eq=False)
class Request:
    """The request of a client to one of ``tables``: at the date ``now``, ``started`` by the clock.

    ``fixed16`` and ``keep_alive`` say how to answer, after an error too. ``columns`` pairs each
    name with its column, None when unknown. A condition in ``stats`` counts the rows for which it
    holds. ``limit`` and ``offset`` are None when not given. ``shift`` are the seconds of
    Localtime. ``time_limit`` is in seconds, ``wait_timeout`` in milliseconds, 0 for ever.
    """

    tables: Mapping[str, Table]
    now: float
    started: float = field(init=False, default=0.0)
    table: Table = field(init=False)
    fixed16: bool = False
    keep_alive: bool = False
    columns: list[tuple[str, Column | None]] = field(factory=list)
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

    def output_columns(self) -> list[tuple[str, Column | None]]:
        """The columns that a row shows: all of the table without Columns and Stats."""
        if self.columns or self.stats:
            return self.columns
        return [(name, item.shifted(self.shift)) for name, item in self.table.columns.items()]

    def check_time(self, seconds: float) -> None:
        """Raise RequestError 413 after the time limit, by the clock of ``started``."""
        limit = self.time_limit
        if limit is not None and seconds - self.started > limit:
            raise RequestError(413, f"Maximum query time of {limit} seconds exceeded!")

    def waits(self) -> bool:
        """Whether it has to wait for what is not so yet. Raises RequestError 400."""
        if not self.wait_conditions:
            return bool(self.wait_trigger)
        if self._subject() is None:
            raise RequestError(400, "WaitCondition needs a WaitObject")
        return not every(self.wait_conditions).holds(self._subject())

    def has_waited(self, trigger: str) -> bool:
        """Whether it need not wait any more, now that something has happened."""
        if self.wait_trigger not in ("", "all", trigger):
            return False
        return not self.wait_conditions or every(self.wait_conditions).holds(self._subject())

    def _subject(self) -> object:
        find = self.table.wait_object
        if self.wait_object is None and find is not None:
            return find("")
        return self.wait_object

    def read(self, lines: deque[str]) -> None:
        """Read ``GET table`` and its headers, taking the lines one by one.

        Raises RequestError and CoreDiedError. Lines after the one at fault stay in the queue,
        where they become the beginning of the next request, as Naemon has it.
        """
        name = lines.popleft()[4:].strip()
        # An unknown table is reported after the headers, which say in what form.
        exists = name in self.tables
        if exists:
            self.table = self.tables[name]
        while lines:
            line = lines.popleft()
            if not line.strip():
                # A carriage return alone: no empty line, but no header either.
                continue
            word, colon, value = line.partition(":")
            if not colon:
                raise RequestError(400, f"Missing colon in request header '{line}'")
            if exists or word in ("KeepAlive", "ResponseHeader"):
                self._header(word, value.strip())
        if exists:
            return
        if name == "statehist":
            text = "Start of timeframe required. e.g. Filter: time > 1234567890"
            raise RequestError(452, text)
        if not name:
            raise RequestError(400, "Invalid GET request, missing tablename")
        raise RequestError(404, f"Invalid GET request, no such table '{name}'")

    def _header(self, word: str, value: str) -> None:
        joint = _JOINT.fullmatch(word)
        if word in _VALUES:
            attribute, read = _VALUES[word]
            setattr(self, attribute, read(word, value))
        elif word in ("Filter", "WaitCondition"):
            condition = read_condition(value, self.table, self.shift)
            (self.filters if word == "Filter" else self.wait_conditions).append(condition)
        elif word == "Stats":
            self.stats.append(self._stat(value))
        elif joint is not None:
            _join(getattr(self, _STACKS[joint[1]]), joint[2], word, value)
        elif word in _OTHERS:
            _OTHERS[word](self, value)
        else:
            raise RequestError(400, f"Undefined request header '{word}'")

    def _stat(self, value: str) -> RowCondition | Aggregate:
        words = value.split()
        if not words:
            raise RequestError(400, "empty stats line")
        if words[0] not in _FUNCTIONS:
            return read_condition(value, self.table, self.shift)
        if len(words) != 2:
            raise RequestError(400, f"Invalid stats: {words[0]} needs one column")
        column = self.table.find(words[1])
        if column is not None and column.style == "counter":
            raise CoreDiedError(f"GET {self.table.name}, Stats: {value}")
        return Aggregate(words[0], column)

    def read_columns(self, value: str) -> None:
        for name in value.split():
            column = self.table.find(name)
            self.columns.append((name, column and column.shifted(self.shift)))

    def read_sort(self, value: str) -> None:
        name, _, direction = value.partition(" ")
        direction = direction.strip()
        if not name or direction not in ("", "asc", "desc"):
            raise RequestError(
                400, f"Invalid value for Sort: '{value}', column [asc|desc] expected"
            )
        self.sort.append((name, direction == "desc"))

    def read_separators(self, value: str) -> None:
        marks = []
        for word in value.split()[:4]:
            number = _whole("Separators", word)
            if number > 255:
                raise RequestError(400, "Invalid value for Separators: bytes expected")
            marks.append(bytes((number,)).decode("utf-8", "surrogateescape"))
        self.separators = (*marks, *self.separators[len(marks) :])

    def read_localtime(self, value: str) -> None:
        difference = _whole("Localtime", value) - self.now
        self.shift = round(difference / 1800) * 1800
        if abs(self.shift) >= 86400:
            text = "Invalid value for Localtime: timezone difference too large"
            raise RequestError(400, text)

    def read_wait_object(self, value: str) -> None:
        find = self.table.wait_object
        self.wait_object = find(value) if find is not None else None
        if self.wait_object is None:
            raise RequestError(400, f"WaitObject: no object '{value}' in {self.table.name}")


_JOINT = re.compile(r"(Stats|WaitCondition|)(And|Or|Negate)")
_STACKS = {"": "filters", "Stats": "stats", "WaitCondition": "wait_conditions"}


def _join(stack: list[Any], how: str, word: str, value: str) -> None:
    """Replace as many conditions at the end as the header counts by one."""
    count = 1 if how == "Negate" else _whole(word, value)
    start = max(len(stack) - count, 0)
    last: Sequence[RowCondition] = stack[start:]
    if len(last) < count or not all(isinstance(condition, RowCondition) for condition in last):
        raise RequestError(400, f"Cannot use '{word}:' of {count} conditions, too few are there")
    if how == "Negate":
        stack[start:] = [negated(last[0])]
    else:
        stack[start:] = [(every if how == "And" else some)(last)]


def _whole(word: str, value: str) -> int:
    if not value.isdigit():
        raise RequestError(400, f"Invalid value for {word}: '{value}', must be a number >= 0")
    return int(value)


def _seconds(word: str, value: str) -> int:
    seconds = _whole(word, value)
    if seconds == 0:
        raise RequestError(413, "Maximum query time of 0 seconds exceeded!")
    return seconds


ReadValue: TypeAlias = Callable[[str, str], Any]


def _choice(**choices: Any) -> ReadValue:
    def read(word: str, value: str) -> Any:
        if value not in choices:
            names = ", ".join(choices)
            raise RequestError(400, f"Invalid value for {word}: '{value}', use one of {names}")
        return choices[value]

    return read


def _word(*words: str) -> ReadValue:
    return _choice(**{word: word for word in words})


_VALUES: Mapping[str, tuple[str, ReadValue]] = {
    "AuthUser": ("auth_user", lambda _word, value: value),
    "ColumnHeaders": ("headers", _choice(on=True, off=False)),
    "KeepAlive": ("keep_alive", _choice(on=True, off=False)),
    "Limit": ("limit", _whole),
    "Offset": ("offset", _whole),
    "OutputFormat": ("format", _word("csv", "json", "wrapped_json", "python")),
    "ResponseHeader": ("fixed16", _choice(fixed16=True, off=False)),
    "Timelimit": ("time_limit", _seconds),
    "WaitTimeout": ("wait_timeout", _whole),
    "WaitTrigger": (
        "wait_trigger",
        _word("check", "state", "log", "downtime", "comment", "command", "program", "all"),
    ),
}
"""Header to the attribute that it sets, and what reads its value."""

_OTHERS: Mapping[str, Callable[[Request, str], None]] = {
    "Columns": Request.read_columns,
    "Localtime": Request.read_localtime,
    "Separators": Request.read_separators,
    "Sort": Request.read_sort,
    "StatsGroupBy": Request.read_columns,
    "WaitObject": Request.read_wait_object,
}
