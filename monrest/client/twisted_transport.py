"""HTTP over TCP, TLS or a Unix socket for Twisted."""

from __future__ import annotations

from asyncio import _get_running_loop
from collections.abc import AsyncIterator
from typing import Any
from zlib import MAX_WBITS, decompressobj
from zlib import error as CompressionError  # noqa: N812  a class by another module's rules

from OpenSSL import SSL, crypto
from twisted.internet.endpoints import HostnameEndpoint, UNIXClientEndpoint, wrapClientTLS

from monrest.base.connecting import ExchangeError, client_tls
from monrest.base.http_client import HttpAnswer, HttpClient, LateError, in_time
from monrest.client.client_problems import ClientError, UnreachableError
from monrest.client.exchange import SAFE, Prepared, lines_of
from monrest.client.server_address import ServerAddress

_CONNECT_SECONDS = 10.0
_GZIP = 16 + MAX_WBITS


class TwistedReply:
    """An answer whose body is still on its way; read it once, with ``lines`` or ``read``."""

    def __init__(self, answer: HttpAnswer, timeout: float) -> None:
        self.status, self.headers = answer.status, _Headers(answer)
        self._answer, self._timeout = answer, timeout
        packed = self.headers.get("Content-Encoding", "").lower() == "gzip"
        self._unpack = decompressobj(_GZIP) if packed else None

    async def read(self) -> bytes:
        """The whole body."""
        body = bytearray()
        while piece := await self._piece():
            body += piece
        return bytes(body)

    def lines(self) -> AsyncIterator[bytes]:
        """The lines of the body without their ends, each as soon as it is there."""
        return lines_of(self._piece)

    async def abort(self) -> None:
        """Read no further; nothing to do at the end."""
        self._answer.close()

    async def _piece(self) -> bytes:
        """The next piece; empty at the end. Raises UnreachableError."""
        try:
            while piece := await self._answer.piece(self._timeout):
                if self._unpack is not None:
                    piece = self._unpack.decompress(piece)
                if piece:
                    return piece
        except LateError:
            raise UnreachableError("no answer in time") from None
        except (ExchangeError, CompressionError) as error:
            self._answer.close()
            raise UnreachableError(f"the answer broke off: {error}") from None
        return b""


class _Headers:
    def __init__(self, answer: HttpAnswer) -> None:
        self._headers = answer.headers

    def get(self, name: str, otherwise: str, /) -> str:
        """The value of a header; several are joined."""
        found = self._headers.getRawHeaders(name)
        return ", ".join(found) if found else otherwise


class TwistedTransport:
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
        ascii_host = address.host
        if not ascii_host.isascii():
            ascii_host = ascii_host.encode("idna").decode()
        self._start, self._where = address._replace(host=ascii_host).origin, str(address)
        tls = None
        if address.scheme == "https":
            try:
                tls = client_tls(
                    address.host,
                    verify=not insecure,
                    ca_file=ca_file,
                    cert_file=cert_file,
                    key_file=key_file,
                )
            except (OSError, ValueError, SSL.Error, crypto.Error) as error:
                raise ClientError(f"certificates: {error}") from None

        def endpoint(uri: Any) -> Any:
            if address.scheme == "unix":
                return UNIXClientEndpoint(reactor, address.path, timeout=_CONNECT_SECONDS)
            tcp = HostnameEndpoint(reactor, address.host, uri.port, timeout=_CONNECT_SECONDS)
            return tcp if tls is None else wrapClientTLS(tls, tcp)

        self._client = HttpClient(
            reactor=reactor, endpoint=endpoint, keep=keep, connect_seconds=_CONNECT_SECONDS
        )

    async def send(self, request: Prepared) -> TwistedReply:
        """Send a request and give the beginning of its answer; raises UnreachableError."""
        if _get_running_loop() is not None and not hasattr(self._reactor, "_asyncioEventloop"):
            # Its Deferreds mean nothing to a task of asyncio.
            raise TypeError("AsyncClient is for Twisted: with asyncio use AsyncioClient")
        asked = self._client.ask(
            request.method,
            f"{self._start}{request.target}",
            request.headers,
            request.body,
            kept=request.method in SAFE,
        )
        try:
            answer = await in_time(asked, self._timeout, self._reactor)
        except LateError:
            raise UnreachableError(f"cannot reach {self._where}: no answer in time") from (
                TimeoutError()
            )
        except ExchangeError as error:
            raise UnreachableError(f"cannot reach {self._where}: {error}") from error
        return TwistedReply(answer, self._timeout)

    async def close(self) -> None:
        """Close idle connections."""
        await self._client.close()
