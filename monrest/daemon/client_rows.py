"""The types of rows for programs: ``monrest/client/rows.py``, from the declared columns.

``python -m monrest.daemon.client_rows > monrest/client/rows.py``
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from keyword import iskeyword

from monrest.daemon.families import ENDPOINTS
from monrest.query.column_names import CoreColumn, DerivedColumn

_HEAD = '''"""What rows have: generated from the declared columns, which the API reference explains.

A row has those columns that were selected; without a selection the default ones. One that a core
does not have is None there, whatever its type says, which concerns few columns of old cores.
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

_TYPES = {
    "string": "str",
    "number": "float",
    "boolean": "int",
    "time": "float",
    "array_of_strings": "list[str]",
    "object": "dict[str, Any]",
}
_ELEMENTS = {"text": "str", "number": "int", "record": "list[Any]"}


def module() -> str:
    return "\n".join(_lines()) + "\n"


def _lines() -> Iterator[str]:
    yield _HEAD.rstrip("\n")
    known = {path: _columns(path) for path in ROWS}
    # Comments have all columns of their host and service.
    shared = {
        start: {key: one for key, one in known["/comments"].items() if key.startswith(start)}
        for start in _OF_OBJECTS
    }
    for start, name in _OF_OBJECTS.items():
        yield from _class(name, (), f"What rows tell of their {start[:-1]}.", shared[start])
    for path, name in ROWS.items():
        columns = known[path]
        starts = [one for one in _OF_OBJECTS if shared[one].items() <= columns.items()]
        own = {key: one for key, one in columns.items() if not key.startswith(tuple(starts))}
        bases = [_OF_OBJECTS[one] for one in starts]
        yield from _class(name, bases, f"A row of ``{path}``.", own)


def _columns(path: str) -> dict[str, str]:
    """The columns of a collection with the types of their values."""
    endpoint = next(one for one in ENDPOINTS if one.path == path and "GET" in one.methods)
    if endpoint.schema is not None:
        return {key: _type(one) for key, one in endpoint.schema.columns.items()}
    return {one.name: _TYPES.get(one.type, "Any") for one in endpoint.columns}


def _class(name: str, bases: Sequence[str], text: str, columns: Mapping[str, str]) -> Iterator[str]:
    # A keyword of Python is no name in a class.
    functional = any(map(iskeyword, columns))
    if functional:
        yield f'\n\n{name} = TypedDict(\n    "{name}",\n    {{'
    else:
        of = ", ".join(bases or ("TypedDict",))
        yield f'\n\nclass {name}({of}, total=False):\n    """{text}"""\n'
    for column, kind in sorted(columns.items()):
        yield f'        "{column}": {kind},' if functional else f"    {column}: {kind}"
    if functional:
        yield f'    }},\n    total=False,\n)\n"""{text}"""'


def _type(column: CoreColumn | DerivedColumn) -> str:
    if isinstance(column, CoreColumn) and column.core_type == "int":
        return "int"
    if isinstance(column, CoreColumn) and column.core_type == "list":
        return f"list[{_ELEMENTS[column.elements]}]"
    return _TYPES.get(column.column.type, "Any")


if __name__ == "__main__":
    sys.stdout.write(module())
