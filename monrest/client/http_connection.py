"""HTTP/1.1 over a stream of bytes: blocking sockets, which are here, or the streams of asyncio.

How a request is sent and an answer read, which connections are used again and what a failure is
called is the same for both.
"""

from __future__ import annotations

import re
import socket
import ssl
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from http.client import HTTPException, HTTPResponse, IncompleteRead, LineTooLong, RemoteDisconnected
from io import BytesIO
from select import select
from time import monotonic
from typing import Any, NamedTuple, Protocol, cast

from monrest.client.calling import finish, iterate
from monrest.client.exchange import (
    SAFE,
    ClientError,
    HttpRequest,
    Reply,
    ServerAddress,
    UnreachableError,
)

CHUNK = 65536
_LONGEST_LINE = 65536
_MOST_LINES = 120
"""Of a head; http.client refuses fewer."""
_LINE_END = re.compile(r"[\0\r\n]")
_CLOSED_MEANWHILE = (RemoteDisconnected, ConnectionResetError, BrokenPipeError)


class NoConnectionError(UnreachableError):
    """No answer came; ``error`` is the reason."""

    def __init__(self, where: str, error: Exception) -> None:
        super().__init__(f"cannot reach {where}: {error_text(error)}")
        self.error = error


class ConnectionOptions(NamedTuple):
    """``timeout`` in seconds for each wait; ``keep`` idle connections at most."""

    timeout: float = 60.0
    insecure: bool = False
    ca_file: str = ""
    cert_file: str = ""
    key_file: str = ""
    keep: int = 0


class ByteStream(Protocol):
    """A connection; reading and writing raise OSError."""

    async def read(self) -> bytes:
        """The next bytes, at most CHUNK of them, none at the end."""

    async def write(self, data: bytes) -> None: ...

    def quiet(self) -> bool:
        """Whether nothing waits to be read, as far as one can see: not the end of it either."""

    def close(self) -> None: ...


class HttpTransport(ABC):
    """Sends requests to ``address``, called ``where`` in messages; ``log`` gets its steps as lines.

    A request is sent again only when it is safe and went over a kept connection that the other
    side had closed meanwhile.
    """

    def __init__(
        self,
        address: ServerAddress,
        options: ConnectionOptions,
        *,
        where: str = "",
        log: Callable[[str], None] = lambda _: None,
    ) -> None:
        self.address, self.options, self._log = address, options, log
        self._where = where or str(address)
        self._idle: list[ByteStream] = []
        self._context: ssl.SSLContext | None = None

    @abstractmethod
    async def connect(self, context: ssl.SSLContext | None) -> ByteStream:
        """A new connection, over TLS if there is a context."""

    async def send(self, request: HttpRequest) -> Reply:
        """Send a request and return the beginning of its answer; raises NoConnectionError."""
        self._log(f"> {request.method} {request.target} to {self._where}")
        started = monotonic()
        # An idle connection may be closed already: what must not be sent twice gets a new one.
        idle = self._reused() if request.method in SAFE else None
        try:
            try:
                exchange = await self._begun(request, idle)
            except _CLOSED_MEANWHILE:
                if idle is None:
                    raise
                exchange = await self._begun(request, None)
        except (OSError, HTTPException, ValueError) as error:
            raise NoConnectionError(self._where, error) from error
        response, took = exchange.response, (monotonic() - started) * 1000
        self._log(f"< {response.status} {response.reason} after {took:.0f} ms")

        async def piece() -> bytes:
            try:
                return await exchange.piece()
            except IncompleteRead:
                reason = "the connection was cut in the middle"
            except (OSError, HTTPException) as error:
                reason = f"the answer broke off: {error_text(error)}"
            raise UnreachableError(f"{self._where}: {reason}")

        async def leave() -> None:
            if exchange.reusable and len(self._idle) < self.options.keep:
                self._idle.append(exchange.stream)
            else:
                exchange.stream.close()

        return Reply(self._where, response.status, response.headers, piece, leave)

    async def close(self) -> None:
        """Close the idle connections."""
        while self._idle:
            self._idle.pop().close()

    def _reused(self) -> ByteStream | None:
        while self._idle:
            stream = self._idle.pop()
            if stream.quiet():
                return stream
            stream.close()
        return None

    async def _begun(self, request: HttpRequest, idle: ByteStream | None) -> _Exchange:
        if self.address.scheme == "https" and self._context is None:
            self._context = tls_context(self.options)
        exchange = _Exchange(idle or await self.connect(self._context))
        try:
            await exchange.begin(request, self.address.authority)
        except BaseException:
            exchange.stream.close()
            raise
        return exchange


