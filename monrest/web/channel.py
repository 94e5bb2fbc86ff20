"""The HTTP/1.1 connection: longer lines than Twisted's, and JSON when a request is refused early.

Refused early is what never becomes a request: a line that is too long, a malformed request line
or header, a head that does not end. Answered early is a request whose body shall not come, or does
not come.
"""

from __future__ import annotations

import re
import socket
import struct
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import orjson
from attrs import frozen
from twisted.internet.address import IPv4Address, IPv6Address
from twisted.internet.interfaces import ISSLTransport, ITCPTransport
from twisted.internet.protocol import connectionDone
from twisted.python.failure import Failure
from twisted.web.http import HTTPChannel

from monrest.base.errors import RestError, TooLarge, TooSlow, error_value
from monrest.base.sockets import credentials, write_now
from monrest.web.limits import (
    BODY_LEAST,
    BODY_WINDOW,
    HEAD_SECONDS,
    SMALL_BODY,
    SUSPENDED,
    Pace,
    no_room,
)

if TYPE_CHECKING:
    from twisted.internet.interfaces import IDelayedCall
    from twisted.web.http import Request
    from twisted.web.http_headers import Headers

    from monrest.web.api_site import ApiRequest, ApiSite

_REQUEST_LINE = 64  # method, blanks and version around the URL
_HEADERS = 65536
_TCP_INFO = 256
_ACKNOWLEDGED, _ACKNOWLEDGED_AT = struct.Struct("Q"), 120  # tcpi_bytes_acked of Linux
_LINGER_SECONDS = 2
_LINGER_BYTES = 1 << 20
_TLS = b"\x16\x03"  # a client that begins TLS would wait for the end of its head
_BEYOND_ASCII = re.compile(rb"[\x80-\xff]")
_REASONS = {400: b"Bad Request", 408: b"Request Timeout", 501: b"Not Implemented"}
_LONGEST_NUMBER = 18


@frozen(kw_only=True)
class RemoteEnd:
    """The other end of a connection: an address, or the user of a Unix socket."""

    address: str = ""
    uid: int | None = None
    secure: bool = False


def peer_of(transport: Any) -> RemoteEnd:
    other = transport.getPeer()
    if isinstance(other, (IPv4Address, IPv6Address)):
        # An IPv4 client of a listener for both families comes as ::ffff:192.0.2.1.
        address = other.host.removeprefix("::ffff:") if "." in other.host else other.host
        return RemoteEnd(address=address, secure=ISSLTransport.providedBy(transport))
    peer = credentials(transport)
    return RemoteEnd(uid=peer.uid if peer else None)


