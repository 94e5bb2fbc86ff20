"""Object records as rows: filters, columns and sorting on keys that differ from row to row.

A row has the meta keys and those attributes that the object has. A name that no row has is a typing
error in a filter and null as a column (docs/spec/objectconfig.md, "Records and ids").
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from operator import itemgetter
from typing import Any

from attrs import evolve

from monrest.api.endpoint import MANY, Context
from monrest.base.values import OBJECTS, Column, Document, Parameters, RestRequest, Row, Rows
from monrest.objectconfig.attributes import OBJECT_TYPES, is_array
from monrest.query.bind import Bound, bind
from monrest.query.column_names import ColumnNames, CoreColumn, TableSchema, View
from monrest.query.functions import Moment
from monrest.query.limit import Limit
from monrest.query.model import Item, Query, Ref
from monrest.query.parse import parse_query
from monrest.query.stages import of_records

ObjectRow = Mapping[str, Any]
"""An object in an answer: meta keys beginning with a colon, and its attributes."""

COLUMNS = (
    Column(":FILE", "string", "", "path and line of the definition; line 0: not saved yet"),
    Column(":ID", "string", "", "id of the object; read it again after changes by others"),
    Column(":PEER_KEY", "string", "", "id of the site"),
    Column(":PEER_NAME", "string", "", "name of the site"),
    Column(":READONLY", "boolean", "", "1 when the file cannot be changed"),
    Column(":TYPE", "string", "", "type of the object, such as host"),
)
"""The keys of every object; the rest are the attributes that it has."""

META_NAMES = tuple(column.name for column in COLUMNS)

TEMPLATES = Column(":TEMPLATES", "array_of_strings", "", "all templates that it uses, in order")

_RECORD = "\0record"
"""A column of the whole record, of which no client can know, for it has a control character."""

_WHOLE = Item(Ref(_RECORD, quoted=True), key=_RECORD, text=_RECORD)
_ORDER = (":TYPE", ":ID")


async def select_objects(
    context: Context,
    request: RestRequest,
    parameters: Parameters,
    records: Iterable[ObjectRow],
    meta: Sequence[Column] = COLUMNS,
) -> Rows | Document:
    """The records that ``parameters`` want, sorted by type and id without another order.

    They are made in a thread, since even a few may have lists of a hundred thousand names.
    ``meta`` are keys that every record has.
    """
    query, moment, objects = parse_query(parameters), context.moment(), request.format in OBJECTS

    def selected(limit: Limit) -> Rows | Document:
        every = list(records)
        if query.items is not None:
            return _queried(query, every, meta, moment, limit)
        whole = evolve(query, items=(_WHOLE,))
        answer = _queried(whole, every, meta, moment, limit)
        assert isinstance(answer, Rows)
        chosen: list[ObjectRow] = [row[0] for row in answer.rows]
        if objects:
            pick = itemgetter(*[column.name for column in meta])
            rows = [[*pick(record), record] for record in chosen]
            expand = itemgetter(len(meta))
            return evolve(answer, columns=tuple(meta), rows=rows, expand=expand)
        # A table has one head for all rows.
        names = sorted(_names(chosen))
        rows = [[record.get(name) for name in names] for record in chosen]
        return evolve(answer, columns=tuple(_column(name) for name in names), rows=rows)

    return await context.compute(selected, MANY)


def bound_filter(context: Context, parameters: Parameters, names: Iterable[str]) -> Bound:
    """Filters bound to the names that some record has; BadRequest for any other name."""
    return _bound(context.moment(), evolve(parse_query(parameters), items=(_WHOLE,)), names)


def passing(bound: Bound, records: Iterable[ObjectRow]) -> list[ObjectRow]:
    """The records that pass ``bound_filter``, computed in one go: for threads."""
    names = _needed(bound)
    rows = [_row(record, names) for record in records]
    with Limit() as limit:
        answer = of_records(bound, names, rows, limit)
    assert isinstance(answer, Rows)
    return [row[0] for row in answer.rows]


def _queried(
    query: Query,
    records: Sequence[ObjectRow],
    meta: Sequence[Column],
    moment: Moment,
    limit: Limit,
) -> Rows | Document:
    bound = _bound(moment, query, _names(records).union([column.name for column in meta]))
    needed = _needed(bound)
    return of_records(bound, needed, [_row(record, needed) for record in records], limit)


def _bound(moment: Moment, query: Query, names: Iterable[str]) -> Bound:
    columns = {name: CoreColumn(column=_column(name), core_type="string") for name in names}
    columns[_RECORD] = CoreColumn(column=Column(_RECORD, "object"), core_type="dict")
    schema = TableSchema(
        name="objects", table="", columns=columns, order=_ORDER, folded=True, mixed=True
    )
    return bind(query, ColumnNames(schema), View(), moment)


def _needed(bound: Bound) -> Sequence[str]:
    """Only what the query reads: a site may have thousands of different custom variables."""
    return [name for name in bound.needed if name in bound.names.schema.columns] or _ORDER


def _row(record: ObjectRow, names: Sequence[str]) -> Row:
    return [record if name == _RECORD else record.get(name) for name in names]


def _names(records: Iterable[ObjectRow]) -> set[str]:
    return set(META_NAMES).union(*records)


_META = {column.name: column for column in (*COLUMNS, TEMPLATES)}
_ARRAYS = frozenset(
    name
    for kind, declared in OBJECT_TYPES.items()
    for name in declared.attributes
    if is_array(kind, name)
)


def _column(name: str) -> Column:
    column = _META.get(name)
    if column is not None:
        return column
    return Column(name, "array_of_strings" if name in _ARRAYS else "string")
