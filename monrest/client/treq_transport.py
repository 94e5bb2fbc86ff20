"""HTTP over TCP, TLS or a Unix socket for Twisted: treq over an agent that knows all three."""

from __future__ import annotations

from asyncio import _get_running_loop
from collections import deque
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, cast

from OpenSSL.crypto import Error as CryptoError
from OpenSSL.SSL import Connection
from treq.client import HTTPClient
from twisted.internet.defer import CancelledError, Deferred, maybeDeferred
from twisted.internet.endpoints import HostnameEndpoint, UNIXClientEndpoint, wrapClientTLS
from twisted.internet.interfaces import IOpenSSLClientConnectionCreator
from twisted.internet.protocol import Protocol
from twisted.internet.ssl import (
    Certificate,
    CertificateOptions,
    PrivateCertificate,
    optionsForClientTLS,
    trustRootFromCertificates,
)
from twisted.python.failure import Failure
from twisted.web.client import Agent, HTTPConnectionPool, ResponseDone
from twisted.web.iweb import IAgentEndpointFactory
from zope.interface import implementer

from monrest.client.client_problems import ClientError, UnreachableError
from monrest.client.exchange import SAFE, Prepared, lines_of
from monrest.client.server_address import ServerAddress

_CONNECT_SECONDS = 10.0
_END = b"-----END CERTIFICATE-----"
_MOST_WAITING = 1 << 20
"""Bytes that wait for who reads slowly, before the connection is paused."""


class _Headers:
    def __init__(self, response: Any) -> None:
        self._headers = response.headers

    def get(self, name: str, otherwise: str, /) -> str:
        """The value of a header; several are joined."""
        found = self._headers.getRawHeaders(name)
        return ", ".join(found) if found else otherwise


class _Body(Protocol):
    """The pieces of a body as they come; the connection is paused while many wait."""

    def __init__(self, reactor: Any, timeout: float) -> None:
        self._reactor, self._timeout = reactor, timeout
        self._pieces: deque[bytes] = deque()
        self._size = 0
        self._wanted: Deferred[None] | None = None
        self._ended: Failure | None = None

    def dataReceived(self, data: bytes) -> None:
        """Keep a piece until it is wanted."""
        self._pieces.append(data)
        self._size += len(data)
        if self._size > _MOST_WAITING:
            cast(Any, self.transport).pauseProducing()
        self._wake()

    def connectionLost(self, reason: Failure = cast(Failure, None)) -> None:  # noqa: B008  its type
        """Remember how it ended."""
        self._ended = reason
        self._wake()

    def _wake(self) -> None:
        wanted, self._wanted = self._wanted, None
        if wanted is not None:
            wanted.callback(None)

    async def piece(self) -> bytes:
        """The next piece; empty at the end. Raises UnreachableError."""
        while not self._pieces:
            if self._ended is not None:
                if self._ended.check(ResponseDone):
                    return b""
                reason = self._ended.getErrorMessage()
                raise UnreachableError(f"the answer broke off: {reason}")
            self._wanted = Deferred()
            waiting = self._wanted
            silent = self._reactor.callLater(self._timeout, waiting.cancel)
            try:
                await waiting
            except CancelledError:
                if not silent.active():
                    self.abort()
                    raise UnreachableError("no answer in time") from None
                raise
            finally:
                if silent.active():
                    silent.cancel()
        piece = self._pieces.popleft()
        before, self._size = self._size, self._size - len(piece)
        if before > _MOST_WAITING >= self._size and self._ended is None:
            cast(Any, self.transport).resumeProducing()
        return piece

    def abort(self) -> None:
        """Close the connection, unless the body has ended."""
        if self._ended is None and self.transport is not None:
            cast(Any, self.transport).loseConnection()


class TreqReply:
    """An answer whose body is still on its way; read it once, with ``lines`` or ``read``."""

    def __init__(self, response: Any, body: _Body) -> None:
        self.status: int = response.code
        self.headers = _Headers(response)
        self._body = body

    async def read(self) -> bytes:
        """The whole body."""
        pieces = []
        try:
            while piece := await self._body.piece():
                pieces.append(piece)
        finally:
            # Nothing to do at the end: this is for a request that is cancelled in its answer.
            self._body.abort()
        return b"".join(pieces)

    def lines(self) -> AsyncIterator[bytes]:
        """The lines of the body without their ends, each as soon as it is there."""
        return lines_of(self._body.piece)

    async def abort(self) -> None:
        """Read no further; nothing to do at the end."""
        self._body.abort()


