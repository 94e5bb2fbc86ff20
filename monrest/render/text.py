"""Text table (docs/spec/render.md, "Text"): bordered, left-aligned, UTF-8.

Width is counted in terminal cells, so that the lines of a table with wide characters are equal.
Newlines are shown as backslash-n and other control characters by their number: what a plugin
printed must not reach a terminal as an escape sequence.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from monrest.base.errors import ClientLeftError
from monrest.base.values import Document, Row, Rows
from monrest.render.json import digits, well_formed
from monrest.render.pieces import batches, gathered
from monrest.render.table import failed_sites, plain_text, table_of

_MOST_WIDTH = 1_000
"""Characters that the cells of a column are filled up to; longer ones stick out."""

_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029]")
_NAMED = {"\n": "\\n", "\t": "\\t", "\r": ""}


def _visible(match: re.Match[str]) -> str:
    character = match.group()
    number = ord(character)
    written = f"\\x{number:02x}" if number < 256 else f"\\u{number:04x}"
    return _NAMED.get(character, written)


def _plain(value: Any) -> str:
    return plain_text(value, "0", "1")


def cell_text(value: Any) -> str:
    """One value as the text of a cell, without any control character."""
    if type(value) is int:
        return digits(value)
    if isinstance(value, str):
        text = value
    elif isinstance(value, Mapping):
        text = ",".join(f"{key}:{_plain(value[key])}" for key in sorted(value))
    elif isinstance(value, (list, tuple)):
        text = ",".join(map(_plain, value))
    else:
        text = _plain(value)
    if text.isascii() and text.isprintable():
        return text
    return _CONTROL.sub(_visible, well_formed(text))


def width(text: str) -> int:
    """Terminal cells that ``text`` takes between two blanks."""
    if text.isascii() or len(text) > _MOST_WIDTH:
        return len(text)
    from wcwidth import wcswidth

    # With the spaces around it, because a joiner at an end acts on its neighbour.
    return max(0, wcswidth(f" {text} ") - 2)


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    padded = (
        cell + " " * (wanted - width(cell)) for cell, wanted in zip(cells, widths, strict=True)
    )
    return "| " + " | ".join(padded) + " |\n"


def text_table(answer: Rows | Document, given_up: Callable[[], bool] = bool) -> Iterator[bytes]:
    """Write the answer as a table; empty when neither rows nor columns are known.

    When sites failed, a last line names them. All rows are measured before the first line is
    written. Raises ClientLeftError soon after ``given_up`` has become true.
    """
    table, missing = table_of(answer), failed_sites(answer)

    def cells_of(row: Row) -> Row:
        return [cell_text(value) for value in table.values(row)]

    def lines() -> Iterator[bytes]:
        if not table.names:
            return
        header = [cell_text(name) for name in table.names]
        widths = [width(cell) for cell in header]
        # What is made while it is read is made twice, and nothing of it is kept.
        kept = isinstance(table.rows, list)
        for index, row in enumerate(table.rows):
            if given_up():
                raise ClientLeftError
            cells = cells_of(row)
            if isinstance(table.rows, list):
                table.rows[index] = cells
            widths = list(map(max, widths, map(width, cells)))
        widths = [min(wanted, _MOST_WIDTH) for wanted in widths]

        separator = ("+" + "+".join("-" * (wanted + 2) for wanted in widths) + "+\n").encode()

        def encode(batch: list[Row]) -> bytes:
            lines = batch if kept else map(cells_of, batch)
            return "".join(_line(row, widths) for row in lines).encode()

        yield separator + _line(header, widths).encode() + separator
        yield from batches(table.rows, encode)
        yield separator

    def fragments() -> Iterator[bytes]:
        yield from lines()
        if missing:
            yield f"{cell_text(missing)}\n".encode()

    return gathered(fragments())
