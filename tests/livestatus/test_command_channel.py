"""The command channel: the order of lines, what is certainly not sent, what is not known, the end."""

from functools import partial
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from twisted.internet import reactor
from twisted.internet.ssl import PrivateCertificate
from twisted.internet.task import Clock

from monrest.config.sections import SiteConfig
from monrest.livestatus.command_channel import STOP_LIMIT, CommandChannel
from monrest.livestatus.core_errors import (
    BrokenConnectionError,
    ConnectError,
    StoppedError,
)
from monrest.livestatus.endpoints import endpoint_for, uses_tls
from monrest.livestatus.external import request
from monrest.livestatus.verdicts import ACCEPTED, Verdict
from tests.fakes.certificates import Authority
from tests.fakes.livestatus import MemoryCore, Script, framed, serve_tcp
from tests.fakes.sites import outcome

ROW = framed(b"[[1700000000]]\n")
NO = b"400: no\n" + ROW
REFUSED = Verdict("400: no")
THREE = tuple(f"COMMAND [1] LOG;{n}" for n in range(3))


def lines(count, first=0):
    return tuple(f"COMMAND [1] LOG;{n}" for n in range(first, first + count))


class Bench:
    """A channel to a core that the test plays by hand."""

    def __init__(self, **options):
        self.clock = Clock()
        self.core = MemoryCore(self.clock)
        self.channel = CommandChannel(self.clock, self.core, **options)
        self.outcomes = []

    def send(self, *texts, kind="naemon", timeout=30.0):
        found = outcome(self.channel.transmit(texts, kind, timeout))
        self.turn()
        self.outcomes.append(found)
        return found

    def turn(self, seconds=0.0):
        self.clock.advance(seconds)

    @property
    def talk(self):
        (talk,) = self.core.open
        return talk

    def heard(self, talk=None):
        """What the core heard on its open connection, in one piece."""
        return b"".join((talk or self.talk).written)

    def say(self, data, talk=None):
        (talk or self.talk).say(data)
        self.turn()

    def check_end(self):
        """Nothing is left over, and everybody was told something."""
        done = outcome(self.channel.stop())
        self.turn(STOP_LIMIT)
        self.turn()
        assert done == [None]
        assert self.channel.quiet
        assert not self.core.open
        assert not self.clock.getDelayedCalls()
        assert all(len(found) == 1 for found in self.outcomes)


def sent(kind, *texts):
    return b"".join(request(text, kind) for text in texts)


@pytest.fixture
def bench():
    bench = Bench()
    yield bench
    bench.check_end()


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


def test_a_connection_that_is_closed_while_idle_is_replaced(bench):
    bench.send("x")
    bench.say(ROW)
    bench.talk.close()
    bench.turn()
    found = bench.send("y")
    bench.say(ROW)
    assert found[0].verdicts == (ACCEPTED,)


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


def test_only_what_was_written_is_in_doubt_on_serial_cores(bench):
    found = bench.send(*THREE, kind="mk")
    bench.say(ROW)
    bench.talk.close()
    bench.turn()
    assert (found[0].verdicts, found[0].written) == ((ACCEPTED,), 2)


def test_a_lie_leaves_the_verdicts_before_it(bench):
    found = bench.send(*THREE)
    bench.say(ROW + b"Invalid request method\n")
    (done,) = found
    assert (done.verdicts, done.written) == ((ACCEPTED,), 3)
    assert "no header but" in done.error.reason
    assert not bench.core.open


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


ANSWERS = st.sampled_from([ROW, NO, ROW[:9], ROW[9:], b"x", b"400: ", b"\n", framed(b"")])
EVENTS = st.one_of(
    st.tuples(
        st.just("send"), st.integers(1, 4), st.sampled_from(["naemon", "mk", "icinga2", "lmd"])
    ),
    st.tuples(st.just("say"), ANSWERS),
    st.tuples(st.just("close")),
    st.tuples(st.just("up"), st.sampled_from([True, False, None])),
    st.tuples(st.just("time"), st.sampled_from([0.0, 1.0, 6.0, 40.0])),
    st.tuples(st.just("cancel")),
    st.tuples(st.just("stop")),
)


@given(st.lists(EVENTS, max_size=25))
def test_whatever_happens_every_line_is_written_once_at_most(events):
    bench = Bench()
    count, told, waiting = 0, [], []
    for what, *more in events:
        if what == "send":
            texts = lines(more[0], count)
            count += more[0]
            deferred = bench.channel.transmit(texts, more[1], 30)
            waiting.append(deferred)
            told.append((texts, more[1], outcome(deferred)))
        elif what == "say" and bench.core.open:
            bench.say(more[0])
        elif what == "close" and bench.core.open:
            bench.talk.close()
        elif what == "up":
            bench.core.up = more[0]
        elif what == "time":
            bench.turn(more[0])
        elif what == "cancel" and waiting:
            waiting.pop().cancel()
        elif what == "stop":
            bench.channel.stop()
        bench.turn()
    bench.channel.stop()
    for _ in range(4):
        bench.turn(30)
    bench.check_end()
    heard = [talk for talk in bench.core.talks if talk.written]
    everything = b"".join(bench.heard(talk) for talk in heard)
    numbers = [
        int(line.rpartition(b";")[2]) for line in everything.split(b"\n") if b"COMMAND" in line
    ]
    assert numbers == sorted(set(numbers))
    for texts, kind, found in told:
        (done,) = found
        if not hasattr(done, "written"):
            continue  # cancelled
        assert len(done.verdicts) <= done.written <= len(texts)
        assert (done.error is None) == (len(done.verdicts) == len(texts))
        for at, text in enumerate(texts):
            assert (request(text, kind) in everything) == (at < done.written)


def channel_for(address, **options):
    config = SiteConfig(id="s", name="S", address=address, **options)
    endpoint = partial(endpoint_for, reactor, config)
    return CommandChannel(reactor, endpoint, tls=uses_tls(config))


async def test_tls(tmp_path):
    authority = Authority(tmp_path)
    cert, key = authority.sign("127.0.0.1")
    script = Script()
    pem = Path(cert).read_bytes() + Path(key).read_bytes()
    site = serve_tcp(reactor, script, PrivateCertificate.loadPEM(pem).options())
    channel = channel_for(site.address, tls_ca_file=authority.ca_file)
    done = await channel.transmit(THREE, "icinga2", 20)
    assert done.verdicts == (ACCEPTED,) * 3
    await channel.stop()
    stranger = channel_for(site.address)
    done = await stranger.transmit(THREE, "icinga2", 20)
    assert (done.written, type(done.error)) == (0, ConnectError)
    assert done.error.reason.startswith("TLS: ")
    assert script.commands == list(THREE)
    await stranger.stop()
    await site.stop()
