"""Failed logins: growing delays, places, lines, what is forgotten and what is bounded."""

import pytest
from twisted.internet.defer import CancelledError, Deferred
from twisted.internet.task import Clock

from monrest.accounts import slowdown
from monrest.accounts.slowdown import FIRST_DELAY, LONGEST_DELAY, Slowdown
from monrest.base.errors import TooManyRequests, Unavailable

HERE, THERE = "192.0.2.1", "198.51.100.1"


class World:
    def __init__(self):
        self.clock = Clock()
        self.clock.advance(1_700_000_000)
        self.slow = Slowdown(self.clock)
        self.looked = []

    def attempt(self, user="ann", address=HERE, *, right=False, work=None):
        """One login; ``looked`` notes when its password is looked at."""
        outcome = []

        async def run():
            async with self.slow.attempt(address, user) as attempt:
                self.looked.append(user)
                if work is not None:
                    await work
                if right:
                    attempt.succeeded()
            return right

        running = Deferred.fromCoroutine(run()).addBoth(outcome.append)
        return running, outcome

    def seconds(self, outcome):
        """How long it takes until an outcome is there."""
        begun = self.clock.seconds()
        while not outcome:
            assert self.clock.getDelayedCalls(), "never"
            self.clock.advance(self.clock.getDelayedCalls()[0].getTime() - self.clock.seconds())
        return self.clock.seconds() - begun

    def fail(self, **given):
        return self.seconds(self.attempt(**given)[1])


@pytest.fixture
def world():
    made = World()
    yield made
    while made.clock.getDelayedCalls():
        made.clock.advance(10)
    assert not made.slow._waiting
    assert all(one.idle for one in made.slow._tracks.values())


def test_delays_grow_up_to_a_limit(world):
    delays = [world.fail() for _ in range(8)]
    assert delays == [0.5, 1, 2, 4, 8, 10, 10, 10]
    assert (FIRST_DELAY, LONGEST_DELAY) == (0.5, 10)


def test_a_right_password_is_answered_at_once_and_clears_the_user(world):
    for _ in range(4):
        world.fail()
    _, outcome = world.attempt(right=True)
    assert outcome == [True]
    assert world.fail(address=THERE) == 0.5


def test_other_users_from_the_same_address_are_slow_too(world):
    for number in range(5):
        world.fail(user=f"user{number}")
    assert world.fail(user="somebody") == 10
    # Who logs in with his own name in between does not buy himself faster guesses.
    world.attempt(user="bob", right=True)
    assert world.fail(user="somebody else") == 10


def test_the_same_user_from_other_addresses_is_slow_too(world):
    for number in range(5):
        world.fail(address=f"192.0.2.{number}")
    assert world.fail(address=THERE) == 10
    assert world.fail(user="bob", address="203.0.113.9") == 0.5


def test_addresses_of_one_network_of_ipv6_are_one(world):
    for number in range(4):
        world.fail(user=f"u{number}", address=f"2001:db8::{number}")
    assert world.fail(user="bob", address="2001:db8::ffff:1") == 8
    assert world.fail(user="eve", address="2001:db8:0:1::1") == 0.5


def test_the_work_is_hidden_in_the_delay(world):
    work = Deferred()
    _, outcome = world.attempt(work=work)
    world.clock.advance(0.375)
    work.callback(None)
    assert not outcome
    world.clock.advance(0.0625)
    assert not outcome
    world.clock.advance(0.0625)
    assert outcome == [False]


def test_guesses_at_the_same_time_stand_in_line(world):
    outcomes = [world.attempt()[1] for _ in range(12)]
    assert len(world.looked) == 4
    world.clock.advance(10)
    assert len(world.looked) == 8
    world.clock.advance(10)
    assert len(world.looked) == 12
    world.clock.advance(10)
    assert all(outcomes)


def test_guesses_from_many_addresses_stand_in_line_for_the_user(world):
    for number in range(12):
        world.attempt(address=f"192.0.2.{number}")
    assert len(world.looked) == 4
    _, other = world.attempt(user="bob", address=THERE, right=True)
    assert other == [True]


def test_who_waits_for_his_address_takes_no_place_of_a_user(world):
    for number in range(8):
        world.attempt(user=f"user{number}")
    assert len(world.looked) == 4
    for _ in range(4):
        world.attempt(user="user7", address=THERE)
    assert world.looked.count("user7") == 4


def test_who_was_there_before_does_not_wait_for_strangers(world):
    world.attempt(right=True)
    for number in range(40):
        world.attempt(address=f"198.51.100.{number}")
    assert len(world.looked) == 5
    assert world.attempt(right=True)[1] == [True]
    world.fail()  # now he is one of them
    _, outcome = world.attempt(right=True)
    assert outcome == []


def test_too_long_lines_are_refused(world):
    for _ in range(54):
        world.attempt()
    _, outcome = world.attempt()
    outcome[0].trap(TooManyRequests)
    assert dict(outcome[0].value.headers)["Retry-After"] == "8"
    assert len(world.looked) == 4
    assert world.attempt(user="bob", address=THERE, right=True)[1] == [True]


def test_so_many_wait_at_most(world, monkeypatch):
    monkeypatch.setattr(slowdown, "_MOST_WAITING", 10)
    for address in range(20):
        for _ in range(5):
            world.attempt(user=f"u{address}", address=f"192.0.2.{address}")
    assert world.slow._waiting == 10


def test_leaving_early_saves_no_time(world):
    for _ in range(4):
        running, outcome = world.attempt()
        running.cancel()
        outcome[0].trap(CancelledError)
    world.attempt()
    assert len(world.looked) == 4
    world.clock.advance(0.5)
    assert len(world.looked) == 5


def test_leaving_while_the_password_is_looked_at_counts(world):
    running, outcome = world.attempt(work=Deferred())
    running.cancel()
    outcome[0].trap(CancelledError)
    assert world.fail() == 1


def test_leaving_the_line_gives_up_the_place_in_it(world):
    for _ in range(4):
        world.attempt()
    waiting = [world.attempt() for _ in range(3)]
    waiting[0][0].cancel()
    waiting[0][1][0].trap(CancelledError)
    assert world.slow._waiting == 2
    world.clock.advance(10)
    assert len(world.looked) == 6


def test_an_error_of_the_service_is_no_failure(world):
    for _ in range(10):
        work = Deferred()
        _, outcome = world.attempt(work=work)
        work.errback(Unavailable("cannot check passwords"))
        outcome[0].trap(Unavailable)
    assert world.fail() == 0.5


def test_everything_is_forgotten_after_a_while(world):
    for _ in range(6):
        world.fail()
    world.clock.advance(880)
    assert world.fail() == 10
    world.clock.advance(901)
    assert world.fail() == 0.5


def test_a_flood_of_names_takes_bounded_memory(world, monkeypatch):
    monkeypatch.setattr(slowdown, "_REMEMBERED", 40)
    for number in range(60):
        world.attempt(user=f"user{number}", address=f"10.0.{number}.1")
        world.clock.advance(0.5)
    assert len(world.slow._tracks) <= 44
    for number in range(60):
        world.attempt(user=f"user{number}", address=THERE, right=True)
    assert len(world.slow._good) <= 40
    assert len(world.slow._tracks) <= 44
