"""The two clocks: one measures how long something takes, the other shows the date.

Whatever lasts (a time-out, a cache, a lease, the pause before the next run) is measured with an
``IReactorTime``, which nobody sets. Whatever means a date (a creation, an expiry, a schedule) is
read from a ``WallClock``, which somebody may set by an hour at any moment. A number of one is never
compared with a number of the other. Nothing else in the daemon reads the time.
"""

from __future__ import annotations

import os
import time
from typing import Any, Protocol

from attrs import frozen


class WallClock(Protocol):
    """Shows the date."""

    def now(self) -> float:
        """Give the date in seconds since 1970 (UTC)."""


@frozen
class MachineClock:
    """The wall clock of this machine."""

    def now(self) -> float:
        """Give the date in seconds since 1970 (UTC)."""
        return time.time()


def age_of_file(status: os.stat_result) -> float:
    """Give the seconds since a file was written, by the clock of the file system.

    Below zero where that clock was put back meanwhile.
    """
    return (time.time_ns() - status.st_mtime_ns) / 1e9


def measure_spans(reactor: Any) -> None:
    """Let ``reactor`` count seconds that nobody sets, also for the time-outs of Twisted itself.

    Twisted takes the wall clock: a clock that is put back by an hour would hold up everything
    that waits for as long. Must be called before anything waits; RuntimeError otherwise.
    """
    if reactor.seconds is time.monotonic:
        return
    if reactor.getDelayedCalls():
        raise RuntimeError("the clock of the reactor is set before anything waits")
    reactor.seconds = time.monotonic
