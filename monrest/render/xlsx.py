"""Excel (docs/spec/render.md, "Excel"), as a real .xlsx workbook with one sheet ``data``.

Numbers are number cells, and so is text that is a number in its plain form of up to 15 digits.
Text is only ever text: no formulas, no links. What Excel cannot hold is refused (rows, columns)
or shortened (text beyond 32,767 characters, which then ends in an ellipsis); integers that a
cell would round are text. When sites failed, a second sheet with a red tab names them: rows below
the table would be sorted and added up with it.
"""

from __future__ import annotations

import math
import re
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from monrest.base.errors import BadRequest, ClientLeftError
from monrest.base.installed import require
from monrest.base.values import Document, Rows
from monrest.render.json import dumps, well_formed
from monrest.render.pieces import PIECE, let_go
from monrest.render.table import number_text, table_of

if TYPE_CHECKING:
    from xlsxwriter.worksheet import Worksheet

CONTENT_TYPE = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"
MOST_ROWS = 1048576
"""Rows of a sheet, the header included."""
MOST_COLUMNS = 16384
MOST_CHARACTERS = 32767
"""UTF-16 units in a cell."""
EXACT = 2**53
"""Excel's numbers are doubles; larger integers lose digits."""
COLUMN_WIDTH = 30

_ILLEGAL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\ufffe\uffff]")
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]{0,14})(?:\.[0-9]+)?\Z")
_OPTIONS = {
    "constant_memory": True,
    "strings_to_formulas": False,
    "strings_to_urls": False,
    "strings_to_numbers": False,
}


def cell_text(text: str) -> str:
    """``text`` as a cell holds it: legal characters, backslash-n as a line break, not too long."""
    if not text.isprintable():
        text = _ILLEGAL.sub("", well_formed(text))
    text = text.replace("\\n", "\n")
    if len(text) * 2 > MOST_CHARACTERS:
        units = text.encode("utf-16-le")
        if len(units) > MOST_CHARACTERS * 2:
            kept = units[: (MOST_CHARACTERS - 1) * 2].decode("utf-16-le", "ignore")
            return kept + "…"
    return text


def cell(value: Any) -> str | int | float:
    """One value as the content of a cell; the empty text stands for a blank cell."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return value if abs(value) <= EXACT else number_text(value)
    if isinstance(value, float):
        return value if math.isfinite(value) else ""
    if isinstance(value, str):
        if len(value) < 20 and _NUMBER.match(value) and sum(map(str.isdigit, value)) <= 15:
            return float(value) if "." in value else int(value)
        return cell_text(value)
    if isinstance(value, (list, tuple)) and not any(
        isinstance(item, (list, tuple, Mapping)) for item in value
    ):
        return cell_text(", ".join(str(cell(item)) for item in value))
    return cell_text(dumps(value).decode())


def _too_many(rows: int) -> BadRequest:
    return BadRequest(
        "error during request",
        f"limit: an Excel sheet holds {MOST_ROWS - 1} rows, this answer has {rows}; "
        "ask for fewer, or for csv",
    )


def _write(sheet: Worksheet, number: int, values: Iterable[str | int | float]) -> None:
    for column, value in enumerate(values):
        if isinstance(value, str):
            if value:
                sheet.write_string(number, column, value)
        else:
            sheet.write_number(number, column, value)


def excel(answer: Rows | Document, given_up: Callable[[], bool] = bool) -> Iterator[bytes]:
    """Write the answer as a workbook and yield its bytes in pieces; rows are released.

    The whole workbook is made before the first piece, in a temporary file, which takes seconds
    for large answers. Raises ``BadRequest`` naming ``limit`` or ``columns`` when there are more
    than a sheet can hold, ``NotInstalled``, ClientLeftError soon after ``given_up`` has become
    true.
    """
    require("xlsxwriter", "Excel files")
    # Imported with the first file, in its thread.
    from xlsxwriter import Workbook

    table = table_of(answer)
    names = table.names
    if len(table.rows) >= MOST_ROWS:
        raise _too_many(len(table.rows))
    if len(names) > MOST_COLUMNS:
        raise BadRequest(
            "error during request",
            f"columns: an Excel sheet holds {MOST_COLUMNS} columns, this answer has {len(names)}; "
            "ask for fewer, or for csv",
        )
    with tempfile.TemporaryFile() as target:
        with Workbook(target, _OPTIONS) as book:
            sheet = book.add_worksheet("data")
            head = book.add_format({"bold": True, "align": "center", "bg_color": "#C0C0C0"})
            if names:
                sheet.set_column(0, len(names) - 1, COLUMN_WIDTH)
            for column, name in enumerate(names):
                sheet.write_string(0, column, cell_text(name), head)
            count = 0
            for row in let_go(table.rows):
                if given_up():
                    raise ClientLeftError
                count += 1
                if count >= MOST_ROWS:
                    raise _too_many(max(count, len(table.rows)))
                _write(sheet, count, map(cell, table.values(row)))
            if names:
                sheet.autofilter(0, 0, count, len(names) - 1)
            if answer.failed_sites:
                missing = book.add_worksheet("failed sites")
                missing.set_tab_color("red")
                missing.set_column(0, 2, COLUMN_WIDTH)
                for column, name in enumerate(("peer_key", "peer_name", "reason")):
                    missing.write_string(0, column, name, head)
                for number, failed_site in enumerate(answer.failed_sites, 1):
                    _write(
                        missing,
                        number,
                        map(cell_text, (failed_site.site, failed_site.name, failed_site.reason)),
                    )
        target.seek(0)
        while piece := target.read(PIECE):
            yield piece
