"""A worker's side of its parent: what it inherits, and the line between both.

A message is a small JSON array, one in each packet, that begins with its topic. ``READY`` and
``ALIVE`` are for the parent; every other topic goes to all other workers. The parent commands its
workers by signals.
"""

from __future__ import annotations

import socket
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import orjson
from attrs import define, field, frozen
from twisted.internet.interfaces import IReadDescriptor
from twisted.logger import Logger
from twisted.python.failure import Failure
from zope.interface import implementer

from monrest.base.daemon_node import DaemonNode
from monrest.base.workers import Workers
from monrest.daemon.systemd import Notifier

LONGEST_MESSAGE = 65536
"""Bytes of a message."""
READY, ALIVE = "ready", "alive"
"""A worker answers requests, also again after a reload; its reactor turns."""


@frozen(kw_only=True)
class Inherited:
    """The parts that exist once for all workers; so do the folder of the state and the databases.

    ``node`` and ``key`` are those of the whole daemon, ``bound`` the sockets of its endpoints.
    ``signs`` are the seconds between two signs of life that the parent wants, None for none.
    """

    workers: Workers
    node: DaemonNode
    key: str
    bound: Sequence[socket.socket]
    signs: float | None


@implementer(IReadDescriptor)
@define(eq=False)
class ParentLine:
    """The worker's end of the line."""

    log: ClassVar[Logger] = Logger()

    reactor: Any
    end: socket.socket
    _hear: Callable[[str, list[Any]], object] = field(init=False)
    _lost: Callable[[], object] = field(init=False)

    def listen(self, hear: Callable[[str, list[Any]], object], lost: Callable[[], object]) -> None:
        """``hear`` gets the messages of other workers, ``lost`` is called without a parent."""
        self._hear, self._lost = hear, lost
        self.end.setblocking(False)
        self.reactor.addReader(self)

    def fileno(self) -> int:
        return self.end.fileno()

    def logPrefix(self) -> str:
        return "parent"

    def doRead(self) -> None:
        try:
            data = self.end.recv(LONGEST_MESSAGE)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if data:
            topic, *values = orjson.loads(data)
            self._hear(topic, values)
        else:
            self.reactor.removeReader(self)
            self._lost()

    def connectionLost(self, reason: Failure) -> None:
        """The reactor has stopped."""

    def send(self, topic: str, values: list[Any]) -> None:
        """Send a message; the parent reads at once, unless it is gone."""
        try:
            self.end.send(orjson.dumps([topic, *values]))
        except OSError as error:
            self.log.warn("{topic} was not sent to the parent: {error}", topic=topic, error=error)


@define(eq=False)
class ParentNotifier(Notifier):
    """Notifies the parent as a daemon without one notifies the service manager."""

    send: Callable[[str, list[Any]], object] = lambda _topic, _values: None

    def ready(self) -> None:
        self.send(READY, [])

    def watchdog(self) -> None:
        self.send(ALIVE, [])
