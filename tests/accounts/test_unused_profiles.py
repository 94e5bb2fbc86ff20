"""Profiles that nobody uses are forgotten, those that lock somebody never; on both kinds."""

import pytest

from monrest.accounts.credentials import Credentials
from monrest.accounts.model import Profile
from monrest.accounts.users import Users
from monrest.base.values import Caller
from monrest.config import AuthConfig
from tests.fakes.clocks import Wall
from tests.fakes.keystore import NOW, result

DAY = 86400
YEAR = 365 * DAY
HOME = Caller(address="192.0.2.7", client="192.0.2.7")


@pytest.mark.parametrize(
    ("given", "days", "outlived"),
    [
        ({}, 1, False),
        ({}, 1.1, True),
        ({"failed": 3, "last_failed": {"time": NOW + DAY}}, 2, False),
        ({"failed": 3, "last_failed": {"time": NOW + DAY}}, 2.1, True),
        ({"locked": True}, 1000, False),
        ({"tz": "Asia/Tokyo"}, 365, False),
        ({"tz": "Asia/Tokyo"}, 365.1, True),
        ({"last_success": {"time": NOW + DAY}}, 366, False),
        ({"last_success": {"time": NOW + DAY}}, 366.1, True),
        ({"last_success": {"time": NOW}, "last_failed": {"time": NOW + DAY}}, 366, False),
    ],
)
def test_outlived(given, days, outlived):
    assert Profile(name="ann", created=NOW, **given).outlived(NOW + days * DAY) is outlived


@pytest.fixture
def users(store, clock):
    config = AuthConfig(lock_after_failed_logins=3)
    made = Users(Credentials(store, clock, Wall(clock), config))
    made.service.startService()
    yield made
    result(made.service.stopService())
    assert not clock.getDelayedCalls()


def names(users):
    return [one.name for one in result(users.list())]


def fill(users):
    result(users.failed("once", HOME, known=True))
    result(users.succeeded("often", HOME))
    result(users.lock("bad"))


def test_each_in_its_time(users, clock):
    fill(users)
    clock.advance(DAY - 100)
    assert names(users) == ["bad", "often", "once"]
    clock.advance(2000)
    assert names(users) == ["bad", "often"]
    clock.advance(YEAR)
    assert names(users) == ["bad"]
    assert result(users.is_locked("bad"))


def test_while_the_database_is_away_nothing_happens(users, store, clock):
    fill(users)
    store.down = True
    clock.advance(DAY + 2000)
    store.down = False
    assert names(users) == ["bad", "often", "once"]
    clock.advance(2000)
    assert names(users) == ["bad", "often"]
