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
