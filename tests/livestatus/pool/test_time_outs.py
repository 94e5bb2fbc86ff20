"""How long a query may take."""

from monrest.livestatus.core_errors import ConnectError, QueryTimeoutError
from tests.fakes.livestatus import Script, slow_drip
from tests.livestatus.pool.bench import OK


def test_a_slow_query_times_out_and_loses_its_connection(bench):
    b = bench()
    query = b.ask(timeout=30)
    b.clock.advance(29.9)
    assert query.pending
    b.clock.advance(0.1)
    assert isinstance(query.error, QueryTimeoutError)
    assert query.error.reason == "timed out after 30 s"
    assert query.error.timed_out
    assert not b.core.open


def test_time_outs_of_their_own(bench):
    b = bench()
    long, short = b.ask(timeout=300), b.ask(timeout=0.5)
    b.clock.advance(0.5)
    assert short.error.reason == "timed out after 0.5 s"
    b.clock.advance(299)
    assert long.pending
    b.clock.advance(1)
    assert long.error.timed_out


def test_waiting_in_the_queue_counts(bench):
    b = bench(limit=1)
    first, second = b.ask(timeout=100), b.ask(timeout=2)
    b.clock.advance(2)
    assert second.error.timed_out
    assert first.pending
    b.core.talks[0].say(OK)
    assert first.rows == [[1]]


def test_a_drip_does_not_extend_the_time(bench):
    b = bench(Script([slow_drip(["h1", 0], every=1)]))
    query = b.ask(timeout=10)
    for _ in range(9):
        b.clock.advance(1)
    assert query.pending
    b.clock.advance(1)
    assert query.error.timed_out


def test_connecting_times_out(bench):
    b = bench()
    b.core.up = None
    query = b.ask(timeout=30)
    b.clock.advance(4.9)
    assert query.pending
    b.clock.advance(0.1)
    assert isinstance(query.error, ConnectError)
    assert query.error.reason == "timed out connecting after 5 s"
    assert query.error.timed_out
    assert b.core.cancelled == 1


def test_a_short_query_does_not_wait_for_a_long_connect(bench):
    b = bench()
    b.core.up = None
    query = b.ask(timeout=1)
    b.clock.advance(1)
    assert query.error.reason == "timed out after 1 s"


def test_a_quick_query_costs_no_timed_call(bench):
    b = bench(Script())
    b.ask()
    b.ask()
    calls = b.clock.getDelayedCalls()
    for _ in range(10):
        b.ask()
    assert b.clock.getDelayedCalls() == calls
    assert len(calls) == 1
