"""Rows of an answer that was asked for before: only the lines that are new are parsed.

Whoever reads the same big table every minute gets mostly what is known already. A Naemon writes
each row in a line of its own, so that equal lines are equal rows; they
are given as the very same objects, which tells the reader at no cost that nothing has changed.
"""

from __future__ import annotations

from itertools import compress
from operator import ne

import orjson
from attrs import define, field

from monrest.base.values import Row
from monrest.livestatus.framing import PackedRows, RowParser, Transform, checked

_BETWEEN = b"],\n["


@define(eq=False)
class Recall:
    """The last answer to one request, with the lines that its rows were made of.

    Its rows are for one reader, who must not change what they mean.
    """

    lines: list[bytes] = field(factory=list)
    rows: list[Row] = field(factory=list)
    _of: tuple[bytes, Transform | None] = field(default=(b"", None), init=False)

    def use(self, request: bytes, transform: Transform | None) -> None:
        """Forget what is the answer to another request, or was made into other rows."""
        if self._of != (request, transform):
            self._of = (request, transform)
            self.forget()

    def forget(self) -> None:
        """Let everything go."""
        self.lines, self.rows = [], []


class RecallParser(RowParser):
    """Rows of one body as ``RowParser`` has them, with those of the answer before where equal."""

    def __init__(
        self,
        width: int | None,
        transform: Transform | None,
        recall: Recall,
        packed: PackedRows | None = None,
    ) -> None:
        super().__init__(width, transform, packed)
        self._recall = recall
        self._lines: list[bytes] = []
        self._usual = False
        """Whether the rest is read as any other body, since it is not one row a line."""

    def expect(self, length: int) -> None:
        """See ``RowParser``; an answer for which there is no room is read as any other one."""
        if self._packed is not None:
            self._packed.begin(length, self._transform)
            self._usual = self._packed.packs

    def finish(self) -> list[Row]:
        """All rows, after the last byte of the body; they are what is known from now on."""
        rest = bytes(self._buffer.rstrip())
        whole = rest.startswith(b"[[") and rest.endswith(b"]]")
        if not self._usual and whole and self._take(rest[2:-2]):
            self._look()
            self._buffer = bytearray(b"[]")
        else:
            self._usual = True
        rows = super().finish()
        if self._usual or self._damaged:
            self._recall.forget()
        else:
            self._recall.lines, self._recall.rows = self._lines, rows
        return rows

    def _slice(self, end: int) -> bool:
        buffer = self._buffer
        lines = not self._usual and buffer.startswith(b"[[") and buffer.startswith(_BETWEEN, end)
        if not lines or not self._take(bytes(buffer[2:end])):
            self._usual = True
            return super()._slice(end)
        self._look()
        buffer[end + 2] = ord("[")
        del buffer[: end + 2]
        return True

    def _take(self, text: bytes) -> bool:
        """Add rows without the brackets around them; False and nothing done if it is not lines."""
        lines = text.split(_BETWEEN)
        part = slice(len(self._lines), len(self._lines) + len(lines))
        known, rows = self._recall.lines[part], self._recall.rows[part]
        new = [*compress(range(len(known)), map(ne, lines, known)), *range(len(known), len(lines))]
        if new:
            try:
                found = orjson.loads(b"[[%b]]" % b"],[".join([lines[at] for at in new]))
            except orjson.JSONDecodeError:
                return False
            if len(found) != len(new):
                return False
            rows += [[]] * (len(lines) - len(known))
            for at, row in zip(new, checked(found, self._width, self._transform), strict=True):
                rows[at] = row
        self._lines += lines
        self._rows += rows
        return True
