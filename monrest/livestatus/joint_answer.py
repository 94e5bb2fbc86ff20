"""Answers of an LMD: rows of many sites in one, and which of them failed.

The body is an object: its rows, then the failed sites with their reasons (docs/spec/lmd.md,
"Requests").
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from monrest.base.values import Row
from monrest.livestatus.core_errors import ProtocolError, first_line
from monrest.livestatus.framing import RowParser, checked, parse_object

_BEFORE = b'{"data":'


class WrappedRows(list[Row]):
    """Rows, with the sites that ``failed`` and why."""

    failed: Mapping[str, str] = {}


class WrappedParser(RowParser):
    """Rows of one body, given to ``take`` while they arrive; ``begin`` hears its length."""

    def __init__(
        self,
        width: int | None,
        take: Callable[[list[Row]], list[Row]],
        begin: Callable[[int], None],
    ) -> None:
        super().__init__(width, take)
        self._take = take
        self._begin = begin
        self._inside = False

    def expect(self, length: int) -> None:
        """See ``RowParser``."""
        self._begin(length)

    def feed(self, data: bytes) -> None:
        """See ``RowParser``."""
        if not self._inside:
            self._buffer += data
            if len(self._buffer) < len(_BEFORE):
                return
            if not self._buffer.startswith(_BEFORE):
                raise ProtocolError("an answer that is not wrapped")
            data, self._buffer, self._inside = (
                bytes(self._buffer[len(_BEFORE) :]),
                bytearray(),
                True,
            )
        super().feed(data)

    def finish(self) -> WrappedRows:
        """The rows that ``take`` has left, and the failed sites."""
        whole = parse_object(_BEFORE + self._buffer)
        self._buffer = bytearray()
        failed = whole.get("failed") or {}
        if not isinstance(failed, dict):
            raise ProtocolError("no list of failed sites")
        rows = WrappedRows(self._rows)
        rows += checked(whole.get("data"), self._width, self._take)
        rows.failed = {str(site): first_line(str(text)) for site, text in failed.items()}
        return rows


def limited_to(request: bytes, sites: Sequence[str]) -> bytes:
    """A request for these sites alone."""
    return request[:-1] + b"Backends: " + " ".join(sites).encode() + b"\n\n"
