"""The command channel: it is certain that nothing was sent."""

from tests.livestatus.channel.bench import ROW, THREE, sent


def test_refused_connections_send_nothing(bench):
    bench.core.up = False
    found = bench.send(*THREE)
    (done,) = found
    assert (done.verdicts, done.written) == ((), 0)
    assert done.error.reason == "connection refused"
    bench.core.up = True
    found = bench.send("x")
    bench.say(ROW)
    assert found[0].error is None


def test_a_connect_that_hangs(bench):
    bench.core.up = None
    found = bench.send("x")
    waiting = bench.send("y", timeout=3)
    bench.turn(3)
    assert (waiting[0].written, waiting[0].error.reason) == (0, "timed out after 3 s")
    assert found == []
    bench.turn(2)
    assert (found[0].written, found[0].error.timed_out) == (0, True)
    assert found[0].error.reason == "timed out connecting after 5 s"
    assert bench.core.cancelled == 1


def test_a_time_out_shorter_than_that_of_connecting(bench):
    bench.core.up = None
    found = bench.send("x", timeout=2)
    bench.turn(2)
    assert (found[0].written, found[0].error.reason) == (0, "timed out after 2 s")
    assert bench.core.cancelled == 1


def test_a_connect_that_comes_too_late_is_not_used(bench):
    bench.core.up = None
    found = bench.send("x", timeout=2)
    hanging = list(bench.core.hanging)
    bench.turn(2)
    bench.core.hanging = hanging
    bench.core.let_in()
    bench.turn()
    assert not bench.core.open
    assert all(not talk.written for talk in bench.core.talks)
    assert len(found) == 1


def test_waiting_too_long_behind_others(bench):
    first = bench.send("x")
    second = bench.send("y", timeout=1)
    third = bench.send("z")
    bench.turn(1)
    assert (second[0].written, second[0].error.reason) == (0, "timed out after 1 s")
    bench.say(ROW)
    bench.say(ROW)
    assert first[0].error is third[0].error is None
    assert bench.heard() == sent("naemon", "x", "z")
