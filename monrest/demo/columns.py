"""What a column, a table and a joined table are, and how a name in a request finds its column."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from operator import attrgetter
from typing import Any, Literal, TypeAlias

from attrs import evolve, field, frozen

ColumnType: TypeAlias = Literal["string", "int", "float", "list", "dict"]
Style: TypeAlias = Literal["", "time", "micro", "bits", "pairs", "perf", "counter"]

EMPTY: Mapping[str, Any] = {"string": "", "int": 0, "float": 0.0, "list": (), "dict": {}}
"""What a joined column shows when there is no joined object."""


@frozen
class Column:
    """A column of an object: ``get`` gives its value from the object.

    ``style`` says how it differs from its type: ``time`` moves with the Localtime header,
    ``micro`` prints six decimals, ``bits`` is a list read from a number, ``pairs`` is a list
    whose members are joined by the host/service separator. A ``counter`` can only be read: a real
    core refuses to filter by it and dies of a Stats function. ``deadly`` says whether a real core
    would at present die of a filter on the column (docs/spec/livestatus.md).
    """

    name: str
    type: ColumnType
    description: str
    get: Callable[[Any], Any]
    style: Style = ""
    deadly: Callable[[], bool] | None = None


def column(
    name: str,
    type: ColumnType,
    description: str,
    get: Callable[[Any], Any] | str = "",
    style: Style = "",
    deadly: Callable[[], bool] | None = None,
) -> Column:
    """Declare a column; ``get`` may be an attribute's name and is the column's by default."""
    if isinstance(get, str):
        get = attrgetter(get or name)
    return Column(name, type, description, get, style, deadly)


@frozen(eq=False)
class Part:
    """Columns of one kind of object inside a table's rows.

    ``step`` leads from a row to the object, None where the row is the object. With ``optional``
    it may answer None, and the columns are then empty.
    """

    prefix: str
    columns: tuple[Column, ...]
    step: Callable[[Any], Any] | None = None
    optional: bool = False


@frozen(eq=False)
class Field:
    """A column as a table shows it: under its name there, reached through a part."""

    name: str
    base: Column
    part: Part

    def getter(self) -> Callable[[Any], Any]:
        """A function from a row to the value."""
        get, step = self.base.get, self.part.step
        if step is None:
            return get
        if not self.part.optional:
            return lambda row: get(step(row))
        empty = EMPTY[self.base.type]

        def through(row: Any) -> Any:
            found = step(row)
            return empty if found is None else get(found)

        return through

    def shifted(self, seconds: int) -> Field:
        """The field with its times moved, for the Localtime header."""
        if self.base.style != "time" or not seconds:
            return self
        get = self.base.get
        return evolve(self, base=evolve(self.base, get=lambda row: get(row) + seconds))


Rows: TypeAlias = list[Any]
Lookup: TypeAlias = Callable[[str], Rows]


@frozen(eq=False)
class Table:
    """A Livestatus table.

    ``rows`` gives all rows. ``indexes`` map a column name to a function from a value to the rows
    that have it. ``visible`` answers whether a contact may see a row (None: everybody may).
    ``own_prefix`` may stand before own column names. ``wait_object`` finds the row that the
    header WaitObject names.
    """

    name: str
    parts: tuple[Part, ...]
    rows: Callable[[], Rows]
    indexes: Mapping[str, Lookup] = field(factory=dict)
    own_prefix: str = ""
    visible: Callable[[str], Callable[[Any], bool]] | None = None
    wait_object: Callable[[str], Any] | None = None
    fields: Mapping[str, Field] = field(init=False)

    def __attrs_post_init__(self) -> None:
        found = {
            part.prefix + base.name: Field(part.prefix + base.name, base, part)
            for part in self.parts
            for base in part.columns
        }
        object.__setattr__(self, "fields", dict(sorted(found.items())))

    def find(self, name: str) -> Field | None:
        """The field of a name, or None; the table's own prefix is accepted and cut."""
        found = self.fields.get(name)
        if found is None and self.own_prefix and name.startswith(self.own_prefix):
            return self.fields.get(name[len(self.own_prefix) :])
        return found


def only(columns: Iterable[Column], names: Iterable[str]) -> tuple[Column, ...]:
    """The columns of the given names."""
    wanted = frozenset(names)
    return tuple(item for item in columns if item.name in wanted)
