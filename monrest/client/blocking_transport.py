"""Requests over blocking sockets, for ``Client`` and the command line."""

from __future__ import annotations

import socket
import ssl
import time
from collections.abc import Iterator
from select import select

from monrest.client.calling import finish, iterate
from monrest.client.exchange import HttpRequest, Reply
from monrest.client.http_connection import CHUNK, HttpTransport


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
    """Its coroutines never suspend: ``calling.finish`` runs them."""

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
