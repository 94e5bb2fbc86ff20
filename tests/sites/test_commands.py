"""Sending commands: order, duplicates, transmissions, what is told of every line, sites that lie."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from twisted.internet.defer import CancelledError, Deferred

from monrest.base.errors import BadRequest
from monrest.livestatus.command import CoreCommand
from monrest.sites.commands import MOST_LINES, send
from tests.fakes.clocks import Wall
from tests.fakes.livestatus import (
    Script,
    close_without_answer,
    fall_silent,
    framed,
    hang,
    raw,
    reset,
)
from tests.fakes.sites import Town, outcome
from tests.sites.asked import log

NOTHING = {"refused": {}, "doubtful": {}, "unsent": (), "problem": None, "uncertain": False}
ICINGA = ["r2.13.6-1", "r2.13.6-1-icinga2", 1_700_000_000, 1]


def texts(*numbers, at=0):
    return tuple(f"COMMAND [{at}] LOG;n{number}" for number in numbers)


def submit(town, *orders):
    found = outcome(Deferred.fromCoroutine(send(orders, town.clock, Wall(town.clock))))
    town.clock.advance(0)
    return found


def done(town, *orders, seconds=1.0):
    found = submit(town, *orders)
    town.pass_time(seconds)
    (result,) = found
    return result


def check(sent, site, lines, **expected):
    assert sent.site is site
    assert sent.lines == tuple(lines)
    for name, value in {**NOTHING, **expected}.items():
        assert getattr(sent, name) == value, name


def reason(sent):
    return sent.problem.reason


def no(talk, _request):
    talk.write(b"400: no\n")


def test_transmissions_of_a_hundred_lines(town):
    orders = [None] * (MOST_LINES + 50)
    orders[MOST_LINES + 7] = no
    script = Script(orders=orders)
    site = town.site(script=script)
    (sent,) = done(town, (site, log(*range(250))))
    check(sent, site, texts(*range(250)), refused={MOST_LINES + 7: "400: no"})
    assert script.commands == list(texts(*range(250)))
    # Never more on the wire than one transmission.
    talk = next(talk for talk in town.cores["a"].talks if b"COMMAND" in b"".join(talk.written))
    written = b"".join(talk.written)
    assert written.count(b"COMMAND") == written.count(b"GET status") == 250


def test_sites_do_not_wait_for_each_other(town):
    slow = town.site("slow", Script(orders=[fall_silent]))
    quick = town.site("quick")
    found = submit(town, (slow, log(1)), (quick, log(2, 3)))
    town.pass_time(1)
    assert town.cores["quick"].script.commands == list(texts(2, 3))
    assert found == []
    town.pass_time(30)
    ((first, second),) = found
    assert (first.problem.reason, first.problem.timed_out) == ("timed out after 30 s", True)
    assert first.uncertain
    check(second, quick, texts(2, 3))


def test_backslashes_are_written_for_the_core_that_is_there(town):
    comment = CoreCommand("LOG", (r"C:\new",), "text")
    naemon = town.site("n")
    icinga = town.site("i", Script(status=ICINGA))
    late = town.site("l", Script(status=ICINGA), up=None)
    found = submit(town, (naemon, (comment,)), (icinga, (comment,)), (late, (comment,)))
    town.cores["l"].up = True
    town.cores["l"].let_in()
    town.pass_time(1)
    assert [one.lines for one in found[0]] == [
        (r"COMMAND [0] LOG;C:\\new",),
        (r"COMMAND [0] LOG;C:\new",),
        (r"COMMAND [0] LOG;C:\new",),
    ]


@pytest.mark.parametrize("kind", ["mk", "icinga2", "shinken"])
def test_other_cores(town, kind):
    status, more = {
        "mk": (["4.4.6", "1.2.8p1", 1, 1], {}),
        "icinga2": (ICINGA, {}),
        "shinken": (["2.4.3", "2.4-shinken", 1, 1], {}),
    }[kind]
    script = Script(status=status, **more)
    script.orders.extend([None, framing_refusal if kind == "icinga2" else no, None])
    site = town.site(script=script)
    assert site.capabilities.kind == kind
    (sent,) = done(town, (site, log(1, 2, 3)))
    check(sent, site, texts(1, 2, 3), refused={1: "400: no"})
    # An Icinga 2 does all of its work with the threads that connections hold.
    assert bool(town.cores["a"].open) is (kind != "icinga2")


def framing_refusal(talk, _request):
    talk.write(framed(b"no\n", 400))


def test_a_command_that_cannot_be_written_stops_all_of_them(town):
    first, second = town.site("a"), town.site("b", up=None)
    for bad in (CoreCommand("LOG", ("a\n",), "text"), CoreCommand("LOG", ("a;b", "c"))):
        (failure,) = submit(town, (first, log(1)), (second, (*log(2), bad)))
        assert failure.check(BadRequest)
    town.cores["b"].let_in()
    town.pass_time(1)
    assert town.cores["a"].script.commands == town.cores["b"].script.commands == []


def test_a_pending_site_is_waited_for_and_not_for_ever(town):
    pending = town.site(up=None, timeout=3)
    found = submit(town, (pending, log(1)))
    town.pass_time(3.5)
    ((sent,),) = found
    assert (sent.lines, sent.unsent, sent.uncertain) == ((), texts(1), False)
    assert sent.problem.timed_out


def test_a_site_that_dies_meanwhile(town):
    site = town.site()
    town.cores["a"].up = False
    town.cores["a"].open[0].close()
    (sent,) = done(town, (site, log(1, 2)), seconds=2.5)
    check(sent, site, (), unsent=texts(1, 2), problem=sent.problem)
    assert reason(sent) == "connection refused"
    assert not site.connected


def test_commands_wait_for_a_core_that_is_away_for_a_moment(town):
    site = town.site()
    core = town.cores["a"]
    core.up = False
    found = submit(town, (site, log(1, 2)))
    town.pass_time(1)
    assert found == []
    core.up = True
    town.pass_time(1)
    ((sent,),) = found
    check(sent, site, texts(1, 2))
    assert core.script.commands == list(texts(1, 2))


def test_a_hanging_core_is_not_waited_for(town):
    script = Script(orders=[fall_silent], probe=None)
    site = town.site(script=script, timeout=30)
    found = submit(town, (site, log(1)), (town.site("b"), log(2)))
    script.probe = hang
    town.pass_time(3.9)
    assert found == []
    late = submit(town, (site, log(3)))
    town.pass_time(0.3)
    ((first, second),) = found
    assert (set(first.doubtful), first.problem.timed_out) == ({0}, True)
    assert reason(first) == "hangs: no sign of life within 1 s"
    assert second.problem is None
    ((third,),) = late
    assert (third.lines, third.uncertain, third.problem.timed_out) == ((), False, True)


def slowly(talk, _request):
    """All answers of a transmission after six seconds."""
    talk.mute = True
    talk.later(6, lambda: talk.write(framed(b"[[1]]\n") * MOST_LINES))


def test_the_time_out_is_for_all_transmissions_together(town):
    orders = [slowly if at % MOST_LINES == 0 else None for at in range(3 * MOST_LINES)]
    site = town.site(script=Script(orders=orders), timeout=10)
    (sent,) = done(town, (site, log(*range(3 * MOST_LINES))), seconds=11)
    assert sent.lines == texts(*range(2 * MOST_LINES))
    assert sent.unsent == texts(*range(2 * MOST_LINES, 3 * MOST_LINES))
    assert set(sent.doubtful) == set(range(MOST_LINES, 2 * MOST_LINES))
    assert (reason(sent), sent.problem.timed_out) == ("timed out after 10 s", True)
    town.pass_time(10)  # for the answer that nobody waits for


def cut(talk, _request):
    talk.close()


def test_a_site_that_is_taken_out_finishes_its_commands(town):
    script = Script()
    site = town.site(script=script)
    found = submit(town, (site, log(*range(250))))
    site.retire()
    assert not site.quiet
    town.pass_time(1)
    ((sent,),) = found
    check(sent, site, texts(*range(250)))
    assert site.quiet


@given(
    st.lists(
        st.tuples(
            st.sampled_from("ab"),
            st.lists(st.integers(0, 130), max_size=130),
            st.integers(0, 2),
        ),
        min_size=1,
        max_size=4,
    ),
    st.lists(st.sampled_from([None, None, None, no, cut, fall_silent, reset]), max_size=60),
)
def test_every_line_is_accounted_for(requests, orders):
    town = Town()
    scripts = {key: Script(orders=list(orders)) for key in "ab"}
    sites = {key: town.site(key, script) for key, script in scripts.items()}
    found = []
    for key, numbers, seconds in requests:
        found.append((key, numbers, submit(town, (sites[key], log(*numbers)))))
        town.pass_time(seconds)
    town.pass_time(130)
    lines = {"a": [], "b": []}
    for key, numbers, results in found:
        ((sent,),) = results
        wanted = [text.partition("] ")[2] for text in texts(*dict.fromkeys(numbers))]
        assert [one.partition("] ")[2] for one in sent.lines + sent.unsent] == wanted
        assert not set(sent.refused) & set(sent.doubtful)
        assert (sent.problem is None) == (not sent.unsent and not sent.doubtful)
        lines[key] += sent.lines
        certain = [
            text
            for at, text in enumerate(sent.lines)
            if at not in sent.doubtful and at not in sent.refused
        ]
        assert set(certain) <= set(scripts[key].commands)
    for key, script in scripts.items():
        heard = iter(lines[key])
        assert all(text in heard for text in script.commands), "in order, and none twice"
    town.stop()


def test_what_is_not_allowed_any_more_stays_unsent(town):
    """Asked when the connection is there, right before the first byte; the site is not to blame."""
    script, answers = Script(), [True, False]
    site = town.site(script=script)
    for allowed in answers:
        found = outcome(
            Deferred.fromCoroutine(
                send([(site, log(1))], town.clock, Wall(town.clock), lambda a=allowed: a)
            )
        )
        town.pass_time(1.0)
        ((sent,),) = found
        if allowed:
            check(sent, site, texts(1))
        else:
            assert (sent.lines, len(sent.unsent)) == ((), 1)
            assert reason(sent) == "withdrawn before it was sent"
    assert len(script.commands) == 1
    assert site.connected


def test_order_of_the_answer_and_time_of_submission(town):
    first, second = town.site("b"), town.site("a")
    town.clock.advance(5)
    sent = done(town, (first, log(1)), (second, log(2)))
    assert [one.site.id for one in sent] == ["b", "a"]
    assert [one.lines for one in sent] == [texts(1, at=5), texts(2, at=5)]


LIES = {
    "hang": (fall_silent, "timed out after 30 s"),
    "reset": (reset, "connection closed without an answer"),
    "close": (close_without_answer, "connection closed without an answer"),
    "wrong length": (raw(b"200 00000000999\n"), "connection lost in the middle of an answer"),
    "garbage": (raw(b"\xff" * 100_000), "without an end"),
}


@pytest.mark.parametrize("name", sorted(LIES))
def test_half_of_a_hundred_and_then_a_lie(town, name):
    lie, expected = LIES[name]

    def then_silence(talk, request):
        talk.mute = True
        lie(talk, request)
        if "middle" in expected:
            talk.later(1, talk.close)

    script = Script(orders=[None] * 20 + [no] + [None] * 29 + [then_silence])
    site = town.site(script=script)
    (sent,) = done(town, (site, log(*range(250))), seconds=31)
    assert sent.lines == texts(*range(100))
    assert sent.refused == {20: "400: no"}
    assert set(sent.doubtful) == set(range(50, 100))
    assert sent.unsent == texts(*range(100, 250))
    assert sent.uncertain
    for text in sent.doubtful.values():
        assert text == f"{reason(sent)}: not known whether it was executed"
    assert expected in reason(sent)
    assert set(script.commands) <= set(texts(*range(100)))
    assert len(script.commands) == len(set(script.commands))
    # The next ones find an honest site.
    town.pass_time(20)
    script.orders.clear()
    (sent,) = done(town, (site, log("x")))
    assert (len(sent.lines), sent.problem, sent.refused) == (1, None, {})


def test_cancelling_does_not_stop_what_was_begun(town):
    first, second = town.site("a"), town.site("b", up=None)
    waiting = Deferred.fromCoroutine(
        send([(first, log(*range(250))), (second, log("z"))], town.clock, Wall(town.clock))
    )
    gone = outcome(waiting)
    waiting.cancel()
    assert gone[0].check(CancelledError)
    town.cores["b"].up = True
    town.cores["b"].let_in()
    town.pass_time(1)
    assert town.cores["a"].script.commands == list(texts(*range(250)))
    assert town.cores["b"].script.commands == list(texts("z"))


def test_stopping_finishes_the_transmission_under_way(town):
    script = Script(orders=[None] * 100 + [slowly])
    site = town.site(script=script)
    found = submit(town, (site, log(*range(250))))
    stopped = outcome(site.stopService())
    town.pass_time(5)
    assert found == stopped == []
    town.pass_time(2)
    assert stopped == [None]
    ((sent,),) = found
    check(sent, site, texts(*range(200)), unsent=texts(*range(200, 250)), problem=sent.problem)
    assert reason(sent) == "connection closed by monrest"
    assert script.commands == list(sent.lines)
