"""Whose job it is: what it may when its turn comes, who gets its result, how many he may have."""

from __future__ import annotations

import pytest
from attrs import evolve
from twisted.internet.defer import Deferred

from monrest.base.errors import Forbidden, TooManyRequests, Unavailable
from monrest.base.values import ADMIN, READ_ONLY, Caller, Identity
from tests.fakes.jobs import ANN, BOB, Held, get, start
from tests.fakes.keystore import result

HOSTS = "authorized_for_all_hosts"
MAKER = Identity(user="ann", roles=frozenset({HOSTS}))


def queued(world, identity=MAKER):
    """A job behind another one, whose asker is known by his address."""
    jobs = world.join(concurrent=1)
    first = Held(BOB)
    start(jobs, first)
    second = Held(identity, caller=Caller(address="192.0.2.7"))
    world.users["192.0.2.7"] = identity
    return jobs, first, second, start(jobs, second)


@pytest.mark.parametrize(
    ("now", "why"),
    [
        (Forbidden("wrong authentication key"), "wrong authentication key"),
        (Forbidden("your account is locked"), "your account is locked"),
        (evolve(MAKER, roles=frozenset()), "the rights of who asked for it have changed"),
        (evolve(MAKER, user="bob"), "the rights of who asked for it have changed"),
        (evolve(MAKER, roles=MAKER.roles | {READ_ONLY}), "have changed"),
    ],
)
def test_what_its_asker_may_not_any_more_is_not_begun(world, now, why):
    jobs, first, second, number = queued(world)
    world.pass_(10)
    world.users["192.0.2.7"] = now
    first.end()
    world.pass_(5)
    assert not second.began
    job = get(jobs, number)
    assert (job.rc, job.status, job.started) == (1, None, None)
    assert "it was not begun when its turn came" in job.stderr
    assert why in job.stderr


@pytest.mark.parametrize("now", [MAKER, evolve(MAKER, roles=frozenset({HOSTS, ADMIN}))])
def test_who_still_may_has_his_job_done(world, now):
    jobs, first, second, number = queued(world)
    world.pass_(10)
    world.users["192.0.2.7"] = now
    first.end()
    world.pass_(1)
    assert second.began
    second.end()
    assert get(jobs, number).rc == 0


def test_a_key_that_cannot_be_looked_up_for_a_while(world):
    jobs, first, second, number = queued(world)
    world.pass_(10)
    world.users["192.0.2.7"] = Unavailable("cannot read", "away")
    first.end()
    world.pass_(10)
    assert not second.began
    world.users["192.0.2.7"] = MAKER
    world.pass_(5)
    assert second.began
    second.end()
    assert get(jobs, number).rc == 0


def test_a_burst_of_one_user_leaves_room_for_another(world):
    jobs = world.join(concurrent=1, queue=4)
    jobs.database.held = True
    coming = [Deferred.fromCoroutine(jobs.start(Held(ANN).work)) for _ in range(3)]
    coming.append(Deferred.fromCoroutine(jobs.start(Held(BOB).work)))
    jobs.database.release()
    with pytest.raises(TooManyRequests, match="2 of yours"):
        result(coming[2])
    assert [result(coming[at]).user for at in (0, 1, 3)] == ["ann", "ann", "bob"]


def test_a_burst_of_large_requests_does_not_fill_the_memory(world):
    jobs = world.join()
    jobs.database.held = True
    coming = [Deferred.fromCoroutine(jobs.start(Held(size=40_000_000).work)) for _ in range(2)]
    jobs.database.release()
    with pytest.raises(TooManyRequests):
        result(coming[1])
    assert result(coming[0]).user == "ann"
