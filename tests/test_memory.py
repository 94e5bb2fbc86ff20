"""What large answers take: the room for rows, rows in a file, when garbage is collected."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from twisted.internet.defer import CancelledError
from twisted.internet.task import Clock

from monrest.base.answer_file import AnswerFiles
from monrest.base.errors import BadRequest, Unavailable
from monrest.base.memory import MemoryBudget
from monrest.base.room import RowRoom, Share
from monrest.daemon import garbage
from monrest.daemon.garbage import FEW, INTERVAL, MANY, PATIENCE, SELDOM, SHORT, WHOLE, Garbage
from monrest.logs.ask import RowStore
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


class Collector:
    def __init__(self):
        self.calls, self.fresh, self.takes, self.now = [], 0, 0.0, 0.0

    def collect(self, generation=2):
        self.calls.append(generation)
        self.now += self.takes
        self.fresh = 0
        return 7

    def get_count(self):
        return (self.fresh, 0, 0)

    def freeze(self):
        self.calls.append("freeze")

    def disable(self):
        self.calls.append("disable")

    def enable(self):
        self.calls.append("enable")


@pytest.fixture
def made(monkeypatch, room):
    collector, clock = Collector(), Clock()
    monkeypatch.setattr(garbage, "gc", collector)
    busy = []
    service = Garbage(clock, room, lambda: bool(busy), timer=lambda: collector.now)
    service.startService()
    assert collector.calls == [1, "freeze", "disable"]
    collector.calls.clear()
    yield collector, clock, busy
    service.stopService()
    assert collector.calls[-1] == "enable"
    assert not clock.getDelayedCalls()


def seconds(clock, count):
    for _ in range(int(count / INTERVAL)):
        clock.advance(INTERVAL)


def test_few_new_objects_are_left_alone(made):
    collector, clock, _ = made
    collector.fresh = FEW - 1
    seconds(clock, 100)
    assert collector.calls == []


def test_new_objects_are_looked_at_once(made, room):
    collector, clock, busy = made
    busy.append("a request")
    room.share().admit(50)
    collector.fresh = FEW
    seconds(clock, 3)
    assert collector.calls == [1]


def test_very_many_are_looked_at_when_no_rows_are_among_them(made, room):
    collector, clock, busy = made
    busy.append("a large answer")
    holder, later = room.share(), room.share()
    holder.admit(50)
    collector.fresh = MANY
    seconds(clock, 20)
    assert collector.calls == []
    # Others do not wait for that.
    assert later.admit(1).called
    holder.release()
    later.release()
    seconds(clock, INTERVAL)
    assert collector.calls == [1]


def test_what_went_with_its_rows_is_not_looked_for(made, room):
    collector, clock, busy = made
    busy.append("a large answer")
    holder = room.share()
    holder.admit(50)
    collector.fresh = MANY
    seconds(clock, 1)
    holder.release()
    collector.fresh = 0
    seconds(clock, PATIENCE)
    assert collector.calls == []
    # The next ones may wait as long as these.
    holder.admit(50)
    collector.fresh = MANY
    seconds(clock, PATIENCE - 1)
    assert collector.calls == []


def test_very_many_do_not_wait_for_ever(made, room):
    collector, clock, _ = made
    holder = room.share()
    holder.admit(50)
    collector.fresh = MANY
    seconds(clock, PATIENCE - INTERVAL)
    assert collector.calls == []
    seconds(clock, INTERVAL)
    assert collector.calls == [1]
    assert room.held == 50


def test_everything_is_looked_at_now_and_then(made):
    collector, clock, busy = made
    busy.append("a request")
    seconds(clock, WHOLE)
    assert collector.calls == []
    busy.clear()
    seconds(clock, 1)
    assert collector.calls == [2]
    seconds(clock, WHOLE + 1)
    assert collector.calls == [2, 2]


def test_everything_is_looked_at_where_requests_never_end(made):
    collector, clock, busy = made
    busy.append("always")
    seconds(clock, WHOLE + PATIENCE)
    assert collector.calls == [2]


def test_everything_is_looked_at_seldom_where_that_takes_long(made):
    collector, clock, _ = made
    collector.takes = SHORT * 2
    seconds(clock, WHOLE + 1)
    assert collector.calls == [2]
    seconds(clock, WHOLE * (SELDOM - 1))
    assert collector.calls == [2]
    seconds(clock, WHOLE + 1)
    assert collector.calls == [2, 2]
