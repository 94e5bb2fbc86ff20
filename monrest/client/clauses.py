"""Conditions of a request, made of Python's operators: ``where(state=1) & ~acknowledged``. Pure.

They become the query language ``q``. Rules: docs/client.md, "Conditions".
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from datetime import datetime
from typing import Literal, TypeAlias

Comparable: TypeAlias = str | int | float | bool | datetime
"""An operand of a comparison; a date without a zone is one of this machine."""

_OPPOSITE = {
    "=": "!=", "!=": "=", ">": "<=", "<=": ">", "<": ">=", ">=": "<", "~": "!~", "!~": "~",
    "~~": "!~~", "!~~": "~~",
}  # fmt: skip
_HAS, _HAS_NOT = ">=", "!>="


class Clause(ABC):
    """A condition: ``&`` and ``|`` join two, ``~`` returns the opposite."""

    def __and__(self, other: Clause) -> Clause:
        return Junction("and", (self, other))

    def __or__(self, other: Clause) -> Clause:
        return Junction("or", (self, other))

    @abstractmethod
    def __invert__(self) -> Clause:
        """Return the opposite."""

    def __bool__(self) -> bool:
        raise TypeError("a condition is neither true nor false: write &, | and ~, and use brackets")

    @abstractmethod
    def text(self) -> str:
        """The condition in the query language."""


class Comparison(Clause):
    """A column beside a value."""

    def __init__(
        self, name: str, operator: str, value: Comparable, opposite: str | None = None
    ) -> None:
        self._name, self._operator, self._value = name, operator, value
        self._opposite = opposite or _OPPOSITE[operator]

    def __invert__(self) -> Clause:
        return Comparison(self._name, self._opposite, self._value, self._operator)

    def text(self) -> str:
        """The condition in the query language; ValueError for a value that it cannot hold."""
        return f"{_quoted(self._name)} {self._operator} {_spelled(self._value)}"


class Junction(Clause):
    """Conditions that all hold, or of which one does."""

    def __init__(self, connector: Literal["and", "or"], clauses: Sequence[Clause]) -> None:
        self._connector = connector
        self._clauses: list[Clause] = []
        for clause in clauses:
            if isinstance(clause, Junction) and clause._connector == connector:
                self._clauses += clause._clauses
            else:
                self._clauses.append(clause)

    def __invert__(self) -> Clause:
        connector: Literal["and", "or"] = "or" if self._connector == "and" else "and"
        return Junction(connector, [~clause for clause in self._clauses])

    def text(self) -> str:
        """The conditions between brackets."""
        if not self._clauses:
            raise ValueError("expected a condition")
        return f"({f' {self._connector} '.join(clause.text() for clause in self._clauses)})"


class ColumnName(Clause):
    """A column, which is compared with Python's operators; alone it means that it is not 0."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return f"column({self.name!r})"

    def __hash__(self) -> int:
        return hash(self.name)

    def __invert__(self) -> Clause:
        return Comparison(self.name, "=", 0)

    def text(self) -> str:
        """The condition that the column is not 0."""
        return Comparison(self.name, "!=", 0).text()

    def __eq__(self, value: Comparable) -> Clause:  # type: ignore[override]
        return Comparison(self.name, "=", value)

    def __ne__(self, value: Comparable) -> Clause:  # type: ignore[override]
        return Comparison(self.name, "!=", value)

    def __lt__(self, value: Comparable) -> Clause:
        return Comparison(self.name, "<", value)

    def __le__(self, value: Comparable) -> Clause:
        return Comparison(self.name, "<=", value)

    def __gt__(self, value: Comparable) -> Clause:
        return Comparison(self.name, ">", value)

    def __ge__(self, value: Comparable) -> Clause:
        return Comparison(self.name, ">=", value)

    def matches(self, pattern: str, *, ignore_case: bool = False) -> Clause:
        """A regular expression (RE2) is found in it, in an element of a list."""
        return Comparison(self.name, "~~" if ignore_case else "~", pattern)

    def has(self, element: Comparable) -> Clause:
        """The list has this element."""
        return Comparison(self.name, _HAS, element, _HAS_NOT)

    def within(self, values: Sequence[Comparable]) -> Clause:
        """It is one of these values."""
        return Junction("or", [Comparison(self.name, "=", value) for value in values])


def column(name: str) -> ColumnName:
    """A column by its name."""
    return ColumnName(name)


def where(**equal: Comparable) -> Clause:
    """The condition that columns have these values, all of them; ValueError for none."""
    if not equal:
        raise ValueError("expected a condition, as where(state=1)")
    clauses = [Comparison(name, "=", value) for name, value in equal.items()]
    return clauses[0] if len(clauses) == 1 else Junction("and", clauses)


def _spelled(value: Comparable) -> str:
    if isinstance(value, bool):
        return str(int(value))
    if isinstance(value, datetime):
        return str(int(value.timestamp()))
    if isinstance(value, (int, float)):
        return repr(value)
    return _quoted(value)


def _quoted(text: str) -> str:
    if '"' not in text:
        return f'"{text}"'
    if "'" not in text:
        return f"'{text}'"
    raise ValueError(f"the query language has no text with both kinds of quotes: {text!r}")
