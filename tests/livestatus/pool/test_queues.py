"""Queries of the log one by one, urgent ones before all others."""

import pytest

from tests.fakes.livestatus import framed
from tests.livestatus.pool.bench import ASK, OK


def test_log_queries_run_one_at_a_time(bench):
    b = bench()
    logs = [b.ask(request=b"GET log\n\n", log=True) for _ in range(3)]
    plain = b.ask()
    assert [talk.written for talk in b.core.talks] == [[b"GET log\n\n"], [ASK]]
    b.core.talks[1].say(OK)
    assert plain.rows
    for n, log in enumerate(logs):
        busy = next(talk for talk in b.core.open if talk.written[-1] == b"GET log\n\n")
        assert all(other.pending for other in logs[n:])
        busy.written[-1] = b"answered"
        busy.say(OK)
        assert log.rows
    assert b.core.connects == 2


@pytest.mark.parametrize("end", ["cancel", "time out", "refuse"])
def test_the_next_log_query_runs_however_the_first_one_ends(bench, end):
    b = bench()
    first = b.ask(timeout=5, log=True)
    second = b.ask(timeout=50, log=True)
    if end == "cancel":
        first.deferred.cancel()
    elif end == "time out":
        b.clock.advance(5)
    else:
        b.core.talks[0].say(framed(b"no", 400))
    b.clock.advance(0)
    assert not first.pending
    b.core.open[0].say(OK)
    assert second.rows == [[1]]


def test_log_queries_fail_together_when_nothing_answers(bench):
    b = bench()
    b.core.up = None
    logs = [b.ask(log=True) for _ in range(3)]
    b.clock.advance(5)
    assert [log.error.reason for log in logs] == ["timed out connecting after 5 s"] * 3


def test_urgent_queries_go_first_and_beyond_the_limit(bench):
    b = bench(limit=1)
    slow, waiting = b.ask(), b.ask()
    probe = b.ask(urgent=True)
    assert b.core.connects == 2
    b.core.talks[1].say(OK)
    assert probe.rows
    # The connection beyond the limit does not stay, but may serve who waits.
    assert waiting.pending
    b.clock.advance(0)
    assert len(b.core.open) <= 2
    b.core.talks[0].say(OK)
    b.clock.advance(0)
    for talk in b.core.open:
        talk.say(OK)
    b.clock.advance(0)
    assert slow.rows
    assert waiting.rows
    assert len(b.core.open) == 1


def test_an_urgent_query_hears_that_nothing_can_be_opened(bench):
    b = bench(limit=1)
    slow = b.ask()
    b.core.up = False
    assert b.ask(urgent=True).error.reason == "connection refused"
    assert slow.pending
