"""Databases of both kinds, as in the tests of the store; one of them on a clock."""

import pytest
from twisted.internet.task import Clock

from monrest.accounts.credentials import Credentials
from monrest.config import AuthConfig
from tests.fakes.accounts import house
from tests.fakes.clocks import Wall
from tests.fakes.keystore import NOW, Store, result

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
def credentials(store, clock):
    """A function that makes the credentials of one more daemon on the database."""
    return lambda **auth: Credentials(store, clock, Wall(clock), AuthConfig(**auth))
