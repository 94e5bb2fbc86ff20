"""One connection to a core: one request at a time, the answer read as it arrives.

The pool owns connections and decides; a connection only turns bytes into "answered" or "broken".
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast
from typing import Protocol as Typing

from twisted.internet.interfaces import IAddress, IHandshakeListener, ITCPTransport
from twisted.internet.protocol import Factory, Protocol, connectionDone
from twisted.python.failure import Failure
from zope.interface import implementer

from monrest.base.errors import Unavailable
from monrest.base.sockets import write_now
from monrest.base.values import Row
from monrest.livestatus.core_errors import LivestatusError
from monrest.livestatus.framing import AnswerReader


class Owner(Typing):
    """Callbacks of a connection, mostly with itself as first argument."""

    def connection_made(self, connection: Connection) -> None:
        """It can be used now (after the handshake, with TLS)."""

    def connection_heard(self) -> None:
        """Bytes of an answer came."""

    def connection_answered(self, connection: Connection, rows: list[Row]) -> None:
        """The request was answered with 200 and these rows."""

    def connection_failed(self, connection: Connection, error: Exception) -> None:
        """The answer was a refusal or nonsense, or found no room on the disk."""

    def connection_spoiled(self, connection: Connection) -> None:
        """Bytes came without a request; they would be taken for the next answer."""

    def connection_lost(self, connection: Connection, reason: Failure) -> None:
        """It is gone, whether or not it was in use."""


class Connection(Protocol):
    """A kept connection.

    ``exchange`` is what the owner runs on it, None while idle; ``served`` counts its answers,
    ``surplus``: the last one was longer than announced; ``idle_since`` is a time of the
    owner's clock. ``unsent``: nothing of the last request was taken. ``process`` is the one at the
    other end of a Unix socket, 0 where that is not known.
    """

    def __init__(self, owner: Owner) -> None:
        self.owner = owner
        self.exchange: Any = None
        self.reader: AnswerReader | None = None
        self.served = 0
        self.surplus = False
        self.unsent = False
        self.process = 0
        self.idle_since = 0.0

    def connectionMade(self) -> None:
        self.owner.connection_made(self)

    def send(self, request: bytes, reader: AnswerReader) -> None:
        """Send a request; its answer goes into ``reader``."""
        self.reader = reader
        # A request is short and the core waits for it.
        self.unsent = not write_now(self.transport, request)

    def dataReceived(self, data: bytes) -> None:
        """Read on; the owner is called when the answer is complete or broken."""
        reader = self.reader
        if reader is None:
            self.owner.connection_spoiled(self)
            return
        self.owner.connection_heard()
        try:
            rows = reader.feed(data)
        except (LivestatusError, Unavailable) as error:
            self.reader = None
            self.owner.connection_failed(self, error)
            return
        if rows is not None:
            self.reader = None
            self.served += 1
            self.surplus = reader.surplus
            self.owner.connection_answered(self, rows)

    def connectionLost(self, reason: Failure = connectionDone) -> None:
        self.owner.connection_lost(self, reason)

    def abort(self) -> None:
        """End the connection at once; what is still to be sent or read is lost."""
        self.reader = None
        transport = cast("ITCPTransport | None", self.transport)
        if transport is not None:
            transport.abortConnection()


@implementer(IHandshakeListener)
class TLSConnection(Connection):
    """A connection that counts as made after its handshake."""

    def connectionMade(self) -> None:
        """Wait for the handshake."""

    def handshakeCompleted(self) -> None:
        self.owner.connection_made(self)


class ConnectionFactory(Factory):
    """Builds the connection of ``make``, for one connect of an endpoint."""

    noisy = False

    def __init__(self, make: Callable[[], Protocol]) -> None:
        self._make = make

    def buildProtocol(self, _addr: IAddress | None) -> Protocol:
        return self._make()
