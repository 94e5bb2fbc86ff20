"""When garbage is collected, on a clock and with a collector that only notes it."""

import pytest
from twisted.internet.task import Clock

from monrest.base.room import RowRoom
from monrest.daemon import garbage
from monrest.daemon.garbage import FEW, INTERVAL, MANY, PATIENCE, SELDOM, SHORT, WHOLE, Garbage
from tests.fakes.threads import Reactor


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
def room():
    return RowRoom(Reactor(), most=100)


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
    # Nobody else waits for that.
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


def test_everything_is_looked_at_where_somebody_is_always_served(made):
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
