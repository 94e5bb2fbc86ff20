"""Rows that wait in a file come back as they were."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from monrest.base.answer_file import AnswerFiles
from monrest.base.errors import Unavailable
from monrest.logs.ask import RowStore

VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters()),
    lambda inner: st.lists(inner, max_size=3),
    max_leaves=5,
)


@given(rows=st.lists(st.lists(VALUES, min_size=2, max_size=2), max_size=5))
def test_rows_come_back_as_they_were_and_more_than_once(rows, tmp_path_factory) -> None:
    store = RowStore(AnswerFiles(tmp_path_factory.getbasetemp()), 0)
    runs = [store.keep([*rows]) for _ in range(3)]
    for _ in range(2):
        assert [list(run) for run in runs] == [rows] * 3


def test_few_rows_stay_in_memory(tmp_path) -> None:
    store = RowStore(AnswerFiles(tmp_path), 10)
    first = store.keep([[1]] * 10)
    assert first.rows == [[1]] * 10
    second = store.keep([[2]])
    assert first.rows is second.rows is None
    assert [list(first), list(second)] == [[[1]] * 10, [[2]]]


def test_the_file_has_no_name(tmp_path) -> None:
    run = RowStore(AnswerFiles(tmp_path), 0).keep([[1]] * 1000)
    assert list(tmp_path.iterdir()) == []
    assert len(list(run)) == 1000


def test_a_disk_that_takes_nothing_is_no_room(tmp_path) -> None:
    with pytest.raises(Unavailable):
        RowStore(AnswerFiles(tmp_path / "missing"), 0).keep([[1]])
