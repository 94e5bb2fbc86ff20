"""A class of records says its table and what is shown: each annotated attribute is a column.

    @stored("webhooks")
    @frozen(kw_only=True)
    class Webhook(StoredRow):
        number: Annotated[int, KEY, Shown("its number", "number", name="id")]
        paused: Annotated[str | None, Shown("why nothing is sent")] = None
        waiting: Annotated[int, NOT_STORED] = 0

An optional attribute may be NULL. Texts, numbers and bytes have columns of their type; what
else is annotated is stored as JSON. Rules: docs/spec/store.md, "Tables and migrations".
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from types import NoneType, UnionType
from typing import (
    Annotated,
    Any,
    ClassVar,
    Self,
    TypeAlias,
    TypeVar,
    Union,
    cast,
    get_args,
    get_origin,
    get_type_hints,
)

import attrs
import cattrs
from attrs import field, frozen
from sqlalchemy import (
    BigInteger,
    Boolean,
    Connection,
    Double,
    ForeignKey,
    Integer,
    LargeBinary,
    Row,
    Table,
    Text,
    select,
)
from sqlalchemy import Column as TableColumn

from monrest.base.values import Column, ColumnType
from monrest.store.tables import DOCUMENT, metadata

R = TypeVar("R", bound="StoredRow")

_TYPES: Mapping[Any, Any] = {
    str: Text,
    int: BigInteger,
    float: Double,
    bool: Boolean,
    bytes: LargeBinary,
}


@frozen
class _Marker:
    """A mark of an annotation for its column in the table."""

    options: Mapping[str, Any] = {}


KEY = _Marker({"primary_key": True, "autoincrement": False})
NUMBERED = _Marker({"primary_key": True, "type_": Integer})
"""A key that the database chooses."""
WHOLE = _Marker({"type_": BigInteger})
"""A number that is stored without its fraction."""
INDEXED = _Marker({"index": True})
UNIQUE = _Marker({"unique": True})
NOT_STORED = _Marker()
"""The attribute is not stored."""


@frozen
class References:
    """The key of a record in another table, with which this one is deleted."""

    column: str


@frozen
class Shown:
    """An attribute as clients see it, under its own name unless ``name`` is another.

    ``show`` makes the value of that of the attribute; None is ``nothing``.
    """

    description: str
    type: ColumnType = "string"
    unit: str = ""
    name: str = field(default="", kw_only=True)
    show: Callable[[Any], Any] = field(default=lambda value: value, kw_only=True)
    nothing: Any = field(default="", kw_only=True)

    def column(self, attribute: str) -> Column:
        return Column(self.name or attribute, self.type, self.unit, self.description)


def shown_time(description: str, name: str = "") -> Shown:
    """A time in seconds since the epoch, shown as a whole number, 0 for none."""
    return Shown(description, "time", name=name, show=int, nothing=0)


class StoredRow:
    """The base of every class with ``stored``.

    An attribute whose type is another such class refers to the record with that key, and is deleted
    with it; the rows of which it is made are joined.
    """

    __slots__ = ()

    table: ClassVar[Table]

    @classmethod
    def of(cls, row: Row[*tuple[Any, ...]], *, joined: bool = False) -> Self:
        """One record from a row; ``joined``: it has columns of other tables with the same names."""
        references = _REFERENCES[cls]
        joined = joined or bool(references)
        # A name is looked up in a third of the time of a column.
        mapping: Mapping[Any, Any] = (
            row._mapping if joined else dict(zip(row._fields, row, strict=True))
        )
        values: dict[str, Any] = {}
        for name, structure in _STRUCTURES[cls].items():
            key = cls.table.c[name] if joined else name
            if key in mapping:
                value = mapping[key]
                values[name] = value if structure is None or value is None else structure(value)
        for name, kind in references.items():
            values[name] = kind.of(row, joined=True)
        return cls(**values)

    @classmethod
    def find(cls, connection: Connection, key: str | int) -> Self | None:
        """The record with this key."""
        query = select(cls.table).where(cls.primary_key() == key)
        row = connection.execute(query).one_or_none()
        return None if row is None else cls.of(row)

    def values(self) -> dict[str, Any]:
        """The stored values, by column."""
        values = {}
        for name, structure in _STRUCTURES[type(self)].items():
            value = getattr(self, name)
            values[name] = value if structure is None else cattrs.unstructure(value)
        for name, kind in _REFERENCES[type(self)].items():
            values[name] = getattr(getattr(self, name), kind.primary_key().name)
        return values

    @classmethod
    def primary_key(cls) -> TableColumn[Any]:
        """The first column of the key."""
        return next(iter(cls.table.primary_key.columns))


Structure: TypeAlias = Callable[[Any], Any] | None
"""Makes the value of an attribute of what its column has, None for the same."""

_STRUCTURES: dict[type[StoredRow], dict[str, Structure]] = {}
_REFERENCES: dict[type[StoredRow], dict[str, type[StoredRow]]] = {}
_SHOWN: dict[type[StoredRow], dict[str, Shown]] = {}


def stored(name: str, *more: Any) -> Callable[[type[R]], type[R]]:
    """Give an attrs class its table ``name``; ``more`` are indexes of several columns."""

    def declare(cls: type[R]) -> type[R]:
        hints = get_type_hints(cls, include_extras=True)
        columns = []
        structures: dict[str, Structure] = {}
        references: dict[str, type[StoredRow]] = {}
        shown_columns_: dict[str, Shown] = {}
        for attribute in attrs.fields(cast(Any, cls)):
            hint, markers = _unwrapped(hints[attribute.name])
            for marker in markers:
                if isinstance(marker, Shown):
                    shown_columns_[attribute.name] = marker
            if NOT_STORED in markers:
                continue
            inner, nullable = _required(hint)
            kind = _TYPES.get(inner, DOCUMENT)
            options: dict[str, Any] = {"nullable": nullable}
            parts = []
            if isinstance(inner, type) and issubclass(inner, StoredRow):
                references[attribute.name] = inner
                key = inner.primary_key()
                kind, markers = key.type, (*markers, References(f"{inner.table.name}.{key.name}"))
            else:
                is_tuple = get_origin(inner) is tuple
                structures[attribute.name] = partial(_structured, inner) if is_tuple else None
            for marker in markers:
                if isinstance(marker, _Marker):
                    options |= marker.options
                elif isinstance(marker, References):
                    parts.append(ForeignKey(marker.column, ondelete="CASCADE"))
            kind = options.pop("type_", kind)
            columns.append(TableColumn(attribute.name, kind, *parts, **options))
        cls.table = Table(name, metadata, *columns, *more)
        _STRUCTURES[cls], _REFERENCES[cls], _SHOWN[cls] = structures, references, shown_columns_
        return cls

    return declare


def _unwrapped(hint: Any) -> tuple[Any, tuple[Any, ...]]:
    if get_origin(hint) is Annotated:
        inner, *markers = get_args(hint)
        return inner, tuple(markers)
    return hint, ()


def _required(hint: Any) -> tuple[Any, bool]:
    """The type without None, and whether None was in it."""
    if get_origin(hint) in (Union, UnionType):
        inner = [get_arg for get_arg in get_args(hint) if get_arg is not NoneType]
        if len(inner) == 1:
            return inner[0], True
    return hint, False


def _structured(hint: Any, value: Any) -> Any:
    """A tuple of what JSON has as a list, with the values in it."""
    return cattrs.structure(value, hint)


def shown_columns(cls: type[StoredRow], *more: Column) -> tuple[Column, ...]:
    """The columns of what a class shows, and ``more``, by name."""
    named = (*(column.column(name) for name, column in _SHOWN[cls].items()), *more)
    return tuple(sorted(named, key=lambda column: column.name))


def shown_values(record: StoredRow) -> dict[str, Any]:
    """The shown attributes of a record, by column."""
    row = {}
    for name, column in _SHOWN[type(record)].items():
        value = getattr(record, name)
        row[column.name or name] = column.nothing if value is None else column.show(value)
    return row
