"""What is remembered of credentials: how long it counts, and that what is revoked is gone."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule
from twisted.internet.defer import Deferred
from twisted.internet.task import Clock

from monrest.accounts import credentials
from monrest.accounts.credentials import FRESH, Credentials, Kind
from monrest.base.errors import Unavailable
from monrest.base.workers import Workers, marks
from monrest.config import AuthConfig
from tests.fakes.keystore import result

GRACE = 60.0


class Truth:
    """A database with one value, that can be away or hang."""

    def __init__(self):
        self.value, self.away, self.hangs, self.asked = "key", False, False, 0
        self.waiting = []

    async def look_up(self, _hashed):
        self.asked += 1
        if self.away:
            raise Unavailable("cannot read", "no connection to the database")
        found = self.value
        if self.hangs:
            self.waiting.append(Deferred())
            await self.waiting[-1]
        return found

    def go_on(self):
        waiting, self.waiting, self.hangs = self.waiting, [], False
        for one in waiting:
            one.callback(None)


class Kept(Kind):
    def __init__(self, service, mark, truth):
        self.mark, self.truth = mark, truth
        super().__init__(service)

    grace = GRACE

    async def look_up(self, name):
        return await self.truth.look_up(name)


class World:
    def __init__(self, workers=None):
        self.clock, self.truth = Clock(), Truth()
        self.clock.advance(1000)
        workers = workers or Workers()
        self.service = Credentials(None, self.clock, None, AuthConfig(), workers=workers)
        self.keys = Kept(self.service, "keys", self.truth)

    def begin(self, **more):
        found = []
        asking = self.service.find(self.keys, "h", **more)
        Deferred.fromCoroutine(asking).addBoth(found.append)
        return found

    def find(self, name="h", **more):
        return result(self.service.find(self.keys, name, **more))

    def forget(self, *names):
        self.service.forget(self.keys, *names)


@pytest.fixture
def world():
    return World()


def test_a_fresh_value_costs_no_question(world):
    for _ in range(5):
        assert world.find() == ("key", True)
    assert world.truth.asked == 1
    world.clock.advance(FRESH)
    world.find()
    assert world.truth.asked == 2
    world.find(anew=True)
    assert world.truth.asked == 3


def test_many_who_ask_at_once_are_one_question(world):
    world.truth.hangs = True
    found = [world.begin() for _ in range(5)]
    world.truth.go_on()
    assert found == [[("key", True)]] * 5
    assert world.truth.asked == 1


def test_a_database_that_hangs_is_waited_for_shortly_and_not_by_all_requests(world):
    world.find()
    world.clock.advance(FRESH)
    world.truth.hangs = True
    found = world.begin()
    world.clock.advance(1.9)
    assert found == []
    world.clock.advance(0.1)
    assert found == [("key", False)]
    assert world.begin() == [("key", False)], "who comes after that does not wait"
    world.clock.advance(GRACE)
    late = world.begin()
    assert late == []
    world.truth.go_on()
    assert late == [("key", True)]


def test_the_grace_ends_while_a_request_waits(world):
    world.find()
    world.clock.advance(GRACE - 1)
    world.truth.hangs = True
    found = world.begin()
    world.clock.advance(2)
    (failure,) = found
    assert failure.check(Unavailable)


def test_what_is_revoked_here_while_it_is_read_does_not_come_back(world):
    world.truth.hangs = True
    found = world.begin()
    world.truth.value = None
    world.forget("h")
    world.truth.go_on()
    assert found == [None]
    world.truth.away = True
    world.clock.advance(1)
    with pytest.raises(Unavailable):
        world.find()


def test_what_another_worker_has_revoked_is_gone_also_without_a_database():
    memory = marks(2)
    second = Workers(2, 2, memory=memory)
    first = Workers(2, 1, memory=memory, send=second.heard)
    here, there = World(first), World(second)
    assert there.find() == ("key", True)
    here.forget(*(f"other {number}" for number in range(500)))
    there.truth.away = True
    assert there.find() == ("key", False)
    here.forget(*(f"other {number}" for number in range(500)), "h")
    with pytest.raises(Unavailable):
        there.find()


@given(st.sampled_from([0.0, 3.0, 5.0, 60.0]), st.floats(0, 200))
def test_how_long_it_counts_without_a_database(grace, age):
    world = World()
    world.keys.grace = grace
    world.find()
    world.truth.away = True
    world.clock.advance(age)
    if age < FRESH:
        assert world.find() == ("key", True)
    elif age < grace:
        assert world.find() == ("key", False)
    else:
        with pytest.raises(Unavailable):
            world.find()


def test_kinds_are_one_memory_and_do_not_mix(world, monkeypatch):
    """What was read the longest time ago goes first; a mark is that of its kind."""
    monkeypatch.setattr(credentials, "_MOST_KEPT", 3)
    users = Kept(world.service, "users", Truth())
    users.truth.value = "who is locked"
    for number in range(10):
        world.clock.advance(FRESH / 2)
        assert world.find(f"key {number}") == ("key", True)
        assert result(world.service.find(users, "h")) == ("who is locked", True)
    assert (len(world.service._kept), users.truth.asked) == (3, 5)
    world.find()
    asked = world.truth.asked
    users.truth.value = "who else is locked"
    world.service.workers.changed("users")
    result(world.service.read(users, "h"))
    users.truth.away = True
    assert result(world.service.find(users, "h")) == ("who else is locked", True)
    world.service.forget(users, "h")
    assert (world.find(), world.truth.asked) == (("key", True), asked)
    with pytest.raises(Unavailable):
        result(world.service.find(users, "h"))


class Revocations(RuleBasedStateMachine):
    """A key is made and revoked, here and elsewhere, with a database that comes and goes."""

    def __init__(self):
        super().__init__()
        self.world = World()
        self.revoked_elsewhere = self.revoked_here = None

    @rule(seconds=st.sampled_from([0.1, 0.9, 1.0, 4.0, 5.0, 30.0, 61.0]))
    def time_passes(self, seconds):
        self.world.clock.advance(seconds)

    @rule()
    def the_database_goes(self):
        self.world.truth.away = True

    @rule()
    def the_database_comes_back(self):
        self.world.truth.away = False

    @rule(here=st.booleans())
    def it_is_revoked(self, here):
        if self.world.truth.value is None:
            return
        if here:
            if self.world.truth.away:
                return
            self.revoked_here = self.world.clock.seconds()
            self.world.forget("h")
        else:
            self.revoked_elsewhere = self.world.clock.seconds()
        self.world.truth.value = None

    @invariant()
    def it_counts_as_long_as_it_may(self):
        now, truth = self.world.clock.seconds(), self.world.truth
        try:
            found = self.world.find()
        except Unavailable:
            assert truth.away
            return
        if found is None:
            assert truth.value is None
            return
        assert self.revoked_here is None
        _, sure = found
        if self.revoked_elsewhere is not None:
            assert now - self.revoked_elsewhere < (FRESH if sure else GRACE)


TestRevocations = Revocations.TestCase
