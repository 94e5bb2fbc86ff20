"""Writing a body whose pieces have to be waited for, as fast as the client reads."""

from __future__ import annotations

from attrs import define, field
from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IDelayedCall, IPushProducer, IReactorTime
from twisted.logger import Logger
from twisted.web.http import Request
from zope.interface import implementer

log = Logger()


@implementer(IPushProducer)
@define(eq=False)
class Flow:
    """Hands pieces to ``request``; a client that takes nothing for ``stall`` seconds is cut off.

    ``close`` comes at the end, however it ends.
    """

    clock: IReactorTime
    request: Request
    stall: float = 60.0
    _waiting: Deferred[None] | None = field(default=None, init=False)
    _timer: IDelayedCall | None = field(default=None, init=False)
    _paused: bool = field(default=False, init=False)
    _open: bool = field(default=True, init=False)

    def __attrs_post_init__(self) -> None:
        self.request.registerProducer(self, True)

    async def write(self, data: bytes) -> None:
        """Hand over ``data``; done when the client has taken enough for more."""
        if data:
            self.request.write(data)
        if self._paused:
            self._waiting = Deferred()
            await self._waiting

    def pauseProducing(self) -> None:
        """Wait: the client has not taken enough yet."""
        if not self._paused:
            self._paused = True
            self._timer = self.clock.callLater(self.stall, self._stalled)

    def resumeProducing(self) -> None:
        """Go on: the client took what it was given."""
        self._paused = False
        self._take_back()
        waiting, self._waiting = self._waiting, None
        if waiting is not None and not waiting.called:
            waiting.callback(None)

    def stopProducing(self) -> None:
        """Let go: the client is gone. Whoever writes is cancelled by Klein."""
        self._take_back()

    def close(self) -> None:
        """Say that nothing more comes."""
        self._take_back()
        if self._open:
            self._open = False
            self.request.unregisterProducer()

    def _stalled(self) -> None:
        self._timer = None
        log.info("a client took nothing for {seconds} s, cut off", seconds=self.stall)
        self.request.channel.forceAbortClient()

    def _take_back(self) -> None:
        timer, self._timer = self._timer, None
        if timer is not None and timer.active():
            timer.cancel()
