"""What a worker gets from its parent: everything that is made once for all workers."""

from __future__ import annotations

import socket
from collections.abc import Sequence

from attrs import frozen

from monrest.base.daemon_node import DaemonNode
from monrest.base.workers import Workers


@frozen(kw_only=True)
class Inherited:
    """``node`` and ``key`` are those of the whole daemon, ``bound`` the sockets of its endpoints.

    ``signs`` are the seconds between two signs of life that the parent wants, None for none. The
    folder of the state is there, and the databases are migrated.
    """

    workers: Workers
    node: DaemonNode
    key: str
    bound: Sequence[socket.socket]
    signs: float | None
