"""What lasts is measured, what means a date is read from a clock that somebody may set."""

import time

import pytest
from twisted.internet.epollreactor import EPollReactor
from twisted.internet.task import Clock

from monrest.base.clock import ClockSteps, measure_spans
from tests.fakes.clocks import Wall


@pytest.fixture
def reactor():
    made = EPollReactor()
    yield made
    made.disconnectAll()
    made._poller.close()
    for one in made._internalReaders:
        one.connectionLost(None)


def test_calls_of_the_reactor_follow_the_clock_that_nobody_sets(reactor):
    measure_spans(reactor)
    before = time.monotonic()
    call = reactor.callLater(5, print)
    assert before + 5 <= call.getTime() <= time.monotonic() + 5
    before = time.monotonic()
    call.reset(7)
    assert before + 7 <= call.getTime() <= time.monotonic() + 7
    assert 0 < reactor.timeout() <= 7
    measure_spans(reactor)  # once more changes nothing


def test_whoever_waits_already_would_wait_for_years(reactor):
    reactor.callLater(5, print)
    with pytest.raises(RuntimeError, match="before anything waits"):
        measure_spans(reactor)


def test_a_clock_that_is_set_is_noticed_and_one_that_is_held_right_is_not():
    clock = Clock()
    wall = Wall(clock)
    steps = ClockSteps(wall, clock)
    assert [steps.look(), steps.look()] == [0, 0]
    for _ in range(100):
        clock.advance(60)
        wall.jump(0.5)
        assert steps.look() == 0
    wall.jump(-3600)
    assert [steps.look(), steps.look()] == [1, 1]
    wall.jump(3600)
    clock.advance(3600)
    assert steps.look() == 2
