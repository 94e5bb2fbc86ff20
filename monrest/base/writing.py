"""Writing short messages for which the other side waits."""

from __future__ import annotations

from typing import Any

from twisted.internet.abstract import FileDescriptor
from twisted.internet.error import ConnectionLost


def write_now(transport: Any, data: bytes) -> bool:
    """Write without waiting for a turn of the reactor, as far as the system takes it.

    What does not fit is left to the reactor as usual. False: the system took nothing at all,
    because the other side has closed already.
    """
    if not _is_free(transport):
        transport.write(data)
        # The end of a connection that is being closed is for the reactor to see.
        flush = None if transport.disconnecting else getattr(transport, "doWrite", None)
        return flush is None or not isinstance(flush(), ConnectionLost)
    sent = transport.writeSomeData(data)
    if isinstance(sent, Exception):
        # The reactor tries once more, and closes what is broken.
        transport.write(data)
        return not isinstance(sent, ConnectionLost)
    if sent < len(data):
        transport.write(data[sent:])
    return True


def _is_free(transport: Any) -> bool:
    """Whether bytes may go straight to the socket: it is a plain one, and none wait before them.

    The reactor looks for room to write exactly as long as some wait, and is not asked to look when
    none do: that are two calls of the system less.
    """
    return (
        isinstance(transport, FileDescriptor)
        and not getattr(transport, "TLS", False)
        and bool(transport.connected)
        and not transport.disconnecting
        and transport not in transport.reactor.getWriters()
    )
