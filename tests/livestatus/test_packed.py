"""Answers whose rows are kept as the core wrote them."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from twisted.internet.defer import Deferred

from monrest.base.spool import RowRoom, Spools
from monrest.livestatus import framing
from monrest.livestatus.core_errors import ProtocolError
from monrest.livestatus.framing import AnswerReader, PackedRows, parse_rows
from tests.fakes.livestatus import as_json, framed
from tests.fakes.threads import Reactor

VALUES = st.text() | st.integers() | st.lists(st.text(), max_size=3) | st.just("],\n[")


def packed_rows(most=0, free=100):
    reactor = Reactor()
    return PackedRows(RowRoom(reactor, most=most, free=free).share(), Spools(reactor, Path()))


@pytest.fixture(autouse=True, scope="module")
def small():
    """Slices are small, so that a few rows are many."""
    before, framing.SLICE = framing.SLICE, 50
    yield
    framing.SLICE = before


def read(packed, data, size=37, transform=None, width=None):
    reader = AnswerReader(width, transform, packed=packed)
    rows = None
    for start in range(0, len(data), size):
        rows = reader.feed(data[start : start + size])
    return rows


def tagged(rows):
    return [[*row, "tag"] for row in rows]


@settings(deadline=None)
@given(st.lists(st.lists(VALUES, min_size=2, max_size=2), max_size=40), st.integers(20, 200))
def test_packed_rows_are_the_same(rows, size):
    packed, body = packed_rows(), as_json(rows)
    last = read(packed, framed(body), size, tagged)
    for _ in range(2):
        found = [row for batch in packed.batches() for row in batch]
        assert len(found) == packed.count
        assert found + last == tagged(parse_rows(body))
    packed.forget()
    assert packed.spools.held == 0


def test_what_has_room_is_kept_as_rows():
    packed, rows = packed_rows(most=10_000), [[f"row {at}", at] for at in range(50)]
    body = as_json(rows)
    assert read(packed, framed(body)) == rows
    assert (packed.count, packed.share.size) == (0, len(body))
    assert list(packed.batches()) == []


def test_what_is_small_needs_no_room():
    packed, rows = packed_rows(), [["a", 1], ["b", 2]]
    assert read(packed, framed(as_json(rows))) == rows
    assert (packed.count, packed.share.size) == (0, 0)


def test_a_second_answer_takes_the_place_of_the_first():
    packed = packed_rows()
    read(packed, framed(as_json([["old", at] for at in range(50)])))
    assert packed.count
    rows = [["new", at] for at in range(60)]
    last = read(packed, framed(as_json(rows)))
    assert [row for batch in packed.batches() for row in batch] + last == rows
    short = framed(as_json([["one", 1]]))
    read(packed, framed(as_json(rows)))
    assert read(packed, short, size=len(short)) == [["one", 1]]
    assert (packed.count, packed.size, packed.spools.held) == (0, 0, 0)


def test_what_is_asked_again_waits_for_room():
    packed = packed_rows()
    holder = packed.share.room.share()
    assert holder.admit(1).called
    body = as_json([["row", at] for at in range(50)])
    read(packed, framed(body))
    waiting = Deferred.fromCoroutine(packed.admit_again())
    assert not waiting.called
    holder.release()
    assert waiting.called
    assert packed.share.size == 2 * len(body)


def test_what_the_disk_does_not_take_is_dropped():
    packed = packed_rows()
    packed.spools.full, packed.spools.most_held = True, -1
    read(packed, framed(as_json([["row", at] for at in range(50)])))
    assert packed.dropped
    assert (packed.count, packed.spools.held) == (0, 0)
    packed.forget()
    assert not packed.dropped


def test_nonsense_is_found_before_anybody_takes_a_row():
    rows = [["row", at] for at in range(50)]
    broken = as_json(rows)[:-40] + b"?" + as_json(rows)[-39:]
    with pytest.raises(ProtocolError):
        read(packed_rows(), framed(broken))
    with pytest.raises(ProtocolError, match="2 columns instead of 3"):
        read(packed_rows(), framed(as_json(rows)), width=3)
