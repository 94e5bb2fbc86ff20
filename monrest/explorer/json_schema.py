"""JSON Schema of parameters, fields and columns, from their declarations. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

from monrest.api.endpoint import DeclaredParameter
from monrest.api.fields import Choice, Date, Flag, NameList, Number, Second, Seconds, Text
from monrest.base.values import Column
from monrest.commands.arguments import limits
from monrest.explorer.chapters import columns_of
from monrest.livestatus.catalogue import Argument, Command
from monrest.query.column_names import CoreColumn, TableSchema

JsonSchema: TypeAlias = dict[str, Any]

_FLAG: Mapping[str, Any] = {"type": ["integer", "boolean"], "enum": [0, 1, True, False]}
"""Further words for yes and no are taken, and these are the ones to send."""

_TYPES: Mapping[str, JsonSchema] = {
    "string": {"type": "string"},
    "integer": {"type": "integer", "minimum": 0},
    "number": {"type": "number"},
    "boolean": dict(_FLAG),
    "time": {"type": ["string", "integer"], "examples": ["-24h"]},
    "list": {"type": ["array", "string"]},
    "object": {"type": ["object", "string"]},
}

_VALUES: Mapping[str, JsonSchema] = {
    "": {},
    "string": {"type": ["string", "null"]},
    "number": {"type": ["number", "null"]},
    "boolean": {"type": ["integer", "boolean", "null"]},
    "time": {"type": ["number", "null"]},
    "array_of_strings": {"type": ["array", "null"]},
    "object": {"type": ["object", "null"]},
}
"""The schema of values of our own records, by the type of a column."""

_OTHERWISE: Mapping[str, JsonSchema] = {
    "last_error": {"type": ["string", "number", "null"]},
    "last_job": {"type": ["string", "number", "null"]},
    "nodes": {"type": ["array", "object", "null"]},
    "nr": {"type": ["number", "string", "null"]},
    "params": {"type": ["object", "null"]},
    "permissions": {"type": ["array", "null"]},
}
"""The schema of columns of our own records whose declared type, which clients know, differs."""

_CORE: Mapping[str, str] = {
    "string": "string", "int": "number", "float": "number", "time": "number", "list": "array",
    "dict": "object",
}  # fmt: skip
"""The schema of values of cores, by the core's type; none is missing."""

_ARGUMENTS: Mapping[str, JsonSchema] = {
    "boolean": dict(_FLAG),
    "timestamp": {"type": ["string", "integer"], "examples": ["now", "+1h"]},
    "duration": {"type": ["string", "number"], "examples": ["2h", 7200]},
    "timeperiod": {"type": "string"},
    "hostgroup": {"type": "string"},
    "string": {"type": "string"},
}


def parameter_schema(parameter: DeclaredParameter) -> JsonSchema:
    schema = _bounds(parameter)
    limit = parameter.limit
    text = f"{parameter.description}. Limit: {limit}." if limit else parameter.description
    return schema | {"description": text} | ({"x-limit": limit} if limit else {})


def _bounds(parameter: DeclaredParameter) -> JsonSchema:
    match parameter:
        case Text():
            return {"type": "string", "maxLength": parameter.longest}
        case Choice():
            default = {"default": parameter.default} if parameter.default else {}
            return {"type": "string", "enum": list(parameter.words), **default}
        case Number():
            bounds = {
                "minimum": parameter.least,
                "maximum": parameter.most,
                "default": parameter.default,
            }
            return {"type": "integer", **bounds}
        case Seconds():
            return {"type": "number", "minimum": parameter.least, "maximum": parameter.most}
        case Flag():
            return {**_FLAG, "default": parameter.default}
        case NameList():
            item: JsonSchema = {"type": "string"}
            if parameter.longest:
                item["maxLength"] = parameter.longest
            # A text with commas in it is a list too.
            return {"type": ["array", "string"], "items": item, "maxItems": parameter.most}
        case Second() | Date():
            return dict(_TYPES["time"])
        case _:
            return dict(_TYPES[parameter.type])


def argument_schema(command: Command, argument: Argument) -> JsonSchema:
    if argument.type == "integer":
        least, most = limits(command, argument.name)
        schema: JsonSchema = {"type": "integer", "minimum": least, "maximum": most}
    else:
        schema = dict(_ARGUMENTS[argument.type])
    if not argument.required and argument.default not in (None, ""):
        schema["description"] = f"default: {argument.default}"
    return schema


def row_schema(columns: tuple[Column, ...]) -> JsonSchema:
    """The schema of a record with these columns, of which any may be missing."""
    return _record(
        {
            column.name: _labelled(
                column, dict(_OTHERWISE.get(column.name) or _VALUES[column.type])
            )
            for column in columns
        }
    )


def collection_schema(schema: TableSchema) -> JsonSchema:
    properties = {}
    for column, default in columns_of(schema):
        spec = schema.columns.get(column.name)
        kind = dict(_VALUES[column.type])
        if isinstance(spec, CoreColumn) and not schema.mixed:
            kind = {"type": _CORE[spec.core_type]}
        properties[column.name] = _labelled(column, kind) | (
            {} if default else {"x-on-request": True}
        )
    return _record(properties)


def _record(properties: JsonSchema) -> JsonSchema:
    return {"type": "object", "properties": dict(sorted(properties.items()))}


def _labelled(column: Column, schema: JsonSchema) -> JsonSchema:
    """The schema with what people and programs want to know of a column besides."""
    schema["description"] = column.description
    schema["x-type"] = column.type
    if column.unit:
        schema["x-unit"] = column.unit
    return schema
