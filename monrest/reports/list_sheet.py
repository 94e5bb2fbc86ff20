"""The tables of a report as a workbook (Excel) and as lines (CSV), with values to reckon with."""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Iterator
from datetime import datetime
from typing import Any

from xlsxwriter import Workbook
from xlsxwriter.worksheet import Worksheet

from monrest.render.csv import csv_field
from monrest.render.json import well_formed
from monrest.render.xlsx import MOST_ROWS, NobodyWaitsError, cell_text, nobody_gives_up
from monrest.reports.sheet import CellKind, Grid, Sheet, Spelling

_EVERY = 500
_DAY = 86400
_LONGEST_NAME = 31
_NOT_IN_NAMES = re.compile(r"[\[\]:*?/\\\x00-\x1f]")
_OPTIONS = {
    "constant_memory": True,
    "in_memory": True,
    "strings_to_formulas": False,
    "strings_to_urls": False,
    "strings_to_numbers": False,
}
_WIDTHS: dict[CellKind, int] = {
    "text": 34, "number": 12, "percent": 13, "time": 20, "duration": 16, "state": 14,
}  # fmt: skip
_FORMULA = ("=", "+", "-", "@", "\t", "\r")


def csv(sheet: Sheet, given_up: Callable[[], bool] = nobody_gives_up) -> bytes:
    """All tables one below the other, each with a line of its titles; empty lines between."""
    return "".join(_csv_lines(sheet, given_up)).encode("utf-8", "replace")


def _csv_lines(sheet: Sheet, given_up: Callable[[], bool]) -> Iterator[str]:
    for number, grid in enumerate(sheet.grids):
        if number:
            yield "\n"
        yield "#" + ";".join(csv_field(head.title) for head in grid.heads) + "\n"
        for at, row in enumerate(grid.rows):
            if at % _EVERY == 0 and given_up():
                raise NobodyWaitsError
            cells = (
                csv_field(_plain(sheet.spelling, head.kind, value))
                for head, value in zip(grid.heads, row, strict=True)
            )
            yield ";".join(cells) + "\n"


def _plain(spelling: Spelling, kind: CellKind, value: Any) -> Any:
    if value is None:
        return ""
    if kind == "percent":
        return str(spelling.rounded(value))
    if kind == "duration":
        return int(value)
    if kind == "time":
        return spelling.time(value)
    text = well_formed(str(value))
    # What programs for tables would take for a formula is shown as the text that it is.
    return f"'{text}" if kind == "text" and text.startswith(_FORMULA) else text


def workbook(sheet: Sheet, given_up: Callable[[], bool] = nobody_gives_up) -> bytes:
    """A workbook with a sheet for each table, after one that says what the report is about."""
    target = io.BytesIO()
    with Workbook(target, _OPTIONS) as book:
        bold = book.add_format({"bold": True})
        head = book.add_format({"bold": True, "bg_color": "#E9EDF0", "bottom": 1})
        formats = {
            "percent": book.add_format(
                {"num_format": "0." + "0" * sheet.spelling.decimals}
                if sheet.spelling.decimals
                else {"num_format": "0"}
            ),
            "time": book.add_format({"num_format": "yyyy-mm-dd hh:mm:ss"}),
            "duration": book.add_format({"num_format": "[h]:mm:ss"}),
        }
        names: set[str] = set()
        facts = book.add_worksheet(_name(sheet.spelling.say("Report"), names))
        facts.set_column(0, 0, 24)
        facts.set_column(1, 1, 80)
        facts.write_string(0, 0, cell_text(sheet.title), bold)
        for at, (label, value) in enumerate(sheet.facts, 2):
            facts.write_string(at, 0, cell_text(label), bold)
            facts.write_string(at, 1, cell_text(value))
        for grid in sheet.grids:
            target_sheet = book.add_worksheet(_name(grid.title, names))
            _fill(target_sheet, sheet, grid, head, formats, given_up)
    return target.getvalue()


def _name(title: str, known: set[str]) -> str:
    """A name that a sheet may have and no other one has."""
    bare = _NOT_IN_NAMES.sub(" ", title).strip(" '")[:_LONGEST_NAME] or "data"
    name, number = bare, 2
    while name.lower() in known:
        end = f" {number}"
        name, number = f"{bare[: _LONGEST_NAME - len(end)]}{end}", number + 1
    known.add(name.lower())
    return name


def _fill(
    target: Worksheet,
    sheet: Sheet,
    grid: Grid,
    bold: Any,
    formats: dict[str, Any],
    given_up: Callable[[], bool],
) -> None:
    for column, head in enumerate(grid.heads):
        target.set_column(column, column, _WIDTHS[head.kind])
        target.write_string(0, column, cell_text(head.title), bold)
    target.freeze_panes(1, 0)
    if grid.rows:
        target.autofilter(0, 0, min(len(grid.rows), MOST_ROWS - 1), len(grid.heads) - 1)
    for at, row in enumerate(grid.rows[: MOST_ROWS - 1]):
        if at % _EVERY == 0 and given_up():
            raise NobodyWaitsError
        for column, (head, value) in enumerate(zip(grid.heads, row, strict=True)):
            _write(target, at + 1, column, sheet.spelling, head.kind, value, formats.get(head.kind))


def _write(
    target: Worksheet,
    row: int,
    column: int,
    spelling: Spelling,
    kind: CellKind,
    value: Any,
    form: Any,
) -> None:
    if value is None or value == "":
        return
    if kind == "percent":
        target.write_number(row, column, float(spelling.rounded(value)), form)
    elif kind == "duration":
        target.write_number(row, column, value / _DAY, form)
    elif kind == "time":
        _write_time(target, row, column, spelling, value, form)
    elif kind == "number" and isinstance(value, (int, float)):
        target.write_number(row, column, value)
    else:
        target.write_string(row, column, cell_text(str(value)))


def _write_time(
    target: Worksheet, row: int, column: int, spelling: Spelling, value: float, form: Any
) -> None:
    try:
        moment = datetime.fromtimestamp(value, spelling.zone).replace(tzinfo=None)
        target.write_datetime(row, column, moment, form)
    except (ValueError, OverflowError, OSError):
        target.write_string(row, column, str(int(value)))
