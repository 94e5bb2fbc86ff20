"""The client for asyncio: HTTP over TCP, TLS or a Unix socket by httpx."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import httpx

from monrest.client.asynchronous import AsyncClient
from monrest.client.client_problems import UnreachableError
from monrest.client.exchange import SAFE, Prepared, lines_of
from monrest.client.http_transport import error_text, tls_context
from monrest.client.list_request import DEFAULT
from monrest.client.server_address import ServerAddress


class HttpxReply:
    """An answer whose body is still on its way; read it once, with ``lines`` or ``read``."""

    def __init__(self, response: httpx.Response) -> None:
        self.status = response.status_code
        self.headers: Any = response.headers
        self._response = response
        self._pieces = response.aiter_bytes()

    async def read(self) -> bytes:
        """The whole body."""
        pieces = []
        try:
            while piece := await self._piece():
                pieces.append(piece)
        finally:
            await self.abort()
        return b"".join(pieces)

    def lines(self) -> AsyncIterator[bytes]:
        """The lines of the body without their ends, each as soon as it is there."""
        return lines_of(self._piece)

    async def abort(self) -> None:
        """Read no further; nothing to do at the end."""
        await self._response.aclose()

    async def _piece(self) -> bytes:
        """The next piece; empty at the end. Raises UnreachableError."""
        try:
            async for piece in self._pieces:
                if piece:
                    return piece
        except httpx.TimeoutException:
            raise UnreachableError("no answer in time") from None
        except httpx.HTTPError as error:
            raise UnreachableError(f"the answer broke off: {_text(error)}") from None
        return b""


class HttpxTransport:
    """Sends requests to ``address``; times in seconds, ``keep`` idle connections at most."""

    def __init__(
        self,
        address: ServerAddress,
        *,
        timeout: float,
        insecure: bool,
        ca_file: str,
        cert_file: str,
        key_file: str,
        keep: int,
    ) -> None:
        encrypted = address.scheme == "https"
        self._start, self._where = address.origin, str(address)
        context = tls_context(insecure, ca_file, cert_file, key_file) if encrypted else False

        def client(keep: int) -> httpx.AsyncClient:
            limits = httpx.Limits(max_connections=None, max_keepalive_connections=keep)
            path = address.path if address.scheme == "unix" else None
            transport = httpx.AsyncHTTPTransport(verify=context, limits=limits, uds=path)
            return httpx.AsyncClient(transport=transport, timeout=timeout, trust_env=False)

        # An idle connection may be closed already: what must not be sent twice gets a new one.
        self._kept, self._once = client(keep), client(0)

    async def send(self, request: Prepared) -> HttpxReply:
        """Send a request and give the beginning of its answer; raises UnreachableError."""
        client = self._kept if request.method in SAFE else self._once
        # httpx takes compressed answers apart, and asks for them itself.
        headers = {
            name.encode(): value.encode("utf-8", "surrogateescape")
            for name, value in request.headers.items()
            if name != "Accept-Encoding"
        }
        asked = client.build_request(
            request.method, self._start, headers=headers, content=request.body,
            extensions={"target": request.target.encode()},
        )  # fmt: skip
        try:
            return HttpxReply(await client.send(asked, stream=True))
        except httpx.TimeoutException:
            raise UnreachableError(f"cannot reach {self._where}: no answer in time") from (
                TimeoutError()
            )
        except httpx.HTTPError as error:
            raise UnreachableError(f"cannot reach {self._where}: {_text(error)}") from error

    async def close(self) -> None:
        """Close idle connections."""
        await self._kept.aclose()
        await self._once.aclose()


def _text(error: BaseException) -> str:
    """What happened, said by the system where it is the cause."""
    cause: BaseException | None = error
    while cause is not None and not isinstance(cause, OSError):
        cause = cause.__cause__ or cause.__context__
    return error_text(cause or error)


class AsyncioClient(AsyncClient):
    """As ``AsyncClient``, for programs on asyncio: ``pip install monrest[asyncio]``."""

    def __init__(
        self,
        url: str = DEFAULT,
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
    ) -> None:
        self._asks(url, key, user, retries, whole, strict)
        self._transport = HttpxTransport(
            self._address, timeout=timeout, insecure=insecure, ca_file=ca_file,
            cert_file=cert_file, key_file=key_file, keep=connections,
        )  # fmt: skip

    async def _pause(self, seconds: float) -> None:
        await asyncio.sleep(seconds)
