"""The pool: its connections, its queues, its end, and cores that misbehave. On a clock, with connections in memory."""

import gc
import weakref

import pytest
from twisted.internet.defer import CancelledError
from twisted.internet.task import Clock

from monrest.livestatus.core_errors import (
    BrokenConnectionError,
    ConnectError,
    ProtocolError,
    QueryTimeoutError,
    RefusedError,
    StoppedError,
)
from monrest.livestatus.pool import CoreRequest, Pool
from tests.fakes.livestatus import (
    MemoryCore,
    Script,
    close_without_answer,
    framed,
    hang,
    invalid_json,
    longer_than_it_says,
    raw,
    refused,
    reset,
    rows,
    shorter_than_it_says,
    slow_drip,
    text_instead_of_header,
    truncated,
)

ASK = b"GET hosts\n\n"
HOSTS = CoreRequest(ASK)
OK = framed(b"[[1]]\n")


class Bench:
    """A pool on a clock, and what became of its queries."""

    def __init__(self, script=None, **options):
        self.clock = Clock()
        self.core = MemoryCore(self.clock, script)
        self.alarms = []
        self.pool = Pool(
            self.clock,
            self.core,
            on_lost=lambda: self.alarms.append("lost"),
            **options,
        )

    def ask(self, timeout=30.0, request=ASK, **options):
        results = []
        done = self.pool.query(CoreRequest(request, **options), timeout)
        done.addBoth(results.append)
        query = Query(done, results)
        self.clock.advance(0)
        return query

    def stop(self):
        done = []
        self.pool.stop().addBoth(done.append)
        self.clock.advance(0)
        assert done == [None]
        assert self.pool.quiet
        assert not self.core.open
        assert not self.clock.getDelayedCalls()


class Query:
    def __init__(self, deferred, results):
        self.deferred = deferred
        self.results = results

    @property
    def rows(self):
        assert self.results, "no answer yet"
        assert isinstance(self.results[0], list), self.results[0]
        return self.results[0]

    @property
    def error(self):
        assert self.results, "no answer yet"
        return self.results[0].value

    @property
    def pending(self):
        return not self.results


@pytest.fixture
def bench():
    benches = []

    def make(*args, **options):
        benches.append(Bench(*args, **options))
        return benches[-1]

    yield make
    for one in benches:
        one.stop()


def test_one_request_at_a_time_on_a_connection(bench):
    b = bench(limit=1)
    first, second = b.ask(), b.ask()
    talk = b.core.talks[0]
    assert talk.written == [ASK]
    talk.say(OK[:10])
    assert talk.written == [ASK]
    talk.say(OK[10:])
    assert first.rows == [[1]]
    assert talk.written == [ASK, ASK]
    assert second.pending
    talk.say(OK)
    assert second.rows == [[1]]


def test_no_query_waits_while_a_connection_can_be_opened(bench):
    b = bench(limit=3)
    slow, other, third, fourth = (b.ask() for _ in range(4))
    assert b.core.connects == 3
    b.core.talks[2].say(OK)
    assert third.rows == [[1]]
    assert slow.pending
    assert other.pending
    b.core.talks[2].say(framed(b"[[2]]"))
    assert fourth.rows == [[2]]
    assert b.core.connects == 3


def test_waiting_queries_are_served_in_order(bench):
    b = bench(limit=1)
    queries = [b.ask(request=b"GET hosts%d\n\n" % n) for n in range(5)]
    talk = b.core.talks[0]
    for n, query in enumerate(queries):
        assert talk.written[-1] == b"GET hosts%d\n\n" % n
        talk.say(OK)
        assert query.rows == [[1]]


def test_two_idle_connections_expire_one_by_one(bench):
    b = bench()
    first, second = b.ask(), b.ask()
    b.core.talks[0].say(OK)
    b.clock.advance(10)
    b.core.talks[1].say(OK)
    assert first.rows == second.rows
    b.clock.advance(50)
    assert [talk.open for talk in b.core.talks] == [False, True]
    b.clock.advance(10)
    assert not b.core.open


def test_refused_more_connections_leaves_the_query_waiting_for_those_there_are(bench):
    b = bench(limit=4)
    first = b.ask()
    b.core.up = False
    second = b.ask()
    assert second.pending
    b.core.talks[0].say(OK)
    b.core.talks[0].say(OK)
    assert first.rows == second.rows == [[1]]


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


def test_cancelling_a_waiting_query(bench):
    b = bench(limit=1)
    first, second, third = b.ask(), b.ask(), b.ask()
    second.deferred.cancel()
    b.core.talks[0].say(OK)
    b.core.talks[0].say(OK)
    assert first.rows == third.rows
    assert len(b.core.talks[0].written) == 2


def test_cancelling_while_connecting_ends_the_attempt(bench):
    b = bench()
    b.core.up = None
    first, second = b.ask(), b.ask()
    first.deferred.cancel()
    assert b.core.cancelled == 1
    b.core.let_in()
    b.core.talks[0].say(OK)
    assert second.rows
    third = b.ask()
    third.deferred.cancel()


def test_a_cancelled_query_leaks_nothing(bench):
    b = bench()
    query = b.ask()
    gone = weakref.ref(query.deferred)
    query.deferred.cancel()
    b.clock.advance(0)
    del query
    gc.collect()
    assert gone() is None
    assert b.pool.quiet
    assert not b.clock.getDelayedCalls()


def test_retired_pools_finish_but_keep_nothing(bench):
    b = bench()
    running, idle = b.ask(), b.ask()
    b.core.talks[1].say(OK)
    assert idle.rows
    b.pool.retire()
    b.clock.advance(0)
    assert [talk.open for talk in b.core.talks] == [True, False]
    late = b.ask()
    b.core.talks[0].say(OK)
    b.core.talks[2].say(OK)
    b.clock.advance(0)
    assert running.rows == late.rows
    assert b.pool.quiet
    assert not b.clock.getDelayedCalls()


