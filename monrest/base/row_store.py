"""Rows that wait for their answer in a spool, where they would not fit into memory."""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable, Generator, Iterator
from functools import partial
from typing import Any

import orjson
from attrs import define, field

from monrest.base.errors import Unavailable
from monrest.base.spool import Chunk, Spool, Spools
from monrest.base.values import Row

_BATCH = 200
"""Rows that are read together, of each run that is merged."""

_LEVEL = 1
_BY_HAND = b" "


@define(eq=False)
class RowStore:
    """Rows of one site; up to ``most`` of them stay in memory as they are.

    ``keep`` yields calls that are to run in a thread. It raises Unavailable when there is no room.
    """

    spools: Spools
    most: int
    _held: list[StoredRows] = field(init=False, factory=list)
    _rows: int = field(init=False, default=0)
    _spool: Spool | None = field(init=False, default=None)

    def keep(
        self, rows: list[Row]
    ) -> Generator[Callable[[], list[bytes]], list[bytes], StoredRows]:
        """Give the same rows again later."""
        run = StoredRows(rows)
        self._held.append(run)
        self._rows += len(rows)
        if self._rows > self.most:
            held, self._held, self._rows = self._held, [], 0
            for one in held:
                packed = yield partial(_packed, one.rows or [])
                self._put(one, packed)
        return run

    def _put(self, run: StoredRows, packed: list[bytes]) -> None:
        if self.spools.crowded:
            raise Unavailable(
                "no room for the answer", "the disk takes no large answers, ask for fewer lines"
            )
        if self._spool is None:
            self._spool = Spool(self.spools)
        run.chunks = [self._spool.add(data) for data in packed]
        run.spool, run.rows = self._spool, None


@define(eq=False)
class StoredRows:
    """A run of rows, which may be gone through more than once."""

    rows: list[Row] | None
    chunks: list[Chunk] = field(init=False, factory=list)
    spool: Spool | None = field(init=False, default=None)

    def __iter__(self) -> Iterator[Row]:
        if self.rows is not None:
            return iter(self.rows)
        return (row for chunk in self.chunks for row in self._read(chunk))

    def _read(self, chunk: Chunk) -> list[Row]:
        assert self.spool is not None
        data = zlib.decompress(self.spool.read(chunk))
        rows: list[Any] = json.loads(data) if data.startswith(_BY_HAND) else orjson.loads(data)
        return rows


def _packed(rows: list[Row]) -> list[bytes]:
    return [
        zlib.compress(_written(rows[start : start + _BATCH]), _LEVEL)
        for start in range(0, len(rows), _BATCH)
    ]


def _written(rows: list[Row]) -> bytes:
    try:
        return orjson.dumps(rows)
    except TypeError:
        # A number of more than 64 bits, or half of a surrogate pair.
        return _BY_HAND + json.dumps(rows).encode()
