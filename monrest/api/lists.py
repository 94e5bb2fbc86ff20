"""Lists that the front end makes itself: filters, columns, sorting and the rest on plain records.

The same engine as for core rows, without a core: records become rows of a declared schema.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from operator import itemgetter
from types import MappingProxyType
from typing import Any

from attrs import evolve

from monrest.api.endpoint import Context
from monrest.api.zones import moment_of
from monrest.base.errors import BadRequest
from monrest.base.names import Names
from monrest.base.values import OBJECTS, Column, Document, RestRequest, Row, Rows
from monrest.query.bind import bind, no_such_column
from monrest.query.column_names import ColumnNames, CoreColumn, CoreType, TableSchema, View
from monrest.query.model import FilterTree
from monrest.query.parse import parse_query
from monrest.query.stages import of_object, of_records

_CORE_TYPES: Mapping[str, CoreType] = {
    "number": "float",
    "boolean": "int",
    "time": "int",
    "array_of_strings": "list",
    "object": "dict",
}


def local_schema(
    name: str,
    columns: Sequence[Column],
    order: tuple[str, ...],
    held: Mapping[str, CoreType] = MappingProxyType({}),
) -> TableSchema:
    """A schema for records with these keys; ``=`` ignores case as on all front-end resources.

    ``held`` says what the values of a column are where they are labelled as something else.
    """
    return TableSchema(
        name=name,
        table="",
        columns={
            column.name: CoreColumn(
                column=column,
                core_type=held.get(column.name, _CORE_TYPES.get(column.type, "string")),
            )
            for column in columns
        },
        order=order,
        folded=True,
    )


def own_columns(columns: Sequence[Column], names: Names) -> tuple[Column, ...]:
    """The columns with the site's own word in the place of ``mon``."""
    return tuple(evolve(column, name=names.own(column.name)) for column in columns)


async def select(
    context: Context,
    request: RestRequest,
    schema: TableSchema,
    records: Iterable[Mapping[str, Any]],
    *,
    extra: tuple[FilterTree, ...] = (),
) -> Rows | Document:
    """The records that the request wants, in the order given unless it asks for another.

    ``extra`` are conditions beside those of the request.
    """
    query = parse_query(request.parameters)
    bound = bind(query, ColumnNames(schema), View(), await moment_of(context, request), extra)
    names = list(schema.columns)

    def row(record: Mapping[str, Any]) -> Row:
        return [record.get(name) for name in names]

    rows = list(map(row, records))
    answer = await context.compute(
        lambda limit: of_records(bound, names, rows, limit, ordered=True),
        len(rows) * (len(names) + bound.effort),
    )
    if request.strict and answer.warnings:
        raise no_such_column(answer.warnings)
    return answer


async def read_columns(
    context: Context, request: RestRequest, schema: TableSchema
) -> frozenset[str] | None:
    """Return the columns that the answer to a request is made of; None for all of them.

    What is large is only read for a request that wants it.
    """
    try:
        query = parse_query(request.parameters)
        bound = bind(query, ColumnNames(schema), View(), await moment_of(context, request))
    except BadRequest:
        return None  # it may be a column that only the records have
    return None if bound.selected is None or bound.unknown else frozenset(bound.needed)


async def reselect(context: Context, request: RestRequest, answer: Document) -> Document:
    """``columns`` applied to an object answer: renames, functions, calculations."""
    query = parse_query(request.parameters)
    if query.items is None or not isinstance(answer.value, dict):
        return answer
    document = answer.value
    keys = {name: CoreColumn(column=Column(name), core_type="string") for name in document}
    bound = bind(
        evolve(query, filter=type(query.filter)("and", ()), sort=()),
        ColumnNames(TableSchema(name="object", table="", columns=keys, mixed=True)),
        View(),
        await moment_of(context, request),
    )
    declared = {column.name for column in answer.columns}
    if wrong := [column.warning for column in bound.unknown if column.name not in declared]:
        raise no_such_column(wrong)
    value, warnings = await context.compute(
        lambda limit: of_object(bound, document, limit), len(document) + bound.effort
    )
    if request.strict and warnings:
        raise no_such_column(warnings)
    return evolve(answer, value=value, order=tuple(value), warnings=(*answer.warnings, *warnings))


def sparse(
    request: RestRequest,
    answer: Rows | Document,
    optional: frozenset[str],
    ending: str = "",
) -> Rows | Document:
    """Leave out ``optional`` keys that are null from the JSON objects of a list.

    A key with this ``ending`` stays, null or not, beside the key without it.

    Tables keep all their columns, as does a request that names columns.
    """
    if isinstance(answer, Document) or request.format not in OBJECTS or not optional:
        return answer
    if any(name == "columns" for name, _ in request.parameters):
        return answer
    kept = [at for at, column in enumerate(answer.columns) if column.name not in optional]
    places = {column.name: at for at, column in enumerate(answer.columns)}
    left = [(at, name) for name, at in places.items() if name in optional]
    asks = [places.get(name.removesuffix(ending), at) for at, name in left]

    def row(full: Row) -> Row:
        present = {
            name: full[at]
            for (at, name), ask in zip(left, asks, strict=True)
            if full[ask] is not None
        }
        return [*(full[at] for at in kept), present]

    columns = tuple(answer.columns[at] for at in kept)
    rows = list(map(row, answer.rows))
    further = tuple(answer.columns[at] for at, _ in left)
    return evolve(answer, columns=columns, rows=rows, expand=itemgetter(len(kept)), further=further)
