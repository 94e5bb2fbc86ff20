"""HTTP over TCP, TLS or a Unix socket, with nothing but the standard library.

A transport may keep connections open and use them again; it sends a request again by itself only
when it is safe and the other side had closed the connection meanwhile.
"""

from __future__ import annotations

import socket
import ssl
from collections.abc import Callable, Iterator
from http.client import (
    HTTPConnection,
    HTTPException,
    HTTPMessage,
    HTTPResponse,
    HTTPSConnection,
    IncompleteRead,
    RemoteDisconnected,
)
from select import select
from time import monotonic
from zlib import MAX_WBITS, decompressobj
from zlib import error as CompressionError  # noqa: N812  a class by another module's rules

from monrest.client.client_problems import ClientError, UnreachableError
from monrest.client.exchange import SAFE, Prepared, failed_sites_of, warnings_of
from monrest.client.server_address import ServerAddress

_CHUNK = 65536
_GZIP = 16 + MAX_WBITS
_CLOSED_MEANWHILE = (RemoteDisconnected, ConnectionResetError, BrokenPipeError)


class NoConnectionError(UnreachableError):
    """Nothing came back; ``error`` is what happened."""

    def __init__(self, where: str, error: Exception) -> None:
        super().__init__(f"cannot reach {where}: {error_text(error)}")
        self.error = error


class _UnixConnection(HTTPConnection):
    def __init__(self, path: str, timeout: float) -> None:
        super().__init__("localhost", timeout=timeout)
        self._path = path

    def connect(self) -> None:
        """Open the socket instead of a TCP connection."""
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self._path)


class Reply:
    """An answer whose body is still on its way; read it once, with ``chunks`` or ``read``."""

    def __init__(
        self,
        connection: HTTPConnection,
        response: HTTPResponse,
        where: str,
        keep: Callable[[HTTPConnection], None],
    ) -> None:
        self.status = response.status
        self.headers: HTTPMessage = response.headers
        self._connection = connection
        self._response = response
        self._where = where
        self._keep = keep

    @property
    def good(self) -> bool:
        """Whether the status is 2xx."""
        return self.status // 100 == 2

    def chunks(self) -> Iterator[bytes]:
        """The body in pieces, decompressed, each as soon as it is there.

        Raises UnreachableError when the connection breaks before the end.
        """
        packed = self.headers.get("Content-Encoding", "").lower() == "gzip"
        unpack = decompressobj(_GZIP) if packed else None
        whole = False
        try:
            while chunk := self._response.read1(_CHUNK):
                yield unpack.decompress(chunk) if unpack else chunk
            # http.client takes a short body for a whole one.
            if self._response.length or (unpack and not unpack.eof):
                raise UnreachableError(f"{self._where}: the connection was cut in the middle")
            whole = not self._response.will_close
            self._response.close()  # else the connection takes it for unread
        except IncompleteRead:
            raise UnreachableError(f"{self._where}: the connection was cut in the middle") from None
        except (OSError, HTTPException, CompressionError) as error:
            reason = error_text(error)
            raise UnreachableError(f"{self._where}: the answer broke off: {reason}") from None
        finally:
            if whole:
                self._keep(self._connection)
            else:
                self._connection.close()

    def lines(self) -> Iterator[bytes]:
        """The lines of the body without their ends, each as soon as it is there."""
        rest = b""
        for chunk in self.chunks():
            *lines, rest = (rest + chunk).split(b"\n")
            yield from lines
        if rest:
            yield rest

    def read(self) -> bytes:
        """The whole body."""
        return b"".join(self.chunks())

    def close(self) -> None:
        """Read no further."""
        self._connection.close()

    def warnings(self, app: str) -> list[str]:
        """What the daemon, whose application is called ``app``, warns of."""
        return warnings_of(self.headers, app)

    def failed_sites(self, app: str) -> list[str]:
        """The ids of the sites that are missing in the answer of a daemon called ``app``."""
        return failed_sites_of(self.headers, app)


