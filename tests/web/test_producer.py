"""The body that is made while it is sent, on a clock and a scripted consumer."""

from pathlib import Path

import pytest
from twisted.internet.defer import CancelledError
from twisted.internet.task import Clock

from monrest.base.spool import Spool, Spools
from monrest.web.producer import QUICK, BodyProducer
from tests.fakes.consumer import Consumer
from tests.fakes.turn import turn


class Work:
    """An iterator of ``count`` numbered pieces that each take ``seconds`` of a clock."""

    clock = Clock()

    def __init__(self, count, seconds=0.0, error=None):
        self.left, self.seconds, self.error, self.closed = count, seconds, error, 0
        self.made = 0

    def __iter__(self):
        return self

    def __next__(self):
        self.clock.rightNow += self.seconds
        if self.left == 0:
            if self.error is not None:
                raise self.error
            raise StopIteration
        self.left -= 1
        self.made += 1
        return b"%d " % self.made

    def close(self):
        self.closed += 1


@pytest.fixture
def clock():
    made = Clock()
    yield made
    assert not made.getDelayedCalls()


def sending(clock, work, consumer, spool=None):
    work.clock = clock
    body = BodyProducer(clock, consumer, work, spool, budget=0.01)
    results = []
    body.send().addBoth(results.append)
    turn(clock)
    return body, results


def numbers(count):
    return [b"%d " % number for number in range(1, count + 1)]


def test_quick_work_is_sent_in_one_turn(clock):
    consumer, work = Consumer(), Work(5)
    _, results = sending(clock, work, consumer)
    assert results == [None]
    assert consumer.written == numbers(5)
    assert (consumer.producer, work.closed) == (None, 1)


def test_the_reactor_gets_its_turn(clock):
    consumer, work = Consumer(), Work(10, seconds=0.004)
    _, results = sending(clock, work, consumer)
    assert len(consumer.written) == 3
    assert len(clock.getDelayedCalls()) == 1
    for _ in range(3):
        clock.advance(0)
    assert results == [None]
    assert consumer.written == numbers(10)


def test_a_paused_consumer_pauses_the_work(clock):
    consumer, work = Consumer(room=2, once=True), Work(5)
    body, results = sending(clock, work, consumer)
    assert (len(consumer.written), work.left, results) == (2, 3, [])
    clock.advance(59)
    assert work.left == 3
    body.resumeProducing()
    clock.advance(0)
    assert (consumer.written, results) == (numbers(5), [None])


def test_pausing_between_turns(clock):
    consumer, work = Consumer(), Work(5, seconds=0.02)
    body, results = sending(clock, work, consumer)
    body.pauseProducing()
    body.pauseProducing()
    clock.advance(1)
    assert len(consumer.written) == 1
    body.resumeProducing()
    body.resumeProducing()
    for _ in range(5):
        clock.advance(0)
    assert results == [None]
    assert consumer.written == numbers(5)


def test_a_client_that_reads_too_slowly_is_cut_off(clock):
    consumer, work = Consumer(room=2, once=True), Work(5)
    body, results = sending(clock, work, consumer)
    consumer.acknowledged = 30_000
    clock.advance(60)
    assert not consumer.aborted
    consumer.acknowledged = 59_999
    clock.advance(60)
    assert consumer.aborted
    assert consumer.producer is None
    assert (results, work.left, work.closed) == ([], 3, 1)
    body.resumeProducing()
    assert work.left == 3


def test_work_that_fails_cuts_the_client_off(clock, stray_failures):
    stray_failures.append(ZeroDivisionError)
    consumer = Consumer()
    _, results = sending(clock, Work(2, error=ZeroDivisionError()), consumer)
    assert (consumer.aborted, consumer.producer, results) == (True, None, [])
    assert len(consumer.written) == 2


def test_a_client_that_leaves_ends_the_work(clock):
    consumer, work = Consumer(), Work(5, seconds=0.02)
    body, results = sending(clock, work, consumer)
    body.stopProducing()
    clock.advance(1)
    assert (len(consumer.written), work.closed, results) == (1, 1, [])


def test_cancelling_ends_the_work(clock):
    consumer, work = Consumer(room=1, once=True), Work(5)
    body, results = sending(clock, work, consumer)
    body.done.cancel()
    assert results[0].check(CancelledError)
    assert (work.left, work.closed) == (4, 1)


def test_any_iterator_will_do(clock):
    consumer = Consumer(room=1, once=True)
    body = BodyProducer(clock, consumer, iter([b"a", b"b"]))
    body.send().addErrback(lambda _: None)
    clock.advance(0)
    body.done.cancel()
    assert consumer.written == [b"a"]


# ------------------------------------------------------------------ ahead of the client


@pytest.fixture
def spool(clock):
    return Spool(Spools(clock, Path()))


def test_a_client_that_takes_its_time_holds_up_nothing(clock, spool):
    consumer, work = Consumer(room=2), Work(9)
    body, results = sending(clock, work, consumer, spool)
    clock.advance(QUICK - 0.1)
    assert (len(consumer.written), work.left) == (2, 7)
    clock.advance(0.1)
    assert (len(consumer.written), work.left, spool.spools.held) == (2, 0, 14)
    for _ in range(4):
        body.resumeProducing()
        clock.advance(0)
    assert consumer.written == numbers(9)
    assert (results, spool.spools.held) == ([None], 0)


def test_where_the_disk_is_full_the_work_waits(clock, spool):
    consumer, work = Consumer(room=2), Work(9)
    body, _ = sending(clock, work, consumer, spool)
    spool.spools.full, spool.spools.most_held = True, -1
    clock.advance(QUICK)
    assert work.left == 7
    body.resumeProducing()
    clock.advance(0)
    assert (len(consumer.written), work.left) == (4, 5)
    body.stopProducing()


def test_work_that_fails_ahead_cuts_the_client_off(clock, spool, stray_failures):
    stray_failures.append(ZeroDivisionError)
    consumer = Consumer(room=2)
    sending(clock, Work(5, error=ZeroDivisionError()), consumer, spool)
    clock.advance(QUICK)
    assert (consumer.aborted, len(consumer.written), spool.spools.held) == (True, 2, 0)


def test_a_client_that_leaves_takes_along_what_was_made_for_it(clock, spool):
    body, _ = sending(clock, Work(5), Consumer(room=2), spool)
    clock.advance(QUICK)
    assert spool.spools.held
    body.stopProducing()
    assert spool.spools.held == 0
