"""The client for asyncio, over httpx: ``pip install monrest[asyncio]``."""

from __future__ import annotations

import asyncio

from monrest.client.asynchronous import AsyncClient
from monrest.client.httpx_transport import HttpxTransport
from monrest.client.list_request import DEFAULT


class AsyncioClient(AsyncClient):
    """As ``AsyncClient``, for programs that run on asyncio instead of Twisted."""

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
