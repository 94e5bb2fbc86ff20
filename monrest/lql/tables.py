"""The tables that requests are about: their columns, rows and indexes, and what a user may see."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Literal, TypeAlias

from attrs import evolve, field, frozen

from monrest.query.column_names import EMPTY

ValueOf: TypeAlias = Callable[[Any], Any]
Rows: TypeAlias = list[Any]
Visible: TypeAlias = Callable[[str], Callable[[Any], bool]]
"""From a contact to whether it may see a row."""


@frozen(eq=False)
class Column:
    """A column: ``get`` returns its value from an object, to which ``step`` leads from a row.

    Without a ``step`` the row is the object. An ``optional`` step may give None, and the column is
    then empty. ``type`` is string, int, float, list or dict.

    ``style`` says how it differs from its type: ``time`` moves with the Localtime header,
    ``micro`` prints six decimals, ``pairs`` is a list whose members are joined by the host/service
    separator, ``perf`` is performance data. A ``counter`` can only be read: a real core refuses to
    filter by it and dies of a Stats function. A list with ``bits`` is the words of a number, and is
    compared as one. ``deadly`` says whether a real core would at present die of a filter on the
    column, and ``compared`` returns what a filter compares where that is not the value
    (docs/spec/livestatus.md).
    """

    name: str
    type: str
    description: str
    get: ValueOf
    style: Literal["", "time", "micro", "pairs", "perf", "counter"] = ""
    bits: Mapping[str, int] | None = None
    deadly: Callable[[], bool] | None = None
    compared: ValueOf | None = None
    step: ValueOf | None = None
    optional: bool = False

    def getter(self) -> ValueOf:
        get, step = self.get, self.step
        if step is None:
            return get
        if not self.optional:
            return lambda row: get(step(row))
        empty = EMPTY[self.type]

        def through(row: Any) -> Any:
            value = step(row)
            return empty if value is None else get(value)

        return through

    def shifted(self, seconds: int) -> Column:
        """The column with its times moved, for the Localtime header."""
        if self.style != "time" or not seconds:
            return self
        get = self.get
        return evolve(self, get=lambda row: get(row) + seconds)


@frozen(eq=False)
class Part:
    """Columns of one kind of object inside a table's rows, under a prefix (``Column.step``)."""

    prefix: str
    columns: tuple[Column, ...]
    step: ValueOf | None = None
    optional: bool = False

    def listed_columns(self) -> dict[str, Column]:
        names = [self.prefix + column.name for column in self.columns]
        return {
            name: evolve(column, name=name, step=self.step, optional=self.optional)
            for name, column in zip(names, self.columns, strict=True)
        }


@frozen(eq=False)
class Table:
    """A table of ``rows``; ``between`` returns those of a span of time where it is ordered by that.

    ``own_prefix`` may stand before own column names. ``visible`` is None where all may see all.
    ``indexes`` map a column name to a function from a value to the rows that have it.
    ``wait_object`` finds the row that the header WaitObject names, or the one that a condition
    without a name is about.
    """

    name: str
    parts: tuple[Part, ...]
    rows: Callable[[], Rows]
    own_prefix: str = ""
    visible: Visible | None = None
    indexes: Mapping[str, Callable[[str], Rows]] = field(factory=dict)
    wait_object: Callable[[str], Any] | None = None
    between: Callable[[float | None, float | None], Rows] | None = None
    columns: Mapping[str, Column] = field(init=False)

    def __attrs_post_init__(self) -> None:
        columns = {
            name: column for part in self.parts for name, column in part.listed_columns().items()
        }
        object.__setattr__(self, "columns", dict(sorted(columns.items())))

    def find(self, name: str) -> Column | None:
        """The column of a name, or None; the table's own prefix is accepted and cut."""
        column = self.columns.get(name)
        if column is None and self.own_prefix and name.startswith(self.own_prefix):
            return self.columns.get(name[len(self.own_prefix) :])
        return column
