"""Wrapped JSON (docs/spec/render.md, "Wrapped JSON"): the result and what is known of its columns.

``meta`` is ``{"columns": [{"name", "type", "config": {"unit"}}, …]}`` without the keys about
which nothing is known. When sites failed, ``meta.failed_sites`` lists them as
``{"peer_key", "peer_name", "reason", "timed_out"}``. ``meta.warnings`` is there when there are any.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from monrest.base.values import Column, Rows
from monrest.render.json import document_value, dumps, indented, rows_value
from monrest.render.namerules import by_name
from monrest.render.pieces import gathered
from monrest.render.table import document_names, row_names

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from monrest.base.values import Answer, ColumnType, Document


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
        # The interface has no word for dictionaries; they go by the one for anything else.
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


def columns_meta(
    names: Sequence[str], declared: Sequence[Column], first: Mapping[str, Any]
) -> list[dict[str, Any]]:
    """``meta.columns`` for ``names`` in their order."""
    known = {column.name: column for column in declared}
    return [column_meta(known.get(name) or Column(name), first) for name in names]


def _of_rows(answer: Rows) -> list[dict[str, Any]]:
    first: dict[str, Any] = {}
    for row in answer.rows[:1]:
        first = dict(answer.expand(row)) if answer.expand is not None else {}
        first.update(
            (column.name, value) for column, value in zip(answer.columns, row, strict=False)
        )
    return columns_meta(row_names(answer), (*answer.columns, *answer.further), first)


def _of_document(answer: Document) -> list[dict[str, Any]]:
    value = answer.value
    if isinstance(value, list) and value and isinstance(value[0], Mapping):
        value = value[0]
    first = value if isinstance(value, Mapping) else {}
    return columns_meta(document_names(answer), answer.columns, first)


def meta(answer: Rows | Document) -> dict[str, Any]:
    """Make the whole ``meta`` object; reads the first row, so call it before rows are let go."""
    columns = _of_rows(answer) if isinstance(answer, Rows) else _of_document(answer)
    warnings = {"warnings": list(answer.warnings)} if answer.warnings else {}
    return {"columns": columns, **_failures(answer), **warnings}


def _failures(answer: Answer) -> dict[str, Any]:
    if not answer.failed_sites:
        return {}
    return {
        "failed_sites": [
            {
                "peer_key": problem.site,
                "peer_name": problem.name,
                "reason": problem.reason,
                "timed_out": problem.timed_out,
            }
            for problem in answer.failed_sites
        ]
    }


def wrapped_json(answer: Rows | Document, *, pretty: bool) -> Iterator[bytes]:
    """Write the answer as wrapped JSON with a newline at the end."""

    def fragments() -> Iterator[bytes]:
        about = indented(dumps(meta(answer), pretty=pretty), 1 if pretty else 0)
        yield b'{\n  "data": ' if pretty else b'{"data":'
        if isinstance(answer, Rows):
            yield from rows_value(answer, pretty=pretty, level=1)
        else:
            yield from document_value(answer.value, pretty=pretty, level=1)
        yield (
            (b',\n  "meta": ' if pretty else b',"meta":') + about + (b"\n}\n" if pretty else b"}\n")
        )

    return gathered(fragments())
