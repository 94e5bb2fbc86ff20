"""Asking many, shields, periodic jobs, threads, and the clocks behind them."""

from __future__ import annotations

import threading
import time

import pytest
from twisted.internet.defer import CancelledError, Deferred
from twisted.internet.defer import TimeoutError as DeferredTimeout
from twisted.internet.epollreactor import EPollReactor
from twisted.internet.task import Clock

from monrest.base.clock import ClockSteps, measure_spans
from monrest.base.concurrency import (
    Periodic,
    Shared,
    Threads,
    ask_all,
    ended,
    pause,
    shielded,
)
from monrest.base.errors import LostError, Unavailable
from tests.fakes.clocks import Wall
from tests.fakes.sites import outcome


@pytest.fixture
def clock():
    clock = Clock()
    yield clock
    assert not clock.getDelayedCalls()


def run(coroutine):
    deferred = Deferred.fromCoroutine(coroutine)
    return deferred, outcome(deferred)


def test_all_are_asked_at_once_and_answer_in_order(clock):
    waiting = {}

    async def ask(name):
        waiting[name] = Deferred()
        return await waiting[name]

    _, found = run(ask_all("abc", ask, clock, 10))
    assert sorted(waiting) == ["a", "b", "c"]
    waiting["c"].callback(3)
    waiting["a"].errback(ValueError("no"))
    assert found == []
    clock.advance(10)
    a, b, c = found[0]
    assert (a.asked, a.value, type(a.problem)) == ("a", None, ValueError)
    assert (b.asked, b.value, type(b.problem)) == ("b", None, DeferredTimeout)
    assert (c.asked, c.value, c.problem) == ("c", 3, None)


def test_no_question_has_no_answer(clock):
    assert run(ask_all([], None, clock, 10))[1] == [[]]


def test_cancelling_cancels_every_question(clock):
    cancelled = []

    async def ask(name):
        await Deferred(lambda _: cancelled.append(name))

    deferred, found = run(ask_all("ab", ask, clock, 10))
    deferred.cancel()
    assert cancelled == ["a", "b"]
    assert found[0].check(CancelledError)


def test_shielded_work_gives_its_result():
    inner = Deferred()

    async def work():
        return await inner

    found = outcome(shielded(work()))
    inner.callback(5)
    assert found == [5]


def test_shielded_work_survives_its_client(stray_failures):
    inner, steps = Deferred(), []

    async def work():
        await inner
        steps.append("done")
        raise ValueError

    stray_failures.append(ValueError)
    waiter = shielded(work())
    found = outcome(waiter)
    waiter.cancel()
    assert found[0].check(CancelledError)
    inner.callback(None)
    assert steps == ["done"]


@pytest.mark.parametrize(
    "refusal", [Unavailable("cannot store", "the database is away"), LostError("a lease")]
)
def test_a_refusal_without_a_waiter_is_no_bug(stray_failures, refusal):
    inner = Deferred()

    async def work():
        await inner
        raise refusal

    shielded(work()).addErrback(lambda _: None).cancel()
    inner.callback(None)
    assert stray_failures == []  # and the fixture finds no failure in the log


def test_the_end_of_work_is_waited_for_and_each_keeps_its_result(clock):
    first, second = Deferred(), Deferred()
    results = [outcome(first), outcome(second)]
    end = outcome(Deferred.fromCoroutine(ended([first, second], clock, 4.0)))
    first.callback("done")
    assert end == []
    second.errback(ValueError())
    assert end == [None]
    assert results[0] == ["done"]
    assert results[1][0].check(ValueError)
    assert not clock.getDelayedCalls()


def test_work_that_does_not_end_in_time_is_cancelled(clock):
    stubborn, gone = Deferred(lambda _: None), outcome(work := Deferred())
    end = outcome(Deferred.fromCoroutine(ended([stubborn, work], clock, 4.0)))
    left = outcome(stubborn)
    clock.advance(3.9)
    assert (gone, left, end) == ([], [], [])
    clock.advance(0.1)
    assert gone[0].check(CancelledError)
    assert left[0].check(CancelledError)
    assert end == [None]


def test_nothing_to_wait_for_is_over_at_once(clock):
    assert outcome(Deferred.fromCoroutine(ended([], clock, 4.0))) == [None]
    assert not clock.getDelayedCalls()


