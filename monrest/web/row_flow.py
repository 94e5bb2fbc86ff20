"""Writing a body whose pieces have to be waited for, as fast as the client reads."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from attrs import define, field
from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IPushProducer, IReactorTime
from twisted.logger import Logger
from twisted.web.http import Request
from zope.interface import implementer

from monrest.web.pace import Pace, pace_of_reader

if TYPE_CHECKING:
    from monrest.web.channel import ApiChannel

log = Logger()


@implementer(IPushProducer)
@define(eq=False)
class Flow:
    """Hands pieces to ``request``; a client that reads too slowly is cut off (see ``Pace``).

    ``close`` comes at the end, however it ends. There may be any time between two pieces.
    """

    clock: IReactorTime
    request: Request
    _waiting: Deferred[None] | None = field(default=None, init=False)
    _pace: Pace = field(init=False)
    _paused: bool = field(default=False, init=False)
    _open: bool = field(default=True, init=False)

    def __attrs_post_init__(self) -> None:
        self._pace = pace_of_reader(self.clock)
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
            taken = cast("ApiChannel", self.request.channel).taken
            self._pace.begin(taken, self._too_slow)

    def resumeProducing(self) -> None:
        """Go on: the client took what it was given."""
        self._paused = False
        self._pace.end()
        waiting, self._waiting = self._waiting, None
        if waiting is not None and not waiting.called:
            waiting.callback(None)

    def stopProducing(self) -> None:
        """Let go: the client is gone. Whoever writes is cancelled with the request."""
        self._pace.end()

    def close(self) -> None:
        """Say that nothing more comes."""
        self._pace.end()
        if self._open:
            self._open = False
            self.request.unregisterProducer()

    def _too_slow(self) -> None:
        log.info("a client that reads too slowly is cut off")
        self.request.channel.forceAbortClient()
