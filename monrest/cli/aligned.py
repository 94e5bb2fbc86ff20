"""Rows as aligned columns without lines, as commands print what they list."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from monrest.client.client_problems import plain


def aligned(titles: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """The rows below their titles; what could steer a terminal is taken out."""
    cells = [[_cell(cell) for cell in row] for row in (titles, *rows)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    return "".join(
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        + "\n"
        for row in cells
    )


def _cell(text: str) -> str:
    return plain(text).replace("\n", " ").replace("\t", " ")
