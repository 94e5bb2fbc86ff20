"""A duty is held by one living daemon: with processes that die and freeze, and with any order."""

import signal
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from sqlalchemy import delete, false, select
from twisted.internet.task import Clock

from monrest.base.errors import Unavailable
from monrest.store.duties import SECONDS, Duties, DutyLostError, Token, still_held
from monrest.store.tables import duties as table
from monrest.store.tables import duty_daemons
from tests.examples import examples
from tests.fakes.keystore import Store, result
from tests.fakes.store import sqlite_url
from tests.store.rows import add, names, numbered

NAME = "downtimes"


class World:
    """Daemons on one database, each with a clock of its own that may be wrong by any amount."""

    def __init__(self, url):
        self.url, self.daemons, self.elapsed = url, [], 0.0

    def join(self, owner, *wanted, wrong=0.0):
        clock = Clock()
        clock.advance(1_700_000_000 + wrong)
        store = Store(self.url, clock)
        store.startService()
        duties = Duties(store, clock, owner, timer=lambda: self.elapsed)
        for name in wanted or (NAME,):
            duties.want(name)
        duties.startService()
        self.daemons.append(duties)
        return duties

    def kill(self, duties):
        self.daemons.remove(duties)
        duties.database.stopService()

    def pass_(self, seconds, *frozen, step=0.5):
        for _ in range(int(seconds / step)):
            self.elapsed += step
            for duties in self.daemons:
                if duties not in frozen:
                    duties.clock.advance(step)

    def holders(self, name=NAME):
        return [duties.owner for duties in self.daemons if duties.held(name)]

    def close(self):
        for duties in self.daemons:
            duties.database.down = False
            duties.stopService()
            duties.database.stopService()


@pytest.fixture
def world(database_url):
    made = World(database_url)
    yield made
    made.close()


def test_one_holds_it_and_the_other_waits(world):
    one, two = world.join("one"), world.join("two", wrong=-86400.0)
    assert one.held(NAME) == Token(NAME, 1)
    world.pass_(5 * SECONDS)
    assert world.holders() == ["one"]
    assert two.held(NAME) is None
    assert one.held("another") is None


def test_a_dead_one_is_followed_within_thirty_seconds(world):
    one, two = world.join("one"), world.join("two", wrong=3600.0)
    world.pass_(60)
    world.kill(one)
    world.pass_(SECONDS - 3)
    assert world.holders() == []
    world.pass_(30 - (SECONDS - 3))
    assert two.held(NAME) == Token(NAME, 2)


def test_who_stops_hands_over_at_once(world):
    one, _ = world.join("one"), world.join("two")
    token = one.held(NAME)
    result(one.stopService())
    assert one.held(NAME) is None
    with pytest.raises(DutyLostError):
        result(one.change(token, add("late")))
    world.pass_(5)
    assert world.holders() == ["two"]


def test_who_leaves_one_duty_keeps_the_others(world):
    one, two = world.join("one", "a", "b"), world.join("two", "a", "b")
    token = one.held("a")
    result(one.leave("a"))
    assert one.held("a") is None
    with pytest.raises(DutyLostError):
        result(one.change(token, add("late")))
    world.pass_(5)
    assert (two.held("a").number, one.held("b").number) == (3, 1)
    result(two.leave("a"))
    world.pass_(5)
    assert world.holders("a") == []
    one.want("a")
    world.pass_(5)
    assert world.holders("a") == ["one"]


def test_a_restart_needs_no_patience(world):
    one = world.join("one")
    other = world.join("two", "else")
    world.kill(one)
    again = world.join("one")
    assert again.held(NAME) == Token(NAME, 2)
    assert other.held("else") == Token("else", 1)


def test_a_frozen_one_can_do_nothing_late(world):
    one, two = world.join("one"), world.join("two")
    token = one.held(NAME)
    result(one.change(token, add("early")))
    world.pass_(40, one)
    assert world.holders() == ["two"], "who wakes up knows by itself"
    with pytest.raises(DutyLostError):
        result(one.change(token, add("late")))
    result(two.change(two.held(NAME), add("new")))
    assert result(two.database.run(names)) == {"early", "new"}
    world.pass_(5)
    assert world.holders() == ["two"]


def test_time_that_passed_ends_what_is_held(world):
    one = world.join("one")
    one.database.held = True
    world.pass_(SECONDS + 1)
    assert one.held(NAME) is None
    one.database.release()


def test_what_the_dead_one_held_and_nobody_wanted_is_free_for_others(world):
    one, two = world.join("one", "a", "b"), world.join("two", "a")
    world.kill(one)
    world.pass_(30)
    assert (two.held("a").number, two.held("b")) == (2, None)
    late = world.join("three", "b")
    assert late.held("b").number == 2
    assert late.held("a") is None


def test_one_that_came_back_takes_part_again(world):
    one, two = world.join("one", "a", "b"), world.join("two", "a")
    world.pass_(40, one)
    assert two.held("a").number == 2
    world.pass_(5)
    assert one.held("a") is None
    assert one.held("b").number > 1
    world.kill(two)
    world.pass_(30)
    assert one.held("a").number == 3


