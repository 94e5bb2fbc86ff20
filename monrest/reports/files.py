"""A sheet as the files that are kept of a report, and what these are called."""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from functools import lru_cache
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import orjson
from attrs import field, frozen
from markupsafe import Markup, escape

from monrest.base.errors import BadRequest, ClientLeftError
from monrest.base.installed import is_installed, require
from monrest.render.csv import readable_field
from monrest.render.json import well_formed
from monrest.render.xlsx import CONTENT_TYPE as EXCEL
from monrest.render.xlsx import MOST_ROWS, cell_text
from monrest.reports.picture import WIDTH, Box, Picture, Shape, Stroke
from monrest.reports.sheet import CellKind, Grid, Heading, Note, Sheet, Spelling

if TYPE_CHECKING:
    from jinja2 import Template
    from xlsxwriter.worksheet import Worksheet

# A report as a page (HTML) that needs nothing else: styles and charts (SVG) are inside.

_AT_A_TIME = 200
_STYLE = """
:root{color-scheme:light}
body{font:14px/1.45 system-ui,"Segoe UI","Helvetica Neue",Arial,"DejaVu Sans",sans-serif;
 color:#2b3440;background:#fff;margin:0}
main{max-width:1280px;margin:0 auto;padding:24px}
h1{font-size:26px;margin:0 0 12px;overflow-wrap:anywhere}
h2{font-size:17px;margin:28px 0 8px;overflow-wrap:anywhere}
dl{display:grid;grid-template-columns:max-content 1fr;gap:2px 16px;margin:0}
dt{color:#66717d}dd{margin:0;white-space:pre-line;overflow-wrap:anywhere}
figure{margin:0}svg{width:100%;height:auto;display:block}
.wide{overflow-x:auto}
table{border-collapse:collapse;width:100%;font-size:13px}
th{background:#e9edf0;text-align:left;font-weight:600}
th,td{padding:4px 8px;border-bottom:1px solid #dfe4e8;vertical-align:top}
tbody tr:nth-child(even){background:#f6f8f9}
td.text,th.text{overflow-wrap:anywhere;min-width:11em}
.time,.percent,.duration,.number{white-space:nowrap;font-variant-numeric:tabular-nums}
.percent,.duration,.number{text-align:right}
.bad{color:#d1373f;font-weight:600}
.note{color:#66717d}
@media print{main{max-width:none;padding:0}.wide{overflow:visible}
 thead{display:table-header-group}tr,figure{break-inside:avoid}h2{break-after:avoid}}
"""
_PAGE = """<!DOCTYPE html>
<html lang="{{ language }}">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy"
 content="default-src 'none'; style-src 'unsafe-inline'; img-src data:">
<title>{{ sheet.title }}</title>
<style>{{ style }}</style>
</head>
<body><main>
<h1>{{ sheet.title }}</h1>
<dl>
{%- for label, value in sheet.facts %}
<dt>{{ label }}</dt><dd>{{ value }}</dd>
{%- endfor %}
</dl>
{%- for kind, part in parts %}
{%- if kind == "grid" %}
{%- if part.title %}
<h2>{{ part.title }}</h2>
{%- endif %}
{%- if part.rows %}
<div class="wide"><table><thead><tr>
{%- for head in part.heads %}<th class="{{ head.kind }}" scope="col">{{ head.title }}</th>
{%- endfor %}</tr></thead><tbody>
{%- for row in rows(part) %}
{{ row }}
{%- endfor %}
</tbody></table></div>
{%- else %}
<p class="note">{{ part.empty }}</p>
{%- endif %}
{%- elif kind == "picture" %}
<h2>{{ part.title }}</h2>
<figure>{{ svg(part) }}</figure>
{%- elif kind == "heading" %}
<h2>{{ part.text }}</h2>
{%- else %}
<p class="{{ "bad" if part.bad else "note" }}">{{ part.text }}</p>
{%- endif %}
{%- endfor %}
</main></body></html>
"""
_KINDS = {Grid: "grid", Picture: "picture", Heading: "heading", Note: "note"}
_TAGS = {"dk": "da"}
"""Languages whose word in a page is another one."""


@lru_cache(maxsize=1)
def _template() -> Template:
    from jinja2 import DictLoader, Environment, StrictUndefined

    environment = Environment(
        loader=DictLoader({"page": _PAGE}), autoescape=True, undefined=StrictUndefined
    )
    return environment.get_template("page")


