"""Spools on a real disk, and the room for rows."""

from __future__ import annotations

import errno
import os

import pytest
from hypothesis import given
from hypothesis import strategies as st
from twisted.internet.defer import CancelledError

from monrest.base import spool as module
from monrest.base.errors import BadRequest
from monrest.base.memory import MemoryBudget
from monrest.base.spool import IN_MEMORY, RowRoom, Share, Spool, Spools
from tests.fakes.threads import NoThreads, Reactor

KILO = 1024


@pytest.fixture
def spools(tmp_path):
    made = Spools(Reactor(), tmp_path / "spool")
    made.threads = NoThreads()
    made.startService()
    yield made
    assert (made.held, made.stored) == (0, 0)
    assert list((tmp_path / "spool").iterdir()) == []


def emptied(spool):
    found = []
    while (chunk := spool.take()) is not None:
        found.append(chunk)
    spool.close()
    return found


def test_what_is_small_is_in_memory(spools):
    spool = Spool(spools)
    spool.add(b"a" * 1000)
    spool.add(b"")
    spool.add(b"b")
    assert (spool.size, spools.held, spools.stored) == (1001, 1001, 0)
    assert emptied(spool) == [b"a" * 1000, b"", b"b"]


def test_what_is_large_is_in_a_file(spools):
    spool = Spool(spools)
    chunks = [bytes([at % 256]) * 100 * KILO for at in range(50)]
    for chunk in chunks:
        spool.add(chunk)
    assert spools.held <= 3 * IN_MEMORY
    assert spools.stored >= spool.size - 3 * IN_MEMORY
    assert emptied(spool) == chunks


@given(st.lists(st.integers(-1, 700), max_size=60))
def test_first_in_first_out(tmp_path_factory, steps):
    spools = Spools(Reactor(), tmp_path_factory.getbasetemp() / "steps")
    spools.threads = NoThreads()
    spools.startService()
    spool, waiting = Spool(spools), []
    for at, step in enumerate(steps):
        if step < 0:
            assert spool.take() == (waiting.pop(0) if waiting else None)
        else:
            waiting.append(bytes([at % 256]) * step * KILO)
            spool.add(waiting[-1])
        assert spool.size == sum(map(len, waiting))
    assert emptied(spool) == waiting
    assert (spools.held, spools.stored) == (0, 0)


def test_a_full_disk_loses_nothing(spools, monkeypatch):
    def full(*_):
        raise OSError(errno.ENOSPC, "no space left on device")

    chunks = [bytes([at]) * 200 * KILO for at in range(20)]
    spool = Spool(spools)
    with monkeypatch.context() as patched:
        patched.setattr(os, "pwritev", full)
        for chunk in chunks[:10]:
            spool.add(chunk)
        assert (spools.full, spools.held, spools.stored) == (True, 2000 * KILO, 0)
        assert not spools.crowded
        spools.most_held = KILO
        assert spools.crowded
    for chunk in chunks[10:]:
        spool.add(chunk)
    assert not spools.full
    assert not spools.crowded
    assert emptied(spool) == chunks


def test_what_all_files_may_have_is_like_a_full_disk(spools):
    spools.most_stored, spools.most_held = 500 * KILO, 1000 * KILO
    one, other = Spool(spools), Spool(spools)
    for at in range(10):
        one.add(bytes([at]) * 200 * KILO)
    assert spools.stored <= 500 * KILO
    assert spools.full
    assert spools.crowded
    one.close()
    assert not spools.crowded
    for _ in range(3):
        other.add(b"a" * 150 * KILO)
    assert not spools.full
    other.close()


def test_a_disk_that_takes_a_part(spools, monkeypatch):
    real = os.pwritev
    monkeypatch.setattr(os, "pwritev", lambda file, parts, at: real(file, [parts[0][:100]], at))
    chunks = [bytes([at]) * 200 * KILO for at in range(10)]
    spool = Spool(spools)
    for chunk in chunks:
        spool.add(chunk)
    assert emptied(spool) == chunks


def test_all_files_together_have_a_limit(spools):
    spools.most_stored = 1024 * KILO
    one, other = Spool(spools), Spool(spools)
    for at in range(20):
        one.add(bytes([at]) * 100 * KILO)
        other.add(bytes([at]) * 100 * KILO)
    assert 0 < spools.stored <= 1024 * KILO
    assert emptied(one) == emptied(other) == [bytes([at]) * 100 * KILO for at in range(20)]