def test_an_outage_costs_nobody_a_duty(world):
    one, two = world.join("one"), world.join("two")
    for duties in (one, two):
        duties.database.down = True
    world.pass_(5 * SECONDS)
    assert world.holders() == []
    two.database.down = False
    world.pass_(5)
    one.database.down = False
    world.pass_(10)
    assert one.held(NAME) == Token(NAME, 1)
    assert two.held(NAME) is None


def test_one_that_is_cut_off_is_followed(world):
    one, _ = world.join("one"), world.join("two")
    one.database.down = True
    world.pass_(30)
    assert world.holders() == ["two"]
    one.database.down = False
    world.pass_(30)
    assert world.holders() == ["two"]


def test_a_daemon_without_duties_writes_nothing(world):
    world.join("one")
    two = world.join("two")
    nobody = world.join("three", "x")
    result(nobody.stopService())
    before = two.database.changes
    world.pass_(100)
    assert two.database.changes == before
    held = result(
        two.database.run(lambda c: list(c.execute(select(duty_daemons.c.owner)).scalars()))
    )
    assert held == ["one"]


def test_an_unknown_duty_is_nobodys(world):
    one = world.join("one")
    with pytest.raises(DutyLostError):
        result(one.change(Token("unknown", 1), add("x")))


class Cluster(RuleBasedStateMachine):
    """Three daemons that freeze, lose the database, die and come back, in any order."""

    @initialize()
    def begin(self):
        self.folder = tempfile.TemporaryDirectory()
        self.world = World(sqlite_url(Path(self.folder.name)))
        self.store = Store(self.world.url, Clock())
        self.store.startService()
        self.frozen = set()
        self.greatest = 0
        for owner in ("one", "two", "three"):
            self.world.join(owner)

    def daemon(self, at):
        return self.world.daemons[at % len(self.world.daemons)]

    @rule(seconds=st.sampled_from([1, 3, 10, 40]))
    def pass_(self, seconds):
        self.world.pass_(seconds, *self.frozen)

    @rule(at=st.integers(0, 2))
    def freeze_or_thaw(self, at):
        self.frozen ^= {self.daemon(at)}

    @rule(at=st.integers(0, 2))
    def cut_off_or_back(self, at):
        store = self.daemon(at).database
        store.down = not store.down

    @rule(at=st.integers(0, 2), same=st.booleans())
    def die_and_start(self, at, same):
        dead = self.daemon(at)
        self.frozen.discard(dead)
        self.world.kill(dead)
        self.world.join(dead.owner if same else f"{dead.owner}'", wrong=at * 1000.0)

    @rule(at=st.integers(0, 2))
    def leave_and_start(self, at):
        gone = self.daemon(at)
        if gone in self.frozen:
            return
        result(gone.stopService())
        self.world.kill(gone)
        self.world.join(gone.owner)

    @rule()
    def everything_is_well_again(self):
        """Then somebody holds it within thirty seconds."""
        self.frozen.clear()
        for duties in self.world.daemons:
            duties.database.down = False
        self.world.pass_(30)
        assert len(self.world.holders()) == 1

    @invariant()
    def at_most_one_can_do_something(self):
        able = []
        for duties in self.world.daemons:
            token = duties.held(NAME)
            if token is None:
                continue
            if result(self.store.change(lambda c, token=token: still_held(c, token))):
                able.append(token.number)
        assert len(able) <= 1
        assert len(self.world.holders()) <= 1
        number = result(self.store.run(lambda c: c.execute(select(table.c.number)).scalar_one()))
        assert number >= self.greatest
        self.greatest = number

    def teardown(self):
        if hasattr(self, "world"):
            self.world.close()
            self.store.stopService()
            self.folder.cleanup()


TestCluster = Cluster.TestCase
TestCluster.settings = settings(
    max_examples=examples(20, 4),
    stateful_step_count=15,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)


def until(child, text):
    while (line := child.line()) != text:
        assert line, f"the process ended before {text!r}"


async def test_a_killed_process_is_followed(opened, database_url, children):
    one = children("duty", database_url, "one", 1)
    until(one, "held 1")
    two = children("duty", database_url, "two", 1)
    one.kill()
    until(two, "held 2")
    two.kill()
    found = await opened(database_url).run(numbered)
    assert found == sorted(found)


async def test_a_frozen_process_does_nothing_late(opened, database_url, children):
    """Nobody else of this busy machine keeps the first one from its beat for so long."""
    one = children("duty", database_url, "one", 10)
    until(one, "held 1")
    two = children("duty", database_url, "two", 10)
    database = opened(database_url, timeout=1.0)
    await freeze(one, database)
    until(two, "held 2")
    one.process.send_signal(signal.SIGCONT)
    until(one, "refused 1")
    for child in (one, two):
        child.kill()
        child.process.wait()
    found = await database.run(numbered)
    assert found == sorted(found)
    assert set(found) == {1, 2}


async def freeze(child, database):
    """Stop a process, but not while it has the file of the embedded database for itself."""
    while True:
        child.process.send_signal(signal.SIGSTOP)
        child.process.stopped()
        try:
            await database.change(
                lambda connection: connection.execute(delete(table).where(false()))
            )
        except Unavailable:
            child.process.send_signal(signal.SIGCONT)
        else:
            return
