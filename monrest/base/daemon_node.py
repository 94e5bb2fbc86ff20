"""Which daemon this is: a number that stays with its folder of state (docs/spec/cluster.md)."""

from __future__ import annotations

import fcntl
import os
import secrets
import socket
from pathlib import Path

from attrs import define, field

NODE_BITS = 52
"""Of the id of a process; those above are the number of the worker of a node, but for the first."""

_FILE = "node.id"
_LONGEST_NODE_NUMBER = 32


def _number() -> int:
    return secrets.randbits(NODE_BITS) or 1


@define(eq=False, kw_only=True)
class DaemonNode:
    """``id`` is the same at every start with the same folder, ``run`` differs at every start.

    While it is open no other process has this ``id``: a job of the same ``id`` and another
    ``run`` is without a daemon.
    """

    id: int
    run: int = field(factory=_number)
    host: str = field(factory=socket.gethostname)
    pid: int = field(factory=os.getpid)
    _descriptor: int = -1

    @classmethod
    def open(cls, folder: Path) -> DaemonNode:
        """Read the number of ``folder`` or make one, and hold it; blocks shortly.

        A process that comes while another one holds it gets a number for this start only. OSError
        when the file cannot be read or written.
        """
        descriptor = os.open(
            folder / _FILE, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600
        )
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            return cls(id=_number())
        try:
            return cls(id=_kept(descriptor), descriptor=descriptor)
        except BaseException:
            os.close(descriptor)
            raise

    def of_worker(self, number: int) -> DaemonNode:
        """Make the one of this process, the worker of a number; it holds the same file.

        No other process is that worker while the parent lives, so that its ``id`` is its own.
        """
        return DaemonNode(
            id=self.id + (number - 1 << NODE_BITS), host=self.host, descriptor=self._descriptor
        )

    def close(self) -> None:
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor >= 0:
            os.close(descriptor)


def _kept(descriptor: int) -> int:
    text = os.pread(descriptor, _LONGEST_NODE_NUMBER, 0).strip()
    if text.isdigit() and 0 < int(text) < 2**NODE_BITS:
        return int(text)
    number = _number()
    os.ftruncate(descriptor, 0)
    os.pwrite(descriptor, f"{number}\n".encode(), 0)
    os.fsync(descriptor)
    return number


def node_of(number: int) -> int:
    """Return the id of the node to which the process with this id belongs; exact as JSON."""
    return number & (1 << NODE_BITS) - 1