class ApiChannel(HTTPChannel):
    """One connection; known to its site from first to last byte."""

    site: ApiSite
    peer = RemoteEnd()
    _refused = False
    _ignored = 0
    _received = 0
    _written = 0
    _passed_on = 0
    # The head of an answer whose body has to follow.
    _head = b""
    # The reactor has the head of an answer, whose body comes in pieces.
    _pieces = False
    _head_due: IDelayedCall | None = None
    _body_pace: Pace
    _continues = False
    _host: Any = None
    _peer: Any = None

    def connectionMade(self) -> None:
        self.MAX_LENGTH = self.site.limits.max_url + _REQUEST_LINE
        self.totalHeadersSize = self.MAX_LENGTH + _HEADERS
        self.peer = peer_of(self.transport)
        self._host, self._peer = super().getHost(), super().getPeer()
        self._body_pace = Pace(self.site.reactor, BODY_LEAST, BODY_WINDOW)
        self.site.opened(self)
        super().connectionMade()

    def getHost(self) -> Any:
        """Return our own end, for which the system is asked once and not for each request."""
        return self._host

    def getPeer(self) -> Any:
        return self._peer

    def connectionLost(self, reason: Failure = connectionDone) -> None:
        """Report to the site; running requests are cancelled."""
        self._head_ends()
        self._body_pace.end()
        super().connectionLost(reason)
        self.site.closed(self)

    def dataReceived(self, data: bytes) -> None:
        """Read on, or throw away what follows a refusal."""
        if not self._refused:
            super().dataReceived(data)
            if not self._handlingRequest:
                self._watch_head()
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
            encoded = _BEYOND_ASCII.sub(lambda match: b"%%%02X" % match[0][0], rest)
            line = method + blank + encoded
        super().lineReceived(line)

    def rawDataReceived(self, data: bytes) -> None:
        if not self._refused:
            self._received += len(data)
            super().rawDataReceived(data)

    def lineLengthExceeded(self, line: bytes) -> None:
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
        """Check the credentials for a long body, before any of it is stored."""
        if self._head_due is not None:
            self._head_ends()
        hosts = self.requests[-1].requestHeaders.getRawHeaders(b"Host", ())
        if len(hosts) > 1 or (not hosts and self._version == b"HTTP/1.1"):
            self._refuse(400, "bad request", "Host: expected once")
            return
        long = self.length is None or self.length > SMALL_BODY
        self._continues = False
        super().allHeadersReceived()
        if self.length != 0:
            self._body_pace.begin(self._count_received, self._body_too_slow)
        if not long:
            return
        request: ApiRequest = self.requests[-1]
        request.head_received(self._command, self._path, self._version)
        admission = self.site.admit(request)
        if not admission.called:
            self._body_pace.end()
            self._networkProducer.pauseProducing()
        admission.addCallbacks(
            self._admitted,
            lambda failure: self.answer_early(request, failure),
            callbackArgs=(request, self.length),
        )

    def _maybeChooseTransferDecoder(self, header: bytes, data: bytes) -> bool:
        """Refuse what would leave it open where the body ends."""
        if header == b"Transfer-Encoding" and data.lower() != b"chunked":
            self._refuse(501, "unknown transfer coding", "Transfer-Encoding: expected chunked")
            return False
        if header == b"Content-Length" and len(data) > _LONGEST_NUMBER:
            self._refuse(400, "bad request", f"Content-Length: expected {_LONGEST_NUMBER} digits")
            return False
        return bool(super()._maybeChooseTransferDecoder(header, data))

    def _send100Continue(self) -> None:
        """Ask for the body; for a long one only when its sender is known."""
        self._continues = True
        if self.length is not None and self.length <= SMALL_BODY:
            super()._send100Continue()

    def _admitted(self, limit: int, request: ApiRequest, length: int | None) -> None:
        if self._refused or request.channel is None:
            return
        request.limit = limit
        if request.body.tell() > limit or (length is not None and length > limit):
            error: RestError = TooLarge(
                "request body too long", f"expected a body of up to {limit} bytes"
            )
            self.answer_early(request, Failure(error))
        elif length is not None and not request.reserve(length):
            self.answer_early(request, Failure(no_room()))
        else:
            if self._continues:
                super()._send100Continue()
            self._body_pace.begin(self._count_received, self._body_too_slow)
            self._networkProducer.resumeProducing()

    def allContentReceived(self) -> None:
        """Hand the request on, unless it was answered already."""
        if not self._refused:
            if self._received:
                self._body_pace.end()
            super().allContentReceived()

    def answer_early(self, request: ApiRequest, failure: Failure) -> None:
        """Answer a request with ``failure`` before its body is there, and close."""
        if self._refused or request.channel is None:
            return
        self._refused = True
        self._body_pace.end()
        request.refusal = failure
        request.drop_body()
        self.persistent = 0
        request.responseHeaders.setRawHeaders(b"Connection", [b"close"])
        super().allContentReceived()

    def requestDone(self, request: Request) -> None:
        """Send the rest of the answer, and read the request that was sent behind this one."""
        if self._head or self._pieces:
            head, self._head, self._pieces = self._head, b"", False
            write_now(self.transport, head)
        super().requestDone(request)
        if self._buffer or self.requests:
            self._watch_head()

    def taken(self) -> int:
        """Count the bytes that the client has taken so far.

        Of TCP the system knows what was acknowledged. Of others all is taken that was written
        when the transport asked for more the last time.
        """
        handle: Any = getattr(self.transport, "socket", None)
        try:
            status = handle.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _TCP_INFO)
            acknowledged: int = _ACKNOWLEDGED.unpack_from(status, _ACKNOWLEDGED_AT)[0]
        except (AttributeError, OSError, struct.error):
            return self._passed_on
        return acknowledged

    def writeHeaders(self, version: bytes, code: bytes, reason: bytes, headers: Headers) -> None:
        """Send the head of an answer, in one piece with the body that follows at once."""
        request: ApiRequest = self.requests[0]
        head = b"%b %b %b\r\n%bX-Request-Id: %b\r\n" % (
            *(version, code, reason, self.site.common_headers()),
            request.request_id.encode("ascii"),
        )
        for name, values in headers.getAllRawHeaders():
            for value in values:
                head += b"%b: %b\r\n" % (name, value)
        if not headers.hasHeader(b"Cache-Control"):
            head += b"Cache-Control: no-store\r\n"
        head += b"\r\n"
        if headers.hasHeader(b"Content-Length"):
            self._head = head
        else:
            self._pieces = True
            transport: Any = self.transport
            transport.write(head)

    def write(self, data: bytes) -> None:
        """Send a part of an answer at once, as far as the system takes it."""
        self._written += len(data)
        if self._head:
            data, self._head = self._head + data, b""
        self._pieces = False
        write_now(self.transport, data)

    def writeSequence(self, iovec: Iterable[bytes]) -> None:
        self.write(b"".join(iovec))

    def resumeProducing(self) -> None:
        """Note that what was written so far is on its way."""
        self._passed_on = self._written
        super().resumeProducing()

    def _watch_head(self) -> None:
        """Begin to wait for the end of a head when the first byte of it is there."""
        reading = self.line_mode and not self._handlingRequest and not self._refused
        if reading and not self.requests and self._buffer.startswith(_TLS):
            self._refuse(
                400,
                "no TLS here",
                "this port has no TLS: use http://, or a listener with ssl:",
            )
        elif reading and self._head_due is None and (self._buffer or self.requests):
            self._head_due = self.site.reactor.callLater(HEAD_SECONDS, self._head_too_slow)

    def _head_ends(self) -> None:
        due, self._head_due = self._head_due, None
        if due is not None and due.active():
            due.cancel()

    def _head_too_slow(self) -> None:
        due, self._head_due = self._head_due, None
        if due is not None and self.site.reactor.seconds() - due.getTime() > SUSPENDED:
            self._watch_head()
            return
        self._refuse(
            408,
            "request timed out",
            f"expected the head of the request within {HEAD_SECONDS:g} seconds",
        )

    def _count_received(self) -> int:
        return self._received

    def _body_too_slow(self) -> None:
        error = TooSlow(
            "request timed out",
            f"expected at least {BODY_LEAST} bytes of the body in {BODY_WINDOW:g} seconds",
        )
        self.answer_early(self.requests[-1], Failure(error))

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
        self._head_ends()
        self.site.refused(self, code, len(body))
        self.loseConnection()

    def loseConnection(self) -> None:
        """Close; after a refusal so that the client sees why.

        Closing while the client still sends makes the kernel reset the connection: close our
        half, throw the rest away, then close.
        """
        transport: Any = self.transport
        if self._refused and ITCPTransport.providedBy(transport):
            transport.loseWriteConnection()
            self.setTimeout(_LINGER_SECONDS)
            self._networkProducer.resumeProducing()
        else:
            super().loseConnection()

    def timeoutConnection(self) -> None:
        """Close an idle connection; after a refusal at once."""
        if self._refused:
            self.cut_off()
        else:
            super().timeoutConnection()

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
        transport: Any = self.transport
        transport.abortConnection()
