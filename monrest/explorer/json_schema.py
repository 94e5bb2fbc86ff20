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
"""What our own records hold, by the type of a column."""

_OTHERWISE: Mapping[str, JsonSchema] = {
    "last_error": {"type": ["string", "number", "null"]},
    "last_job": {"type": ["string", "number", "null"]},
    "nodes": {"type": ["array", "object", "null"]},
    "nr": {"type": ["number", "string", "null"]},
    "params": {"type": ["object", "null"]},
    "permissions": {"type": ["array", "null"]},
}
"""What our own records hold under names whose label, which clients know, says something else."""

_CORE: Mapping[str, str] = {
    "string": "string", "int": "number", "float": "number", "time": "number", "list": "array",
    "dict": "object",
}  # fmt: skip
"""What rows of cores hold, by the core's type; nothing is missing in them."""

_ARGUMENTS: Mapping[str, JsonSchema] = {
    "boolean": dict(_FLAG),
    "timestamp": {"type": ["string", "integer"], "examples": ["now", "+1h"]},
    "duration": {"type": ["string", "number"], "examples": ["2h", 7200]},
    "timeperiod": {"type": "string"},
    "hostgroup": {"type": "string"},
    "string": {"type": "string"},
}


def parameter_schema(one: DeclaredParameter) -> JsonSchema:
    found = _bounds(one)
    limit = one.limit
    text = f"{one.description}. Limit: {limit}." if limit else one.description
    return found | {"description": text} | ({"x-limit": limit} if limit else {})


def _bounds(one: DeclaredParameter) -> JsonSchema:
    match one:
        case Text():
            return {"type": "string", "maxLength": one.longest}
        case Choice():
            default = {"default": one.default} if one.default else {}
            return {"type": "string", "enum": list(one.words), **default}
        case Number():
            bounds = {"minimum": one.least, "maximum": one.most, "default": one.default}
            return {"type": "integer", **bounds}
        case Seconds():
            return {"type": "number", "minimum": one.least, "maximum": one.most}
        case Flag():
            return {**_FLAG, "default": one.default}
        case NameList():
            item: JsonSchema = {"type": "string"}
            if one.longest:
                item["maxLength"] = one.longest
            # A text with commas in it is a list too.
            return {"type": ["array", "string"], "items": item, "maxItems": one.most}
        case Second() | Date():
            return dict(_TYPES["time"])
        case _:
            return dict(_TYPES[one.type])


def argument_schema(command: Command, one: Argument) -> JsonSchema:
    if one.type == "integer":
        least, most = limits(command, one.name)
        found: JsonSchema = {"type": "integer", "minimum": least, "maximum": most}
    else:
        found = dict(_ARGUMENTS[one.type])
    if not one.required and one.default not in (None, ""):
        found["description"] = f"default: {one.default}"
    return found


def row_schema(columns: tuple[Column, ...]) -> JsonSchema:
    """The schema of a record with these columns, of which any may be missing."""
    return _record(
        {
            one.name: _labelled(one, dict(_OTHERWISE.get(one.name) or _VALUES[one.type]))
            for one in columns
        }
    )


def collection_schema(schema: TableSchema) -> JsonSchema:
    found = {}
    for column, default in columns_of(schema):
        spec = schema.columns.get(column.name)
        kind = dict(_VALUES[column.type])
        if isinstance(spec, CoreColumn) and not schema.mixed:
            kind = {"type": _CORE[spec.core_type]}
        found[column.name] = _labelled(column, kind) | ({} if default else {"x-on-request": True})
    return _record(found)


def _record(properties: JsonSchema) -> JsonSchema:
    return {"type": "object", "properties": dict(sorted(properties.items()))}


def _labelled(column: Column, schema: JsonSchema) -> JsonSchema:
    """The schema with what people and programs want to know of a column besides."""
    schema["description"] = column.description
    schema["x-type"] = column.type
    if column.unit:
        schema["x-unit"] = column.unit
    return schema
