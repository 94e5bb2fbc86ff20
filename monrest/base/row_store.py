"""Rows that wait for their answer in a file, where they would not fit into memory."""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterator
from typing import Any

import orjson
from attrs import define, field

from monrest.base.answer_file import AnswerFile, AnswerFiles
from monrest.base.values import Row

_BATCH = 200
"""Rows that are read together, of each run that is merged."""

_LEVEL = 1
_BY_HAND = b" "


@define(eq=False)
class RowStore:
    """Rows of one site; up to ``most`` of them stay in memory as they are.

    The file is one of ``files``, and gone with the rows.
    """

    files: AnswerFiles
    most: int
    _held: list[StoredRows] = field(init=False, factory=list)
    _rows: int = field(init=False, default=0)
    _file: AnswerFile | None = field(init=False, default=None)

    def keep(self, rows: list[Row]) -> StoredRows:
        """Give the same rows again later; raises Unavailable when the disk is full."""
        run = StoredRows(rows)
        self._held.append(run)
        self._rows += len(rows)
        if self._rows > self.most:
            for one in self._held:
                self._write(one)
            self._held, self._rows = [], 0
        return run

    def _write(self, run: StoredRows) -> None:
        if self._file is None:
            self._file = self.files.begun()
        rows = run.rows or []
        for start in range(0, len(rows), _BATCH):
            data = zlib.compress(_written(rows[start : start + _BATCH]), _LEVEL)
            run.places.append((self._file.write(data), len(data)))
        run.file, run.rows = self._file, None


@define(eq=False)
class StoredRows:
    """A run of rows, which may be gone through more than once."""

    rows: list[Row] | None
    places: list[tuple[int, int]] = field(init=False, factory=list)
    file: AnswerFile | None = field(init=False, default=None)

    def __iter__(self) -> Iterator[Row]:
        if self.rows is not None:
            return iter(self.rows)
        return (row for at, size in self.places for row in self._read(at, size))

    def _read(self, at: int, size: int) -> list[Row]:
        assert self.file is not None
        data = zlib.decompress(self.file.read(at, size))
        rows: list[Any] = json.loads(data) if data.startswith(_BY_HAND) else orjson.loads(data)
        return rows


def _written(rows: list[Row]) -> bytes:
    try:
        return orjson.dumps(rows)
    except TypeError:
        # A number of more than 64 bits, or half of a surrogate pair.
        return _BY_HAND + json.dumps(rows).encode()
