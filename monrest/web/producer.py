"""Sending a body that is made while it is sent, as fast as the client reads and no faster."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

from attrs import define, field
from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IDelayedCall, IPushProducer, IReactorTime
from twisted.logger import Logger
from twisted.python.failure import Failure
from twisted.web.http import Request
from zope.interface import implementer

log = Logger()


@implementer(IPushProducer)
@define(eq=False)
class Body:
    """Writes ``pieces`` to ``request``, ``budget`` seconds of work per turn of the reactor.

    An empty piece is work done and nothing to write. A client that takes nothing for ``stall``
    seconds is cut off, and so is one whose body cannot be finished because a piece raised: it
    must not take a part for the whole. ``timer`` measures the budget.
    """

    clock: IReactorTime
    request: Request | None
    pieces: Iterator[bytes]
    budget: float = 0.01
    stall: float = 60.0
    timer: Callable[[], float] = time.perf_counter
    done: Deferred[None] = field(init=False)
    _paused: bool = field(default=False, init=False)
    _next: IDelayedCall | None = field(default=None, init=False)

    def __attrs_post_init__(self) -> None:
        self.done = Deferred(self._let_go)

    def send(self) -> Deferred[None]:
        """Start; fires when the last byte was handed to the transport. Cancelling lets go."""
        assert self.request is not None
        self.request.registerProducer(self, True)
        if self._next is None and not self._paused:
            self._turn()
        return self.done

    def resumeProducing(self) -> None:
        """Go on: the client took what it was given."""
        if self._paused:
            self._paused = False
            self._take_back()
        if self._next is None:
            self._turn()

    def pauseProducing(self) -> None:
        """Wait: the client has not taken enough yet."""
        if not self._paused and self.request is not None:
            self._paused = True
            self._take_back()
            self._next = self.clock.callLater(self.stall, self._stalled)

    def stopProducing(self) -> None:
        """Let go: the client is gone. Whoever waits for ``done`` is cancelled by Klein."""
        self._let_go(self.done)

    def _turn(self) -> None:
        self._next = None
        end = self.timer() + self.budget
        while self.request is not None and not self._paused:
            try:
                piece = next(self.pieces, None)
            except Exception:  # noqa: BLE001  whatever it was, the body cannot be finished
                self._broken(Failure())
                return
            if piece is None:
                request, self.request = self.request, None
                request.unregisterProducer()
                self.done.callback(None)
                return
            self.request.write(piece)
            if self._next is None and not self._paused and self.timer() >= end:
                self._next = self.clock.callLater(0, self._turn)
            if self._next is not None:
                return

    def _broken(self, failure: Failure) -> None:
        log.failure("a response body could not be finished", failure)
        self._abort()

    def _stalled(self) -> None:
        self._next = None
        log.info("a client took nothing for {seconds} s, cut off", seconds=self.stall)
        self._abort()

    def _abort(self) -> None:
        request = self.request
        self._let_go(self.done)
        if request is not None:
            request.unregisterProducer()
            request.channel.forceAbortClient()

    def _let_go(self, _: Deferred[None]) -> None:
        self.request = None
        self._take_back()
        close = getattr(self.pieces, "close", None)
        if close is not None:
            close()

    def _take_back(self) -> None:
        if self._next is not None and self._next.active():
            self._next.cancel()
        self._next = None
