"""Merging a patch into what is stored, deep inside (docs/spec/store.md, "Merging a patch").

Pure: business processes, broadcasts, recurring downtimes and reports are patched in this way.
"""

from __future__ import annotations

from typing import Any

from monrest.base.errors import BadRequest

_DEEPEST = 50


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
    if isinstance(patch, dict) and isinstance(stored, dict):
        return _objects(stored, patch, where, depth)
    if isinstance(patch, dict) and isinstance(stored, list):
        return _positions(stored, patch, where, depth)
    if isinstance(patch, list) and isinstance(stored, list):
        return _lists(stored, patch, where, depth)
    return _added(patch, where, depth)


def _added(patch: Any, where: str, depth: int) -> Any:
    """What was not there before: an object comes without its nulls."""
    if isinstance(patch, dict):
        return _objects({}, patch, where, depth)
    return patch


def _objects(
    stored: dict[str, Any], patch: dict[str, Any], where: str, depth: int
) -> dict[str, Any]:
    result = dict(stored)
    for key, value in patch.items():
        place = f"{where}.{key}" if where else key
        if value is None:
            result.pop(key, None)
        elif key in result:
            result[key] = _merged(result[key], value, place, depth + 1)
        else:
            result[key] = _added_below(value, place, depth)
    return result


def _added_below(value: Any, where: str, depth: int) -> Any:
    if depth >= _DEEPEST:
        return _merged(None, value, where, depth + 1)
    return _added(value, where, depth + 1)


def _positions(stored: list[Any], patch: dict[str, Any], where: str, depth: int) -> list[Any]:
    result = dict(enumerate(stored))
    for key, value in patch.items():
        if not (key.isascii() and key.isdigit() and len(key) <= _MOST_DIGITS):
            raise BadRequest(
                "failed to merge", f"{where}: {key[:80]!r}: expected a position of the list"
            )
        at, place = int(key), f"{where}.{key}"
        if value is None:
            result.pop(at, None)
        elif at in result:
            result[at] = _merged(result[at], value, place, depth + 1)
        else:
            result[at] = _added_below(value, place, depth)
    return [result[at] for at in sorted(result) if result[at] is not None]


_MOST_DIGITS = 9


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
