"""The HTTP/1.1 connection: longer lines than Twisted's, and JSON when a request is refused early.

Refused early is what never becomes a request: a line that is too long, a malformed request line
or header, a body whose declared length is over the limit.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import orjson
from twisted.internet.interfaces import ITCPTransport
from twisted.internet.protocol import connectionDone
from twisted.python.failure import Failure
from twisted.web.http import HTTPChannel

from monrest.errors import error_value
from monrest.web.caller import Peer, peer_of

if TYPE_CHECKING:
    from twisted.web.http import Request

    from monrest.web.site import ApiSite

_REQUEST_LINE = 64  # method, blanks and version around the URL
_HEADERS = 65536
_LINGER_SECONDS = 2
_LINGER_BYTES = 1 << 20
_BEYOND_ASCII = re.compile(rb"[\x80-\xff]")
_REASONS = {400: b"Bad Request", 413: b"Content Too Large"}


def _percent_encoded(match: re.Match[bytes]) -> bytes:
    return b"%%%02X" % match[0][0]


class ApiChannel(HTTPChannel):
    """One connection; known to its site from first to last byte."""

    site: ApiSite
    peer = Peer()
    _refused = False
    _ignored = 0

    def connectionMade(self) -> None:
        """Take the site's limits and report to it."""
        self.MAX_LENGTH = self.site.limits.max_url + _REQUEST_LINE
        self.totalHeadersSize = self.MAX_LENGTH + _HEADERS
        self.peer = peer_of(self.transport)
        self.site.opened(self)
        super().connectionMade()

    def connectionLost(self, reason: Failure = connectionDone) -> None:
        """Report to the site; running requests are cancelled."""
        super().connectionLost(reason)
        self.site.closed(self)

    def send_now(self) -> None:
        """Send what a finished request has written, without waiting for a turn of the reactor.

        What does not fit into the socket, or fails, is left to the reactor as usual.
        """
        transport: Any = self.transport
        flush = getattr(transport, "doWrite", None)
        if flush is not None and not transport.disconnecting:
            flush()

    # ---------------------------------------------------------------- refusing early

    def dataReceived(self, data: bytes) -> None:
        """Read on, or throw away what follows a refusal."""
        if not self._refused:
            super().dataReceived(data)
            return
        self._ignored += len(data)
        if self._ignored > _LINGER_BYTES:
            self.cut_off()

    def lineReceived(self, line: bytes) -> None:
        """Read a line of the head; letters beyond ASCII in a URL are as good as encoded ones."""
        if self._refused:
            return
        if not self.requests and not line.isascii():
            method, blank, rest = line.partition(b" ")
            line = method + blank + _BEYOND_ASCII.sub(_percent_encoded, rest)
        super().lineReceived(line)

    def rawDataReceived(self, data: bytes) -> None:
        """Read a part of a body."""
        if not self._refused:
            super().rawDataReceived(data)

    def lineLengthExceeded(self, line: bytes) -> None:
        """Refuse a request line or header that is too long."""
        del line
        limit = self.site.limits.max_url
        if self.requests:
            self._refuse(400, "header too long", f"expected headers of up to {limit} bytes")
        else:
            self._refuse(
                400,
                "URL too long",
                f"expected a URL of up to {limit} bytes; longer requests go into a POST body",
            )

    def allHeadersReceived(self) -> None:
        """Refuse a body that is declared longer than allowed before any of it is sent."""
        limit = self.site.limits.max_body
        if self.length is not None and self.length > limit:
            self._refuse(413, "request body too long", f"expected a body of up to {limit} bytes")
            return
        super().allHeadersReceived()

    def _respondToBadRequestAndDisconnect(self) -> None:
        """Refuse what is no HTTP; Twisted calls this wherever it finds something malformed."""
        self._refuse(
            400,
            "bad request",
            "expected an HTTP/1.1 request with a URL in printable ASCII and well-formed headers",
        )

    def _refuse(self, code: int, message: str, description: str) -> None:
        if self._refused:
            return
        self._refused = True
        body = orjson.dumps(
            error_value(code, message, description),
            option=orjson.OPT_APPEND_NEWLINE | orjson.OPT_SORT_KEYS,
        )
        transport: Any = self.transport
        transport.write(
            b"HTTP/1.1 %d %s\r\nServer: monrest\r\nCache-Control: no-store\r\n"
            b"Content-Type: application/json; charset=utf-8\r\nContent-Length: %d\r\n"
            b"Connection: close\r\n\r\n%s" % (code, _REASONS[code], len(body), body)
        )
        self.site.refused(self, code, len(body))
        # Closing while the client still sends makes the kernel reset the connection, and the
        # client would never see why: close our half, throw the rest away, then close.
        if ITCPTransport.providedBy(transport):
            transport.loseWriteConnection()
            self.setTimeout(_LINGER_SECONDS)
        else:
            self.loseConnection()

    def timeoutConnection(self) -> None:
        """Close an idle connection; after a refusal at once."""
        if self._refused:
            self.cut_off()
        else:
            super().timeoutConnection()

    # ---------------------------------------------------------------- draining

    def checkPersistence(self, request: Request, version: bytes) -> bool:
        """Whether another request may follow on this connection; none while draining."""
        return bool(super().checkPersistence(request, version)) and not self.site.draining

    def finish_up(self) -> None:
        """Close when the running request is answered, or now if there is none."""
        if not self.requests:
            self.loseConnection()
            return
        self.persistent = 0
        request = self.requests[0]
        if not request.startedWriting:
            request.responseHeaders.setRawHeaders(b"Connection", [b"close"])

    def cut_off(self) -> None:
        """Close without waiting for anything."""
        transport: Any = self.transport
        transport.abortConnection()
