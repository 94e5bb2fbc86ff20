"""The entry of the room: from an answer and a format to a content type and pieces of bytes.

Rules: docs/spec/render.md.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import Any

from attrs import evolve, frozen

from monrest.base.errors import error_value
from monrest.base.truth import flag
from monrest.base.values import OBJECTS, Document, OutputFormat, Rows
from monrest.render.csv import csv
from monrest.render.json import json, ndjson
from monrest.render.text import text_table
from monrest.render.wrapped import wrapped_json
from monrest.render.xlsx import CONTENT_TYPE as EXCEL
from monrest.render.xlsx import excel

JSON = "application/json; charset=utf-8"
LINES = "application/x-ndjson"
TEXT = "text/plain; charset=utf-8"
CSV = "text/csv; charset=utf-8"


def shows_headers(value: str) -> bool:
    """Whether CSV has a line with names, by the parameter ``headers``, which may name a format."""
    return value == "wrapped_json" or flag("headers", value)


@frozen(kw_only=True)
class RenderOptions:
    """The form of an answer.

    ``headers``: CSV begins with the line of names. ``readable``: its texts are no formulas for
    programs that show tables. ``pretty``: JSON is indented by two blanks.
    """

    format: OutputFormat = "json"
    headers: bool = True
    readable: bool = False
    pretty: bool = False

    @property
    def slow(self) -> bool:
        """Whether the first piece takes all the work, and so belongs into a thread."""
        return self.format == "xls"


@frozen(kw_only=True)
class Rendered:
    """A response body: its Content-Type, its Content-Disposition if any, and the bytes.

    ``pieces`` are made as they are asked for, about 64 KiB each.
    """

    content_type: str
    disposition: str | None
    pieces: Iterator[bytes]


def render(
    answer: Rows | Document,
    options: RenderOptions,
    given_up: Callable[[], bool] = bool,
) -> Rendered:
    """Render ``answer``; its rows are released while the pieces are taken.

    The pieces raise ``BadRequest`` when the format cannot hold the answer (Excel's limits), and
    ClientLeftError soon after ``given_up`` has become true.
    """
    kind, disposition = KINDS[options.format]
    return Rendered(
        content_type=kind, disposition=disposition, pieces=_pieces(answer, options, given_up)
    )


KINDS: Mapping[OutputFormat, tuple[str, str | None]] = {
    "json": (JSON, None),
    "wrapped_json": (JSON, None),
    "ndjson": (LINES, None),
    "text": (TEXT, None),
    "csv": (CSV, 'attachment; filename="rest.csv"'),
    "xls": (EXCEL, 'attachment; filename="rest.xlsx"'),
}
"""The Content-Type of each format, and its Content-Disposition where it is a file to keep."""


def _pieces(
    answer: Rows | Document, options: RenderOptions, given_up: Callable[[], bool]
) -> Iterator[bytes]:
    """A generator, so that what a writer raises is raised by the first piece."""
    if options.format == "xls":
        yield from excel(answer, given_up)
    elif options.format == "csv":
        yield from csv(answer, headers=options.headers, readable=options.readable)
    elif options.format == "ndjson":
        yield from ndjson(answer)
    elif options.format == "text":
        yield from text_table(answer, given_up)
    elif options.format == "wrapped_json":
        yield from wrapped_json(answer, pretty=options.pretty)
    else:
        yield from json(answer, pretty=options.pretty)


def error_document(
    code: int,
    message: str,
    description: str,
    options: RenderOptions,
    extra: Mapping[str, Any] = MappingProxyType({}),
) -> Rendered:
    """Render the document of ``error_value`` in the requested format.

    All kinds of JSON have the plain document: an error is never wrapped, and is no file to keep.
    """
    document = Document(value=error_value(code, message, description, extra), status=code)
    plain: OutputFormat = "json" if options.format in OBJECTS else options.format
    chosen = RenderOptions(format=plain, headers=options.headers, pretty=options.pretty)
    return evolve(render(document, chosen), disposition=None)
