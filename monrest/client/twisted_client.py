"""The client for Twisted, over the daemon's HTTP client."""

from __future__ import annotations

from asyncio import _get_running_loop
from email.message import Message
from typing import Any, cast

from OpenSSL import SSL, crypto
from twisted.internet.defer import Deferred
from twisted.internet.endpoints import HostnameEndpoint, UNIXClientEndpoint, wrapClientTLS
from twisted.internet.task import deferLater

from monrest.base.connecting import ExchangeError, client_tls
from monrest.base.http_client import BrokenOffError, HttpAnswer, HttpClient, LateError, in_time
from monrest.client.api_client import AwaitedClient
from monrest.client.exchange import (
    DEFAULT_URL,
    SAFE,
    ClientError,
    HttpRequest,
    Reply,
    ServerAddress,
    UnreachableError,
)
from monrest.client.http_connection import ConnectionOptions

_CONNECT_SECONDS = 10.0


class _TwistedTransport:
    def __init__(self, reactor: Any, address: ServerAddress, options: ConnectionOptions) -> None:
        self._reactor, self._timeout = reactor, options.timeout
        self._start, self._where = address.origin, str(address)
        tls = None
        if address.scheme == "https":
            try:
                tls = client_tls(
                    address.host,
                    verify=not options.insecure,
                    ca_file=options.ca_file,
                    cert_file=options.cert_file,
                    key_file=options.key_file,
                )
            except (OSError, ValueError, SSL.Error, crypto.Error) as error:
                raise ClientError(f"certificates: {error}") from None

        def endpoint(uri: Any) -> Any:
            if address.scheme == "unix":
                return UNIXClientEndpoint(reactor, address.path, timeout=_CONNECT_SECONDS)
            tcp = HostnameEndpoint(reactor, address.host, uri.port, timeout=_CONNECT_SECONDS)
            return tcp if tls is None else wrapClientTLS(tls, tcp)

        self._client = HttpClient(
            reactor=reactor, endpoint=endpoint, keep=options.keep, connect_seconds=_CONNECT_SECONDS
        )

    async def send(self, request: HttpRequest) -> Reply:
        """Send a request and return the beginning of its answer; raises UnreachableError."""
        if _get_running_loop() is not None and not hasattr(self._reactor, "_asyncioEventloop"):
            # Its Deferreds mean nothing to a task of asyncio.
            raise TypeError("AsyncClient is for Twisted: with asyncio use AsyncioClient")
        safe = request.method in SAFE
        try:
            try:
                answer = await self._asked(request, kept=safe)
            except BrokenOffError as error:
                if not (safe and error.reused):
                    raise
                answer = await self._asked(request, kept=False)
        except LateError:
            raise UnreachableError(f"cannot reach {self._where}: no answer in time") from (
                TimeoutError()
            )
        except ExchangeError as error:
            raise UnreachableError(f"cannot reach {self._where}: {error}") from error

        async def piece() -> bytes:
            try:
                return await answer.piece(self._timeout)
            except LateError:
                reason = "no answer in time"
            except ExchangeError as error:
                reason = str(error)
            raise UnreachableError(f"{self._where}: the answer broke off: {reason}")

        async def leave() -> None:
            answer.close()

        headers = Message()
        for name, values in answer.headers.getAllRawHeaders():
            headers[name.decode("latin-1")] = b", ".join(values).decode("utf-8", "replace")
        return Reply(self._where, answer.status, headers, piece, leave)

    def _asked(self, request: HttpRequest, *, kept: bool) -> Deferred[HttpAnswer]:
        url = f"{self._start}{request.target}"
        asked = self._client.ask(request.method, url, request.headers, request.body, kept=kept)
        return in_time(asked, self._timeout, self._reactor)

    async def pause(self, seconds: float) -> None:
        await cast(Any, deferLater(self._reactor, seconds))

    async def close(self) -> None:
        """Close idle connections."""
        await self._client.close()


class AsyncClient(AwaitedClient):
    """As ``Client``, with coroutines of Twisted; requests run at the same time.

    ``reactor``: the one to use, default: the installed one. ``timeout`` in seconds for the
    beginning of an answer and for each silence after that.
    """

    def __init__(
        self,
        url: str = DEFAULT_URL,
        *,
        key: str = "",
        user: str = "",
        timeout: float = 60.0,
        retries: int = 2,
        whole: bool = False,
        strict: bool = True,
        insecure: bool = False,
        ca_file: str = "",
        cert_file: str = "",
        key_file: str = "",
        connections: int = 4,
        reactor: Any = None,
    ) -> None:
        if reactor is None:
            from twisted.internet import reactor
        self._reactor = reactor
        super().__init__(
            url, key=key, user=user, timeout=timeout, retries=retries, whole=whole, strict=strict,
            insecure=insecure, ca_file=ca_file, cert_file=cert_file, key_file=key_file,
            connections=connections,
        )  # fmt: skip

    def transport(self, address: ServerAddress, options: ConnectionOptions) -> _TwistedTransport:
        return _TwistedTransport(self._reactor, address, options)
