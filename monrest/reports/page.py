"""A report as a page (HTML) that needs nothing else: styles and charts (SVG) are inside."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any

from jinja2 import DictLoader, Environment, StrictUndefined, Template
from markupsafe import Markup, escape

from monrest.render.xlsx import NobodyWaitsError, nobody_gives_up
from monrest.reports.picture import STATES, WIDTH, Box, Picture, Shape, Stroke
from monrest.reports.sheet import Grid, Heading, Note, Sheet

_EVERY = 200
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
    environment = Environment(
        loader=DictLoader({"page": _PAGE}), autoescape=True, undefined=StrictUndefined
    )
    return environment.get_template("page")


def page(sheet: Sheet, given_up: Callable[[], bool] = nobody_gives_up) -> bytes:
    """The file; raises NobodyWaitsError when told to."""
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
        if number % _EVERY == 0 and given_up():
            raise NobodyWaitsError
        cells = [
            _cell(grid, head.kind, value, sheet.spelling.cell(head.kind, value))
            for head, value in zip(grid.heads, row, strict=True)
        ]
        yield Markup("<tr>") + Markup().join(cells) + Markup("</tr>")


def _cell(grid: Grid, kind: str, value: Any, text: str) -> Markup:
    if kind == "state":
        color = STATES.get(text.lower(), "inherit")
        return Markup('<td class="state" style="color:{}"><b>{}</b></td>').format(color, text)
    bad = kind == "percent" and value is not None and value < grid.low
    return Markup('<td class="{}{}">{}</td>').format(kind, " bad" if bad else "", text)


def svg(picture: Picture) -> Markup:
    """A picture as SVG that fits any width."""
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
