"""A reactor that serves sockets while a clock stands still."""

from __future__ import annotations

from typing import Any

from twisted.internet import reactor
from twisted.internet.task import Clock


class Standstill:
    """A reactor on which no time passes: sockets work, delayed calls never come."""

    def __init__(self) -> None:
        self.clock = Clock()
        self.clock.advance(1_795_242_791)

    def seconds(self) -> float:
        return self.clock.seconds()

    def callLater(self, delay: float, *args: Any, **more: Any) -> Any:
        # A turn of the reactor is no time; long work between its slices needs it.
        return (self.clock if delay else reactor).callLater(delay, *args, **more)

    def __getattr__(self, name: str) -> Any:
        return getattr(reactor, name)
