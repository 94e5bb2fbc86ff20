"""Values are of the types that are declared: in the API reference, and in the rows of the client."""

from __future__ import annotations

from typing import Any, get_args, get_origin, get_type_hints

import pytest
from harness.columns import OF_CORES

from monrest.client import rows as client_rows
from monrest.daemon.client_rows import ROWS
from monrest.daemon.families import ENDPOINTS

_HELD = {
    "string": str,
    "number": (int, float),
    "boolean": int,
    "time": (int, float),
    "array_of_strings": list,
    "object": dict,
}


def _is(value: Any, kind: Any) -> bool:
    """Whether a value is what a type of the client's rows says."""
    if kind is Any:
        return True
    if get_origin(kind) is list:
        return isinstance(value, list) and all(_is(one, get_args(kind)[0]) for one in value)
    if get_origin(kind) is dict:
        _, of = get_args(kind)
        return isinstance(value, dict) and all(_is(one, of) for one in value.values())
    if kind is float:
        return isinstance(value, (int, float))
    return type(value) is kind


def _declared(path):
    (endpoint,) = [one for one in ENDPOINTS if one.path == path and "GET" in one.methods]
    if endpoint.schema is None:
        return {one.name: one.type for one in endpoint.columns}
    return {name: one.column.type for name, one in endpoint.schema.columns.items()}


@pytest.mark.parametrize("path", [*OF_CORES, "/sites"])
def test_every_value_is_of_its_declared_type(client, path):
    declared = _declared(path)
    hints = get_type_hints(getattr(client_rows, ROWS[path])) if path in ROWS else {}
    assert not hints or set(hints) == set(declared)
    wrong = {}
    names = sorted(declared)
    for start in range(0, len(names), 60):
        some = names[start : start + 60]
        for row in client.rows(path, {"columns": ",".join(some), "limit": "500"}):
            for name in some:
                value, kind = row[name], declared[name]
                good = value is None or (
                    isinstance(value, _HELD[kind]) and _is(value, hints.get(name, Any))
                )
                if not good:
                    wrong.setdefault(name, (kind, hints.get(name), value))
    assert wrong == {}
