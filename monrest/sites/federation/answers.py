"""Reading lists of objects in slices, so that no answer holds up the reactor.

A list as monrest writes it is cut in front of objects that begin with the same key as the first
one; inside of a text the quote would be escaped, so the cut is between two objects.
"""

from __future__ import annotations

import re
from collections.abc import Generator
from typing import Any

import orjson

from monrest.livestatus.errors import ProtocolError

Record = dict[str, Any]

_SLICE = 128 * 1024
_LARGEST = 1 << 20
"""Bytes that are parsed in one go."""
_FIRST_KEY = re.compile(rb'\[(\{"[^"\\]*":)')


def records(body: bytes) -> Generator[None, None, list[Record]]:
    """The objects of a list; a single object counts as a list of one.

    Raise ProtocolError for anything else.
    """
    found: list[Record] = []
    for piece in _pieces(body):
        value = _load(piece)
        if isinstance(value, dict):
            value = [value]
        if not isinstance(value, list) or not all(isinstance(one, dict) for one in value):
            raise ProtocolError("the answer is no list of objects")
        found += value
        yield
    return found


def document(body: bytes) -> Any:
    """Any JSON that is small; ProtocolError for the rest."""
    if len(body) > _LARGEST:
        raise ProtocolError(f"an answer of {len(body)} bytes where a short one belongs")
    return _load(body)


def _load(piece: bytes) -> Any:
    try:
        return orjson.loads(bytes(piece))  # it takes no PartialBody
    except orjson.JSONDecodeError:
        raise ProtocolError("the answer is not valid JSON") from None


def _pieces(body: bytes) -> Generator[bytes]:
    if len(body) <= _SLICE:
        yield body
        return
    match = _FIRST_KEY.match(body)
    start = 1
    while match is not None and len(body) - start > _SLICE:
        cut = body.find(b"}," + match[1], start + _SLICE)
        if cut < 0:
            break
        yield b"[" + body[start : cut + 1] + b"]"
        start = cut + 2
    if len(body) - start > _LARGEST:
        raise ProtocolError("a long answer that is no list of objects")
    yield body if start == 1 else b"[" + body[start:]
