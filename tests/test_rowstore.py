"""Rows that waited in a file are the same, and a file is closed with its last reader."""

import gc
import math

import pytest

from monrest.base.errors import Unavailable
from monrest.base.row_store import RowStore
from monrest.base.spool import Spools
from monrest.base.values import LateRows
from monrest.query.steps import finished
from tests.fakes.threads import NoThreads, Reactor

ROWS = [
    [1, "text", None, 1.5, True, ["a", [1, {"b": None}]], {"x": "y"}],
    [2**63 - 1, "ünï \U0001f600", -(2**63), 0.1, False, [], {}],
    [10**30, "half \ud800 of a pair", "", 1e300, None, [10**40], {"\udfff": 1}],
]


@pytest.fixture
def spools(tmp_path):
    made = Spools(Reactor(), tmp_path / "spool")
    made.threads = NoThreads()
    made.startService()
    yield made
    gc.collect()
    assert (made.held, made.stored) == (0, 0)


@pytest.mark.parametrize("rows", [ROWS[:2], ROWS, ROWS * 500, []])
def test_the_same_rows_come_back(spools, rows):
    store = RowStore(spools, 0)
    runs = [finished(store.keep([*rows])) for _ in range(3)]
    for run in runs:
        assert list(run) == rows
        assert list(run) == rows
        assert run.rows is None or not rows
    readers = [iter(run) for run in runs]
    assert list(zip(*readers, strict=True)) == [(row, row, row) for row in rows]


def test_few_rows_stay_in_memory(spools):
    store = RowStore(spools, 10)
    first = finished(store.keep([[1]] * 10))
    assert first.rows is not None
    second = finished(store.keep([[2]]))
    assert first.rows is second.rows is None
    assert [*first, *second] == [[1]] * 10 + [[2]]


def test_what_packs_rows_may_run_in_a_thread(spools):
    assert callable(next(RowStore(spools, 0).keep([[1]])))


def test_rows_are_let_go_with_their_last_reader(spools):
    store = RowStore(spools, 0)
    run = finished(store.keep([[1]] * 1000))
    reader = iter(run)
    del store, run
    gc.collect()
    assert next(reader) == [1]
    assert spools.held > 0
    del reader
    gc.collect()
    assert spools.held == 0


def test_a_disk_that_takes_nothing(spools):
    spools.full, spools.most_held = True, -1
    with pytest.raises(Unavailable, match="no room for the answer"):
        finished(RowStore(spools, 0).keep([[1]]))


def test_rows_that_are_made_while_they_are_read():
    made = []

    def make():
        made.append(0)
        for number in range(10):
            made[-1] += 1
            yield [number]

    rows = LateRows(make, 10)
    assert (len(rows), bool(rows), rows[0]) == (10, True, [0])
    assert rows[0:4] == [[0], [1], [2], [3]]
    rows[0:4] = [[]] * 4
    assert rows[4:7] == [[4], [5], [6]]
    assert made == [1, 7]
    assert rows[8] == [8]
    assert rows[9:20] == [[9]]
    assert list(rows) == [[number] for number in range(10)]
    assert rows[3] == [3]
    with pytest.raises(IndexError):
        rows[10]
    assert not LateRows(make, 0)
    assert math.inf not in rows
