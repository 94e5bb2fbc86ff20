"""The client for programs that wait: nothing but the standard library."""

from __future__ import annotations

from types import TracebackType
from typing import Self

from monrest.client.api_client import ApiClient
from monrest.client.blocking_transport import BlockingTransport
from monrest.client.calling import Blocking
from monrest.client.http_connection import ConnectionOptions
from monrest.client.server_address import ServerAddress


class Client(ApiClient[Blocking]):
    """Asks one monrest; connections are kept and used again. Not for several threads at once."""

    kind = Blocking

    def transport(self, address: ServerAddress, options: ConnectionOptions) -> BlockingTransport:
        return BlockingTransport(address, options)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()