class TreqTransport:
    """Sends requests to ``address``; times in seconds, ``keep`` idle connections at most."""

    def __init__(
        self,
        reactor: Any,
        address: ServerAddress,
        *,
        timeout: float,
        insecure: bool,
        ca_file: str,
        cert_file: str,
        key_file: str,
        keep: int,
    ) -> None:
        self._reactor, self._timeout = reactor, timeout
        host = f"[{address.host}]" if ":" in address.host else address.host
        port = f":{address.port}" if address.port else ""
        self._start = (
            "http://localhost" if address.scheme == "unix" else f"{address.scheme}://{host}{port}"
        )
        self._where = str(address)
        self._pool = HTTPConnectionPool(reactor, persistent=keep > 0)
        self._pool.maxPersistentPerHost = keep
        self._pool.retryAutomatically = False
        endpoints = _Endpoints(reactor, address, insecure, ca_file, cert_file, key_file)
        self._client = HTTPClient(Agent.usingEndpointFactory(reactor, endpoints, self._pool))
        # An idle connection may be closed already: what must not be sent twice gets a new one.
        fresh = HTTPConnectionPool(reactor, persistent=False)
        self._once = HTTPClient(Agent.usingEndpointFactory(reactor, endpoints, fresh))

    async def send(self, request: Prepared) -> TreqReply:
        """Send a request and give the beginning of its answer; raises UnreachableError."""
        if _get_running_loop() is not None and not hasattr(self._reactor, "_asyncioEventloop"):
            # Its Deferreds mean nothing to a task of asyncio.
            raise TypeError("AsyncClient is for Twisted: with asyncio use AsyncioClient")
        # The agent takes compressed answers apart, and asks for them itself.
        headers: dict[bytes | str, list[bytes | str]] = {
            name: [value.encode("utf-8", "surrogateescape")]
            for name, value in request.headers.items()
            if name != "Accept-Encoding"
        }
        client = self._client if request.method in SAFE else self._once
        asked = maybeDeferred(
            client.request, request.method, f"{self._start}{request.target}",
            headers=headers, data=request.body, allow_redirects=False, unbuffered=True,
            reactor=self._reactor,
        )  # fmt: skip
        late = self._reactor.callLater(self._timeout, asked.cancel)
        try:
            response = await asked
        except Exception as error:
            if not late.active():
                raise UnreachableError(f"cannot reach {self._where}: no answer in time") from (
                    TimeoutError()
                )
            if _is_cancelled(error):
                raise CancelledError from error
            raise UnreachableError(f"cannot reach {self._where}: {_error_text(error)}") from error
        finally:
            if late.active():
                late.cancel()
        body = _Body(self._reactor, self._timeout)
        response.deliverBody(body)
        return TreqReply(response, body)

    async def close(self) -> None:
        """Close idle connections."""
        await self._pool.closeCachedConnections()


def _is_cancelled(error: Exception) -> bool:
    """Whether the request was cancelled, which the agent says in a list of reasons once sent."""
    reasons = getattr(error, "reasons", ())
    return isinstance(error, CancelledError) or any(one.check(CancelledError) for one in reasons)


def _error_text(error: Exception) -> str:
    reasons = getattr(error, "reasons", ())
    if reasons:
        return "; ".join(one.getErrorMessage() for one in reasons)
    return str(error) or type(error).__name__


@implementer(IAgentEndpointFactory)
class _Endpoints:
    """The one endpoint of an address, for every URL."""

    def __init__(
        self,
        reactor: Any,
        address: ServerAddress,
        insecure: bool,
        ca_file: str,
        cert_file: str,
        key_file: str,
    ) -> None:
        self._reactor, self._address = reactor, address
        self._creator = None
        if address.scheme == "https":
            try:
                self._creator = _creator(address.host, insecure, ca_file, cert_file, key_file)
            except (OSError, ValueError, CryptoError) as error:
                raise ClientError(f"certificates: {error}") from None

    def endpointForURI(self, uri: Any) -> Any:
        """Where to connect."""
        address = self._address
        if address.scheme == "unix":
            return UNIXClientEndpoint(self._reactor, address.path, timeout=_CONNECT_SECONDS)
        tcp = HostnameEndpoint(self._reactor, address.host, uri.port, timeout=_CONNECT_SECONDS)
        return tcp if self._creator is None else wrapClientTLS(self._creator, tcp)


@implementer(IOpenSSLClientConnectionCreator)
class _Unverified:
    """TLS without a look at the certificate of the other side."""

    def __init__(self, host: str, options: CertificateOptions) -> None:
        self._host, self._options = host, options

    def clientConnectionForTLS(self, tlsProtocol: Any) -> Connection:  # noqa: ARG002  the interface
        """A connection that names the host and asks for no proof."""
        connection = Connection(self._options.getContext(), None)
        connection.set_tlsext_host_name(self._host.encode("idna"))
        return connection


def _creator(host: str, insecure: bool, ca_file: str, cert_file: str, key_file: str) -> Any:
    own = None
    if cert_file:
        files = (cert_file, key_file) if key_file else (cert_file,)
        own = PrivateCertificate.loadPEM(b"\n".join(Path(one).read_bytes() for one in files))
    if insecure:
        options = own.options() if own else CertificateOptions(verify=False)
        return _Unverified(host, options)
    roots = None
    if ca_file:
        *blocks, _ = Path(ca_file).read_bytes().split(_END)
        if not blocks:
            raise ValueError(f"{ca_file} holds no certificate")
        roots = trustRootFromCertificates([Certificate.loadPEM(one + _END) for one in blocks])
    return optionsForClientTLS(host, trustRoot=roots, clientCertificate=own)