class Transport:
    """Sends requests; ``timeout`` in seconds for each wait, ``keep`` idle connections at most."""

    def __init__(
        self,
        *,
        timeout: float = 60.0,
        insecure: bool = False,
        ca_file: str = "",
        cert_file: str = "",
        key_file: str = "",
        keep: int = 0,
        say: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._timeout = timeout
        self._tls = (insecure, ca_file, cert_file, key_file)
        self._most = keep
        self._idle: dict[ServerAddress, list[HTTPConnection]] = {}
        self._say = say
        self._context: ssl.SSLContext | None = None

    def send(self, address: ServerAddress, request: Prepared, where: str = "") -> Reply:
        """Send a request and give the beginning of its answer.

        ``where`` names the other side in messages. Raises NoConnectionError.
        """
        where = where or str(address)
        self._say(f"> {request.method} {request.target} to {where}")
        started = monotonic()
        # An idle connection may be closed already: what must not be sent twice gets a new one.
        idle = self._reused(address) if request.method in SAFE else None
        try:
            if idle is not None:
                try:
                    return self._sent(idle, address, request, where, started)
                except _CLOSED_MEANWHILE:
                    idle.close()
            return self._sent(self._opened(address), address, request, where, started)
        except (OSError, HTTPException, ValueError) as error:
            raise NoConnectionError(where, error) from error

    def close(self) -> None:
        """Close the idle connections."""
        for connections in self._idle.values():
            while connections:
                connections.pop().close()

    def _sent(
        self,
        connection: HTTPConnection,
        address: ServerAddress,
        request: Prepared,
        where: str,
        started: float,
    ) -> Reply:
        headers = {
            name: value.encode("utf-8", "surrogateescape")
            for name, value in request.headers.items()
        }
        try:
            connection.request(request.method, request.target, request.body, headers)
            response = connection.getresponse()
        except BaseException:
            connection.close()
            raise
        took = (monotonic() - started) * 1000
        self._say(f"< {response.status} {response.reason} after {took:.0f} ms")

        def keep(connection: HTTPConnection) -> None:
            idle = self._idle.setdefault(address, [])
            if len(idle) < self._most:
                idle.append(connection)
            else:
                connection.close()

        return Reply(connection, response, where, keep)

    def _reused(self, address: ServerAddress) -> HTTPConnection | None:
        """An idle connection that the other side has not closed, as far as one can see."""
        idle = self._idle.get(address, [])
        while idle:
            connection = idle.pop()
            if connection.sock is not None and not select([connection.sock], [], [], 0)[0]:
                return connection
            connection.close()
        return None

    def _opened(self, address: ServerAddress) -> HTTPConnection:
        timeout = self._timeout
        if address.scheme == "unix":
            return _UnixConnection(address.path, timeout)
        if address.scheme == "http":
            return HTTPConnection(address.host, address.port or None, timeout=timeout)
        if self._context is None:
            self._context = tls_context(*self._tls)
        return HTTPSConnection(
            address.host, address.port or None, timeout=timeout, context=self._context
        )


def tls_context(insecure: bool, ca_file: str, cert_file: str, key_file: str) -> ssl.SSLContext:
    """How the other side is verified, and with what certificate it is asked.

    Raises ClientError for files that cannot be used.
    """
    try:
        context = ssl.create_default_context(cafile=ca_file or None)
        if cert_file:
            context.load_cert_chain(cert_file, key_file or None)
    except (OSError, ssl.SSLError) as error:
        raise ClientError(f"certificates: {error_text(error)}") from None
    if insecure:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context


def error_text(error: BaseException) -> str:
    """What happened to a connection, in words."""
    if isinstance(error, TimeoutError):
        return "no answer in time"
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"its certificate is not trusted: {error.verify_message}"
    if isinstance(error, ssl.SSLError) and error.reason == "WRONG_VERSION_NUMBER":
        return "it does not speak TLS, is it http://?"
    if isinstance(error, OSError):
        return error.strerror or str(error) or type(error).__name__
    return str(error) or type(error).__name__
