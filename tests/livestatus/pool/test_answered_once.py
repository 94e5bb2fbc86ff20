"""Each query is answered exactly once, also when whoever hears it first cancels another."""

import pytest
from twisted.internet.defer import CancelledError

from monrest.livestatus.core_errors import ConnectError, QueryTimeoutError, StoppedError
from monrest.livestatus.pool import CoreRequest
from tests.livestatus.pool.bench import ASK, OK


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
