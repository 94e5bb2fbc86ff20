"""CSV (docs/spec/render.md, "CSV"): ``;`` between fields, one line per row, UTF-8.

The first line is ``#`` and the column names unless ``headers=0``. Names and joined lists are
quoted by the same rule as texts. When sites failed, the last line is a comment that names them,
but with ``headers=0`` there is nothing but data.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from itertools import chain
from typing import Any

from monrest.base.values import Document, Row, Rows
from monrest.render.json import digits, dumps, well_formed
from monrest.render.pieces import batches, gathered
from monrest.render.table import failed_sites, plain_text, table_of

_SPECIAL = re.compile(r'[\r\n",;:]')


def quoted(text: str) -> str:
    """``text`` as a field: newlines as backslash-n, no carriage returns, quoted where needed."""
    if _SPECIAL.search(text) is None:
        return text
    text = text.replace("\r", "").replace("\n", "\\n").replace('"', '""')
    return f'"{text}"' if _SPECIAL.search(text) else text


def _scalar(value: Any) -> str:
    return plain_text(value, "false", "true")


def csv_field(value: Any) -> str:
    """One value as a field: lists of plain values joined by commas, other containers as JSON."""
    kind = type(value)  # most cells are texts or integers: 20,000 rows have millions of them
    if kind is str:
        return quoted(value)
    if kind is int:
        return digits(value)
    if isinstance(value, (list, tuple)):
        if any(isinstance(item, (list, tuple, Mapping)) for item in value):
            return quoted(dumps(value).decode())
        return quoted(",".join(map(_scalar, value)))
    return quoted(_scalar(value))


FORMULA = ("=", "+", "-", "@", "\t", "\r")
"""The first characters of texts that spreadsheets read as formulas."""


def readable_field(value: Any) -> str:
    """Return one value as a field for people: what would be a formula is a text with ``'``."""
    text = csv_field(value)
    if isinstance(value, (int, float)) or not text.lstrip('"').startswith(FORMULA) or text == "-":
        return text
    return f"\"'{text[1:]}" if text.startswith('"') else f"'{text}"


def csv(answer: Rows | Document, *, headers: bool, readable: bool = False) -> Iterator[bytes]:
    """Write the answer as CSV lines; empty without rows when ``headers`` is False.

    ``readable``: people open it in a program for tables, as they do with reports.
    """
    table, missing = table_of(answer), failed_sites(answer)
    field = readable_field if readable else csv_field

    def encode(batch: list[Row]) -> bytes:
        text = "".join(
            chain.from_iterable((";".join(map(field, table.values(row))), "\n") for row in batch)
        )
        return well_formed(text).encode()

    def fragments() -> Iterator[bytes]:
        if headers:
            line = "#" + ";".join(map(field, table.names)) + "\n"
            yield well_formed(line).encode()
        yield from batches(table.rows, encode)
        if missing and headers:
            yield well_formed(f"# {missing}\n").encode()

    return gathered(fragments())
