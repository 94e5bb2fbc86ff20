"""Bodies whose pieces have to be waited for: a slow client holds them back, a stalled one is cut."""

from __future__ import annotations

import pytest
from twisted.internet.defer import Deferred
from twisted.internet.task import Clock

from monrest.web.respond import Flow
from tests.fakes.consumer import Consumer


@pytest.fixture
def clock():
    return Clock()


def sending(clock, request, count):
    async def send():
        flow = Flow(clock, request)
        try:
            for number in range(count):
                await flow.write(b"%d" % number)
        finally:
            flow.close()

    return Deferred.fromCoroutine(send())


def test_all_goes_to_a_fast_client(clock):
    request = Consumer(room=100)
    assert sending(clock, request, 5).called
    assert request.written == [b"0", b"1", b"2", b"3", b"4"]
    assert request.producer is None


def test_a_slow_client_holds_it_back(clock):
    request = Consumer(room=2)
    done = sending(clock, request, 5)
    assert len(request.written) == 2
    clock.advance(59)
    request.producer.resumeProducing()
    assert len(request.written) == 4
    clock.advance(59)
    request.producer.resumeProducing()
    assert done.called
    assert clock.getDelayedCalls() == []
    assert not request.aborted


def test_a_client_that_takes_nothing_is_cut_off(clock):
    request = Consumer(room=1)
    done = sending(clock, request, 5)
    clock.advance(61)
    assert request.aborted
    request.producer.stopProducing()
    done.addErrback(lambda _: None)
    done.cancel()
    assert request.producer is None
    assert request.written == [b"0"]


def test_who_is_gone_leaves_no_timer(clock):
    request = Consumer(room=1)
    done = sending(clock, request, 5)
    request.producer.stopProducing()
    done.addErrback(lambda _: None)
    done.cancel()
    assert clock.getDelayedCalls() == []
