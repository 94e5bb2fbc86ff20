"""Answers that were asked for before: the same rows as read anew, and the same objects."""

from __future__ import annotations

import json
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from monrest.livestatus.core_errors import ProtocolError
from monrest.livestatus.framing import AnswerReader, Damaged, parse_rows
from monrest.livestatus.recall import Recall, RecallParser

TEXTS = st.sampled_from(["", "a", "],\n[", "], [", "]]", "[[", "ü", "\\", '"', "x" * 70_000])
ROWS = st.lists(st.tuples(TEXTS, st.integers(0, 3), st.lists(TEXTS, max_size=2)), max_size=9)


def naemon(rows):
    """In the form of a Naemon."""
    lines = (json.dumps(one, separators=(",", ":"), ensure_ascii=False) for one in rows)
    return ("[" + ",\n".join(lines) + "]\n").encode()


def doubled(rows):
    return [[*row, "more"] for row in rows]


def read(body, recall, pieces=(), width=3):
    """The rows of a whole answer that comes in pieces."""
    parser = RecallParser(width, doubled, recall)
    reader = AnswerReader(width, doubled, parser=parser)
    data = b"200 %11d\n" % len(body) + body
    cuts = sorted({0, len(data), *(min(16 + one, len(data)) for one in pieces)})
    found = [reader.feed(data[start:end]) for start, end in pairwise(cuts)]
    assert found[:-1] == [None] * (len(found) - 1)
    return found[-1]


@given(st.lists(st.tuples(ROWS, st.lists(st.integers(1, 200_000), max_size=4)), max_size=5))
def test_the_same_rows_as_of_any_answer(answers):
    recall = Recall()
    for rows, pieces in answers:
        body = naemon(rows)
        assert read(body, recall, pieces) == parse_rows(body, 3, doubled)


def test_what_is_equal_is_the_same_object():
    recall, rows = Recall(), [[f"r{at}", at, []] for at in range(5000)]
    first = read(naemon(rows), recall, (70_000, 90_000))
    rows[3] = ["new", 3, []]
    rows.append(["last", 0, []])
    second = read(naemon(rows), recall, (65_536,))
    assert [at for at, row in enumerate(second) if at >= 5000 or row is not first[at]] == [3, 5000]
    assert second[3] == ["new", 3, [], "more"]
    assert len(read(naemon(rows[:10]), recall)) == 10


def test_another_request_or_other_rows_of_it():
    recall = Recall()
    recall.use(b"GET a", None)
    read(naemon([("a", 1, [])]), recall)
    recall.use(b"GET a", None)
    assert recall.rows
    recall.use(b"GET a", doubled)
    assert (recall.rows, recall.lines) == ([], [])


@pytest.mark.parametrize(
    "body",
    [
        b'[["a", 1, [["x"], ["y"]]], ["b", 2, []]]\n',  # Icinga 2
        b'[["a",1,["x],\n[y"]]]\n',  # no JSON
        b"[]\n",
    ],
)
def test_what_is_not_one_row_a_line_is_read_as_usual_and_not_kept(body):
    recall = Recall()
    for _ in range(2):
        assert read(body, recall) == parse_rows(body, 3, doubled)
    read(naemon([("a", 1, [])]), recall)
    assert read(body, recall, (3,)) == parse_rows(body, 3, doubled)


def test_damaged_letters_are_told_each_time():
    recall, body = Recall(), b'[["\\u07fc",1,[]]]\n'
    for _ in range(2):
        assert type(read(body, recall)) is Damaged
        assert recall.rows == []


@pytest.mark.parametrize("body", [b'[["a",1]]\n', b"[[1,2,3],\n5]\n", b'[["a",1,[]]', b"{}"])
def test_what_is_broken_is_told_and_changes_nothing(body):
    recall = Recall()
    (row,) = read(naemon([("a", 1, [])]), recall)
    with pytest.raises(ProtocolError):
        read(body, recall)
    assert read(naemon([("a", 1, [])]), recall)[0] is row
