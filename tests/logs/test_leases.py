"""Leases of the log cache: a dead holder is followed, with any clock of its machine."""

import pytest
from twisted.internet.defer import fail

from monrest.base.errors import Unavailable
from monrest.logs import cache_records as records
from monrest.logs.cache_records import LOOK, Leases
from tests.fakes.store import BOTH
from tests.logs.core import NOW, done

LONG = records.LEASE + 2 * LOOK
DAY = 86400


@pytest.fixture
def leases(database, clock):
    return Leases(database, timer=clock.seconds)


def watch(leases, clock, seconds, meanwhile=lambda: None):
    for _ in range(int(seconds / LOOK)):
        clock.advance(LOOK)
        meanwhile()
        done(leases.look())


def take(database, owner, leases=None, at=NOW):
    gone = leases.gone if leases else {}
    return done(database.change(records.acquire("a", owner, "update", at, gone=gone)))


@BOTH
@pytest.mark.parametrize("wrong", [-DAY, 0, DAY])
def test_a_dead_one_is_followed(leases, database, clock, wrong):
    known = take(database, "one:1", at=NOW + wrong)
    watch(leases, clock, records.LEASE - LOOK)
    assert leases.living(known)
    assert take(database, "two:2", leases) is None
    watch(leases, clock, 2 * LOOK)
    assert not leases.living(known)
    assert take(database, "two:2", leases).owner == "two:2"


@pytest.mark.parametrize("wrong", [-DAY, 0, DAY])
def test_one_that_renews_keeps_it(leases, database, clock, wrong):
    lease = records.UpdateLease(id=take(database, "one:1", at=NOW + wrong).id, owner="one:1")

    def renew():
        done(database.change(records.renew(lease, clock.seconds() + wrong)))

    watch(leases, clock, 10 * records.LEASE, renew)
    assert take(database, "two:2", leases) is None
    assert leases.gone == {}


@BOTH
def test_one_that_renews_after_it_was_given_up_keeps_it(leases, database, clock):
    lease = records.UpdateLease(id=take(database, "one:1").id, owner="one:1")
    watch(leases, clock, LONG)
    done(database.change(records.renew(lease, clock.seconds())))
    assert take(database, "two:2", leases) is None


def test_who_followed_is_not_the_dead_one(leases, database, clock):
    take(database, "one:1")
    watch(leases, clock, LONG)
    take(database, "two:2", leases, clock.seconds())
    assert take(database, "three:3", leases) is None


def test_a_new_process_of_the_same_name_needs_no_patience(leases, database):
    take(database, "one:1")
    assert take(database, "one1:2", leases) is None
    assert take(database, "one:2", leases).owner == "one:2"


def test_an_outage_costs_no_lease(leases, database, clock, monkeypatch):
    known = take(database, "one:1")
    watch(leases, clock, records.LEASE - LOOK)
    with monkeypatch.context() as patch:
        patch.setattr(database, "run", lambda _: fail(Unavailable("away", "")))
        watch(leases, clock, 10 * records.LEASE)
    done(leases.look())
    assert leases.living(known)
    watch(leases, clock, LONG)
    assert not leases.living(known)


def test_a_machine_that_slept_gives_no_holder_up(leases, database, clock):
    """Both may have slept, and the other one had no chance to renew."""
    known = take(database, "one:1")
    watch(leases, clock, 2 * LOOK)
    clock.advance(DAY)
    done(leases.look())
    assert leases.living(known)
