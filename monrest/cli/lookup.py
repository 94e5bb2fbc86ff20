"""Names in decoded JSON: nested look-up and the sum over several results.

Rules: docs/spec/cli.md, "Output templates".
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, Final

_SEPARATOR = re.compile(r"\.|::")
_LONGEST_INDEX = 9


class Missing:
    """The type of ``MISSING``, which no JSON value equals."""


MISSING: Final = Missing()


def look_up(value: Any, path: str) -> Any:
    """The value at ``path`` (``a.b.0.c`` or ``a::b::0::c``), or MISSING.

    A key that contains a separator itself is found before it is taken apart.
    """
    if isinstance(value, dict):
        if path in value:
            return value[path]
        for separator in _SEPARATOR.finditer(path):
            head = path[: separator.start()]
            if head in value:
                inner = look_up(value[head], path[separator.end() :])
                if inner is not MISSING:
                    return inner
        return MISSING
    if isinstance(value, list):
        found_one = _SEPARATOR.search(path)
        head = path[: found_one.start()] if found_one else path
        if not (head.isascii() and head.isdigit() and len(head) <= _LONGEST_INDEX):
            return MISSING
        if int(head) >= len(value):
            return MISSING
        item = value[int(head)]
        return look_up(item, path[found_one.end() :]) if found_one else item
    return MISSING


def is_number(value: Any) -> bool:
    """Whether a JSON value counts: numbers, and booleans as 1 and 0."""
    return isinstance(value, (int, float))


def summed(results: Iterable[Any]) -> dict[str, Any]:
    """Add up all results that are objects.

    Numbers of a key are added, objects below it as well; of anything else the first value that
    is not null stays.
    """
    total: dict[str, Any] = {}
    for result in results:
        if isinstance(result, dict):
            total = _merged(total, result)
    return total


def _merged(total: Mapping[str, Any], more: Mapping[str, Any]) -> dict[str, Any]:
    merged = dict(total)
    for key, value in more.items():
        merged[key] = _added(merged[key], value) if key in merged else value
    return merged


def _added(first: Any, second: Any) -> Any:
    if is_number(first) and is_number(second):
        return first + second
    if isinstance(first, dict) and isinstance(second, dict):
        return _merged(first, second)
    return second if first is None else first
