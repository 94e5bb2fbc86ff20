"""Excel output, read back with openpyxl."""

import io
import math
import zipfile

import openpyxl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from monrest.base.errors import BadRequest, ClientLeftError
from monrest.base.values import Column, Document, Rows
from monrest.render import xlsx
from monrest.render.formats import RenderOptions, render
from tests.examples import examples
from tests.table import each

EXCEL = RenderOptions(format="xls")


def columns(*names):
    return tuple(Column(name) for name in names)


def file_of(answer):
    return io.BytesIO(b"".join(render(answer, EXCEL).pieces))


def sheet_of(answer):
    book = openpyxl.load_workbook(file_of(answer))
    assert book.sheetnames == ["data"]
    return book["data"]


def test_sheet_has_a_styled_header_and_a_filter():
    sheet = sheet_of(Rows(columns=columns("name", "state"), rows=[["h1", 0], ["h2", 1]]))
    assert list(sheet.values) == [("name", "state"), ("h1", 0), ("h2", 1)]
    head = sheet["A1"]
    assert head.font.b
    assert head.alignment.horizontal == "center"
    assert head.fill.fgColor.rgb == "FFC0C0C0"
    assert sheet["A2"].font.b is False
    assert round(sheet.column_dimensions["A"].width) in (30, 31)
    assert sheet.auto_filter.ref == "A1:B3"


@each(
    ("value", "expected"),
    [
        (5, 5),
        (-1.5, -1.5),
        (0, 0),
        (None, None),
        ("", None),
        (True, "true"),
        (math.nan, None),
        (math.inf, None),
        (2**53, 2**53),
        (2**53 + 1, str(2**53 + 1)),
        (2**70, str(2**70)),
        ("12", 12),
        ("-1.5", -1.5),
        ("1700000000", 1700000000),
        ("007", "007"),
        ("1e5", "1e5"),
        ("+5", "+5"),
        ("1234567890123456", "1234567890123456"),
        ("12\n", "12\n"),
        ("nan", "nan"),
        ("=1+1", "=1+1"),
        ("{=1+1}", "{=1+1}"),
        ("http://example.com/", "http://example.com/"),
        ("internal:x", "internal:x"),
        ("a & b < c > d", "a & b < c > d"),
        ("one\\ntwo", "one\ntwo"),
        ("bell\x07\x1b[1m\x00end", "bell[1mend"),
        ("bad\ufffe\uffff\x85", "bad"),
        ("lone\ud800", "lone\ufffd"),
        ("_x0041_", "_x005F_x0041_"),  # the escape of an underscore, which Excel undoes
        (" blanks ", " blanks "),
        (["a", "b", 1], "a, b, 1"),
        (["12"], "12"),
        ([], None),
        ([["h", 1]], '[["h",1]]'),
        ({"b": 1, "a": 2}, '{"a":2,"b":1}'),
    ],
)
def test_cells(value, expected):
    sheet = sheet_of(Rows(columns=columns("a", "end"), rows=[[value, "end"]]))
    cell = sheet["A2"]
    assert cell.value == expected
    assert type(cell.value) is type(expected)
    assert cell.data_type != "f"
    assert cell.hyperlink is None
    assert sheet["B2"].value == "end"


def test_header_names_are_cleaned_too():
    sheet = sheet_of(Rows(columns=columns("=a\x01", "Status"), rows=[["x", 2]]))
    assert list(sheet.values) == [("=a", "Status"), ("x", 2)]


@pytest.mark.parametrize("character", ["x", "😀"])
def test_long_text_is_shortened_to_what_a_cell_holds(character):
    units = len(character.encode("utf-16-le")) // 2
    fits = character * (32767 // units)
    sheet = sheet_of(Rows(columns=columns("a"), rows=[[fits], [fits + "xx"]]))
    assert sheet["A2"].value == fits
    cut = sheet["A3"].value
    assert cut.endswith(character + "…")
    assert len(cut.encode("utf-16-le")) <= 32767 * 2


def test_expanded_keys_and_documents():
    answer = Rows(columns=columns("b"), rows=[[1], [2]], expand=lambda row: {"a": row[0] * 10})
    assert list(sheet_of(answer).values) == [("a", "b"), (10, 1), (20, 2)]
    document = Document(value={"b": 1, "a": "x"})
    assert list(sheet_of(document).values) == [("key", "value"), ("a", "x"), ("b", 1)]
    assert list(sheet_of(Document(value=[])).values) == []


def test_what_a_sheet_cannot_hold_is_refused_by_name():
    with pytest.raises(BadRequest, match=r"limit: .* 1048575 rows"):
        next(render(Rows(columns=columns("a"), rows=[[1]] * 1048576), EXCEL).pieces)
    names = [f"c{number}" for number in range(16385)]
    with pytest.raises(BadRequest, match=r"columns: .* 16384 columns"):
        next(render(Rows(columns=columns(*names), rows=[]), EXCEL).pieces)


def test_rows_are_let_go_of_and_the_file_is_closed(monkeypatch):
    opened = []
    original = xlsx.tempfile.TemporaryFile

    def watched():
        opened.append(original())
        return opened[-1]

    monkeypatch.setattr(xlsx.tempfile, "TemporaryFile", watched)
    rows = [[index] for index in range(100)]
    pieces = render(Rows(columns=columns("a"), rows=rows), EXCEL).pieces
    content = b"".join(pieces)
    assert not any(rows)
    assert len(rows) == 100
    assert zipfile.ZipFile(io.BytesIO(content)).testzip() is None
    assert opened
    assert all(file.closed for file in opened)


@settings(max_examples=examples(40), deadline=None)
@given(
    st.lists(
        st.lists(
            st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20)
            | st.lists(st.text(max_size=5), max_size=3)
            | st.dictionaries(st.text(max_size=3), st.text(max_size=3), max_size=2),
            min_size=2, max_size=2,
        ),
        max_size=6,
    )
)  # fmt: skip
def test_any_values_make_a_workbook_that_opens(rows):
    answer = Rows(columns=columns("a", "b", "end"), rows=[[*row, "end"] for row in rows])
    sheet = sheet_of(answer)
    assert [cell.value for cell in sheet["C"]] == ["end"] * (len(rows) + 1)
    for row, cells in zip(rows, sheet.iter_rows(min_row=2, max_col=2), strict=True):
        for value, cell in zip(row, cells, strict=True):
            assert cell.data_type in "ns"
            if isinstance(value, int) and not isinstance(value, bool) and abs(value) <= 2**53:
                assert cell.value == value


def test_work_that_nobody_waits_for_ends():
    rows = [[number] for number in range(1000)]
    asked = iter(range(1000))
    with pytest.raises(ClientLeftError):
        next(render(Rows(columns=columns("a"), rows=rows), EXCEL, lambda: next(asked) >= 3).pieces)
    assert rows[4:] == [[number] for number in range(4, 1000)]