def test_stopping_fails_everything(bench):
    b = bench(limit=1)
    running, waiting, log = b.ask(log=True), b.ask(), b.ask(log=True)
    b.stop()
    for query in (running, waiting, log, b.ask()):
        assert isinstance(query.error, StoppedError)
    b.stop()


def test_a_query_may_be_sent_from_the_answer_of_another(bench):
    b = bench(Script())
    found = []
    first = b.pool.query(HOSTS, 30)
    first.addCallback(lambda _: b.pool.query(HOSTS, 30))
    first.addBoth(found.append)
    b.clock.advance(0)
    assert found == [[["h1", 0]]]
    assert b.core.connects == 1


def three(b, **options):
    """Three queries; the first that fails cancels the next one that still waits."""
    queries = [b.pool.query(CoreRequest(ASK, **options), 10) for _ in range(3)]
    found = []

    def told(failure):
        first, others = not found, [one for one in queries if not one.called]
        found.append(failure.type)
        if first:
            others[0].cancel()

    for query in queries:
        query.addErrback(told)
    b.clock.advance(0)
    return found


def each_once(found, kind):
    return sorted(one.__name__ for one in found) == sorted(
        one.__name__ for one in (CancelledError, kind, kind)
    )


@pytest.mark.parametrize("log", [False, True])
def test_when_no_connection_can_be_made(bench, log):
    b = bench(limit=1)
    b.core.up = False
    assert each_once(three(b, log=log), ConnectError)


def test_when_the_time_is_over(bench):
    b = bench(limit=1)
    found = three(b)
    b.clock.advance(10)
    assert each_once(found, QueryTimeoutError)
    again = b.ask()
    b.core.open[0].say(OK)
    assert again.rows == [[1]]


def test_when_the_pool_stops(bench):
    b = bench(limit=1)
    found = three(b)
    b.stop()
    assert each_once(found, StoppedError)


def test_what_nobody_took_is_sent_again_on_a_new_connection(bench):
    b = bench(Script())
    assert b.ask().rows
    b.core.talks[0].close()
    (query,) = (b.pool.query(HOSTS, 30),)  # before the news are there
    told = []
    query.addBoth(told.append)
    b.clock.advance(0)
    b.clock.advance(0)
    assert told == [[["h1", 0]]]
    assert [talk.written for talk in b.core.talks] == [[ASK], [ASK]]


def test_sent_again_on_a_new_connection_even_if_others_idle(bench):
    script = Script([hang, rows(["h1", 0]), reset], default=rows(["h1", 0]))
    b = bench(script, limit=2, local=True)
    slow, quick = b.ask(), b.ask()
    assert quick.rows
    b.core.talks[0].say(OK)
    assert slow.rows
    # Both are idle now; the second one is taken first, dies, and the first one may be dead too.
    again = b.ask()
    assert again.rows == [["h1", 0]]
    assert b.core.connects == 3
    assert len(b.core.open) <= 2


@pytest.mark.parametrize("end", [close_without_answer, reset])
def test_a_probe_is_sent_again_once(bench, end):
    script = Script([rows(["h1", 0]), end, rows(["h1", 0]), end, end])
    b = bench(script)
    assert b.ask().rows
    assert b.ask(urgent=True).rows
    assert isinstance(b.ask(urgent=True).error, BrokenConnectionError)
    assert len(script.requests) == 5


def test_the_core_is_gone_when_the_query_is_sent_again(bench):
    b = bench(Script([rows(["h1", 0]), reset]), local=True)
    assert b.ask().rows
    b.core.up = False
    assert b.ask().error.reason == "connection refused"


@pytest.mark.parametrize(
    ("misdeed", "kind", "reason"),
    [
        (reset, BrokenConnectionError, "connection lost"),
        (truncated(["h1", 0]), BrokenConnectionError, "connection lost in the middle of an answer"),
        (invalid_json, ProtocolError, "protocol error: not valid JSON near byte 17"),
        (rows(["h1"]), ProtocolError, "protocol error: 1 columns instead of 2"),
        (longer_than_it_says(["h1", 0]), ProtocolError, "ends too early"),
        (text_instead_of_header, ProtocolError, "no header but 'Invalid request method'"),
        (raw(b"400: x\n"), ProtocolError, "no header but '400: x'"),
        (refused(400, b"bad filter\nmore"), RefusedError, "400: bad filter"),
        (refused(404, b"no such table"), RefusedError, "404: no such table"),
        (raw(framed(b"[]", 204)), RefusedError, "204: []"),
        (shorter_than_it_says(["h1", 0]), QueryTimeoutError, "timed out after 30 s"),
        (hang, QueryTimeoutError, "timed out after 30 s"),
    ],
)
def test_misdeeds_end_in_time_and_cost_the_connection(bench, misdeed, kind, reason):
    b = bench(Script([misdeed]))
    query = b.ask(width=2)
    b.clock.pump([1] * 30)
    assert isinstance(query.error, kind)
    assert reason in query.error.reason
    assert not b.core.open
    assert b.ask(width=2).rows == [["h1", 0]]
    assert b.core.connects == 2


def test_unasked_bytes_spoil_a_connection(bench):
    b = bench()
    first = b.ask()
    b.core.talks[0].say(OK)
    b.core.talks[0].say(b"and another thing")
    second = b.ask()
    assert b.core.connects == 2
    b.core.talks[1].say(OK + OK)
    assert first.rows == second.rows == [[1]]
    b.clock.advance(0)
    assert not b.core.open
