"""The types of rows for programs: ``monrest/client/rows.py``, from the declared columns.

``python -m monrest.daemon.client_rows > monrest/client/rows.py``
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from keyword import iskeyword

from monrest.daemon.families import ENDPOINTS
from monrest.query.column_names import CoreColumn, DerivedColumn

_HEAD = '''"""Types of rows, generated from the declared columns, which the API reference explains.

A row has the selected columns, without a selection the default ones. A column that a core does not
have is empty: 0, "" or an empty list.
"""

from __future__ import annotations

from typing import Any, TypedDict
'''
ROWS = {
    "/hosts": "HostRow",
    "/services": "ServiceRow",
    "/hostgroups": "HostgroupRow",
    "/servicegroups": "ServicegroupRow",
    "/contacts": "ContactRow",
    "/contactgroups": "ContactgroupRow",
    "/timeperiods": "TimeperiodRow",
    "/commands": "CheckCommandRow",
    "/comments": "CommentRow",
    "/downtimes": "DowntimeRow",
    "/logs": "LogRow",
    "/processinfo": "ProcessRow",
    "/sites": "SiteRow",
}
"""Collections with the name of their rows."""

_OF_OBJECTS = {"host_": "HostColumns", "service_": "ServiceColumns"}
"""Beginnings of columns that several collections have, with the name of all such columns."""

_SHARED = {"CheckedRow": ("/hosts", "/services"), "GroupRow": ("/hostgroups", "/servicegroups")}
"""Names for what rows of two collections have in common."""

_TYPES = {
    "string": "str",
    "number": "int",
    "int": "int",
    "float": "float",
    "boolean": "int",
    "time": "int",
    "array_of_strings": "list[str]",
    "object": "dict[str, Any]",
    "dict": "dict[str, str]",
}
"""Types of the API reference, and those of cores."""

_ELEMENTS = {"text": "str", "number": "int", "record": "list[Any]", "object": "dict[str, Any]"}


_FRACTIONS = "last_update"
"""Of times, which are whole numbers, only this one has decimals, on a Naemon."""


def module() -> str:
    return "\n".join(_lines()) + "\n"


def _lines() -> Iterator[str]:
    yield _HEAD.rstrip("\n")
    columns = {path: _columns(path) for path in ROWS}
    bases: dict[str, list[str]] = {path: [] for path in ROWS}
    # Comments have all columns of their host and service.
    for start, name in _OF_OBJECTS.items():
        shared = {key: hint for key, hint in columns["/comments"].items() if key.startswith(start)}
        yield from _class(
            name, [], f"The columns of a {start[:-1]} in rows of other collections.", shared
        )
        _inherit(name, shared, [path for path in ROWS if shared.items() <= columns[path].items()],
              columns, bases)  # fmt: skip
    for name, (table, other) in _SHARED.items():
        shared = dict(columns[table].items() & columns[other].items())
        yield from _class(name, [], f"The common columns of ``{table}`` and ``{other}``.", shared)
        _inherit(name, shared, [table, other], columns, bases)
    for path, name in ROWS.items():
        yield from _class(name, bases[path], f"A row of ``{path}``.", columns[path])


def _inherit(
    name: str,
    shared: Mapping[str, str],
    paths: Sequence[str],
    columns: dict[str, dict[str, str]],
    bases: dict[str, list[str]],
) -> None:
    """Move the ``shared`` columns of ``paths`` into the base class ``name``."""
    for path in paths:
        columns[path] = {key: hint for key, hint in columns[path].items() if key not in shared}
        bases[path].append(name)


def _columns(path: str) -> dict[str, str]:
    """The columns of a collection with the types of their values."""
    endpoint = next(
        endpoint for endpoint in ENDPOINTS if endpoint.path == path and "GET" in endpoint.methods
    )
    if endpoint.schema is not None:
        return {key: _type(column) for key, column in endpoint.schema.columns.items()}
    return {column.name: _TYPES[column.type] for column in endpoint.columns}


def _class(name: str, bases: Sequence[str], text: str, columns: Mapping[str, str]) -> Iterator[str]:
    # A keyword of Python is no name in a class.
    odd = {key: column for key, column in columns.items() if iskeyword(key)}
    if odd:
        bases = [*bases, f"{name}Keywords"]
        pairs = ", ".join(f'"{key}": {hint}' for key, hint in odd.items())
        yield f'\n\n{bases[-1]} = TypedDict("{bases[-1]}", {{{pairs}}}, total=False)'
    yield f"\n\nclass {name}({', '.join(bases or ['TypedDict'])}, total=False):"
    yield f'    """{text}"""\n'
    for column, kind in sorted(columns.items()):
        if column not in odd:
            yield f"    {column}: {kind}"


def _type(column: CoreColumn | DerivedColumn) -> str:
    if isinstance(column, DerivedColumn):
        return _TYPES[column.column.type]
    if column.core_type == "time" and column.name.endswith(_FRACTIONS):
        return "float"
    if column.core_type == "list":
        return f"list[{_ELEMENTS[column.elements]}]"
    return _TYPES[column.core_type]


if __name__ == "__main__":
    sys.stdout.write(module())
