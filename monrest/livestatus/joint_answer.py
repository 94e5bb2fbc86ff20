"""Answers of an LMD: rows of many sites in one, and which of them failed.

The body is an object: its rows, then the failed sites with their reasons (docs/spec/lmd.md,
"Requests").
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from monrest.base.values import Row
from monrest.livestatus.core_errors import ProtocolError, first_line
from monrest.livestatus.framing import RowParser, checked, parse_object

_BEFORE = b'{"data":'


class WrappedRows(list[Row]):
    """Rows, with the sites that ``failed`` and why."""

    failed: Mapping[str, str] = {}


class WrappedParser(RowParser):
    """Rows of one body; what ``finish`` gives are WrappedRows."""

    def __init__(self, width: int | None) -> None:
        super().__init__(width)
        self._inside = False

    def feed(self, data: bytes) -> None:
        if not self._inside:
            data = bytes(self._buffer) + data
            self._buffer = bytearray()
            if len(data) < len(_BEFORE):
                self._buffer += data
                return
            if not data.startswith(_BEFORE):
                raise ProtocolError("an answer that is not wrapped")
            data, self._inside = data[len(_BEFORE) :], True
        super().feed(data)

    def finish(self) -> WrappedRows:
        whole = parse_object(_BEFORE + self._buffer)
        failed = whole.get("failed") or {}
        if not isinstance(failed, dict):
            raise ProtocolError("no list of failed sites")
        rows = WrappedRows(self.taken() + checked(whole.get("data"), self._width, None))
        rows.failed = {str(site): first_line(str(text)) for site, text in failed.items()}
        return rows


def limited_to(request: bytes, sites: Sequence[str]) -> bytes:
    return request[:-1] + b"Backends: " + " ".join(sites).encode() + b"\n\n"