class _Exchange:
    """A request over a stream, and its answer."""

    response: HTTPResponse

    def __init__(self, stream: ByteStream) -> None:
        self.stream = stream
        self._data, self._over = b"", False
        self._left: int | None = None
        """Bytes of the body or of its present chunk; None: all until the end of the stream."""

    async def begin(self, request: HttpRequest, host: str) -> None:
        """Send the request, and read the head of the answer as http.client does."""
        sent = [f"{request.method} {request.target} HTTP/1.1", f"Host: {host}"]
        sent += (f"{name}: {value}" for name, value in request.headers.items())
        if request.body is not None or request.method not in SAFE:
            sent.append(f"Content-Length: {len(request.body or b'')}")
        if _LINE_END.search("".join(sent)) or " " in request.target:
            raise ValueError("a line end or a space where the request cannot have one")
        head = "\r\n".join([*sent, "\r\n"]).encode("utf-8", "surrogateescape")
        await self.stream.write(head + (request.body or b""))
        lines = [b"HTTP/1.1 1"]
        # Others come before the answer, as 100 Continue; what is no HTTP may have no second line.
        while lines[0].startswith((b"HTTP/1.1 1", b"HTTP/1.0 1")):
            lines = [await self._line()]
            while lines[0].startswith(b"HTTP/") and lines[-1].strip() and len(lines) < _MOST_LINES:
                lines.append(await self._line())
            if not lines[-1]:
                raise RemoteDisconnected("Remote end closed connection without response")
        self.response = HTTPResponse(cast(Any, _Head(b"".join(lines))), method=request.method)
        self.response.begin()
        self._left = 0 if self.response.chunked else self.response.length
        # Of the answer to HEAD as well, also where its head names chunks.
        self._over = self.response.length == 0

    @property
    def reusable(self) -> bool:
        """Whether the next request may go over the stream."""
        return self._over and not self._data and not self.response.will_close

    async def piece(self) -> bytes:
        """The next bytes of the body, none at its end; raises HTTPException, OSError."""
        if self.response.chunked and not self._left and not self._over:
            self._left = await self._chunk()
            self._over = self._left == 0
        if self._over:
            return b""
        data = self._data or await self.stream.read()
        if self._left is None:
            self._data, self._over = b"", not data
            return data
        if not data:
            raise IncompleteRead(b"", self._left)
        data, self._data = data[: self._left], data[self._left :]
        self._left -= len(data)
        self._over = not (self._left or self.response.chunked)
        return data

    async def _chunk(self) -> int:
        """The length of the next chunk; what follows the last one is read, too."""
        line = await self._line()
        if line == b"\r\n":  # the end of the chunk before
            line = await self._line()
        try:
            length = int(line.partition(b";")[0], 16)
        except ValueError:
            raise IncompleteRead(line) from None
        if length < 0 or not line.endswith(b"\n"):
            raise IncompleteRead(line)
        while length == 0 and (await self._line()).strip():
            pass
        return length

    async def _line(self) -> bytes:
        """The next line with its end, which is missing at the end of the stream."""
        while b"\n" not in self._data:
            if len(self._data) > _LONGEST_LINE:
                raise LineTooLong("line")
            piece = await self.stream.read()
            if not piece:
                line, self._data = self._data, b""
                return line
            self._data += piece
        line, end, self._data = self._data.partition(b"\n")
        return line + end


class _Head:
    """The part of a connection that http.client needs to read a head."""

    def __init__(self, head: bytes) -> None:
        self._head = head

    def makefile(self, _mode: str) -> BytesIO:
        return BytesIO(self._head)


def tls_context(options: ConnectionOptions) -> ssl.SSLContext:
    """The TLS of requests: how the daemon is verified, and the certificate of the client.

    Raises ClientError for files that cannot be used.
    """
    try:
        context = ssl.create_default_context(cafile=options.ca_file or None)
        if options.cert_file:
            context.load_cert_chain(options.cert_file, options.key_file or None)
    except (OSError, ssl.SSLError) as error:
        raise ClientError(f"certificates: {error_text(error)}") from None
    if options.insecure:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context


def error_text(error: BaseException) -> str:
    """The reason of a failed connection, in words."""
    if isinstance(error, TimeoutError):
        return "no answer in time"
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"its certificate is not trusted: {error.verify_message}"
    if isinstance(error, ssl.SSLError) and error.reason == "WRONG_VERSION_NUMBER":
        return "it does not speak TLS, is it http://?"
    if isinstance(error, OSError):
        return error.strerror or str(error) or type(error).__name__
    return str(error) or type(error).__name__


class _Socket:
    def __init__(self, connected: socket.socket) -> None:
        self._socket = connected

    async def read(self) -> bytes:
        return self._socket.recv(CHUNK)

    async def write(self, data: bytes) -> None:
        self._socket.sendall(data)

    def quiet(self) -> bool:
        return not select([self._socket], [], [], 0)[0]

    def close(self) -> None:
        self._socket.close()


class BlockingTransport(HttpTransport):
    """Requests over blocking sockets: its coroutines never suspend, ``finish`` runs them."""

    async def connect(self, context: ssl.SSLContext | None) -> _Socket:
        address, timeout = self.address, self.options.timeout
        if address.scheme == "unix":
            connected = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        else:
            connected = socket.create_connection((address.host, address.connect_port), timeout)
        try:
            if address.scheme == "unix":
                connected.settimeout(timeout)
                connected.connect(address.path)
            else:
                connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if context is not None:
                connected = context.wrap_socket(connected, server_hostname=address.host)
        except BaseException:
            connected.close()
            raise
        return _Socket(connected)

    async def pause(self, seconds: float) -> None:
        time.sleep(seconds)

    def ask(self, request: HttpRequest) -> BlockingReply:
        """As ``send``, for callers that want the bytes of the answer."""
        return BlockingReply(finish(self.send(request)))


class BlockingReply:
    """A ``Reply`` that is read without coroutines."""

    def __init__(self, reply: Reply) -> None:
        self.status, self.headers, self.good = reply.status, reply.headers, reply.good
        self.warnings, self.failed_sites = reply.warnings, reply.failed_sites
        self.coroutines = reply

    def read(self) -> bytes:
        """The whole body."""
        return finish(self.coroutines.read())

    def pieces(self) -> Iterator[bytes]:
        """The body in pieces, decompressed, each as soon as it is there."""
        return iterate(self.coroutines.pieces())
