"""Asking a server whether it answers, on a clock: when, and what follows."""

from twisted.internet.defer import Deferred, fail, succeed
from twisted.internet.task import Clock

from monrest.store.door import ANSWER, SUSPECT, Door, HangDetector


class Threads:
    """``said`` is the answer of the server, None for none."""

    def __init__(self):
        self.asked, self.said = 0, succeed(None)

    def run(self, job):
        self.asked += 1
        return self.said if self.said is not None else Deferred()


def made():
    clock, threads, hung = Clock(), Threads(), []
    pulse = HangDetector(clock, Door(None, threads), lambda: hung.append(clock.seconds()))
    return pulse, clock, threads, hung


def test_nobody_is_asked_while_nobody_waits_for_long():
    pulse, clock, threads, _ = made()
    for _ in range(10):
        pulse.waits()
        clock.advance(SUSPECT - 0.1)
        pulse.ended()
        assert not clock.getDelayedCalls()
    assert threads.asked == 0


def test_a_server_that_answers_is_asked_as_long_as_somebody_waits():
    pulse, clock, threads, hung = made()
    pulse.waits()
    clock.pump([SUSPECT] * 5)
    assert (threads.asked, pulse.answers, hung) == (5, True, [])
    pulse.waits()
    pulse.ended()
    clock.pump([SUSPECT] * 2)
    assert threads.asked == 7
    pulse.ended()
    assert not clock.getDelayedCalls()


def test_one_that_does_not_is_asked_until_it_does():
    pulse, clock, threads, hung = made()
    threads.said = None
    pulse.waits()
    clock.advance(SUSPECT)
    clock.advance(ANSWER - 0.1)
    assert pulse.answers
    clock.advance(0.1)
    assert (pulse.answers, hung) == (False, [SUSPECT + ANSWER])
    pulse.ended()
    clock.pump([1.0] * 60)
    assert (threads.asked > 10, len(hung), pulse.answers) == (True, 1, False)
    threads.said = succeed(None)
    clock.pump([1.0] * 6)
    assert pulse.answers
    assert not clock.getDelayedCalls()


def test_an_error_is_an_answer():
    pulse, clock, threads, hung = made()
    threads.said = fail(OSError("no connection"))
    pulse.waits()
    clock.advance(SUSPECT)
    assert (pulse.answers, hung) == (True, [])
    pulse.ended()


def test_it_stops_in_the_middle_of_a_question():
    pulse, clock, threads, hung = made()
    threads.said = None
    pulse.waits()
    clock.advance(SUSPECT)
    pulse.stop()
    pulse.ended()
    assert not clock.getDelayedCalls()
    assert (threads.asked, hung) == (1, [])
    pulse.waits()
    pulse.ended()
    assert not clock.getDelayedCalls()
