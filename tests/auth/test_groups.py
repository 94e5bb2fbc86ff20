"""Contact groups: asked once in a while, kept while the cores are away."""

import pytest
from twisted.internet.defer import Deferred
from twisted.internet.task import Clock

from monrest.auth.groups import ContactGroups
from monrest.errors import SitesFailed
from monrest.values import SiteProblem


class Cores:
    def __init__(self):
        self.asked, self.groups, self.down = [], frozenset({"ops"}), False

    async def read(self, user):
        self.asked.append(user)
        if self.down:
            raise SitesFailed([SiteProblem("a", "A", "connection refused")])
        return self.groups


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def cores():
    return Cores()


def of(groups, user):
    results = []
    Deferred.fromCoroutine(groups.of(user)).addBoth(results.append)
    return results[0]


def test_groups_are_kept_for_their_time(clock, cores):
    groups = ContactGroups(cores.read, clock, lifetime=300)
    assert of(groups, "ann") == {"ops"}
    cores.groups = frozenset({"new"})
    clock.advance(299)
    assert of(groups, "ann") == {"ops"}
    clock.advance(1)
    assert of(groups, "ann") == {"new"}
    assert cores.asked == ["ann", "ann"]


def test_users_do_not_share_groups(clock, cores):
    groups = ContactGroups(cores.read, clock)
    of(groups, "ann")
    cores.groups = frozenset()
    assert of(groups, "bob") == frozenset()
    assert of(groups, "ann") == {"ops"}


def test_what_is_known_stays_while_the_cores_are_away(clock, cores):
    groups = ContactGroups(cores.read, clock, lifetime=300)
    of(groups, "ann")
    cores.down = True
    clock.advance(1000)
    assert of(groups, "ann") == {"ops"}
    assert of(groups, "bob") == frozenset()
    cores.down = False
    assert of(groups, "bob") == {"ops"}


def test_users_are_not_kept_for_ever(clock, cores):
    groups = ContactGroups(cores.read, clock)
    for number in range(5000):
        of(groups, f"user{number}")
    assert len(groups._known) <= 4096