def page(sheet: Sheet, given_up: Callable[[], bool] = bool) -> bytes:
    """The file; raises ClientLeftError when ``given_up`` is true."""
    language = sheet.spelling.language
    text = _template().render(
        sheet=sheet,
        language=_TAGS.get(language, language),
        style=Markup(_STYLE),  # noqa: S704  a constant
        parts=[(_KINDS[type(part)], part) for part in sheet.parts],
        rows=lambda grid: _rows(sheet, grid, given_up),
        svg=svg,
    )
    return text.encode("utf-8", "replace")


def _rows(sheet: Sheet, grid: Grid, given_up: Callable[[], bool]) -> Iterator[Markup]:
    """The rows of a table; a template would take several times as long."""
    for number, row in enumerate(grid.rows):
        if number % _AT_A_TIME == 0 and given_up():
            raise ClientLeftError
        cells = [
            _cell(
                head.kind,
                grid.color(head.kind, value),
                sheet.spelling.cell(head.kind, value),
            )
            for head, value in zip(grid.heads, row, strict=True)
        ]
        yield Markup("<tr>") + Markup().join(cells) + Markup("</tr>")


def _cell(kind: str, color: str, text: str) -> Markup:
    if color:
        return Markup('<td class="{}" style="color:{}"><b>{}</b></td>').format(kind, color, text)
    return Markup('<td class="{}">{}</td>').format(kind, text)


def svg(picture: Picture) -> Markup:
    inside = Markup().join(map(_shape, picture.shapes))
    return Markup(
        '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {} {}" role="img" aria-label="{}" '
        'font-family="inherit">{}</svg>'
    ).format(_n(WIDTH), _n(picture.height), picture.title, inside)


def _shape(shape: Shape) -> Markup:
    if isinstance(shape, Box):
        hint = Markup("<title>{}</title>").format(shape.hint) if shape.hint else Markup()
        return Markup('<rect x="{}" y="{}" width="{}" height="{}" fill="{}">{}</rect>').format(
            _n(shape.x), _n(shape.y), _n(shape.width), _n(shape.height), shape.color, hint
        )
    if isinstance(shape, Stroke):
        dash = Markup(' stroke-dasharray="4 4"') if shape.dashed else Markup()
        return Markup(
            '<line x1="{}" y1="{}" x2="{}" y2="{}" stroke="{}" stroke-width="1"{}/>'
        ).format(_n(shape.x1), _n(shape.y1), _n(shape.x2), _n(shape.y2), shape.color, dash)
    weight = Markup(' font-weight="600"') if shape.bold else Markup()
    return Markup(
        '<text x="{}" y="{}" font-size="{}" text-anchor="{}" fill="{}"{}>{}</text>'
    ).format(
        _n(shape.x),
        _n(shape.y),
        _n(shape.size),
        shape.anchor,
        shape.color,
        weight,
        escape(shape.text),
    )


