"""Writing a body that has no end (docs/spec/http.md, "Slow clients")."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from attrs import define, field
from twisted.internet.interfaces import IDelayedCall, IPushProducer, IReactorTime
from twisted.internet.tcp import Connection
from twisted.logger import Logger
from zope.interface import implementer

from monrest.base.values import nothing

if TYPE_CHECKING:
    from monrest.web.api_site import ApiRequest

log = Logger()

PATIENCE = 300.0
"""Seconds for which a client may take nothing of what it was given."""


@implementer(IPushProducer)
@define(eq=False)
class ClientOutlet:
    """The client of ``request``. One that takes nothing for ``PATIENCE`` seconds is cut off.

    As long as the system takes all that is written, it goes straight to the socket: no buffer, and
    no turn of the reactor for each client. What the system does not take is left to the
    transport, and the client is paused until that is on its way.
    """

    clock: IReactorTime
    request: ApiRequest
    escape: Callable[[bytes], bytes] | None = None
    """Makes plain ASCII of what is written."""
    paused: bool = field(init=False, default=False)
    _transport: Any = field(init=False)
    _send: Callable[[bytes], int] | None = field(init=False, default=None)
    """Sends over a socket for which nothing waits."""
    _sent: int = field(init=False, default=0)
    """Bytes of which the request does not know."""
    _resume: Callable[[], None] = field(init=False, default=nothing)
    _late: IDelayedCall | None = field(init=False, default=None)
    _open: bool = field(init=False, default=True)

    def __attrs_post_init__(self) -> None:
        self.request.registerProducer(self, True)
        transport: Any = self.request.channel.transport
        straight = isinstance(transport, Connection) and not transport.TLS
        self._transport = transport if straight else None
        # The head of the answer waits.
        self._tell_of_room()

    def _tell_of_room(self) -> None:
        """Have the transport resume this when nothing waits any more, however little it is."""
        transport = self._transport
        if transport is not None and not transport.producerPaused:
            transport.producerPaused = True
            transport.producer.pauseProducing()

    def write(self, data: bytes) -> None:
        if self.escape is not None:
            data = self.escape(data)
        send = self._send
        if send is None:
            if self._open:
                self.request.write(data)
            return
        framed = b"%x\r\n%b\r\n" % (len(data), data) if self.request.chunked else data
        self._sent += len(data)
        try:
            sent = send(framed)
        except OSError:
            # The reactor tries again, and closes what is broken.
            sent = 0
        if sent < len(framed):
            self._send = None
            self._transport.write(framed[sent:])
            self._tell_of_room()

    def on_room(self, resume: Callable[[], None]) -> None:
        self._resume = resume

    def pauseProducing(self) -> None:
        self.paused = True
        if self._late is None:
            self._late = self.clock.callLater(PATIENCE, self._cut_off)

    def resumeProducing(self) -> None:
        self.paused = False
        self._wait_no_more()
        if self._open:
            if self._transport is not None:
                self._send = self._transport.socket.send
            self._resume()

    def stopProducing(self) -> None:
        """Write nothing more: the client is gone. Its writer is cancelled with the request."""
        self._open, self._send = False, None
        self._wait_no_more()

    def close(self) -> None:
        self._wait_no_more()
        self._resume, self._send = nothing, None
        self.request.sentLength += self._sent
        if self._open:
            self._open = False
            self.request.unregisterProducer()

    def _wait_no_more(self) -> None:
        late, self._late = self._late, None
        if late is not None and late.active():
            late.cancel()

    def _cut_off(self) -> None:
        self._late = None
        log.info("a client that takes nothing of its stream is cut off")
        self.request.channel.forceAbortClient()
