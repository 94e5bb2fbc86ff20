"""The clock of the database, by which all nodes go."""

import time

import pytest
from twisted.internet.task import Clock

from monrest.store.shared_clock import INTERVAL, clock_of
from tests.fakes.clocks import Wall
from tests.fakes.keystore import Store


class Wrong:
    """A machine whose clock is an hour ahead of the right one."""

    def now(self):
        return time.time() + 3600


@pytest.fixture
def store(postgres_url):
    made = Store(postgres_url, Clock())
    made.startService()
    yield made
    made.stopService()


@pytest.fixture
def shared(store):
    made = clock_of(store, store.clock, Wrong())
    made.timer = store.clock.seconds
    yield made
    if made.running:
        made.stopService()
    assert not store.clock.getDelayedCalls()


def right(date, seconds=0.0):
    """Whether a date is that of the server, which is on this machine, so many seconds later."""
    return abs(date - time.time() - seconds) < 60


def test_an_embedded_database_has_the_clock_of_its_machine(tmp_path):
    wall = Wall(Clock())
    assert clock_of(Store(f"sqlite:///{tmp_path}/x", Clock()), Clock(), wall) is wall


def test_the_server_shows_the_date(shared):
    shared.startService()
    assert right(shared.now())


def test_it_goes_on_while_the_server_is_away(shared, store):
    shared.startService()
    store.down = True
    store.clock.advance(2 * INTERVAL)
    assert right(shared.now(), 2 * INTERVAL)
    store.down = False
    store.clock.advance(INTERVAL)
    assert right(shared.now())


def test_a_server_that_cannot_be_asked_leaves_the_date_of_the_machine(shared, store):
    store.url = store.url.replace("host=", "host=/nowhere")
    shared.startService()
    assert right(shared.now(), 3600)
    store.clock.advance(INTERVAL)
    assert right(shared.now())
