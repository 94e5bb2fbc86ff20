"""The text table: borders, widths, values, control characters."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from wcwidth import wcswidth

from monrest.base.values import Column, Document, Rows
from monrest.render.formats import TEXT, RenderOptions, render
from monrest.render.text import cell_text


def table(answer):
    rendered = render(answer, RenderOptions(format="text"))
    assert (rendered.content_type, rendered.disposition) == (TEXT, None)
    return b"".join(rendered.pieces).decode()


def columns(*names):
    return tuple(Column(name) for name in names)


def test_wide_characters_count_two_cells():
    assert table(Rows(columns=columns("a"), rows=[["日本"], ["é€"]])) == (
        "+------+\n| a    |\n+------+\n| 日本 |\n| é€   |\n+------+\n"
    )


def test_no_rows_show_the_header_or_nothing():
    assert (
        table(Rows(columns=columns("name"), rows=[])) == "+------+\n| name |\n+------+\n+------+\n"
    )
    assert table(Document(value=[])) == ""
    assert table(Rows(columns=(), rows=[[]])) == ""


def test_expanded_keys_become_columns():
    answer = Rows(
        columns=columns("b"), rows=[[1], [2]], expand=lambda row: {"a": 5} if row[0] == 1 else {}
    )
    assert table(answer).split("\n")[1:5:2] == ["| a | b |", "| 5 | 1 |"]


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (None, ""),
        (True, "1"),
        (False, "0"),
        (0.0, "0"),
        (0.875353, "0.875353"),
        (12, "12"),
        (float("nan"), ""),
        (["a", None, 1.0, True], "a,,1,1"),
        ([["h", 1], ["i", 2]], '["h",1],["i",2]'),
        ({"b": 2, "a": "x"}, "a:x,b:2"),
        ({"a": [1, 2]}, "a:[1,2]"),
        ("one\ntwo\r", "one\\ntwo"),
        ("tab\there", "tab\\there"),
        ("\x1b[31mred\x7f\x9b\u2028", "\\x1b[31mred\\x7f\\x9b\\u2028"),
        (["a\nb"], "a\\nb"),
        ({"a\n": "b\n"}, "a\\n:b\\n"),
        ("lone\ud800", "lone\ufffd"),
    ],
)
def test_cells(value, expected):
    assert cell_text(value) == expected


@given(
    st.integers(1, 4).flatmap(
        lambda width: st.lists(
            st.lists(
                st.text(max_size=10) | st.lists(st.text(max_size=4), max_size=3) | st.floats(),
                min_size=width, max_size=width,
            ),
            max_size=6,
        )
    )
)  # fmt: skip
def test_lines_are_one_per_row_and_equally_wide(rows):
    width = len(rows[0]) if rows else 1
    answer = Rows(columns=columns(*"abcd"[:width]), rows=[list(row) for row in rows])
    text = table(answer)
    split = text[:-1].split("\n")
    assert len(split) == len(rows) + 4
    assert {wcswidth(line) for line in split} == {len(split[0])}
