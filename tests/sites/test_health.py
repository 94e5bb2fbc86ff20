"""The circuit breaker: what takes a site down, what brings it back, what it costs meanwhile."""

import gc
import weakref

import pytest
from twisted.internet.defer import CancelledError, Deferred
from twisted.internet.task import Clock

from monrest.livestatus.core_errors import (
    BrokenConnectionError,
    ConnectError,
    ProtocolError,
    RefusedError,
    StoppedError,
)
from monrest.query.model import Pushed
from monrest.sites.capabilities import Program
from monrest.sites.health import Breaker
from monrest.sites.source import FollowingBreaker, SiteReport
from tests.fakes.sites import outcome

PROGRAM = Program(program_version="1", program_start=5)


class Patient:
    """A breaker whose probes the test answers."""

    def __init__(self):
        self.clock = Clock()
        self.clock.advance(1000)
        self.probes = []
        self.times = []
        self.breaker = Breaker(
            clock=self.clock, probe=self.probe, site="a", retry=lambda failures: 2.0**failures
        )
        self.breaker.startService()

    async def probe(self):
        self.times.append(self.clock.seconds())
        self.probes.append(Deferred())
        return await self.probes[-1]

    @property
    def probing(self):
        return bool(self.probes) and not self.probes[-1].called

    def succeed(self, program=PROGRAM):
        self.probes[-1].callback(program)

    def fail(self, error=None):
        self.probes[-1].errback(error or ConnectError("connection refused"))

    @property
    def state(self):
        return self.breaker.health.state


@pytest.fixture
def patient():
    patient = Patient()
    yield patient
    done = outcome(patient.breaker.stopService())
    assert done == [None]
    assert not patient.clock.getDelayedCalls()


def test_pending_until_the_first_probe(patient):
    assert patient.state == "pending"
    first, second = outcome(patient.breaker.verdict()), outcome(patient.breaker.verdict())
    assert first == second == []
    patient.clock.advance(0.25)
    patient.succeed()
    assert first == second == [None]
    assert patient.state == "up"
    health = patient.breaker.health
    assert health.response_time == 0.25
    assert health.since == health.checked == 1000.25
    assert health.program_start == 5
    assert outcome(patient.breaker.verdict()) == [None]


def test_a_cancelled_waiter_is_forgotten(patient):
    waiter = patient.breaker.verdict()
    found = outcome(waiter)
    waiter.cancel()
    assert found[0].check(CancelledError)
    patient.succeed()


def test_probes_come_back_with_growing_pauses_and_then_regularly(patient):
    patient.fail()
    for pause in (1, 2, 4, 8):
        count = len(patient.probes)
        patient.clock.advance(pause - 0.1)
        assert len(patient.probes) == count
        patient.clock.advance(0.1)
        assert len(patient.probes) == count + 1
        patient.fail()
    since = patient.breaker.health.since
    assert since == 1000
    patient.clock.advance(16)
    patient.succeed()
    assert patient.state == "up"
    assert patient.breaker.error is None
    assert patient.breaker.health.last_error == ""
    assert patient.breaker.health.since > since
    back = patient.breaker.health.since
    patient.clock.advance(10)
    patient.succeed()
    assert patient.breaker.health.since == back
    patient.clock.advance(10)
    patient.fail()
    assert patient.state == "down"
    patient.clock.advance(1)
    assert patient.probing
    patient.succeed()


def test_a_refused_connection_proves_the_site_dead(patient):
    patient.succeed()
    patient.breaker.failed(ConnectError("no such socket"), 1000.0)
    assert patient.state == "down"
    assert patient.breaker.error.reason == "no such socket"
    assert not patient.probing
    patient.clock.advance(1)
    assert patient.probing
    patient.breaker.failed(ConnectError("no such socket"), 1000.0)
    patient.succeed()
    assert patient.state == "up"


def test_many_failures_do_not_put_the_probe_off(patient):
    patient.succeed()
    for _ in range(20):
        patient.breaker.failed(ConnectError("no such socket"), 1000.0)
        patient.clock.advance(0.1)
    assert len(patient.probes) == 2
    patient.succeed()


