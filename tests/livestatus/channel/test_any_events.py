"""The command channel: whatever happens, in any order."""

from hypothesis import given
from hypothesis import strategies as st

from monrest.livestatus.external import request
from tests.fakes.livestatus import framed
from tests.fakes.sites import outcome
from tests.livestatus.channel.bench import NO, ROW, Bench, lines

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