def _n(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")


# The tables of a report as a workbook (Excel) and as lines (CSV), with values to reckon with.

_LINES = 500
_DAY = 86400
_LONGEST_SHEET_NAME = 31
_NOT_IN_SHEET_NAMES = re.compile(r"[\[\]:*?/\\\x00-\x1f]")
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


def csv(sheet: Sheet, given_up: Callable[[], bool] = bool) -> bytes:
    """All tables one below the other, each with a line of its titles; empty lines between."""
    return "".join(_csv_lines(sheet, given_up)).encode("utf-8", "replace")


def _csv_lines(sheet: Sheet, given_up: Callable[[], bool]) -> Iterator[str]:
    for number, grid in enumerate(sheet.grids):
        if number:
            yield "\n"
        yield "#" + ";".join(readable_field(head.title) for head in grid.heads) + "\n"
        for at, row in enumerate(grid.rows):
            if at % _LINES == 0 and given_up():
                raise ClientLeftError
            cells = (
                readable_field(_plain(sheet.spelling, head.kind, value))
                for head, value in zip(grid.heads, row, strict=True)
            )
            yield ";".join(cells) + "\n"


def _plain(spelling: Spelling, kind: CellKind, value: Any) -> Any:
    if kind in ("percent", "time"):
        return spelling.cell(kind, value)
    if kind == "duration" and value is not None:
        return int(value)
    return well_formed(value) if isinstance(value, str) else value


def workbook(sheet: Sheet, given_up: Callable[[], bool] = bool) -> bytes:
    """A workbook with a sheet for each table, after one with what the report is about."""
    target = io.BytesIO()
    from xlsxwriter import Workbook

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


def _name(title: str, taken: set[str]) -> str:
    bare = _NOT_IN_SHEET_NAMES.sub(" ", title).strip(" '")[:_LONGEST_SHEET_NAME] or "data"
    name, number = bare, 2
    while name.lower() in taken:
        end = f" {number}"
        name, number = f"{bare[: _LONGEST_SHEET_NAME - len(end)]}{end}", number + 1
    taken.add(name.lower())
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
        if at % _LINES == 0 and given_up():
            raise ClientLeftError
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
    if value is None and kind == "percent":
        target.write_string(row, column, spelling.cell(kind, None), form)
    elif value is None or value == "":
        return
    elif kind == "percent":
        target.write_number(row, column, float(spelling.rounded(value)), form)
    elif kind == "duration":
        target.write_number(row, column, value / _DAY, form)
    elif kind == "time":
        try:
            moment = datetime.fromtimestamp(value, spelling.zone).replace(tzinfo=None)
            target.write_datetime(row, column, moment, form)
        except (ValueError, OverflowError, OSError):
            target.write_string(row, column, str(int(value)))
    elif kind == "number" and isinstance(value, (int, float)):
        target.write_number(row, column, value)
    else:
        target.write_string(row, column, cell_text(str(value)))


Render = Callable[[Sheet, Callable[[], bool]], bytes]


def _json(sheet: Sheet, _given_up: Callable[[], bool]) -> bytes:
    return orjson.dumps(sheet.data, option=orjson.OPT_INDENT_2)


def _pdf(sheet: Sheet, given_up: Callable[[], bool]) -> bytes:
    # Imported with the first PDF: it takes 4 MB and its processor time at each start.
    from monrest.reports.pdf import pdf

    return pdf(sheet, given_up)


FORMATS: Mapping[str, tuple[str, str, Render | None]] = {
    "pdf": ("pdf", "application/pdf", _pdf),
    "html": ("html", "text/html; charset=utf-8", page),
    "xls": ("xlsx", EXCEL, workbook),
    "csv": ("csv", "text/csv; charset=utf-8", csv),
    "json": ("json", "application/json; charset=utf-8", _json),
    "text": ("txt", "text/plain; charset=utf-8", None),
}
"""The forms of a report: end of the file's name, content type, how it is made.

What is not made is kept only of reports that have it.
"""
_NEEDED = {"pdf": ("reportlab", "PDF files"), "xls": ("xlsxwriter", "Excel files")}
"""The package of a form, which may be missing; other forms are made nevertheless."""

_LARGEST = 64 << 20
_NOT_IN_NAMES = re.compile(r"[^\w.+-]+")
_LONGEST_NAME = 100


@frozen(kw_only=True)
class File:
    """One form of a report: a key of FORMATS, and its bytes."""

    format: str
    data: bytes = field(repr=False)

    @property
    def content_type(self) -> str:
        return FORMATS[self.format][1]


def rendered(sheet: Sheet, given_up: Callable[[], bool] = bool) -> list[File]:
    """All forms of a report; takes seconds, so in a thread. ClientLeftError when given up."""
    files = []
    for name, (_, _, render) in FORMATS.items():
        data = sheet.kept.get(name)
        if data is None:
            if render is None or (name in _NEEDED and not is_installed(_NEEDED[name][0])):
                continue
            data = render(sheet, given_up)
        if len(data) > _LARGEST:
            raise BadRequest(
                "report is too long",
                f"params: expected a report of at most {_LARGEST >> 20} MB as {name}, choose "
                "fewer objects or a shorter time",
            )
        files.append(File(format=name, data=data))
    return files


def require_form(name: str) -> None:
    """Raise NotInstalled for a form of reports that cannot be made here."""
    if name in _NEEDED:
        require(*_NEEDED[name])


def file_name(name: str, format: str) -> str:
    """The name of a file of a report: spaces become ``_``, what is special is left out."""
    bare = _NOT_IN_NAMES.sub("", re.sub(r"\s+", "_", name)).strip("._-+")[:_LONGEST_NAME]
    return f"{bare or 'report'}.{FORMATS[format][0]}"


def disposition(name: str, format: str) -> str:
    """The header that names the file, also for letters that are not ASCII (RFC 6266)."""
    full = file_name(name, format)
    plain = full.encode("ascii", "ignore").decode().lstrip(".")
    if plain.partition(".")[0] == "" or plain == FORMATS[format][0]:
        plain = f"report.{FORMATS[format][0]}"
    if plain == full:
        return f'attachment; filename="{full}"'
    return f"attachment; filename=\"{plain}\"; filename*=UTF-8''{quote(full, safe='')}"
