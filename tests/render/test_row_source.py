"""Rows that are made while they are read are written like a list."""

import zipfile
from io import BytesIO

import pytest

from monrest.base.values import Column, Rows, RowSource
from monrest.render.formats import RenderOptions, render

COLUMNS = (Column("id", "number"), Column("text", "string"))
ROWS = [[number, f"text; {number} \u00fc"] for number in range(3000)]


def written(rows, wanted):
    answer = Rows(columns=COLUMNS, rows=rows)
    return b"".join(render(answer, RenderOptions(format=wanted)).pieces)


@pytest.mark.parametrize("count", [0, 1, 3000])
@pytest.mark.parametrize("wanted", ["json", "wrapped_json", "ndjson", "csv", "text", "xls"])
def test_the_same_in_every_format(wanted, count):
    rows = [[*row] for row in ROWS[:count]]
    late = written(RowSource(lambda: iter([*map(list, rows)])), wanted)
    whole = written([[*row] for row in rows], wanted)
    if wanted == "xls":  # which has a date
        late, whole = (zipfile.ZipFile(BytesIO(one)).read("xl/worksheets/sheet1.xml") for one in (late, whole))  # fmt: skip
    assert late == whole
