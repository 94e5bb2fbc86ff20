"""The merge that PATCH means on front-end records (frontend-data.md, section 1.3); pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from monrest.errors import BadRequest

_MOST_POSITIONS = 10_000
_DEEPEST = 50


def merged(stored: Any, patch: Any) -> Any:
    """``stored`` with ``patch`` merged into it; neither of them is changed.

    An object merges key by key, null deletes. A list merges position by position, with a list or
    with an object whose keys are positions; null removes, and holes are closed afterwards.
    Whatever else replaces. Raises BadRequest for a key that is no position of a list.
    """
    return _merged(stored, patch, 0)


def _merged(stored: Any, patch: Any, depth: int) -> Any:
    if depth > _DEEPEST:
        raise BadRequest("invalid value", f"expected at most {_DEEPEST} nested values")
    if isinstance(stored, Mapping) and isinstance(patch, Mapping):
        return _objects(stored, patch, depth)
    if isinstance(stored, list) and isinstance(patch, Mapping):
        return _positions(stored, patch, depth)
    if isinstance(stored, list) and isinstance(patch, list):
        return _lists(stored, patch, depth)
    return without_nulls(patch)


def _objects(stored: Mapping[str, Any], patch: Mapping[str, Any], depth: int) -> dict[str, Any]:
    result = dict(stored)
    for name, value in patch.items():
        if value is None:
            result.pop(name, None)
        elif name in result:
            result[name] = _merged(result[name], value, depth + 1)
        else:
            result[name] = without_nulls(value)
    return result


def _positions(stored: Sequence[Any], patch: Mapping[str, Any], depth: int) -> list[Any]:
    result = list(stored)
    for name, value in patch.items():
        at = _position(name)
        if at >= len(result):
            result += [None] * (at + 1 - len(result))
        if value is None or result[at] is None:
            result[at] = without_nulls(value)
        else:
            result[at] = _merged(result[at], value, depth + 1)
    return [one for one in result if one is not None]


def _position(name: str) -> int:
    if name.isascii() and name.isdigit() and int(name[:9]) < _MOST_POSITIONS and len(name) < 9:
        return int(name)
    raise BadRequest(
        "invalid position in a list",
        f"{name[:80]!r}: expected a number from 0 to {_MOST_POSITIONS - 1}",
    )


def _lists(stored: Sequence[Any], patch: Sequence[Any], depth: int) -> list[Any]:
    result = list(stored)
    for at, value in enumerate(patch):
        if at >= len(result):
            result.append(without_nulls(value))
        elif isinstance(result[at], (list, Mapping)) and isinstance(value, (list, Mapping)):
            result[at] = _merged(result[at], value, depth + 1)
        else:
            result[at] = without_nulls(value)
    return [one for one in result if one is not None]


def without_nulls(value: Any) -> Any:
    """Give what is new to a record as it is stored: an object without its null members."""
    if isinstance(value, Mapping):
        return {name: without_nulls(one) for name, one in value.items() if one is not None}
    return value
