"""Reading lists of objects in batches, so that no single call keeps the interpreter.

A list as monrest writes it is cut in front of objects that begin with the same key as the first
one; inside of a text the quote would be escaped, so the cut is between two objects.
"""

from __future__ import annotations

import re
from typing import Any

import orjson

from monrest.base.concurrency import Threads
from monrest.livestatus.core_errors import ProtocolError

Record = dict[str, Any]

_BATCH = 128 * 1024
_LARGEST = 1 << 20
"""Bytes that are parsed in one go."""
_LARGEST_OBJECT = 16 << 20
_FIRST_KEY = re.compile(rb'\[(\{"[^"\\]*":)')


class RecordReader:
    """Reads a list while it arrives; a single object counts as a list of one.

    Raise ProtocolError for anything else.
    """

    def __init__(self) -> None:
        self._records: list[Record] = []
        self._buffer = bytearray()
        self._separator = b""
        self._threshold = _BATCH
        self._looked = _BATCH

    def feed(self, data: bytes) -> None:
        """Take the next bytes of the body."""
        self._buffer += data
        while len(self._buffer) > self._threshold and self._cut():
            pass

    def taken(self) -> list[Record]:
        """The objects that are whole, each once."""
        whole, self._records = self._records, []
        return whole

    def finish(self) -> list[Record]:
        """The objects that were not taken, after the last byte."""
        self._read(bytes(self._buffer))
        self._buffer = bytearray()
        return self.taken()

    def _cut(self) -> bool:
        buffer = self._buffer
        if not self._separator:
            match = _FIRST_KEY.match(buffer)
            if match is None:
                if len(buffer) > _LARGEST:
                    raise ProtocolError("a long answer that is no list of objects")
                return False
            self._separator = b"}," + match[1]
        end = buffer.find(self._separator, self._looked)
        if end < 0:
            if len(buffer) > _LARGEST_OBJECT:
                raise ProtocolError("an object of more than 16 MiB")
            self._looked = len(buffer) - len(self._separator)
            self._threshold = len(buffer) + _BATCH
            return False
        self._read(bytes(buffer[: end + 1]) + b"]")
        # The comma between two objects makes room for the bracket that opens the next piece.
        buffer[end + 1] = ord("[")
        del buffer[: end + 1]
        self._threshold = self._looked = _BATCH
        return True

    def _read(self, piece: bytes) -> None:
        value = _load(piece)
        if isinstance(value, dict):
            value = [value]
        if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
            raise ProtocolError("the answer is no list of objects")
        self._records += value


async def records(body: bytes, threads: Threads) -> list[Record]:
    """The objects of a list that is there as a whole, read in a thread when it is large.

    Raise ProtocolError.
    """

    def read() -> list[Record]:
        reader = RecordReader()
        for start in range(0, len(body), _BATCH):
            reader.feed(body[start : start + _BATCH])
        return reader.finish()

    return read() if len(body) <= _BATCH else await threads.run(read)


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
