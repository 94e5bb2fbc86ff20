"""The functions with which columns are declared.

Each function takes ``{name: description}`` and returns the declared columns. Types are the
labels of the interface where it names a column, else they follow the core's type: numbers for int,
float and 0/1, times as ``time`` (docs/spec/query.md, "Collections").
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeAlias

from attrs import evolve, frozen

from monrest.base.values import Column, ColumnType
from monrest.query.column_names import CoreColumn, CoreType, DerivedColumn, Elements

AnyColumn: TypeAlias = CoreColumn | DerivedColumn
ColumnTable: TypeAlias = Mapping[str, AnyColumn]
Described: TypeAlias = Mapping[str, str]

PSEUDO_COLUMNS = ("program_start", "peer_addr", "now")
"""Sources of derived columns that no table has: the merge fills them in once per site.

``program_start`` is the core's start in Unix time, ``peer_addr`` the site's address where the
user may see it and empty otherwise, ``now`` the time of the request in Unix time.
"""


def _core(
    described: Described, core_type: CoreType, type_: ColumnType, unit: str, default: bool
) -> list[AnyColumn]:
    return [
        CoreColumn(
            column=Column(name, type_, unit, description), core_type=core_type, default=default
        )
        for name, description in described.items()
    ]


def text(described: Described, *, default: bool = True) -> list[AnyColumn]:
    """Declare strings."""
    return _core(described, "string", "string", "", default)


def integer(described: Described, *, unit: str = "", default: bool = True) -> list[AnyColumn]:
    """Declare whole numbers, 0/1 among them."""
    return _core(described, "int", "number", unit, default)


def flag(described: Described, *, default: bool = True) -> list[AnyColumn]:
    """Declare 0/1 columns that are labelled as boolean."""
    return _core(described, "int", "boolean", "", default)


def decimal(described: Described, *, unit: str = "", default: bool = True) -> list[AnyColumn]:
    """Declare numbers with a fraction."""
    return _core(described, "float", "number", unit, default)


def time(described: Described, *, default: bool = True) -> list[AnyColumn]:
    """Declare Unix times in seconds, 0 for never."""
    return _core(described, "time", "time", "", default)


def names(
    described: Described, *, default: bool = True, elements: Elements = "text"
) -> list[AnyColumn]:
    """Declare lists of texts."""
    return [
        CoreColumn(
            column=Column(name, "array_of_strings", "", description),
            core_type="list",
            default=default,
            elements=elements,
        )
        for name, description in described.items()
    ]


def ids(described: Described, *, default: bool = True) -> list[AnyColumn]:
    """Declare lists of numbers, which go by the interface's one word for lists."""
    return names(described, default=default, elements="number")


def records(described: Described, *, default: bool = True) -> list[AnyColumn]:
    """Declare lists of lists, which go by the interface's one word for lists."""
    return names(described, default=default, elements="record")


def dictionary(described: Described, *, default: bool = True) -> list[AnyColumn]:
    """Declare objects from name to text."""
    return _core(described, "dict", "object", "", default)


def derived(
    column: Column, sources: tuple[str, ...], compute: Callable[..., Any], *, default: bool = True
) -> list[AnyColumn]:
    return [DerivedColumn(column=column, sources=sources, compute=compute, default=default)]


@frozen
class Joined:
    """Columns of another collection that are selectable under a prefix."""

    prefix: str
    collection: str


def table(*groups: Iterable[AnyColumn]) -> dict[str, AnyColumn]:
    """Collect the groups by name. Raises ValueError if a name is declared twice."""
    columns: dict[str, AnyColumn] = {}
    for group in groups:
        for column in group:
            if column.name in columns:
                raise ValueError(f"column {column.name} is declared twice")
            columns[column.name] = column
    return columns


def joined(
    prefix: str, of: ColumnTable, whose: str, *, default: frozenset[str] = frozenset()
) -> list[AnyColumn]:
    """Declare every column of another table under ``prefix``; ``default`` are in the answer.

    ``whose`` starts the descriptions, for example ``host: ``.
    """
    columns: list[AnyColumn] = []
    for original in of.values():
        column = evolve(
            original.column,
            name=prefix + original.name,
            description=f"{whose}: {original.column.description}",
        )
        is_default = column.name in default
        if isinstance(original, CoreColumn):
            columns.append(evolve(original, column=column, default=is_default))
            continue
        sources = tuple(
            source if source in PSEUDO_COLUMNS else prefix + source for source in original.sources
        )
        columns.append(evolve(original, column=column, sources=sources, default=is_default))
    return columns


def info(entries: Sequence[Sequence[Any]] | None) -> str:
    """Write comments or downtimes as ``id:<id> author:<author>: text:<text>``, joined by ``, ``.

    ``entries`` are the records of a ``…_with_info`` column, which start with id, author, text;
    everything else is left out.
    """
    if not entries or not isinstance(entries, list):
        return ""
    return ", ".join(
        f"id:{entry[0]} author:{entry[1]}: text:{entry[2]}"
        for entry in entries
        if isinstance(entry, list) and len(entry) >= _RECORD
    )


_RECORD = 3


def state_order(state: Any) -> Any:
    """Rank a service state for sorting: critical (2) comes after unknown (3) as 4."""
    return 4 if state == 2 else state


def change_or_start(last_state_change: Any, program_start: Any) -> Any:
    """Return the last change of state, or the core's start for objects that never changed."""
    return last_state_change or program_start or 0


def command_check(last_command_check: Any, program_start: Any, now: Any) -> Any:
    """Show the present instead of the start, which the core sets before the first real check."""
    return int(now) if now and last_command_check == program_start else last_command_check


def data_source(livestatus_version: Any) -> str:
    """Name what delivers the data, with its version."""
    return f"Livestatus {livestatus_version}"


def given(value: Any) -> Any:
    return value
