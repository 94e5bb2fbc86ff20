"""CSV output: header, fields, quoting, objects, errors."""

import csv
import math

from hypothesis import given
from hypothesis import strategies as st

from monrest.base.values import Column, Document, Rows
from monrest.render.csv import csv_field
from monrest.render.formats import RenderOptions, render
from tests.table import each


def lines(answer, *, headers=True):
    rendered = render(answer, RenderOptions(format="csv", headers=headers))
    assert rendered.content_type == "text/csv; charset=utf-8"
    assert rendered.disposition == 'attachment; filename="rest.csv"'
    return b"".join(rendered.pieces).decode()


def columns(*names):
    return tuple(Column(name) for name in names)


@each(
    ("value", "expected"),
    [
        (None, ""),
        ("", ""),
        ("plain text", "plain text"),
        ("OK - 127.0.0.1: rta", '"OK - 127.0.0.1: rta"'),
        ("a;b", '"a;b"'),
        ("a,b", '"a,b"'),
        ('say "hi"', '"say ""hi"""'),
        ("one\ntwo", "one\\ntwo"),
        ("one\r\ntwo", "one\\ntwo"),
        ("one\ntwo;", '"one\\ntwo;"'),
        ("\r", ""),
        (True, "true"),
        (False, "false"),
        (0, "0"),
        (-5, "-5"),
        (5.0, "5"),
        (0.030, "0.03"),
        (2**70, "1180591620717411303424"),
        (math.nan, ""),
        (math.inf, ""),
        (["a"], "a"),
        (["a", "b"], '"a,b"'),
        (["x;y"], '"x;y"'),
        ([1, 2.5, None, True], '"1,2.5,,true"'),
        ([], ""),
        ([["h", 1]], '"[[""h"",1]]"'),
        ([{"b": 1, "a": 2}], '"[{""a"":2,""b"":1}]"'),
        ({"B": "ü", "A": "1"}, '"{""A"":""1"",""B"":""ü""}"'),
        ({}, "{}"),
    ],
)
def test_fields(value, expected):
    assert csv_field(value) == expected


def test_header_and_rows_in_asked_order_with_names_quoted():
    answer = Rows(columns=columns("state", "sum(a:b)", "x\ny"), rows=[[0, "h", 1], [1, "i", 2]])
    assert lines(answer) == '#state;"sum(a:b)";x\\ny\n0;h;1\n1;i;2\n'


def test_without_asked_columns_the_keys_of_the_first_row_rule():
    answer = Rows(
        columns=columns("name", "Z"),
        rows=[["h1", 1, {"rta": 5, "name": "no"}], ["h2", 2, {"later": 1}], ["h3", 3, {"rta": 6}]],
        expand=lambda row: row[2],
    )
    assert lines(answer) == "#Z;name;rta\n1;h1;5\n2;h2;\n3;h3;6\n"


def test_hidden_values_stay_hidden():
    assert lines(Rows(columns=columns("a"), rows=[[1, "hidden"]])) == "#a\n1\n"


def test_objects_are_key_and_value_sorted_or_in_their_order():
    assert lines(Document(value={"b": 1, "a": [1, 2]})) == '#key;value\na;"1,2"\nb;1\n'
    ordered = Document(value={"c": 1, "b": 2, "a": 3}, order=("b", "missing"))
    assert lines(ordered) == "#key;value\nb;2\na;3\nc;1\n"


def test_lists_and_scalars_as_documents():
    assert lines(Document(value=[{"b": 1, "a": 2}, {"a": 3}])) == "#a;b\n2;1\n3;\n"
    assert lines(Document(value=["x", "y"])) == "#value\nx\ny\n"
    assert lines(Document(value=7)) == "#value\n7\n"


def test_text_that_is_no_unicode_does_not_break_the_answer():
    assert lines(Rows(columns=columns("a"), rows=[["x\ud800"]])) == "#a\nx\ufffd\n"


anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=12),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3)
    ),
    max_leaves=6,
)


@given(
    st.integers(1, 4).flatmap(
        lambda width: st.lists(st.lists(anything, min_size=width, max_size=width), max_size=6)
    )
)
def test_a_row_is_one_line_and_never_more_fields(rows):
    width = len(rows[0]) if rows else 1
    answer = Rows(columns=columns(*"abcd"[:width]), rows=[list(row) for row in rows])
    text = lines(answer)
    assert text.endswith("\n")
    assert "\r" not in text
    split = text[:-1].split("\n")
    assert len(split) == len(rows) + 1
    for line in split:
        fields = next(csv.reader([line], delimiter=";")) or [""]
        assert len(fields) == width


@given(st.text(st.characters(codec="utf-8"), max_size=20))
def test_a_text_can_be_read_back_but_for_its_line_ends(text):
    field = csv_field(text)
    (read,) = next(csv.reader([field], delimiter=";")) or [""]
    assert read == text.replace("\r", "").replace("\n", "\\n")
