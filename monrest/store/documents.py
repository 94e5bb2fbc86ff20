"""Records of JSON: what may be stored, and merging a patch into one, deep inside. Pure.

Rules: docs/spec/store.md, "Merging a patch".
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import orjson

from monrest.base.errors import BadRequest

_DEEPEST = 50
_MOST_DIGITS = 9


def merged(stored: dict[str, Any], patch: dict[str, Any]) -> dict[str, Any]:
    """``stored`` with ``patch`` merged into it; neither is changed.

    null deletes a key or a position, a list is changed position by position, an object patches a
    list by position. BadRequest for what is nested too deeply, and for a position that is none.
    """
    result = _merged(stored, patch, "", 0)
    assert isinstance(result, dict)
    return result


def _merged(stored: Any, patch: Any, where: str, depth: int) -> Any:
    if depth > _DEEPEST:
        raise BadRequest(
            "failed to merge", f"{where}: expected at most {_DEEPEST} levels of lists and objects"
        )
    if isinstance(patch, list) and isinstance(stored, list):
        return _lists(stored, patch, where, depth)
    if not isinstance(patch, dict):
        return patch
    result: dict[Any, Any] = {}
    if isinstance(stored, (dict, list)):
        result.update(stored if isinstance(stored, dict) else enumerate(stored))
    for name, value in patch.items():
        key = name if not isinstance(stored, list) else _position(name, where)
        if value is None:
            result.pop(key, None)
        else:
            place = f"{where}.{name}" if where else name
            result[key] = _merged(result.get(key), value, place, depth + 1)
    if isinstance(stored, list):
        return [result[at] for at in sorted(result) if result[at] is not None]
    return result


def _position(name: str, where: str) -> int:
    if name.isascii() and name.isdigit() and len(name) <= _MOST_DIGITS:
        return int(name)
    raise BadRequest("failed to merge", f"{where}: {name[:80]!r}: expected a position of the list")


def _lists(stored: list[Any], patch: list[Any], where: str, depth: int) -> list[Any]:
    result = list(stored)
    for at, value in enumerate(patch):
        if at >= len(result):
            result.append(value)
        elif isinstance(value, (dict, list)) and isinstance(result[at], (dict, list)):
            result[at] = _merged(result[at], value, f"{where}.{at}", depth + 1)
        else:
            result[at] = value
    return [value for value in result if value is not None]


def require_storable(record: Mapping[str, Any], longest: int) -> bytes:
    """Return a record as JSON; BadRequest for what JSON cannot hold, or more than so many bytes."""
    try:
        raw = orjson.dumps(record)
    except orjson.JSONEncodeError:
        raise BadRequest("invalid record", "expected texts, and numbers of 64 bits") from None
    if len(raw) > longest:
        raise BadRequest("record is too long", f"expected at most {longest} bytes as JSON")
    return raw
