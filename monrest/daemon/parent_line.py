"""The line between a worker and its parent: small messages, JSON arrays, one in each packet.

The first element is the topic. ``READY`` and ``ALIVE`` are for the parent, ``RELOAD`` and ``STOP``
are from it; every other topic is passed on to all other workers.
"""

from __future__ import annotations

import socket
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import orjson
from attrs import define, field
from twisted.internet.interfaces import IReadDescriptor
from twisted.logger import Logger
from twisted.python.failure import Failure
from zope.interface import implementer

from monrest.daemon.systemd import Notifier

LONGEST_MESSAGE = 65536
"""Bytes of a message."""
READY, ALIVE, RELOAD, STOP = "ready", "alive", "reload", "stop"
"""A worker answers requests, also again after a reload; its reactor turns; what it is to do."""


@implementer(IReadDescriptor)
@define(eq=False)
class ParentLine:
    """The worker's end of the line."""

    log: ClassVar[Logger] = Logger()

    reactor: Any
    end: socket.socket
    _heard: Callable[[str, list[Any]], object] = field(init=False)
    _lost: Callable[[], object] = field(init=False)
    _orders: Mapping[str, Callable[[], object]] = field(init=False)
    _open: bool = field(default=True, init=False)

    def start(
        self,
        heard: Callable[[str, list[Any]], object],
        lost: Callable[[], object],
        orders: Mapping[str, Callable[[], object]],
    ) -> None:
        """Listen: ``heard`` gets what other workers tell, ``orders`` are what the parent wants.

        ``lost`` is called without a parent.
        """
        self._heard, self._lost, self._orders = heard, lost, orders
        self.end.setblocking(False)
        self.reactor.addReader(self)

    def fileno(self) -> int:
        return self.end.fileno()

    def logPrefix(self) -> str:
        """Name it for the reactor."""
        return "parent"

    def doRead(self) -> None:
        try:
            data = self.end.recv(LONGEST_MESSAGE)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            if self._open:
                self._open = False
                self.reactor.removeReader(self)
                self._lost()
            return
        topic, *values = orjson.loads(data)
        order = self._orders.get(topic)
        if order is not None:
            order()
        else:
            self._heard(topic, values)

    def connectionLost(self, reason: Failure) -> None:
        """Take note that the reactor has stopped."""
        del reason
        self._open = False

    def say(self, topic: str, values: list[Any]) -> None:
        """Send a message; the parent reads at once, unless it is gone."""
        try:
            self.end.send(orjson.dumps([topic, *values]))
        except OSError as error:
            self.log.warn("the parent was not told {topic}: {error}", topic=topic, error=error)


@define(eq=False)
class ParentNotifier(Notifier):
    """Notifies the parent as a daemon without one notifies the service manager."""

    say: Callable[[str, list[Any]], object] = lambda _topic, _values: None

    def ready(self) -> None:
        """Say that requests are answered from now on, or again after a reload."""
        self.say(READY, [])

    def watchdog(self) -> None:
        """Say that the reactor turns."""
        self.say(ALIVE, [])
