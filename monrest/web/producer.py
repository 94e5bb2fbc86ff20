"""Sending a body that is made while it is sent, as fast as the client reads and no faster."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, cast

from attrs import define, field
from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IDelayedCall, IPushProducer, IReactorTime
from twisted.logger import Logger
from twisted.python.failure import Failure
from twisted.web.http import Request
from zope.interface import implementer

from monrest.base.spool import Spool
from monrest.web.pace import Pace, pace_of_reader

if TYPE_CHECKING:
    from monrest.web.channel import ApiChannel

log = Logger()

QUICK = 2.0
"""Seconds in which a client has read all, or else it takes its time."""


@implementer(IPushProducer)
@define(eq=False)
class BodyProducer:
    """Writes ``pieces`` to ``request``, ``budget`` seconds of work per turn of the reactor.

    An empty piece is work done and nothing to write. With a ``spool`` the pieces for a client
    that takes its time are made ahead, so that what they are made of can go; without one the work
    waits for the client. A client that reads too slowly is cut off (see ``Pace``), and so is one
    whose body cannot be finished because a piece raised: it must not take a part for the whole.
    """

    clock: IReactorTime
    request: Request | None
    pieces: Iterator[bytes]
    spool: Spool | None = None
    budget: float = 0.005
    done: Deferred[None] = field(init=False)
    _paused: bool = field(default=False, init=False)
    _ahead: bool = field(default=False, init=False)
    _hurry: IDelayedCall | None = field(default=None, init=False)
    _made: bool = field(default=False, init=False)
    _next: IDelayedCall | None = field(default=None, init=False)
    _pace: Pace = field(init=False)

    def __attrs_post_init__(self) -> None:
        self.done = Deferred(self._let_go)
        self._pace = pace_of_reader(self.clock)

    def send(self) -> Deferred[None]:
        """Start; fires when the last byte was handed to the transport. Cancelling lets go."""
        assert self.request is not None
        self.request.registerProducer(self, True)
        self._soon()
        if self.spool is not None:
            self._hurry = self.clock.callLater(QUICK, self._make_ahead)
        return self.done

    def resumeProducing(self) -> None:
        """Go on: the client took what it was given."""
        self._paused = False
        self._pace.end()
        self._soon()

    def pauseProducing(self) -> None:
        """Wait: the client has not taken enough yet."""
        if not self._paused and self.request is not None:
            self._paused = True
            taken = cast("ApiChannel", self.request.channel).taken
            self._pace.begin(taken, self._too_slow)

    def stopProducing(self) -> None:
        """Let go: the client is gone. Whoever waits for ``done`` is cancelled with the request."""
        self._let_go(self.done)

    @property
    def _works(self) -> bool:
        """Whether there is something to do."""
        if self.request is None:
            return False
        if not self._paused:
            return True
        return self._ahead and not self._made and not cast("Spool", self.spool).spools.crowded

    def _make_ahead(self) -> None:
        self._hurry, self._ahead = None, True
        self._soon()

    def _soon(self) -> None:
        if self._next is None and self._works:
            self._next = self.clock.callLater(0, self._turn)

    def _turn(self) -> None:
        self._next = None
        end = self.clock.seconds() + self.budget
        while self._works:
            try:
                self._step()
            except Exception:  # noqa: BLE001  whatever it was, the body cannot be finished
                self._broken(Failure())
                return
            if self.clock.seconds() >= end:
                self._soon()
                return

    def _step(self) -> None:
        """Write a piece, or make one ahead."""
        request, spool = self.request, self.spool
        assert request is not None
        waiting = spool.take() if spool is not None and not self._paused else None
        if waiting is not None:
            request.write(waiting)
            return
        piece = None if self._made else next(self.pieces, None)
        if piece is None:
            self._made = True
            if not self._paused:
                self._finish()
        elif self._paused and spool is not None:
            if piece:
                spool.add(piece)
        else:
            request.write(piece)

    def _finish(self) -> None:
        request, self.request = self.request, None
        self._close()
        if request is not None:
            request.unregisterProducer()
        self.done.callback(None)

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
        self._close()

    def _close(self) -> None:
        """Let go of all that is waited for, and of all that is left."""
        self._pace.end()
        for call in (self._next, self._hurry):
            if call is not None and call.active():
                call.cancel()
        self._next = self._hurry = None
        close = getattr(self.pieces, "close", None)
        if close is not None:
            close()
        self.pieces = iter(())
        if self.spool is not None:
            self.spool.close()
