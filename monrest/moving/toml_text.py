"""A configuration as the text of a file. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

_BARE = re.compile(r"[A-Za-z0-9_-]+\Z")


def toml_text(document: Mapping[str, Any], comments: list[str]) -> str:
    """The tables of ``document`` in their order, lists of tables at the end of all."""
    lines = [
        "# Made by `monrest import`. `monrest config example` shows every key with its meaning."
    ]
    simple = {name: table for name, table in document.items() if isinstance(table, Mapping)}
    for name, table in simple.items():
        lines += _table(name, table)
    for name, tables in document.items():
        if name not in simple:
            for table in tables:
                lines += _entry(name, table)
    return "\n".join([*lines, *comments]) + "\n"


def _table(path: str, table: Mapping[str, Any]) -> Iterator[str]:
    inner = {key: value for key, value in table.items() if isinstance(value, Mapping)}
    yield ""
    yield f"[{path}]"
    for key, value in table.items():
        if key not in inner:
            yield f"{_key(key)} = {_value(value)}"
    for key, value in inner.items():
        yield from _table(f"{path}.{_key(key)}", value)


def _entry(path: str, table: Mapping[str, Any]) -> Iterator[str]:
    yield ""
    yield f"[[{path}]]"
    later = []
    for key, value in table.items():
        if isinstance(value, Mapping):
            later += list(_table(f"{path}.{_key(key)}", value))
        elif isinstance(value, list) and value and isinstance(value[0], Mapping):
            later += [line for one in value for line in _entry(f"{path}.{_key(key)}", one)]
        else:
            yield f"{_key(key)} = {_value(value)}"
    yield from later


def _key(text: str) -> str:
    return text if _BARE.match(text) else _text(text)


def _value(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (int, float)):
        return str(value)
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(_value(one) for one in value)}]"
    return _text(str(value))


def _text(text: str) -> str:
    # JSON escapes what TOML does, but for one character.
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
