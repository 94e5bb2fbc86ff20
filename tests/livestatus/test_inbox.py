"""Large answers are kept as the core wrote them, until somebody goes through their rows."""

import pytest
from attrs import evolve
from hypothesis import given, settings
from hypothesis import strategies as st

from monrest.base.errors import BrokenRowsError, ClientLeftError
from monrest.livestatus.core_errors import ProtocolError
from monrest.livestatus.framing import parse_rows
from monrest.livestatus.inbox import BATCH, StoredRows
from monrest.livestatus.pool import CoreRequest
from tests.fakes.livestatus import as_json, framed
from tests.fakes.threads import Reactor, own_memory

VALUES = st.text() | st.integers() | st.lists(st.text(), max_size=3) | st.just("],\n[")


@pytest.fixture
def inbox():
    memory = own_memory(Reactor())
    memory.free = 100
    made = memory.inbox()
    yield made
    made.let_go()
    assert (memory.files.stored, memory.room.held) == (0, 0)


def read(stored, data, size=37, **how):
    reader = evolve(CoreRequest(b"", **how), stored=stored).reader()
    rows = None
    for start in range(0, len(data), size):
        rows = reader.feed(data[start : start + size])
    return rows


def through(stored):
    return [row for batch in stored.batches() for row in batch]


def tagged(rows):
    return [[*row, "tag"] for row in rows]


@settings(deadline=None)
@given(st.lists(st.lists(VALUES, min_size=2, max_size=2), max_size=40), st.integers(20, 200))
def test_stored_rows_are_the_same(rows, size):
    memory = own_memory(Reactor())
    memory.free = 0
    inbox = memory.inbox()
    body = as_json(rows)
    both = [StoredRows(inbox, site) for site in "ab"]
    for stored in both:
        assert read(stored, framed(body), size, transform=tagged) == []
    for _ in range(2):
        assert [through(stored) for stored in both] == [tagged(parse_rows(body))] * 2
    inbox.let_go()
    assert memory.files.stored == 0


def test_many_rows_come_in_batches(inbox):
    rows = [[f"row {at} {'x' * 60}", at] for at in range(10_000)]
    stored = StoredRows(inbox, "a")
    read(stored, framed(as_json(rows)), 65536)
    batches = list(stored.batches())
    assert [row for batch in batches for row in batch] == rows
    assert len(batches) > inbox.size // BATCH // 2


def test_what_is_small_becomes_rows_as_long_as_there_is_room(inbox):
    body = framed(as_json([["a", 1], ["b", 2]]))
    sites = [StoredRows(inbox, at) for at in range(10)]
    found = [read(one, body, len(body)) for one in sites]
    few = sum(bool(one) for one in found)
    assert 1 < few < 10
    assert found == [[["a", 1], ["b", 2]]] * few + [[]] * (10 - few)
    assert [through(one) for one in sites] == [[]] * few + found[:1] * (10 - few)


def test_a_second_answer_takes_the_place_of_the_first(inbox):
    stored = StoredRows(inbox, "a")
    for word in ("old", "new"):
        rows = [[word, at] for at in range(60)]
        read(stored, framed(as_json(rows)))
    assert through(stored) == rows
    assert read(stored, framed(as_json([["one", 1]]))) == [["one", 1]]
    assert (stored.size, through(stored)) == (0, [])


def test_nonsense_is_an_error_of_its_site(inbox):
    rows = [["row", at] for at in range(50)]
    broken = as_json(rows)[:-40] + b"?" + as_json(rows)[-39:]
    stored = StoredRows(inbox, "a")
    for data, width, words in ((broken, 2, "JSON"), (as_json(rows), 3, "2 columns instead of 3")):
        read(stored, framed(data), width=width)
        with pytest.raises(BrokenRowsError) as caught:
            through(stored)
        assert caught.value.site == "a"
        assert isinstance(caught.value.error, ProtocolError)
        assert words in caught.value.error.reason


def test_who_has_left_reads_no_more(inbox):
    stored = StoredRows(inbox, "a")
    read(stored, framed(as_json([["row", at] for at in range(50)])))
    batches = stored.batches()
    inbox.let_go()
    with pytest.raises(ClientLeftError):
        next(batches)


def test_what_a_thread_works_on_stays_until_it_has_ended(inbox):
    stored = StoredRows(inbox, "a")
    read(stored, framed(as_json([["row", at] for at in range(50)])))
    inbox.begin_work()
    inbox.let_go()
    assert len(through(stored)) == 50
    inbox.end_work()
    assert inbox.memory.files.stored == 0
