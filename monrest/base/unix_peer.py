"""The process and the user at the other end of a Unix socket, as the system knows them."""

from __future__ import annotations

import socket
import struct
from typing import Any

from attrs import frozen

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
