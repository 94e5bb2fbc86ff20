"""The client for Twisted before a daemon that says nothing: time-outs and cancelled requests."""

import pytest
from twisted.internet.defer import CancelledError, Deferred
from twisted.internet.testing import MemoryReactorClock, StringTransport

from monrest.client import AsyncClient, UnreachableError


class Silent:
    """A reactor whose connections are made, and on which nobody ever answers."""

    def __init__(self):
        self.reactor = MemoryReactorClock()
        self.client = AsyncClient("unix:/socket", timeout=30, reactor=self.reactor)
        self.transports = []

    def ask(self, path="/hosts"):
        asked = Deferred.fromCoroutine(self.client.get(path))
        self.accept()
        return asked

    def accept(self):
        for _, factory, *_ in self.reactor.unixClients[len(self.transports) :]:
            protocol = factory.buildProtocol(None)
            self.transports.append(StringTransport())
            protocol.makeConnection(self.transports[-1])
            self.protocol = protocol

    def pass_time(self, seconds):
        for _ in range(seconds * 10):
            self.reactor.advance(0.1)
            self.accept()


@pytest.fixture
def silent():
    return Silent()


def test_who_does_not_answer_in_time_is_asked_once(silent):
    asked = silent.ask()
    assert silent.transports[0].value().startswith(b"GET /mon/r/hosts ")
    silent.pass_time(120)
    error = failure_of(asked)
    assert isinstance(error, UnreachableError)
    assert str(error).endswith("no answer in time")
    assert len(silent.transports) == 1


def test_a_cancelled_request_is_not_sent_again(silent):
    asked = silent.ask()
    asked.cancel()
    assert isinstance(failure_of(asked), CancelledError)
    silent.pass_time(5)
    assert len(silent.transports) == 1
    assert silent.transports[0].disconnecting


def test_a_request_that_is_cancelled_in_its_answer_is_ended(silent):
    asked = silent.ask()
    silent.protocol.dataReceived(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n[1,")
    asked.cancel()
    assert isinstance(failure_of(asked), CancelledError)
    assert silent.transports[0].disconnecting


def failure_of(asked):
    """The error with which a request ended, which it must have."""
    found = []
    asked.addErrback(lambda failure: found.append(failure.value))
    (error,) = found
    return error
