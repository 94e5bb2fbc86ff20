"""A scripted site behind an endpoint in memory."""

from __future__ import annotations

import struct

from attrs import define, field
from twisted.internet import error
from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IStreamClientEndpoint
from twisted.python.failure import Failure
from zope.interface import implementer

from tests.fakes.livestatus.script import Script


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
