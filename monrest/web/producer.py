"""Sending a body that is made while it is sent, as fast as the client reads and no faster."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, cast

from attrs import define, field
from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IDelayedCall, IPushProducer, IReactorTime
from twisted.logger import Logger
from twisted.python.failure import Failure
from twisted.web.http import Request
from zope.interface import implementer

from monrest.web.pace import Pace, pace_of_reader

if TYPE_CHECKING:
    from monrest.web.channel import ApiChannel

log = Logger()


@implementer(IPushProducer)
@define(eq=False)
class Body:
    """Writes ``pieces`` to ``request``, ``budget`` seconds of work per turn of the reactor.

    An empty piece is work done and nothing to write. A client that reads too slowly is cut off
    (see ``Pace``), and so is one whose body cannot be finished because a piece raised: it must
    not take a part for the whole. ``timer`` measures the budget.
    """

    clock: IReactorTime
    request: Request | None
    pieces: Iterator[bytes]
    budget: float = 0.01
    timer: Callable[[], float] = time.perf_counter
    done: Deferred[None] = field(init=False)
    _paused: bool = field(default=False, init=False)
    _next: IDelayedCall | None = field(default=None, init=False)
    _pace: Pace = field(init=False)

    def __attrs_post_init__(self) -> None:
        self.done = Deferred(self._let_go)
        self._pace = pace_of_reader(self.clock)

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
            self._rest()
        if self._next is None:
            self._turn()

    def pauseProducing(self) -> None:
        """Wait: the client has not taken enough yet."""
        if not self._paused and self.request is not None:
            self._paused = True
            self._rest()
            taken = cast("ApiChannel", self.request.channel).taken
            self._pace.begin(taken, self._too_slow)

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

    def _too_slow(self) -> None:
        log.info("a client that reads too slowly is cut off")
        self._abort()

    def _abort(self) -> None:
        request = self.request
        self._let_go(self.done)
        if request is not None:
            request.unregisterProducer()
            request.channel.forceAbortClient()

    def _let_go(self, _: Deferred[None]) -> None:
        self.request = None
        self._rest()
        close = getattr(self.pieces, "close", None)
        if close is not None:
            close()

    def _rest(self) -> None:
        """Neither work nor watch the client."""
        self._pace.end()
        if self._next is not None and self._next.active():
            self._next.cancel()
        self._next = None
