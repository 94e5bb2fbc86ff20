"""How many connections a pool opens, for whom, and which it keeps."""

from tests.fakes.livestatus import Script, answer_and_close, framed
from tests.livestatus.pool.bench import ASK, OK


def test_a_connection_is_kept(bench):
    b = bench(Script())
    for _ in range(100):
        assert b.ask().rows == [["h1", 0]]
    assert b.core.connects == 1
    assert b.core.talks[0].written == [ASK] * 100


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


def test_idle_connections_are_closed_after_a_minute(bench):
    b = bench(Script())
    both = b.ask(), b.ask()
    assert all(query.rows for query in both)
    b.ask()
    b.clock.advance(59)
    assert len(b.core.open) == 1
    b.ask()
    b.clock.advance(59.5)
    assert len(b.core.open) == 1
    b.clock.advance(1)
    assert not b.core.open
    assert b.alarms == []  # it was us
    assert not b.clock.getDelayedCalls()
    assert b.ask().rows == [["h1", 0]]


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


def test_refused(bench):
    b = bench()
    b.core.up = False
    queries = [b.ask(), b.ask()]
    assert [query.error.reason for query in queries] == ["connection refused"] * 2
    assert not b.clock.getDelayedCalls()
    b.core.up = True
    query = b.ask()
    b.core.talks[0].say(OK)
    assert query.rows


def test_refused_more_connections_leaves_the_query_waiting_for_those_there_are(bench):
    b = bench(limit=4)
    first = b.ask()
    b.core.up = False
    second = b.ask()
    assert second.pending
    b.core.talks[0].say(OK)
    b.core.talks[0].say(OK)
    assert first.rows == second.rows == [[1]]


def test_a_connection_closed_while_idle_is_replaced(bench):
    b = bench(Script([answer_and_close(["h1", 0])]))
    assert b.ask().rows
    assert b.ask().rows
    assert b.core.connects == 2
    assert b.alarms == ["lost"]
