"""Wrapped JSON (docs/spec/render.md, "Wrapped JSON"): the result and what is known of its columns.

``meta`` is ``{"columns": [{"name", "type", "config": {"unit"}}, …]}`` without the keys about
which nothing is known. When sites failed, ``meta.failed_sites`` lists them as
``{"peer_key", "peer_name", "reason", "timed_out"}``. ``meta.warnings`` is there when there are any.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from monrest.base.values import Column, ColumnType, Document, Rows
from monrest.render.json import answer_value, dumps, indented
from monrest.render.pieces import gathered
from monrest.render.table import document_names, row_names

_TIMES = frozenset(("mtime", "start", "end", "localtime", "ts", "time", "lmd_last_cache_update"))
_NO_TIMES = frozenset(("last_job", "last_error", "last_state", "last_hard_state"))
"""Names that begin like a time and are none."""
_SECONDS = frozenset(("duration", "response_time", "execution_time"))
_BYTES = frozenset(("bytes_received", "bytes_send", "index_size", "data_size"))


def by_name(name: str) -> tuple[ColumnType | None, str]:
    """Type and unit by the first rule that fits ``name``; ``(None, "")`` when none does.

    Rules: docs/spec/render.md, "Types by name". Those that are bound to one resource (availability
    times, recurring downtimes, sessions) are not here: those resources declare their columns.
    """
    if name == "percent" or name.endswith(("_perc", "_percent")):
        return "number", "%"
    if name.endswith(("_sum", "_avg", "_min", "_max")):
        if "_time_" in name:
            return "number", "s"
        return "number", "%" if "state_change" in name else ""
    if name in _TIMES:
        return "time", ""
    if name.startswith(("last_", "next_", "start_", "end_")) and name not in _NO_TIMES:
        return "time", ""
    if name.endswith(("_ts", "_till", "_last_update")):
        return "time", ""
    if name in _SECONDS or name.endswith(("_duration", "_seconds")):
        return "number", "s"
    if name in _BYTES:
        return "number", "bytes"
    return None, ""


def column_meta(column: Column, first: Mapping[str, Any]) -> dict[str, Any]:
    """Make the entry of ``meta.columns`` for ``column``; ``first`` is the expanded first row.

    What is declared counts first, then the unit of performance data (``first`` has the key
    ``<name>_unit``), then the rules by name, and at last what the value is.
    """
    kind: str | None
    if column.type or column.unit:
        kind, unit = column.type or "number", column.unit
    elif f"{column.name}_unit" in first:
        kind, unit = "number", str(first[f"{column.name}_unit"] or "")
    else:
        kind, unit = by_name(column.name)
        kind = kind or _TYPES.get(type(first.get(column.name)))
    entry: dict[str, Any] = {"name": column.name}
    if kind:
        # The interface has no word for dictionaries.
        entry["type"] = "string" if kind == "object" else kind
    if unit:
        entry["config"] = {"unit": "bytes" if unit == "B" else unit}
    return entry


_TYPES: Mapping[type, ColumnType] = {
    str: "string",
    int: "number",
    float: "number",
    bool: "boolean",
    list: "array_of_strings",
    dict: "object",
}


def meta(answer: Rows | Document) -> dict[str, Any]:
    """Make the whole ``meta`` object; reads the first row, so call it before rows are released."""
    first: Mapping[str, Any] = {}
    if isinstance(answer, Rows):
        names, declared = row_names(answer), (*answer.columns, *answer.further)
        columns = [column.name for column in answer.columns]
        for row in answer.rows[:1]:
            further = answer.expand(row) if answer.expand is not None else {}
            first = {**further, **dict(zip(columns, row, strict=False))}
    else:
        names, declared = document_names(answer), answer.columns
        value = answer.value
        if isinstance(value, list) and value:
            value = value[0]
        if isinstance(value, Mapping):
            first = value
    declared_by_name = {column.name: column for column in declared}
    document: dict[str, Any] = {
        "columns": [
            column_meta(declared_by_name.get(name) or Column(name), first) for name in names
        ]
    }
    if answer.failed_sites:
        document["failed_sites"] = [
            {
                "peer_key": problem.site,
                "peer_name": problem.name,
                "reason": problem.reason,
                "timed_out": problem.timed_out,
            }
            for problem in answer.failed_sites
        ]
    if answer.warnings:
        document["warnings"] = list(answer.warnings)
    return document


def wrapped_json(answer: Rows | Document, *, pretty: bool) -> Iterator[bytes]:
    """Write the answer as wrapped JSON with a newline at the end."""

    def fragments() -> Iterator[bytes]:
        about = indented(dumps(meta(answer), pretty=pretty), 1 if pretty else 0)
        yield b'{\n  "data": ' if pretty else b'{"data":'
        yield from answer_value(answer, pretty=pretty, level=1)
        yield (
            (b',\n  "meta": ' if pretty else b',"meta":') + about + (b"\n}\n" if pretty else b"}\n")
        )

    return gathered(fragments())
