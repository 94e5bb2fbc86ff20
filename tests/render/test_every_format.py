"""What all formats have in common: rows that are made late, and sites that are missing."""

import zipfile
from io import BytesIO

import pytest

from monrest.base.values import Column, Document, Rows, RowSource, SiteProblem
from monrest.render.formats import RenderOptions, render

COLUMNS = (Column("id", "number"), Column("text", "string"))
ROWS = [[number, f"text; {number} \u00fc"] for number in range(3000)]


def written(answer, wanted, **options):
    return b"".join(render(answer, RenderOptions(format=wanted, **options)).pieces)


@pytest.mark.parametrize("count", [0, 1, 3000])
@pytest.mark.parametrize("wanted", ["json", "wrapped_json", "ndjson", "csv", "text", "xls"])
def test_rows_that_are_made_while_they_are_read_are_the_same(wanted, count):
    rows = [[*row] for row in ROWS[:count]]
    source = RowSource(lambda: iter([*map(list, rows)]))
    late = written(Rows(columns=COLUMNS, rows=source), wanted)
    whole = written(Rows(columns=COLUMNS, rows=[[*row] for row in rows]), wanted)
    if wanted == "xls":  # which has a date
        late, whole = (zipfile.ZipFile(BytesIO(one)).read("xl/worksheets/sheet1.xml") for one in (late, whole))  # fmt: skip
    assert late == whole


FAILED = (
    SiteProblem("liar", "The liar", "protocol error:\n\x1b[31m1 columns; not 2"),
    SiteProblem("b", "B", ""),
)
LINE = "failed sites: liar (protocol error: \x1b[31m1 columns; not 2), b\n"


@pytest.mark.parametrize(
    ("wanted", "headers", "more"),
    [
        ("csv", True, f"# {LINE}"),
        ("csv", False, ""),
        ("text", True, LINE.replace("\x1b", "\\x1b")),
        ("json", True, ""),
    ],
)
@pytest.mark.parametrize("value", [{"up": 1}, [], [{"a": 1}]])
def test_failed_sites_follow_what_is_there(wanted, headers, more, value):
    whole = written(Document(value=value), wanted, headers=headers)
    failed = Document(value=value, failed_sites=FAILED)
    assert written(failed, wanted, headers=headers) == whole + more.encode()
