"""Passwords: what is remembered, what a flood costs."""

import hashlib

from twisted.internet.defer import Deferred

from monrest.accounts import htpasswd
from monrest.accounts.passwords import Passwords
from monrest.base.errors import TooManyRequests
from tests.accounts.passwords.world import KINDS, PASSWORD, sha


def test_results_are_good_for_a_while(world):
    world.write(f"ann:{sha('right')}")
    for password in ("right", "wrong"):
        world.check("ann", password)
        calls = world.threads.calls
        expected = password == "right"
        assert world.check("ann", password) is expected
        assert world.threads.calls == calls
        world.clock.advance(31)
        assert world.check("ann", password) is expected
        assert world.threads.calls > calls


def test_no_password_is_kept(world):
    world.write(f"ann:{KINDS['sha1']}")
    world.check("ann", PASSWORD)
    world.check("ann", "s3cret-typo")
    kept = repr(world.passwords._results) + repr(world.passwords)
    for secret in (PASSWORD, "s3cret-typo", KINDS["sha1"]):
        assert secret not in kept
        for digest in (hashlib.sha1, hashlib.sha256, hashlib.blake2b):
            assert digest(secret.encode()).hexdigest() not in kept
    other = Passwords(str(world.path), world.threads, world.clock)
    assert other._key("ann", "x") != world.passwords._key("ann", "x")
    assert other._key("ann", "bx") != other._key("annb", "x")


def test_unknown_users_cost_a_comparison(world, monkeypatch):
    hashes = {f"user{number}": sha(f"pw{number}") for number in range(50)}
    world.write(*(f"{name}:{hashed}" for name, hashed in hashes.items()))
    compared = []

    def matches(password, hashed):
        compared.append(hashed)
        return True

    monkeypatch.setattr(htpasswd, "matches", matches)
    for number in range(200):
        assert world.check(f"nobody{number}", "x") is False
    assert len(compared) == 200
    assert len(set(compared)) > 20  # spread over the kinds of hashes that known ones have
    for _ in range(3):
        world.clock.advance(31)
        world.check("nobody0", "x")
    assert set(compared[200:]) == {compared[0]}


def test_a_flood_occupies_two_threads_and_is_refused_in_the_end(world):
    world.write(f"ann:{sha('right')}")
    world.check()
    world.threads.held = True
    outcomes = []
    for number in range(300):
        Deferred.fromCoroutine(world.passwords.check("ann", f"guess{number}")).addBoth(
            outcomes.append
        )
    assert len(world.threads.waiting) == 2
    assert len(outcomes) == 98
    for outcome in outcomes:
        outcome.trap(TooManyRequests)
    assert world.check()  # what is known needs no thread
    while world.threads.waiting:
        world.threads.release()
    assert len(outcomes) == 300


def test_clients_that_leave_do_not_free_threads(world):
    world.write(f"ann:{sha('right')}")
    world.check()
    world.threads.held = True
    gone = []
    for number in range(20):
        asking = Deferred.fromCoroutine(world.passwords.check("ann", f"guess{number}"))
        asking.addBoth(gone.append)
        asking.cancel()
    assert len(gone) == 20
    assert len(world.threads.waiting) == 2


def test_the_same_password_at_the_same_time_is_compared_once(world):
    world.write(f"ann:{sha('right')}")
    world.check("bob")
    world.threads.held, before = True, world.threads.calls
    outcomes = []
    for _ in range(100):
        Deferred.fromCoroutine(world.passwords.check("ann", "right")).addBoth(outcomes.append)
    world.threads.release()
    assert outcomes == [True] * 100
    assert world.threads.calls - before == 1


def test_a_flood_of_names_takes_bounded_memory(world):
    world.write(f"ann:{sha('right')}")
    for number in range(10_000):
        assert not world.check(f"user{number}", "x")
    assert len(world.passwords._results) <= 4096
