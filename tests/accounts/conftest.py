"""Databases of both kinds, as in the tests of the store; one of them on a clock."""

import pytest
from twisted.internet.task import Clock

from tests.fakes.accounts import house
from tests.fakes.keystore import NOW, Store, result
from tests.fakes.sites import Town

__all__ = ["house"]


@pytest.fixture
def clock():
    made = Clock()
    made.advance(NOW)
    return made


@pytest.fixture
def store(database_url, clock):
    made = Store(database_url, clock)
    made.startService()
    yield made
    made.down = made.held = False
    result(made.stopService())


@pytest.fixture
def town():
    made = Town()
    made.clock.advance(1_000_000)
    yield made
    made.stop()
