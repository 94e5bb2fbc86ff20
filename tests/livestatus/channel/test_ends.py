"""The command channel: who waits no more, and the end."""

import pytest
from twisted.internet.defer import CancelledError

from monrest.livestatus.command_channel import STOP_LIMIT
from monrest.livestatus.core_errors import ConnectError, StoppedError
from monrest.livestatus.external import request
from monrest.livestatus.verdicts import ACCEPTED
from tests.fakes.sites import outcome
from tests.livestatus.channel.bench import ROW, THREE, Bench, sent


def test_cancelling_ends_the_wait_alone(bench):
    waiting = bench.channel.transmit(THREE, "mk", 30)
    bench.turn()
    behind = bench.channel.transmit(["z"], "mk", 30)
    gone = [outcome(waiting), outcome(behind)]
    waiting.cancel()
    behind.cancel()
    assert all(one[0].check(CancelledError) for one in gone)
    for text in (*THREE, "z"):
        assert bench.heard().endswith(request(text, "mk"))
        bench.say(ROW)
    assert bench.heard() == sent("mk", *THREE, "z")


def test_stopping_finishes_what_is_under_way(bench):
    found = bench.send(*THREE, kind="mk")
    behind = bench.send("z", kind="mk")
    stopped = outcome(bench.channel.stop())
    again = outcome(bench.channel.stop())
    assert (behind[0].written, type(behind[0].error)) == (0, StoppedError)
    for _ in THREE:
        assert stopped == []
        bench.say(ROW)
    assert found[0].verdicts == (ACCEPTED,) * 3
    assert stopped == again == [None]
    assert bench.heard(bench.core.talks[0]) == sent("mk", *THREE)
    later = bench.send("y")
    assert (later[0].written, type(later[0].error)) == (0, StoppedError)


def test_stopping_does_not_wait_for_ever(bench):
    found = bench.send(*THREE)
    bench.say(ROW)
    stopped = outcome(bench.channel.stop())
    bench.turn(STOP_LIMIT - 0.1)
    assert found == stopped == []
    bench.turn(0.1)
    bench.turn()
    assert (found[0].verdicts, found[0].written) == ((ACCEPTED,), 3)
    assert isinstance(found[0].error, StoppedError)
    assert stopped == [None]


def test_stopping_does_not_make_a_time_out_longer(bench):
    found = bench.send("x", timeout=3)
    bench.channel.stop()
    bench.turn(3)
    assert found[0].error.reason == "timed out after 3 s"


@pytest.mark.parametrize("up", [None, True])
def test_stopping_while_connecting_sends_nothing(bench, up):
    bench.core.up = up
    found = outcome(bench.channel.transmit(THREE, "naemon", 30))
    stopped = outcome(bench.channel.stop())
    bench.turn()
    assert (found[0].written, type(found[0].error)) == (0, StoppedError)
    assert stopped == [None]
    assert all(not talk.written for talk in bench.core.talks)


def test_stopping_when_idle(bench):
    bench.send("x")
    bench.say(ROW)
    stopped = outcome(bench.channel.stop())
    bench.turn()
    assert stopped == [None]
    assert not bench.core.open


def test_lost_before_a_handshake_is_over():
    bench = Bench(tls=True)
    found = bench.send("x")
    assert bench.heard() == b""
    bench.talk.reset()
    bench.turn()
    assert (found[0].written, type(found[0].error)) == (0, ConnectError)
    found = bench.send("x")
    bench.talk.client.handshakeCompleted()
    bench.say(ROW)
    assert found[0].verdicts == (ACCEPTED,)
    bench.check_end()


def test_a_handshake_that_hangs():
    bench = Bench(tls=True)
    found = bench.send("x")
    bench.turn(5)
    assert found[0].error.reason == "timed out connecting after 5 s"
    assert bench.heard(bench.core.talks[0]) == b""
    bench.check_end()
