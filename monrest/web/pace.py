"""The least pace at which a client sends and reads (docs/spec/http.md, "Slow clients")."""

from __future__ import annotations

from collections.abc import Callable

from attrs import define, field
from twisted.internet.interfaces import IDelayedCall, IReactorTime

STOOD_STILL = 1.0
"""Seconds by which a timer is late when the process or its machine was stopped for a while."""

READ_LEAST, READ_WINDOW = 30_000, 60.0
"""Bytes that a reader has to take in so many seconds, as long as there are some for it."""


@define(eq=False)
class Pace:
    """Tells that a number of bytes has grown by less than ``least`` in ``seconds``.

    It is looked at between ``begin`` and ``end`` only, so that nobody is late while the other side
    is not waiting for them. What did not come while the process was stopped counts against nobody.
    """

    clock: IReactorTime
    least: int
    seconds: float
    _before: int = field(default=0, init=False)
    _timer: IDelayedCall | None = field(default=None, init=False)

    def begin(self, count: Callable[[], int], late: Callable[[], None]) -> None:
        """Watch ``count``, which never falls, and call ``late`` once when it grows too slowly."""
        self.end()
        self._before = count()
        self._timer = self.clock.callLater(self.seconds, self._look, count, late)

    def end(self) -> None:
        timer, self._timer = self._timer, None
        if timer is not None and timer.active():
            timer.cancel()

    def _look(self, count: Callable[[], int], late: Callable[[], None]) -> None:
        timer, self._timer = self._timer, None
        assert timer is not None
        stopped = self.clock.seconds() - timer.getTime() > STOOD_STILL
        if count() - self._before < self.least and not stopped:
            late()
        else:
            self.begin(count, late)


def pace_of_reader(clock: IReactorTime) -> Pace:
    return Pace(clock, READ_LEAST, READ_WINDOW)
