"""The command channel: lines in their order, on one connection."""

import pytest

from monrest.livestatus.core_errors import BrokenConnectionError
from monrest.livestatus.verdicts import ACCEPTED
from tests.fakes.livestatus import framed
from tests.livestatus.channel.bench import NO, REFUSED, ROW, THREE, sent


@pytest.mark.parametrize("kind", ["naemon", "icinga2"])
def test_lines_are_pipelined_and_every_verdict_is_that_of_its_line(bench, kind):
    found = bench.send(*THREE, kind=kind)
    assert bench.heard() == sent(kind, *THREE)
    good, bad = (ROW, NO) if kind == "naemon" else (framed(b""), framed(b"no", 400))
    bench.say(good + bad[:5])
    assert found == []
    bench.say(bad[5:] + good)
    (done,) = found
    assert done.verdicts == (ACCEPTED, REFUSED, ACCEPTED)
    assert (done.written, done.error) == (3, None)


@pytest.mark.parametrize("kind", ["mk", "shinken"])
def test_one_at_a_time_for_cores_that_cannot_be_pipelined(bench, kind):
    found = bench.send(*THREE, kind=kind)
    for count, answer in enumerate((ROW, NO, ROW), 1):
        assert bench.heard() == sent(kind, *THREE[:count])
        assert found == []
        bench.say(answer)
    assert found[0].verdicts == (ACCEPTED, REFUSED, ACCEPTED)
    assert bench.core.connects == 1


def test_a_connection_for_every_line_to_an_lmd(bench):
    found = bench.send(*THREE, kind="lmd")
    for count, text in enumerate(THREE, 1):
        assert bench.core.connects == count
        assert bench.heard() == sent("lmd", text)
        bench.say(framed(b'{"failed": {}}\n'))
    assert found[0].verdicts == (ACCEPTED,) * 3
    assert not bench.core.open


def test_an_lmd_that_says_nothing(bench):
    found = bench.send(*THREE, kind="lmd")
    bench.say(framed(b'{"failed": {}}\n'))
    bench.talk.close()
    bench.turn()
    (done,) = found
    assert (done.verdicts, done.written) == ((ACCEPTED,), 2)
    assert isinstance(done.error, BrokenConnectionError)


def test_transmissions_wait_for_each_other_on_one_connection(bench):
    first = bench.send(*THREE[:2])
    second = bench.send(THREE[2])
    assert bench.heard() == sent("naemon", *THREE[:2])
    bench.say(ROW)
    assert bench.heard() == sent("naemon", *THREE[:2])
    bench.say(NO)
    assert first[0].verdicts == (ACCEPTED, REFUSED)
    assert bench.heard() == sent("naemon", *THREE)
    bench.say(ROW)
    assert second[0].verdicts == (ACCEPTED,)
    assert bench.core.connects == 1


def test_the_connection_is_closed_when_idle(bench):
    bench.send("x")
    bench.say(ROW)
    bench.turn(4.9)
    assert bench.core.open
    bench.turn(0.2)
    assert not bench.core.open
    bench.send("y")
    assert bench.core.connects == 2
    bench.channel.keep(0.0)
    bench.say(ROW)
    assert not bench.core.open


def test_keeping_nothing_closes_an_idle_connection(bench):
    bench.send("x")
    bench.say(ROW)
    bench.channel.keep(0.0)
    assert not bench.core.open


def test_a_connection_that_is_closed_while_idle_is_replaced(bench):
    bench.send("x")
    bench.say(ROW)
    bench.talk.close()
    bench.turn()
    found = bench.send("y")
    bench.say(ROW)
    assert found[0].verdicts == (ACCEPTED,)
