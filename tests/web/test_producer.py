"""The body that is made while it is sent, on a clock and a scripted consumer."""

import pytest
from twisted.internet.defer import CancelledError
from twisted.internet.task import Clock

from monrest.web.producer import Body
from tests.fakes.consumer import Consumer


class Work:
    """An iterator of ``count`` pieces that each take ``seconds`` by its own timer."""

    def __init__(self, count, seconds=0.0, error=None):
        self.left, self.seconds, self.now, self.error, self.closed = count, seconds, 0.0, error, 0

    def __iter__(self):
        return self

    def __next__(self):
        self.now += self.seconds
        if self.left == 0:
            if self.error is not None:
                raise self.error
            raise StopIteration
        self.left -= 1
        return b"piece"

    def close(self):
        self.closed += 1

    def timer(self):
        return self.now


@pytest.fixture
def clock():
    made = Clock()
    yield made
    assert not made.getDelayedCalls()


def sending(clock, work, consumer):
    body = Body(clock, consumer, work, budget=0.01, timer=work.timer)
    results = []
    body.send().addBoth(results.append)
    return body, results


def test_quick_work_is_sent_at_once(clock):
    consumer = Consumer()
    _, results = sending(clock, Work(5), consumer)
    assert results == [None]
    assert consumer.written == [b"piece"] * 5
    assert consumer.producer is None


def test_the_reactor_gets_its_turn(clock):
    consumer, work = Consumer(), Work(10, seconds=0.004)
    _, results = sending(clock, work, consumer)
    assert len(consumer.written) == 3
    assert len(clock.getDelayedCalls()) == 1
    clock.advance(0)
    assert results == [None]
    assert len(consumer.written) == 10


def test_a_paused_consumer_pauses_the_work(clock):
    consumer, work = Consumer(room=2, once=True), Work(5)
    body, results = sending(clock, work, consumer)
    assert (len(consumer.written), work.left, results) == (2, 3, [])
    clock.advance(59)
    assert work.left == 3
    body.resumeProducing()
    assert (len(consumer.written), results) == (5, [None])


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
    assert len(consumer.written) == 5


def test_a_client_that_takes_nothing_is_cut_off(clock):
    consumer, work = Consumer(room=2, once=True), Work(5)
    body, results = sending(clock, work, consumer)
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
    body = Body(clock, consumer, iter([b"a", b"b"]))
    body.send().addErrback(lambda _: None)
    body.done.cancel()
    assert consumer.written == [b"a"]
