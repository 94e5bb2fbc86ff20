"""The room for rows."""

from __future__ import annotations

import pytest
from twisted.internet.defer import CancelledError

from monrest.base.errors import BadRequest
from monrest.base.memory import MemoryBudget
from monrest.base.room import RowRoom, Share
from tests.fakes.threads import Reactor


@pytest.fixture
def room():
    return RowRoom(Reactor(), most=100)


def test_room_is_taken_and_given_back(room):
    one, other = room.share(), room.share()
    assert one.admit(60).called
    assert other.admit(40).called
    third = room.share()
    waiting = third.admit(1)
    assert not waiting.called
    one.release()
    assert waiting.called
    assert room.held == 41


def test_who_waits_is_served_in_turn(room):
    holder, one, two, three = (room.share() for _ in range(4))
    holder.admit(90)
    waits = [share.admit(size) for share, size in ((one, 50), (two, 5), (three, 60))]
    assert [wait.called for wait in waits] == [False] * 3
    # There is room for the second, but it is not its turn.
    assert not room.share().admit(1).called
    holder.release()
    assert [wait.called for wait in waits] == [True, True, False]
    one.release()
    assert [wait.called for wait in waits] == [True, True, True]
    assert room.held == 65


def test_what_is_larger_than_the_room_gets_it_alone(room):
    holder, large = room.share(), room.share()
    holder.admit(1)
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
    holder.admit(100)
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
    holder.admit(100)
    waiting = one.admit(60)
    assert not waiting.called
    room.configure(MemoryBudget(32 * 160))
    assert waiting.called


def test_one_at_a_time_gets_more_than_there_is(room):
    one, other, third = (room.share() for _ in range(3))
    one.admit(30)
    other.admit(30)
    third.admit(40)
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
    holder.admit(50)
    giving_up, waiting = large.admit(80), small.admit(20)
    giving_up.addErrback(lambda failure: failure.trap(CancelledError))
    assert not waiting.called
    giving_up.cancel()
    assert waiting.called
    assert room.held == 70


def test_a_share_ends_with_its_rows(room):
    share: Share | None = room.share()
    share.admit(70)
    share = None
    assert room.held == 0