def test_shared_work_is_told_once_to_each_who_waits():
    work = Deferred()

    async def shared_work():
        return await work

    shared, told, ended = Shared(), [], []
    shared.run(shared_work(), lambda: ended.append(True))
    first, second, third = (shared.wait() for _ in range(3))
    first.addCallback(lambda value: (second.cancel(), value)[1])
    for name, one in (("first", first), ("second", second), ("third", third)):
        one.addBoth(lambda result, name=name: told.append((name, result)))
    work.callback(7)
    assert ended == [True]
    assert [(name, getattr(value, "type", value)) for name, value in told] == [
        ("second", CancelledError),
        ("first", 7),
        ("third", 7),
    ]


def test_pause(clock):
    found = outcome(pause(clock, 3))
    clock.advance(2.9)
    assert found == []
    clock.advance(0.1)
    assert found == [None]
    pause(clock, 3).addErrback(lambda _: None).cancel()


@pytest.mark.parametrize("now", [True, False])
def test_periodic_counts_from_the_end_of_a_run(clock, now):
    runs = []

    async def job():
        runs.append(clock.seconds())
        await pause(clock, 2)

    service = Periodic(clock, 10, job, "job", now)
    assert not clock.getDelayedCalls()
    service.startService()
    clock.pump([1] * 35)
    assert runs == ([0, 12, 24] if now else [10, 22, 34])
    assert outcome(service.stopService()) == [None]


def test_periodic_outlives_failures(clock, stray_failures):
    stray_failures.append(ValueError)
    stray_failures.append(CancelledError)
    runs = []

    async def job():
        runs.append(1)
        raise [ValueError, CancelledError][len(runs) % 2]

    service = Periodic(clock, 10, job, "job")
    service.startService()
    clock.pump([1] * 35)
    assert len(runs) == 4
    assert outcome(service.stopService()) == [None]


def test_periodic_stops_when_a_cancelled_job_fails_otherwise(clock, stray_failures):
    """A job that tidies up may find that it cannot, or may have nothing against its end."""
    stray_failures.append(Unavailable)

    async def job(error):
        try:
            await pause(clock, 100)
        except CancelledError:
            if error is not None:
                raise error from None

    for error in (Unavailable("gone", ""), None):
        service = Periodic(clock, 10, lambda error=error: job(error), "job")
        service.startService()
        assert outcome(service.stopService()) == [None]
        assert not clock.getDelayedCalls()


def test_periodic_stops_in_the_middle_of_a_run(clock):
    ended = []

    async def job():
        try:
            await pause(clock, 100)
        finally:
            ended.append(True)

    service = Periodic(clock, 10, job, "job")
    service.startService()
    assert outcome(service.stopService()) == [None]
    assert ended == [True]
    assert outcome(service.stopService()) == [None]
    service.startService()
    assert outcome(service.stopService()) == [None]


async def test_threads():
    from twisted.internet import reactor

    threads = Threads(reactor, 2, "test")
    with pytest.raises(RuntimeError):
        threads.run(lambda: 1)
    threads.startService()
    name = await threads.run(lambda: threading.current_thread().name)
    assert name != threading.current_thread().name
    with pytest.raises(ZeroDivisionError):
        await threads.run(lambda: 1 / 0)
    held, done = threading.Event(), []
    running = threads.run(lambda: held.wait(300))
    stopping = threads.stopService()
    stopping.addBoth(done.append)
    assert done == []
    held.set()
    assert await running
    await stopping
    await threads.stopService()


def test_work_in_a_thread_hears_that_its_waiter_has_left():
    class Held(Threads):
        def run(self, function):
            self.function = function
            return Deferred()

    threads, said = Held(None, 1, "held"), []
    waiting = Deferred.fromCoroutine(
        threads.stoppable(lambda given_up: said.append(given_up) or given_up())
    )
    assert threads.function() is False
    waiting.addErrback(lambda failure: failure.trap(CancelledError))
    waiting.cancel()
    assert [given_up() for given_up in said] == [True]
    assert threads.function() is True


@pytest.fixture
def reactor():
    made = EPollReactor()
    yield made
    made.disconnectAll()
    made._poller.close()
    for one in made._internalReaders:
        one.connectionLost(None)


def test_calls_of_the_reactor_follow_the_monotonic_clock(reactor):
    measure_spans(reactor)
    before = time.monotonic()
    call = reactor.callLater(5, print)
    assert before + 5 <= call.getTime() <= time.monotonic() + 5
    before = time.monotonic()
    call.reset(7)
    assert before + 7 <= call.getTime() <= time.monotonic() + 7
    assert 0 < reactor.timeout() <= 7
    measure_spans(reactor)  # once more changes nothing


def test_calls_that_wait_already_would_wait_for_years(reactor):
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
