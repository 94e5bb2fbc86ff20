"""A sheet as the files that are kept of a report, and what these are called."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from urllib.parse import quote

import orjson
from attrs import field, frozen

from monrest.base.errors import BadRequest
from monrest.render.xlsx import CONTENT_TYPE as EXCEL
from monrest.render.xlsx import nobody_gives_up
from monrest.reports.list_sheet import csv, workbook
from monrest.reports.page import page
from monrest.reports.pdf import pdf
from monrest.reports.sheet import Sheet

Render = Callable[[Sheet, Callable[[], bool]], bytes]


def _json(sheet: Sheet, _given_up: Callable[[], bool]) -> bytes:
    return orjson.dumps(sheet.data, option=orjson.OPT_INDENT_2)


FORMATS: Mapping[str, tuple[str, str, Render | None]] = {
    "pdf": ("pdf", "application/pdf", pdf),
    "html": ("html", "text/html; charset=utf-8", page),
    "xls": ("xlsx", EXCEL, workbook),
    "csv": ("csv", "text/csv; charset=utf-8", csv),
    "json": ("json", "application/json; charset=utf-8", _json),
    "text": ("txt", "text/plain; charset=utf-8", None),
}
"""What a report is kept as: end of the file's name, content type, how it is made.

What is not made is kept only of reports that have it.
"""

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
        """What it is."""
        return FORMATS[self.format][1]


def rendered(sheet: Sheet, given_up: Callable[[], bool] = nobody_gives_up) -> list[File]:
    """All forms of a report; takes seconds, so in a thread. NobodyWaitsError when told to."""
    found = []
    for name, (_, _, render) in FORMATS.items():
        data = sheet.kept.get(name)
        if data is None:
            if render is None:
                continue
            data = render(sheet, given_up)
        if len(data) > _LARGEST:
            raise BadRequest(
                "report is too long",
                f"params: expected a report of at most {_LARGEST >> 20} MB as {name}, choose "
                "fewer objects or a shorter time",
            )
        found.append(File(format=name, data=data))
    return found


def file_name(name: str, format: str) -> str:
    """The name of a file of a report: blanks become ``_``, what is special is left out."""
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
