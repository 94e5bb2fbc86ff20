"""Functions of sockets that Twisted does not offer: the peer, and writing at once."""

from __future__ import annotations

import socket
import struct
from typing import Any

from attrs import frozen
from twisted.internet.abstract import FileDescriptor
from twisted.internet.error import ConnectionLost

_CREDENTIALS = struct.Struct("3i")


@frozen
class Credentials:
    """The process that made the other end, 0 where it cannot be seen from here, and its user."""

    process: int
    uid: int


def credentials(transport: Any) -> Credentials | None:
    """Look at a connection that was just made; None where the system knows nothing."""
    handle = getattr(transport, "socket", None)
    if handle is None:
        return None
    try:
        raw = handle.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    except OSError:
        return None
    process, uid, _ = _CREDENTIALS.unpack(raw)
    return Credentials(process, uid)


def write_now(transport: Any, data: bytes) -> bool:
    """Write without waiting for a turn of the reactor, as far as the system takes it.

    What does not fit is left to the reactor as usual. False: the system took nothing at all,
    because the other side has closed already.
    """
    free = (
        isinstance(transport, FileDescriptor)
        and not getattr(transport, "TLS", False)
        and transport.connected
        and not transport.disconnecting
        # The reactor looks for room to write exactly as long as some bytes wait.
        and transport not in transport.reactor.getWriters()
    )
    if not free:
        transport.write(data)
        # The end of a connection that is being closed is for the reactor to see. Below a TLS that
        # the other side has ended it is being closed already.
        below = getattr(transport, "transport", transport)
        closing = transport.disconnecting or below.disconnecting
        flush = None if closing else getattr(transport, "doWrite", None)
        return flush is None or not isinstance(flush(), ConnectionLost)
    # Straight to the socket: asking the reactor to look and to look no more costs two system calls.
    sent = transport.writeSomeData(data)
    if isinstance(sent, Exception):
        # The reactor tries once more, and closes what is broken.
        transport.write(data)
        return not isinstance(sent, ConnectionLost)
    if sent < len(data):
        transport.write(data[sent:])
    return True
