"""Object records as rows: filters, columns and sorting on keys that differ from row to row.

A row has the meta keys and those attributes that the object has. A name that no row has is a typing
error in a filter and null as a column (docs/spec/objectconfig.md, "Records and ids").
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Mapping, Sequence
from operator import itemgetter
from typing import Any

from attrs import evolve

from monrest.api.endpoint import Context
from monrest.base.concurrency import sliced
from monrest.base.values import OBJECTS, Column, Document, Parameters, RestRequest, Row, Rows
from monrest.objectconfig.attributes import OBJECT_TYPES, is_array
from monrest.query.bind import Bound, bind
from monrest.query.column_names import ColumnNames, CoreColumn, TableSchema, View
from monrest.query.finish import of_records
from monrest.query.limit import Limit
from monrest.query.model import Item, Query, Ref
from monrest.query.parse import parse_query

ObjectRow = Mapping[str, Any]
"""An object as it is shown: meta keys beginning with a colon, and its attributes."""

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
_AT_A_TIME = 200


async def select_objects(
    context: Context,
    request: RestRequest,
    parameters: Parameters,
    records: Iterable[ObjectRow],
    meta: Sequence[Column] = COLUMNS,
) -> Rows | Document:
    """The records that ``parameters`` want, sorted by type and id unless they say otherwise.

    ``records`` are made while the reactor turns. ``meta`` are keys that every record has.
    """
    every = await sliced(_taken(records), context.clock)
    query = parse_query(parameters)
    if query.items is not None:
        return await _queried(context, query, every, meta)
    answer = await _queried(context, evolve(query, items=(_WHOLE,)), every, meta)
    assert isinstance(answer, Rows)
    chosen: list[ObjectRow] = [row[0] for row in answer.rows]
    if request.format in OBJECTS:
        pick = itemgetter(*[one.name for one in meta])
        rows = [[*pick(record), record] for record in chosen]
        return evolve(answer, columns=tuple(meta), rows=rows, expand=itemgetter(len(meta)))
    # A table has one head for all rows.
    names = sorted(await sliced(_names(chosen), context.clock))
    rows = await sliced(_table(chosen, names), context.clock)
    return evolve(answer, columns=tuple(_column(name) for name in names), rows=rows)


def bound_filter(context: Context, parameters: Parameters, names: Iterable[str]) -> Bound:
    """Filters bound to the names that some record has; BadRequest for any other name."""
    return _bound(context, evolve(parse_query(parameters), items=(_WHOLE,)), names)


def passing(bound: Bound, records: Iterable[ObjectRow]) -> list[ObjectRow]:
    """The records that pass ``bound_filter``, computed in one go: for threads."""
    names = _needed(bound)
    rows = [_row(record, names) for record in records]
    with Limit() as limit:
        answer = of_records(bound, names, rows, limit)
    assert isinstance(answer, Rows)
    return [row[0] for row in answer.rows]


async def _queried(
    context: Context, query: Query, records: Sequence[ObjectRow], meta: Sequence[Column]
) -> Rows | Document:
    names = await sliced(_names(records), context.clock)
    bound = _bound(context, query, names.union([one.name for one in meta]))
    needed = _needed(bound)
    rows = await sliced(_rows(records, needed), context.clock)
    values = len(rows) * (len(needed) + bound.effort)
    return await context.compute(lambda limit: of_records(bound, needed, rows, limit), values)


def _bound(context: Context, query: Query, names: Iterable[str]) -> Bound:
    columns = {name: CoreColumn(column=_column(name), core_type="string") for name in names}
    columns[_RECORD] = CoreColumn(column=Column(_RECORD, "object"), core_type="dict")
    schema = TableSchema(
        name="objects", table="", columns=columns, order=_ORDER, folded=True, mixed=True
    )
    return bind(query, ColumnNames(schema), View(), context.moment())


def _needed(bound: Bound) -> Sequence[str]:
    """Only what the query reads: a site may have thousands of different custom variables."""
    return [name for name in bound.needed if name in bound.names.schema.columns] or _ORDER


def _row(record: ObjectRow, names: Sequence[str]) -> Row:
    return [record if name == _RECORD else record.get(name) for name in names]


def _taken(records: Iterable[ObjectRow]) -> Generator[None, None, list[ObjectRow]]:
    taken: list[ObjectRow] = []
    for record in records:
        taken.append(record)
        if len(taken) % _AT_A_TIME == 0:
            yield
    return taken


def _names(records: Sequence[ObjectRow]) -> Generator[None, None, set[str]]:
    names: set[str] = set(META_NAMES)
    for start in range(0, len(records), _AT_A_TIME):
        for record in records[start : start + _AT_A_TIME]:
            names.update(record)
        yield
    return names


def _rows(records: Sequence[ObjectRow], needed: Sequence[str]) -> Generator[None, None, list[Row]]:
    rows: list[Row] = []
    for start in range(0, len(records), _AT_A_TIME):
        rows += [_row(record, needed) for record in records[start : start + _AT_A_TIME]]
        yield
    return rows


def _table(records: Sequence[ObjectRow], names: Sequence[str]) -> Generator[None, None, list[Row]]:
    rows: list[Row] = []
    for record in records:
        rows.append([record.get(name) for name in names])
        if len(rows) % _AT_A_TIME == 0:
            yield
    return rows


_META = {column.name: column for column in (*COLUMNS, TEMPLATES)}
_ARRAYS = frozenset(
    name
    for kind, declared in OBJECT_TYPES.items()
    for name in declared.attributes
    if is_array(kind, name)
)


def _column(name: str) -> Column:
    known = _META.get(name)
    if known is not None:
        return known
    return Column(name, "array_of_strings" if name in _ARRAYS else "string")
