"""The command channel: what nobody knows, and that nothing is sent again."""

import pytest

from monrest.livestatus.core_errors import ProtocolError, QueryTimeoutError
from monrest.livestatus.verdicts import ACCEPTED
from tests.fakes.livestatus import framed
from tests.livestatus.channel.bench import NO, REFUSED, ROW, THREE, lines


def test_cut_after_some_answers(bench):
    found = bench.send(*lines(100))
    bench.say(ROW * 49 + NO)
    bench.talk.close()
    bench.turn()
    (done,) = found
    assert done.verdicts == (ACCEPTED,) * 49 + (REFUSED,)
    assert done.written == 100
    assert done.error.reason == "connection closed without an answer"


def test_cut_in_the_middle_of_an_answer(bench):
    found = bench.send(*THREE)
    bench.say(ROW + ROW[:7])
    bench.talk.reset()
    bench.turn()
    assert (found[0].verdicts, found[0].written) == ((ACCEPTED,), 3)
    assert found[0].error.reason == "connection lost in the middle of an answer"


def test_nothing_is_sent_again(bench):
    bench.send("x")
    bench.say(ROW)
    found = bench.send(*THREE)
    bench.talk.reset()
    bench.turn()
    assert (found[0].verdicts, found[0].written) == ((), 3)
    bench.turn(60)
    assert bench.core.connects == 1


def test_only_what_was_written_is_in_doubt_on_serial_cores(bench):
    found = bench.send(*THREE, kind="mk")
    bench.say(ROW)
    bench.talk.close()
    bench.turn()
    assert (found[0].verdicts, found[0].written) == ((ACCEPTED,), 2)


def test_no_answer_in_time(bench):
    found = bench.send(*THREE)
    after = bench.send("x")
    bench.say(ROW)
    bench.turn(29.9)
    assert found == []
    bench.turn(0.1)
    assert (found[0].verdicts, found[0].written) == ((ACCEPTED,), 3)
    assert isinstance(found[0].error, QueryTimeoutError)
    assert bench.core.talks[0].aborted
    bench.turn(0)
    assert len(after) + len(bench.core.open) == 1


@pytest.mark.parametrize(
    ("lie", "reason"),
    [
        (b"Invalid request method\n", "no header but"),
        (framed(b"nonsense\n"), "not valid JSON"),
        (framed(b"no\n", 413), "answered with 413"),
        (b"200 99999999999\n", "is announced"),
        (b"\0" * 100_000, "without an end"),
    ],
)
def test_lies(bench, lie, reason):
    found = bench.send(*THREE)
    bench.say(ROW + lie)
    (done,) = found
    assert (done.verdicts, done.written) == ((ACCEPTED,), 3)
    assert isinstance(done.error, ProtocolError)
    assert reason in done.error.reason
    assert not bench.core.open
    found = bench.send("x")
    bench.say(ROW)
    assert found[0].error is None


def test_more_answers_than_commands(bench):
    found = bench.send(*THREE)
    bench.say(ROW * 4)
    assert found[0].verdicts == (ACCEPTED,) * 3
    assert found[0].error is None
    # What was too much may not be taken for the answer to the next one.
    assert not bench.core.open
    found = bench.send(*THREE, kind="mk")
    bench.say(ROW * 2)
    assert found[0].verdicts == (ACCEPTED,)
    assert (found[0].written, found[0].error.reason) == (
        1,
        "protocol error: more answers than commands",
    )
    assert not bench.core.open


@pytest.mark.parametrize("surplus", [b"x", ROW, b"400: no\n"])
def test_unasked_bytes_end_the_connection(bench, surplus):
    found = bench.send("x")
    bench.say(ROW + surplus)
    assert found[0].verdicts == (ACCEPTED,)
    assert not bench.core.open
    bench.send("y")
    bench.say(ROW)
    bench.say(surplus)
    assert not bench.core.open
    found = bench.send("z")
    bench.say(NO)
    assert found[0].verdicts == (REFUSED,)
