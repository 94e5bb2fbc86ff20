"""The two clocks: one measures how long something takes, the other shows the date.

A duration (of a time-out, a cache, a lease, the pause before the next run) is measured with an
``IReactorTime``, which cannot be set. A date (of a creation, an expiry, a schedule) is read from a
``WallClock``, which an administrator may set by an hour at any moment. A number of one is never
compared with a number of the other. Nothing else in the daemon reads the time.
"""

from __future__ import annotations

import os
import time
from typing import Any, Protocol

from attrs import define, field, frozen
from twisted.internet.interfaces import IReactorTime


class WallClock(Protocol):
    """Shows the date."""

    def now(self) -> float:
        """Return the date in seconds since 1970 (UTC)."""


STEP = 5.0
"""Seconds by which a clock is set at least, when it is not just held right."""


@define(eq=False)
class ClockSteps:
    """Notices when ``wall`` is set, by ``clock``, which is not.

    ``count`` grows with each time. ``before`` is when the look was, by ``clock``, that came before
    the last time.
    """

    wall: WallClock
    clock: IReactorTime
    count: int = field(default=0, init=False)
    before: float = field(default=0.0, init=False)
    _last: tuple[float, float] | None = field(default=None, init=False)

    def look(self) -> int:
        """Compare the distance of the clocks with that at the last look.

        Return the number of steps.
        """
        seconds = self.clock.seconds()
        apart = self.wall.now() - seconds
        if self._last is not None and abs(apart - self._last[1]) >= STEP:
            self.count += 1
            self.before = self._last[0]
        self._last = (seconds, apart)
        return self.count

    def since(self) -> float:
        """Return the date of the look before, as the clock would have shown it now."""
        return self.wall.now() - (self.clock.seconds() - self.before)


@frozen
class MachineClock:
    """The wall clock of this machine."""

    now = staticmethod(time.time)


def age_of_file(status: os.stat_result) -> float:
    """Return the seconds since a file was written, by the clock of the file system.

    Below zero where that clock was put back meanwhile.
    """
    return (time.time_ns() - status.st_mtime_ns) / 1e9


def measure_spans(reactor: Any) -> None:
    """Let ``reactor`` count seconds that pass, also for the time-outs of Twisted itself.

    Twisted takes the wall clock: a clock that is put back by an hour would hold up everything
    that waits for as long. Must be called before anything waits; RuntimeError otherwise.
    """
    if reactor.seconds is time.monotonic:
        return
    if reactor.getDelayedCalls():
        raise RuntimeError("the clock of the reactor is set before anything waits")
    reactor.seconds = time.monotonic