def test_closed_while_it_is_written(spools):
    spools.threads.holds = True
    spool = Spool(spools)
    for _ in range(10):
        spool.add(b"a" * 100 * KILO)
    assert spool.take() == b"a" * 100 * KILO
    spool.close()
    spools.threads.go_on()
    assert (spools.held, spools.stored) == (0, 0)


def test_forgotten_without_being_closed(spools):
    spool = Spool(spools)
    for _ in range(10):
        spool.add(b"a" * 100 * KILO)
    del spool
    assert (spools.held, spools.stored) == (0, 0)


def test_a_file_that_ends_too_early_is_an_error(tmp_path):
    (tmp_path / "short").write_bytes(b"abc")
    with (tmp_path / "short").open("rb") as file, pytest.raises(OSError, match="too early"):
        module._read(file.fileno(), 10, 0)


# ------------------------------------------------------------------ room


@pytest.fixture
def room():
    return RowRoom(Reactor(), most=100, free=0)


def test_room_is_taken_and_given_back(room):
    one, other = room.share(), room.share()
    assert one.grow(60)
    assert other.grow(40)
    assert not other.grow(1)
    one.release()
    assert other.grow(1)
    assert room.held == 41


def test_who_waits_is_served_in_turn(room):
    holder, one, two, three = (room.share() for _ in range(4))
    holder.grow(90)
    waits = [share.admit(size) for share, size in ((one, 50), (two, 5), (three, 60))]
    assert [wait.called for wait in waits] == [False] * 3
    # There is room for the second, but it is not its turn.
    assert not room.share().grow(1)
    holder.release()
    assert [wait.called for wait in waits] == [True, True, False]
    one.release()
    assert [wait.called for wait in waits] == [True, True, True]
    assert room.held == 65


def test_what_is_larger_than_the_room_gets_it_alone(room):
    holder, large = room.share(), room.share()
    holder.grow(1)
    waiting = large.admit(1000)
    assert not waiting.called
    holder.release()
    assert waiting.called
    assert room.held == 1000
    assert not room.share().admit(1).called


def test_what_can_never_fit_is_refused_at_once(room):
    room.configure(MemoryBudget(32 * 100))
    assert (room.most, room.largest) == (100, 400)
    holder, large = room.share(), room.share()
    holder.grow(100)
    with pytest.raises(BadRequest, match="too many rows"):
        large.admit(401)
    waiting = large.admit(400)
    assert not waiting.called
    holder.release()
    assert waiting.called
    with pytest.raises(BadRequest):
        large.admit(1)
    large.release()
    assert room.held == 0


def test_a_larger_budget_lets_go_on_who_waits(room):
    holder, one = room.share(), room.share()
    holder.grow(100)
    waiting = one.admit(60)
    assert not waiting.called
    room.configure(MemoryBudget(32 * 160))
    assert waiting.called


def test_many_small_spools_go_to_files_together(spools):
    spools.configure(MemoryBudget(8 << 20))
    many = [Spool(spools) for _ in range(40)]
    for one in many:
        one.add(b"x" * 65536)
        one.add(b"y" * 1000)
    assert spools.held <= spools.most_held // 2 + 70_000
    assert spools.held + spools.stored == 40 * 66536
    for one in many:
        assert emptied(one) == [b"x" * 65536, b"y" * 1000]


def test_what_is_small_needs_no_room():
    room = RowRoom(Reactor(), most=100, free=10)
    one, other = room.share(), room.share()
    assert [one.grow(6), one.grow(4), other.grow(10)] == [True] * 3
    assert room.held == 0
    assert one.grow(1)
    assert room.held == 1


def test_one_at_a_time_gets_more_than_there_is(room):
    one, other, third = (room.share() for _ in range(3))
    one.grow(30)
    other.grow(30)
    third.grow(40)
    assert one.admit(500).called
    # What it needs later it gets as well.
    assert one.admit(500).called
    nobody = room.share().admit(1)
    waiting = [other.admit(700), third.admit(5)]
    assert [one.called for one in (nobody, *waiting)] == [False] * 3
    one.release()
    # Who has some goes first.
    assert [one.called for one in (nobody, *waiting)] == [False, True, True]
    third.release()
    other.release()
    assert nobody.called


def test_who_gives_up_lets_others_pass(room):
    holder, large, small = (room.share() for _ in range(3))
    holder.grow(50)
    giving_up, waiting = large.admit(80), small.admit(20)
    giving_up.addErrback(lambda failure: failure.trap(CancelledError))
    assert not waiting.called
    giving_up.cancel()
    assert waiting.called
    assert room.held == 70


def test_a_share_ends_with_its_rows(room):
    share: Share | None = room.share()
    share.grow(70)
    share = None
    assert room.held == 0
