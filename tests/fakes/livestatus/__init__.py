"""A scripted Livestatus site that lies in every way known, over real sockets and in memory.

A ``Script`` says what a site answers: its status and columns tables, and a ``Misdeed`` (or an
honest answer) for every other query, in turn. The same script runs behind a real Unix or TCP
socket (``serve_unix``, ``serve_tcp``) and behind ``MemoryCore``, an endpoint in memory.
"""

from __future__ import annotations

import struct
from pathlib import Path

from attrs import define, field
from twisted.internet import error
from twisted.internet.defer import Deferred, succeed
from twisted.internet.interfaces import IStreamClientEndpoint
from twisted.internet.protocol import Factory, Protocol
from twisted.python.failure import Failure
from zope.interface import implementer

from tests.fakes.livestatus.script import (
    NAEMON_COLUMNS,
    Script,
    answer_and_close,
    as_json,
    close_without_answer,
    columns_of,
    fall_silent,
    framed,
    hang,
    invalid_json,
    longer_than_it_says,
    raw,
    refused,
    reset,
    rows,
    rows_in_pieces,
    shorter_than_it_says,
    slow_drip,
    table_of,
    text_instead_of_header,
    truncated,
)

__all__ = [
    "NAEMON_COLUMNS",
    "MemoryCore",
    "Script",
    "answer_and_close",
    "as_json",
    "close_without_answer",
    "columns_of",
    "fall_silent",
    "framed",
    "hang",
    "invalid_json",
    "longer_than_it_says",
    "raw",
    "refused",
    "reset",
    "rows",
    "rows_in_pieces",
    "serve_tcp",
    "serve_unix",
    "shorter_than_it_says",
    "slow_drip",
    "table_of",
    "text_instead_of_header",
    "truncated",
]


@define(eq=False)
class _MemoryTransport:
    """The client's end of a connection in memory, as Twisted has it for a Unix socket."""

    talk: MemoryTalk
    refused: bool = False
    disconnecting = False

    def write(self, data):
        self.refused = not self.talk.open
        if not self.refused:
            self.talk.hear(data)

    @property
    def socket(self):
        return self

    def getsockopt(self, _level, _option, size):
        return struct.pack("3i", self.talk.core.process, 0, 0)[:size]

    def doWrite(self):
        return error.ConnectionLost() if self.refused else None

    def abortConnection(self):
        self.talk.aborted = True
        self.talk.reset()

    def loseWriteConnection(self):
        pass

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

    ``process`` is what the system would say of the other end of a Unix socket.

    Without a script the test answers by hand: ``core.talks[0].say(...)``.
    """

    clock: object
    script: Script | None = None
    up: bool | None = True
    talks: list = field(factory=list)
    connects: int = 0
    cancelled: int = 0
    process: int = 0
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


class _Served(Protocol):
    def __init__(self, site):
        self.site = site
        self.buffer = b""
        self.calls = []
        self.mute = False

    def connectionMade(self):
        self.site.connections.append(self)
        self.site.accepted += 1

    def dataReceived(self, data):
        self.buffer += data
        # A greeting of TLS is no request, whatever bytes are in it by chance.
        while b"\n\n" in self.buffer and not self.buffer.startswith(b"\x16"):
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
        """Stop listening and drop all connections."""
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
