"""A scripted Livestatus site that lies in every way known, over real sockets and in memory.

A ``Script`` says what a site answers: its status and columns tables, and a ``Misdeed`` (or an
honest answer) for every other query, in turn. The same script runs behind a real Unix or TCP
socket (``serve_unix``, ``serve_tcp``) and behind ``MemoryCore``, an endpoint in memory.
"""

from __future__ import annotations

import json
from collections import deque
from pathlib import Path

from attrs import define, field
from twisted.internet import error
from twisted.internet.defer import Deferred, succeed
from twisted.internet.interfaces import IStreamClientEndpoint
from twisted.internet.protocol import Factory, Protocol
from twisted.python.failure import Failure
from zope.interface import implementer

NAEMON_STATUS = ["1.5.2", "1.5.1-naemon", 1_700_000_000, 4711]
NAEMON_COLUMNS = [
    ["hosts", "name", "string"],
    ["hosts", "state", "int"],
    ["hosts", "custom_variables", "dict"],
    ["hosts", "plugin_output", "string"],
    ["services", "host_name", "string"],
    ["services", "description", "string"],
    ["services", "state", "int"],
    ["log", "time", "int"],
    ["log", "message", "string"],
    ["status", "program_start", "int"],
]


def framed(body, status=200, length=None):
    """A body with its fixed16 header, or with a wrong one."""
    return b"%3d %11d\n" % (status, len(body) if length is None else length) + body


def as_json(rows):
    """Rows as Naemon prints them."""
    return b"[" + b",\n".join(json.dumps(row).encode() for row in rows) + b"]\n"


def table_of(request):
    return request.split(b"\n", 1)[0].removeprefix(b"GET ").decode()


def columns_of(request):
    for line in request.split(b"\n"):
        if line.startswith(b"Columns: "):
            return line.removeprefix(b"Columns: ").decode().split()
    return []


# A misdeed gets the connection (``write``, ``close``, ``reset``, ``later``) and the request.


def rows(*wanted):
    """The honest answer."""
    return lambda talk, _request: talk.write(framed(as_json(wanted)))


def raw(data):
    """Exactly these bytes."""
    return lambda talk, _request: talk.write(data)


def body(data):
    """A well-framed body that may be anything."""
    return raw(framed(data))


def longer_than_it_says(*wanted):
    text = as_json(wanted)
    return raw(framed(text, length=len(text) - 4))


def shorter_than_it_says(*wanted):
    """Announces more than it sends and waits."""
    text = as_json(wanted)
    return raw(framed(text, length=len(text) + 100))


def truncated(*wanted, by=5):
    """Dies before the last bytes."""

    def lie(talk, _request):
        talk.write(framed(as_json(wanted))[:-by])
        talk.close()

    return lie


def invalid_json(talk, _request):
    talk.write(framed(b'[["h1",0],\n["h2",oops]]\n'))


def hang(_talk, _request):
    pass


def fall_silent(talk, _request):
    talk.mute = True


def reset(talk, _request):
    talk.reset()


def close_without_answer(talk, _request):
    talk.close()


def text_instead_of_header(talk, _request):
    talk.write(b"Invalid request method\n")
    talk.close()


def refused(status, text):
    return raw(framed(text, status))


def slow_drip(*wanted, every=0.05):
    """The honest answer, one byte at a time."""

    def lie(talk, _request):
        data = framed(as_json(wanted))

        def drip(at):
            talk.write(data[at : at + 1])
            if at + 1 < len(data):
                talk.later(every, lambda: drip(at + 1))

        drip(0)

    return lie


def answer_and_close(*wanted):
    """Answers, and closes the kept connection while it is idle."""

    def lie(talk, _request):
        talk.write(framed(as_json(wanted)))
        talk.close()

    return lie


@define(eq=False)
class Script:
    """What a site answers. ``plan`` is used up in turn, then ``default`` is repeated.

    ``probe`` replaces the honest answer to status and columns queries.
    """

    plan: deque = field(factory=deque, converter=deque)
    default: object = field(factory=lambda: rows(["h1", 0]))
    status: list = field(factory=lambda: list(NAEMON_STATUS))
    columns: list = field(factory=lambda: list(NAEMON_COLUMNS))
    probe: object = None
    requests: list = field(factory=list)
    orders: deque = field(factory=deque, converter=deque)
    """What is done about the next command lines instead of accepting them."""
    commands: list = field(factory=list)

    @property
    def queries(self):
        """The requests for anything but status and columns."""
        return [one for one in self.requests if table_of(one) not in ("status", "columns")]

    def obey(self, talk, request):
        self.commands.append(request.split(b"\n")[0].decode())
        if self.orders and (order := self.orders.popleft()) is not None:
            order(talk, request)
        elif b"wrapped_json" in request:
            talk.write(framed(b'{"failed": {}}\n'))
        elif b"fixed16" in request:
            talk.write(framed(b""))

    def answer(self, talk, request):
        if request.startswith(b"COMMAND "):
            self.obey(talk, request)
            return
        self.requests.append(request)
        table = table_of(request)
        if table == "status" and columns_of(request) == ["program_start"]:
            # The query behind a command; who does not answer the one does not answer the other.
            if not talk.mute:
                talk.write(framed(as_json([[self.status[2]]])))
            return
        if table in ("status", "columns"):
            if self.probe is not None:
                self.probe(talk, request)
            elif table == "status":
                talk.write(framed(as_json([self.status])))
            else:
                talk.write(framed(as_json(self.columns)))
        else:
            misdeed = self.plan.popleft() if self.plan else self.default
            misdeed(talk, request)


# ---------------------------------------------------------------- real sockets


