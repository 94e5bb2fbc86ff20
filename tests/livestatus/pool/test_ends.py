"""Queries that are cancelled, pools that are retired or stopped."""

import gc
import weakref

from twisted.internet.defer import CancelledError

from monrest.livestatus.core_errors import StoppedError
from tests.fakes.livestatus import Script
from tests.livestatus.pool.bench import HOSTS, OK


def test_cancelling_a_running_query_closes_its_connection(bench):
    b = bench(limit=1)
    first, second = b.ask(), b.ask()
    first.deferred.cancel()
    assert isinstance(first.error, CancelledError)
    assert b.core.talks[0].aborted
    b.clock.advance(0)
    b.core.talks[1].say(OK)
    assert second.rows == [[1]]


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


def test_stopping_while_connecting(bench):
    b = bench()
    b.core.up = None
    query = b.ask()
    b.stop()
    assert isinstance(query.error, StoppedError)
    assert b.core.cancelled == 1


def test_a_query_may_be_sent_from_the_answer_of_another(bench):
    b = bench(Script())
    found = []
    first = b.pool.query(HOSTS, 30)
    first.addCallback(lambda _: b.pool.query(HOSTS, 30))
    first.addBoth(found.append)
    b.clock.advance(0)
    assert found == [[["h1", 0]]]
    assert b.core.connects == 1
