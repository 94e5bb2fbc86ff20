"""Collecting garbage when it hurts nobody (docs/spec/memory.md, "Pauses").

The interpreter would do it after a number of new objects, which is in the middle of the largest
answers: all their rows are looked at, and none of them is garbage.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable
from typing import ClassVar

from attrs import define, field
from twisted.application.service import Service
from twisted.internet.interfaces import IDelayedCall, IReactorTime
from twisted.logger import Logger

INTERVAL = 1.0
"""Seconds between two looks."""
FEW, MANY = 10_000, 100_000
"""New objects that are worth a collection, and that take too long for one at a busy moment."""
WHOLE = 600.0
"""Seconds between two collections of everything."""
SHORT = 0.05
"""Seconds that a collection of everything may take, or else it comes less often."""
SELDOM = 6
PATIENCE = 60.0
"""Seconds for which a collection waits for a moment at which nobody is served."""


@define(eq=False)
class Garbage(Service):
    """Collects garbage instead of the interpreter. ``busy``: somebody is served just now.

    What is there when it starts stays for good and is never looked at.
    """

    log: ClassVar[Logger] = Logger()

    clock: IReactorTime
    busy: Callable[[], bool]
    timer: Callable[[], float] = time.perf_counter
    _next: IDelayedCall | None = field(default=None, init=False)
    _many_since: float | None = field(default=None, init=False)
    _whole_due: float = field(default=0.0, init=False)

    def startService(self) -> None:
        """Keep what is there for good, and begin to look."""
        super().startService()
        gc.collect()
        gc.freeze()
        gc.disable()
        self._whole_due = self.clock.seconds() + WHOLE
        self._next = self.clock.callLater(INTERVAL, self._look)

    def stopService(self) -> None:
        """Leave it to the interpreter again."""
        super().stopService()
        if self._next is not None and self._next.active():
            self._next.cancel()
        gc.enable()

    def _look(self) -> None:
        self._next = self.clock.callLater(INTERVAL, self._look)
        now = self.clock.seconds()
        fresh, *_ = gc.get_count()
        if fresh < MANY:
            self._many_since = None
        elif self._many_since is None:
            self._many_since = now
        if now >= self._whole_due and self._may(now, self._whole_due):
            self._collect_all(now)
        elif self._many_since is not None:
            if self._may(now, self._many_since):
                gc.collect(1)
        elif fresh >= FEW:
            gc.collect(1)

    def _may(self, now: float, since: float) -> bool:
        return not self.busy() or now >= since + PATIENCE

    def _collect_all(self, now: float) -> None:
        start = self.timer()
        found = gc.collect()
        seconds = self.timer() - start
        self._whole_due = now + WHOLE * (SELDOM if seconds > SHORT else 1)
        self.log.debug(
            "{count} objects of garbage collected in {ms:.0f} ms", count=found, ms=seconds * 1000
        )
