"""Rooms in memory and on real ports."""

import pytest
from twisted.internet import reactor
from twisted.internet.defer import Deferred
from twisted.internet.task import Clock

from monrest.base.concurrency import Threads
from monrest.config import ServerConfig
from tests.web.room import Room, asking
from tests.web.wire import Served


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def room(clock):
    made = Room(clock)
    yield made
    assert not clock.getDelayedCalls()


@pytest.fixture
def ask(room):
    """Ask in memory through treq; gives a Reply, or the Deferred if there is no answer yet."""
    return asking(room)


@pytest.fixture
def serve():
    """Make rooms on real ports; at the end nothing of them is left."""
    import pytest_twisted

    made = []

    def serve(*, clock=reactor, **server):
        threads = Threads(reactor, 1, "test")
        threads.startService()
        room = Room(clock, server=ServerConfig(**server), threads=threads)
        served = Served(room, reactor.listenTCP(0, room.site, interface="127.0.0.1"))
        made.append(served)
        return served

    yield serve

    async def close():
        for served in made:
            await served.close()
            await served.room.threads.stopService()

    pytest_twisted.blockon(Deferred.fromCoroutine(close()))
