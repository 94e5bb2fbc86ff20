"""Reports over any address of this API (docs/spec/reports.md, "A path of the API").

The report has what the address answers: the same request by the owner of the report, through the
same dispatch.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from itertools import takewhile
from typing import Any

from attrs import evolve

from monrest.api.endpoint import Context, Endpoint
from monrest.base.concurrency import pause
from monrest.base.errors import BadRequest, MethodNotAllowed, NotFound, SitesFailed, Unavailable
from monrest.base.truth import flag
from monrest.base.values import Column, Document, RestRequest, Rows, no_progress, nothing
from monrest.render.formats import RenderOptions, render, shows_headers
from monrest.reports.builder import ReportBuilder
from monrest.reports.settings import Link
from monrest.reports.sheet import CellKind, Grid, Head, Sheet, Spelling

_MOST_ROWS = 5000
"""Rows on a page and on paper; the files for programs have all of them."""
_LONGEST_VALUE = 2000
_DIGITS = 6
_CHOSEN = 12
"""Columns that a person may have chosen all."""
_NAMES = {
    name: at
    for at, name in enumerate(("host_name", "host", "name", "description", "service", "id", "nr"))
}
_MOST_NAMES = 2


def sheet_of_answer(
    builder: ReportBuilder, url: str, answer: Rows | Document, kept: Mapping[str, bytes]
) -> Sheet:
    """A sheet with the whole ``answer``; ``kept`` are its forms as the API returns them."""
    say = builder.say
    whole = _rows(answer) if isinstance(answer, Rows) else _document(answer, builder.spelling)
    count = len(answer.rows) if isinstance(answer, Rows) else len(whole.rows)
    grid = evolve(
        whole,
        title=say("Details"),
        rows=whole.rows[:_MOST_ROWS],
        empty=say("There is nothing to show."),
    )
    builder.parts.append(grid)
    builder.left_out(count - _MOST_ROWS)
    rows = [
        {head.title: value for head, value in zip(grid.heads, row, strict=True)}
        for row in grid.rows
    ]
    return builder.sheet({"rows": rows}, ("Address", url), ("Number", str(count)), kept=kept)


def _rows(answer: Rows) -> Grid:
    names = [column.name for column in answer.columns]
    order = list(range(len(names)))
    if len(names) > _CHOSEN:
        # What a row is about comes first where there are more columns than a person chose.
        order.sort(key=lambda at: _NAMES.get(names[at], len(_NAMES)))
    columns = [answer.columns[at] for at in order]
    kinds = [_kind(column) for column in columns]
    heads = tuple(
        Head(f"{column.name} ({column.unit})" if column.unit else column.name, kind)
        for column, kind in zip(columns, kinds, strict=True)
    )
    rows = [
        tuple(_cell(kind, row[at]) for kind, at in zip(kinds, order, strict=True))
        for row in answer.rows[:_MOST_ROWS]
    ]
    leading = len(list(takewhile(lambda column: column.name in _NAMES, columns)))
    return Grid(title="", heads=heads, rows=rows, lead=max(1, min(leading, _MOST_NAMES)))


def _document(answer: Document, spelling: Spelling) -> Grid:
    value = answer.value
    if isinstance(value, Mapping):
        types = {column.name: column for column in answer.columns}
        names = [*answer.order, *sorted(set(map(str, value)) - set(answer.order))]
        rows = []
        for name in names:
            kind = _kind(types.get(name, Column(name)))
            cell = _cell(kind, value.get(name))
            rows.append((name, spelling.cell(kind, cell) if kind != "percent" else _text(cell)))
        return Grid(title="", heads=(Head("name"), Head("value", weight=3.0)), rows=rows)
    items = value if isinstance(value, list) else [value]
    if items and all(isinstance(item, Mapping) for item in items):
        names = list(dict.fromkeys(str(name) for item in items for name in item))
        return Grid(
            title="",
            heads=tuple(Head(name) for name in names),
            rows=[tuple(_text(item.get(name)) for name in names) for item in items],
        )
    return Grid(title="", heads=(Head("value"),), rows=[(_text(item),) for item in items])


def _kind(column: Column) -> CellKind:
    if column.type == "time":
        return "time"
    if column.type in ("number", "boolean"):
        return "percent" if column.unit == "%" else "number"
    return "text"


def _cell(kind: CellKind, value: Any) -> Any:
    """A value as cells of its kind are; what is none of them is a text."""
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if kind == "time":
        # 0: never.
        return value if number and value > 0 else None
    if kind == "percent":
        return float(value) if number else None
    if kind == "number" and isinstance(value, float):
        return int(value) if value.is_integer() else round(value, _DIGITS)
    return value if kind == "number" and number else _text(value)


def _text(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, list) and not any(isinstance(item, (list, dict)) for item in value):
        text = ", ".join(map(_text, value))
    elif isinstance(value, (list, dict)):
        text = json.dumps(value, ensure_ascii=False, default=str)
    elif isinstance(value, bool):
        text = str(int(value))
    else:
        text = str(value)
    return text if len(text) <= _LONGEST_VALUE else f"{text[:_LONGEST_VALUE]}…"


_SWITCHES = frozenset({"background", "pretty", "headers"})


def check_link(context: Context, link: Link) -> Endpoint:
    """The endpoint that answers; BadRequest where a report cannot be about it."""
    if link.root != context.names.root:
        raise _wrong(f"a path that begins with {context.names.root}/")
    where = link.target
    try:
        endpoint = context.dispatch.router.find("GET", where.path, where.segments).endpoint
    except (NotFound, MethodNotAllowed) as error:
        raise _wrong(f"a path that can be read: {error.message}") from None
    if endpoint.public or endpoint.at_once:
        raise _wrong("a path whose answer is a list or an object, and not for one reader only")
    if any(name == "background" and flag(name, value) for name, value in link.parameters):
        raise _wrong("a path without background")
    return endpoint


def _wrong(expected: str) -> BadRequest:
    return BadRequest("invalid params.url", f"params.url: expected {expected}")


async def answer_of_path(builder: ReportBuilder) -> Sheet:
    """Ask as the owner, again while a site is missing, and keep the answer.

    A client that waits for the report itself, and not for a job, gets the failure at once.
    """
    settings, link = builder.settings, builder.settings.url
    assert link is not None
    check_link(builder.context, link)
    request = evolve(
        builder.request,
        path=link.target.path,
        segments=link.target.segments,
        parameters=tuple(pair for pair in link.parameters if pair[0] not in _SWITCHES),
        query=link.parameters,
        format=link.target.format or "json",
        sites=link.target.sites or builder.request.sites,
        slashed=link.target.slashed,
    )
    left = 1 if request.progress is no_progress else settings.retries
    while True:
        left -= 1
        try:
            return await _once(builder, link, request)
        except (SitesFailed, Unavailable) as error:
            if not left:
                raise
            text = f"{error.message}, tried again in {settings.delay:g} s"
            request.progress(5, message=text)
        await pause(builder.context.clock, settings.delay)


async def _once(builder: ReportBuilder, link: Link, request: RestRequest) -> Sheet:
    context = builder.context
    answer = await context.dispatch(context, request)
    assert isinstance(answer, (Rows, Document)), "only what is at once is anything else"
    options = _options(link)

    def work(given_up: Callable[[], bool]) -> Sheet:
        kept = {
            name: b"".join(render(_again(answer), option, given_up).pieces)
            for name, option in options.items()
        }
        return sheet_of_answer(builder, link.text, answer, kept)

    try:
        builder.missing(answer.failed_sites)
        return await context.threads.stoppable(work)
    finally:
        if isinstance(answer, Rows):
            answer.gone()


def _options(link: Link) -> dict[str, RenderOptions]:
    """The forms that are stored as the API returns them; the format of the path as requested."""
    given = dict(link.parameters)
    headers = shows_headers(given.get("headers", "1"))
    pretty = flag("pretty", given.get("pretty"))
    wrapped = link.target.format == "wrapped_json"
    options: dict[str, RenderOptions] = {
        "json": RenderOptions(format="wrapped_json" if wrapped else "json", pretty=pretty),
        "csv": RenderOptions(format="csv", headers=headers, readable=True),
        "xls": RenderOptions(format="xls"),
    }
    if link.form == "text":
        options["text"] = RenderOptions(format="text")
    return options


def _again(answer: Rows | Document) -> Rows | Document:
    """The same answer for one more renderer, which may release its rows."""
    if isinstance(answer, Document):
        return answer
    return evolve(answer, rows=list(answer.rows), gone=nothing)