class _Served(Protocol):
    def __init__(self, site):
        self.site = site
        self.buffer = b""
        self.calls = []
        self.mute = False

    def connectionMade(self):
        self.site.connections.append(self)
        self.site.accepted += 1
        if self.site.dead_on_arrival:
            self.transport.abortConnection()

    def dataReceived(self, data):
        self.buffer += data
        while b"\n\n" in self.buffer:
            request, self.buffer = self.buffer.split(b"\n\n", 1)
            self.site.script.answer(self, request)

    def connectionLost(self, reason):
        self.site.connections.remove(self)
        for call in self.calls:
            if call.active():
                call.cancel()
        self.site.check_empty()

    def write(self, data):
        self.transport.write(data)

    def close(self):
        self.transport.loseConnection()

    def reset(self):
        self.transport.abortConnection()

    def later(self, seconds, function):
        self.calls.append(self.site.reactor.callLater(seconds, function))


@define(eq=False)
class ServedSite:
    """A listening site: ``address`` for the configuration, ``connections`` that are open now."""

    reactor: object
    script: Script
    address: str = ""
    port: object = None
    connections: list = field(factory=list)
    accepted: int = 0
    dead_on_arrival: bool = False
    _empty: Deferred | None = None

    def factory(self):
        factory = Factory()
        factory.noisy = False
        factory.buildProtocol = lambda _address: _Served(self)
        return factory

    def check_empty(self):
        if self._empty is not None and not self.connections:
            done, self._empty = self._empty, None
            done.callback(None)

    def when_empty(self):
        """Fires when no client is connected any more."""
        if not self.connections:
            return succeed(None)
        self._empty = Deferred()
        return self._empty

    async def stop(self):
        """Stop listening and drop everybody."""
        if self.port is not None:
            port, self.port = self.port, None
            await port.stopListening()
        for connection in list(self.connections):
            connection.transport.abortConnection()
        await self.when_empty()


def serve_unix(reactor, path, script):
    site = ServedSite(reactor, script, f"unix:{path}")
    Path(path).unlink(missing_ok=True)
    site.port = reactor.listenUNIX(str(path), site.factory(), wantPID=0)
    return site


def serve_tcp(reactor, script, context=None):
    """On a free port; inside TLS with a context factory."""
    site = ServedSite(reactor, script)
    if context is None:
        site.port = reactor.listenTCP(0, site.factory(), interface="127.0.0.1")
    else:
        site.port = reactor.listenSSL(0, site.factory(), context, interface="127.0.0.1")
    kind = "tcp" if context is None else "tls"
    site.address = f"{kind}:127.0.0.1:{site.port.getHost().port}"
    return site


# ---------------------------------------------------------------- in memory


@define(eq=False)
class _MemoryTransport:
    """The client's end of a connection in memory."""

    talk: MemoryTalk

    def write(self, data):
        self.talk.hear(data)

    def abortConnection(self):
        self.talk.aborted = True
        self.talk.reset()

    def loseConnection(self):
        self.talk.close()


@define(eq=False)
class MemoryTalk:
    """One connection in memory, seen from the core; ``written`` is what the client sent."""

    core: MemoryCore
    client: object = None
    open: bool = True
    aborted: bool = False
    written: list = field(factory=list)
    buffer: bytes = b""
    mute: bool = False

    def hear(self, data):
        assert self.open, "the client writes to a closed connection"
        self.written.append(data)
        self.buffer += data
        while b"\n\n" in self.buffer:
            request, self.buffer = self.buffer.split(b"\n\n", 1)
            if self.core.script is not None:
                self.later(0, lambda request=request: self.core.script.answer(self, request))

    def say(self, data):
        """Bytes to the client."""
        if self.open:
            self.client.dataReceived(data)

    write = say

    def close(self):
        self._end(error.ConnectionDone())

    def reset(self):
        self._end(error.ConnectionLost())

    def later(self, seconds, function):
        self.core.clock.callLater(seconds, lambda: function() if self.open else None)

    def _end(self, reason):
        if self.open:
            self.open = False
            # Like a real transport: the news come in a turn of its own.
            self.core.clock.callLater(0, self.client.connectionLost, Failure(reason))


@implementer(IStreamClientEndpoint)
@define(eq=False)
class MemoryCore:
    """An endpoint in memory. ``up`` False refuses, None leaves connects hanging.

    Without a script the test answers by hand: ``core.talks[0].say(...)``.
    """

    clock: object
    script: Script | None = None
    up: bool | None = True
    talks: list = field(factory=list)
    connects: int = 0
    cancelled: int = 0
    hanging: list = field(factory=list)

    def __call__(self):
        return self

    @property
    def open(self):
        return [talk for talk in self.talks if talk.open]

    def connect(self, protocolFactory):
        self.connects += 1
        attempt = Deferred(self._cancel)
        if self.up is None:
            self.hanging.append((attempt, protocolFactory))
        elif self.up:
            self.clock.callLater(0, self._connected, attempt, protocolFactory)
        else:
            self.clock.callLater(0, self._refuse, attempt)
        return attempt

    def let_in(self):
        """Accept the connects that were left hanging."""
        hanging, self.hanging = self.hanging, []
        for attempt, factory in hanging:
            self._connected(attempt, factory)

    def _cancel(self, attempt):
        self.cancelled += 1
        self.hanging = [one for one in self.hanging if one[0] is not attempt]

    def _refuse(self, attempt):
        if not attempt.called:
            attempt.errback(error.ConnectionRefusedError())

    def _connected(self, attempt, factory):
        if attempt.called:
            return
        talk = MemoryTalk(self)
        talk.client = factory.buildProtocol(None)
        self.talks.append(talk)
        talk.client.makeConnection(_MemoryTransport(talk))
        attempt.callback(talk.client)
