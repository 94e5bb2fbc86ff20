"""Values are of the types that are declared: in the API reference, and in the rows of the client."""

from __future__ import annotations

from typing import Any, get_args, get_origin, get_type_hints

import pytest
from harness.columns import OF_CORES

from monrest.client import Client
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
        return type(value) in (int, float)
    return type(value) is kind


def _tells(value: Any, kind: Any) -> bool:
    """Whether a value shows what a type is about."""
    if get_origin(kind) in (list, dict):
        return bool(value)
    return type(value) is float if kind is float else True


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
                if not (isinstance(value, _HELD[kind]) and _is(value, hints.get(name, Any))):
                    wrong.setdefault(name, (kind, hints.get(name), value))
    assert wrong == {}


SILENT = {
    "/hosts": {"depends_exec", "depends_exec_with_info", "modified_attributes_list"},
    "/services": {"modified_attributes_list"},
    "/contacts": {"modified_attributes_list"},
    "/timeperiods": {"exceptions_month_week_day"},
    "/logs": {"current_contact_modified_attributes_list"},
    "/sites": {"groups"},
}
"""Columns of which the demo has empty lists only."""
OF_OTHERS = ("host_", "service_", "current_host_", "current_service_")


@pytest.mark.parametrize("path", ROWS)
def test_the_types_of_rows_are_those_of_the_demo(served, path):
    """Each column has a value by which its type can be judged, but for the empty ones."""
    hints = get_type_hints(getattr(client_rows, ROWS[path]))
    own = sorted(name for name in hints if not name.startswith(OF_OTHERS))
    silent, wrong = set(own), {}
    with Client(served.address, key=served.key, user="admin") as client:
        for start in range(0, len(own), 60):
            for row in client.rows(path).columns(*own[start : start + 60]):
                silent -= {name for name, value in row.items() if _tells(value, hints[name])}
                wrong |= {name: one for name, one in row.items() if not _is(one, hints[name])}
    assert (silent, wrong) == (SILENT.get(path, set()), {})


def test_columns_of_objects_have_one_type_everywhere():
    known = {path: get_type_hints(getattr(client_rows, name)) for path, name in ROWS.items()}
    for path, hints in known.items():
        for start in OF_OTHERS:
            of = known["/hosts" if "host" in start else "/services"]
            for name in hints:
                if name.startswith(start) and name.removeprefix(start) in of:
                    assert hints[name] == of[name.removeprefix(start)], (path, name)
