"""What a core may do wrong, and which queries are sent again."""

import pytest

from monrest.livestatus.core_errors import (
    BrokenConnectionError,
    ConnectError,
    ProtocolError,
    QueryTimeoutError,
    RefusedError,
)
from tests.fakes.livestatus import (
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
    text_instead_of_header,
    truncated,
)
from tests.livestatus.pool.bench import ASK, HOSTS, OK


def test_what_was_not_read_on_a_kept_connection_is_sent_again_on_a_new_one(bench):
    """A Unix socket is reset when its other end is closed with unread bytes in it."""
    b = bench(Script([rows(["h1", 0]), reset]), local=True)
    assert b.ask().rows
    assert b.ask().rows == [["h1", 0]]
    assert b.core.connects == 2
    assert [talk.written for talk in b.core.talks] == [[ASK, ASK], [ASK]]


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


@pytest.mark.parametrize("kept", [True, False])
def test_unread_on_a_fresh_connection_is_like_no_connection(bench, kept):
    script = Script([*([rows(["h1", 0]), reset] if kept else []), reset])
    b = bench(script, local=True)
    if kept:
        assert b.ask().rows
    query = b.ask()
    assert isinstance(query.error, ConnectError)
    assert query.error.momentary
    assert len(script.requests) == (3 if kept else 1)


@pytest.mark.parametrize(("end", "local"), [(close_without_answer, True), (reset, False)])
def test_what_may_have_been_read_is_not_sent_again_here(bench, end, local):
    script = Script([rows(["h1", 0]), end])
    b = bench(script, local=local)
    assert b.ask().rows
    error = b.ask().error
    assert isinstance(error, BrokenConnectionError)
    assert (error.kept, error.begun) == (True, False)
    assert len(script.requests) == 2


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


def test_zero_bytes_on_a_fresh_connection_is_a_bad_query(bench):
    script = Script([close_without_answer] * 5)
    b = bench(script)
    assert b.ask().error.reason == "connection closed without an answer"
    assert len(script.requests) == 1


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


def test_half_an_answer_is_not_repeated(bench):
    script = Script([rows(["h1", 0]), truncated(["h1", 0])])
    b = bench(script)
    assert b.ask().rows
    error = b.ask().error
    assert "middle" in error.reason
    assert error.begun
    assert len(script.requests) == 2


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