@pytest.mark.parametrize(
    "error",
    [BrokenConnectionError("connection lost"), ProtocolError("x"), RefusedError(400, "x")],
)
def test_other_failures_let_the_probe_decide(patient, error):
    patient.succeed()
    patient.clock.advance(5)
    patient.breaker.failed(error, 1000.0)
    assert patient.state == "up"
    patient.clock.advance(0)
    assert patient.probing
    patient.fail(error)
    assert patient.state == "down"


def test_failures_cause_one_probe_a_second_at_most(patient):
    patient.succeed()
    for _ in range(50):
        patient.breaker.failed(RefusedError(400, "x"), 1000.0)
        patient.clock.advance(0.1)
        if patient.probing:
            patient.succeed()
    assert len(patient.probes) <= 6


def test_stopping_is_no_failure(patient):
    patient.succeed()
    patient.breaker.failed(StoppedError(), 1000.0)
    assert patient.state == "up"
    assert len(patient.probes) == 1


def test_stopping_while_a_probe_runs(patient):
    waiting = outcome(patient.breaker.verdict())
    assert outcome(patient.breaker.stopService()) == [None]
    assert waiting[0].check(StoppedError)
    assert outcome(patient.breaker.verdict())[0].check(StoppedError)


def test_an_unexpected_error_of_a_probe_is_logged_and_the_site_down(patient, stray_failures):
    stray_failures.append(ZeroDivisionError)
    patient.fail(ZeroDivisionError())
    assert patient.state == "down"
    assert patient.breaker.health.last_error.startswith("protocol error")
    patient.clock.advance(1)
    patient.succeed()
    assert patient.state == "up"


def test_a_probe_on_demand_is_sent_at_once_and_shared(patient):
    patient.succeed()
    first, second = outcome(patient.breaker.probed()), outcome(patient.breaker.probed())
    assert len(patient.probes) == 2
    assert patient.times[-1] == patient.clock.seconds()
    assert first == second == []
    patient.succeed(Program(program_version="1", program_start=9))
    assert first == second == [None]
    assert patient.breaker.health.program_start == 9


def test_a_probe_on_demand_does_not_wait_for_the_pause_of_a_site_that_is_down(patient):
    patient.fail()
    waiting = outcome(patient.breaker.probed())
    patient.fail()
    assert waiting == [None]
    assert patient.state == "down"
    waiting = outcome(patient.breaker.probed())
    patient.succeed()
    assert waiting == [None]
    assert patient.state == "up"


def test_who_does_not_wait_for_a_probe_any_more_does_not_end_it(patient):
    patient.succeed()
    gone, other = patient.breaker.probed(), outcome(patient.breaker.probed())
    left = outcome(gone)
    gone.cancel()
    assert left[0].check(CancelledError)
    patient.succeed()
    assert other == [None]


def test_no_probe_on_demand_after_the_end(patient):
    patient.succeed()
    assert outcome(patient.breaker.stopService()) == [None]
    assert outcome(patient.breaker.probed()) == [None]
    assert len(patient.probes) == 1


def test_what_a_relay_was_asked_before_proves_nothing_of_a_site_behind_it(patient):
    reports = {"site": SiteReport(program=PROGRAM)}
    follower = FollowingBreaker(
        clock=patient.clock, probe=patient.probe, site="b", leader=patient.breaker
    )
    patient.breaker.on_change = lambda: follower.follow(reports["site"])
    follower.startService()
    patient.succeed()
    patient.clock.advance(10)
    assert patient.probing
    now = outcome(Deferred.fromCoroutine(follower.program_now()))
    patient.succeed()
    assert now == []
    reports["site"] = SiteReport(program=Program(program_version="1", program_start=9))
    patient.succeed()
    assert [program.program_start for program in now] == [9]


def test_who_asks_while_a_site_is_down_is_not_kept_in_mind(town):
    """An error keeps the frames through which it went, and a breaker keeps its error."""
    core, asked = town.site(up=False), []

    class Question:
        pass

    async def ask():
        question = Question()
        asked.append(weakref.ref(question))
        await core.ask(Pushed(table="hosts", columns=("name",)))

    for _ in range(3):
        assert outcome(Deferred.fromCoroutine(ask())).pop().check(type(core.breaker.error))
    gc.collect()
    assert [one() for one in asked] == [None] * 3
