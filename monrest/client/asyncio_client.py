"""The client for asyncio: its streams, nothing but the standard library."""

from __future__ import annotations

import asyncio
import ssl

from monrest.client.api_client import AwaitedClient
from monrest.client.exchange import ServerAddress
from monrest.client.http_connection import CHUNK, ConnectionOptions, HttpTransport


class _AsyncioStream:
    def __init__(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, timeout: float
    ) -> None:
        self._reader, self._writer, self._timeout = reader, writer, timeout

    async def read(self) -> bytes:
        async with asyncio.timeout(self._timeout):
            return await self._reader.read(CHUNK)

    async def write(self, data: bytes) -> None:
        self._writer.write(data)
        async with asyncio.timeout(self._timeout):
            await self._writer.drain()

    def quiet(self) -> bool:
        return not (self._reader.at_eof() or self._writer.is_closing())

    def close(self) -> None:
        self._writer.transport.abort()


class _AsyncioTransport(HttpTransport):
    async def connect(self, context: ssl.SSLContext | None) -> _AsyncioStream:
        address, timeout = self.address, self.options.timeout
        async with asyncio.timeout(timeout):
            if address.scheme == "unix":
                opened = await asyncio.open_unix_connection(address.path)
            else:
                opened = await asyncio.open_connection(
                    address.host, address.connect_port, ssl=context
                )
        return _AsyncioStream(*opened, timeout)

    async def pause(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


class AsyncioClient(AwaitedClient):
    """As ``Client``, with coroutines of asyncio; requests run at the same time."""

    def transport(self, address: ServerAddress, options: ConnectionOptions) -> _AsyncioTransport:
        return _AsyncioTransport(address, options)
