"""A whole web room around a scripted dispatch: real site, channel, Klein and renderer."""

from collections import namedtuple

import pytest
from treq.testing import StubTreq
from twisted.internet.defer import Deferred, maybeDeferred
from twisted.internet.task import Clock

from monrest.auth.authenticate import Authenticator
from monrest.config import AuthConfig, ServerConfig
from monrest.errors import NotFound
from monrest.names import Names
from monrest.values import Column, Document, Rows
from monrest.web.app import Api
from monrest.web.respond import Responder
from monrest.web.site import ApiSite

KEY = "0123456789abcdef" * 4 + "_1"
SIGNED = {"X-Mon-Auth-Key": KEY, "X-Mon-Auth-User": "ann"}
Reply = namedtuple("Reply", "status headers body length")


class NoThreads:
    """Runs at once what the real one runs in a thread, and counts it."""

    def __init__(self):
        self.runs = 0

    def run(self, function):
        self.runs += 1
        return maybeDeferred(function)


class Room:
    """The web room; ``answers`` maps a path to a value, an exception or a coroutine function."""

    def __init__(self, clock, *, server=None, names=None, threads=None):
        self.clock, self.seen, self.answers = clock, [], {}
        self._waiting = []
        self.server = server or ServerConfig()
        self.names = names or Names()
        self.threads = threads or NoThreads()
        self.site = ApiSite(self.resource(), self.server, self.names, clock)

    def resource(self):
        async def no_groups(_):
            return frozenset()

        return Api(
            server=self.server,
            names=self.names,
            authenticator=Authenticator(AuthConfig(), self.names, KEY, no_groups),
            dispatch=self.dispatch,
            allowed=self.allowed,
            responder=Responder(self.clock, self.threads),
            clock=self.clock,
        ).resource()

    async def dispatch(self, request):
        self.seen.append(request)
        waiting, self._waiting = self._waiting, []
        for one in waiting:
            one.callback(request)
        answer = self.answers.get(request.path, Document(value={"path": request.path}))
        if isinstance(answer, Exception):
            raise answer
        return await answer(request) if callable(answer) else answer

    def arrival(self):
        """Fires with the next request that arrives."""
        self._waiting.append(Deferred())
        return self._waiting[-1]

    def allowed(self, path, segments):
        if segments == ("nope",):
            raise NotFound(f"unknown rest path: {path}")
        return ("GET", "HEAD", "POST", "OPTIONS")


def rows(count, text="x" * 100):
    columns = (Column("id"), Column("text"))
    return Rows(columns=columns, rows=[[number, text] for number in range(count)])


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
    stub = StubTreq(room.site.resource)
    stub._agent._serverFactory = room.site

    async def whole(method, path, headers, body):
        response = await stub.request(
            method, f"http://localhost{path}", headers={**SIGNED, **(headers or {})}, data=body
        )
        content = await stub.content(response)
        found = {
            name.decode().lower(): b", ".join(values).decode()
            for name, values in response.headers.getAllRawHeaders()
        }
        return Reply(response.code, found, content, response.length)

    def ask(path, method="GET", headers=None, body=None, flushes=3):
        waiting = Deferred.fromCoroutine(whole(method, path, headers, body))
        results = []

        def keep(result):
            results.append(result)
            return result

        waiting.addBoth(keep)
        for _ in range(flushes):
            stub.flush()
        if not results:
            return waiting
        if hasattr(results[0], "raiseException"):
            waiting.addErrback(lambda _: None)
            results[0].raiseException()
        # The connection stays open and idle; its timer is no business of the tests.
        for channel in tuple(room.site.channels):
            channel.setTimeout(None)
        return results[0]

    ask.flush = stub.flush
    return ask
