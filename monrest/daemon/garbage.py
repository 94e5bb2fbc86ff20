"""Collecting garbage when it delays no answer (docs/spec/memory.md, "Pauses").

The interpreter would do it after a number of new objects, which is in the middle of the largest
answers: all their rows are looked at, and none of them is garbage.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterator
from typing import ClassVar

from attrs import define, field
from twisted.application.service import Service
from twisted.internet.interfaces import IDelayedCall, IReactorTime
from twisted.logger import Logger

from monrest.base.meters import Sample, Spread, observe, spread
from monrest.base.room import RowRoom

INTERVAL = 0.25
"""Seconds between two looks."""
FEW, MANY = 5_000, 20_000
"""New objects that are worth a collection, and those among which must be rows on their way."""
WHOLE = 600.0
"""Seconds between two collections of everything."""
SHORT = 0.05
"""Seconds that a collection of everything may take, or else it comes less often."""
SELDOM = 6
PATIENCE = 60.0
"""Seconds for which a collection waits for a moment at which it is short."""


def keep() -> None:
    """Never look again at what is there, of which what is new is looked at once more."""
    gc.collect(1)
    gc.freeze()


@define(eq=False)
class Garbage(Service):
    """Collects garbage instead of the interpreter, of many objects when ``room`` holds no rows.

    No request waits for that moment: one that holds rows may wait for more of them, or for a slow
    core. What is there when it starts stays for good and is never looked at. ``busy``: a request
    is being answered.
    """

    log: ClassVar[Logger] = Logger()

    clock: IReactorTime
    room: RowRoom
    busy: Callable[[], bool]
    timer: Callable[[], float] = time.perf_counter
    _next: IDelayedCall | None = field(default=None, init=False)
    _waits_since: float = field(default=0.0, init=False)
    _whole_due: float = field(default=0.0, init=False)
    _late: Spread = field(factory=spread, init=False)
    """The delays of the looks, which are the times in which the reactor was busy."""

    def startService(self) -> None:
        """Keep what is there for good, and begin to look."""
        super().startService()
        keep()
        gc.disable()
        self._whole_due = self.clock.seconds() + WHOLE
        self._next = self.clock.callLater(INTERVAL, self._look)

    def stopService(self) -> None:
        """Leave it to the interpreter again."""
        super().stopService()
        if self._next is not None and self._next.active():
            self._next.cancel()
        gc.enable()

    def measured(self) -> Iterator[Sample]:
        yield "reactor_lag_seconds", (), self._late.copy()

    def _look(self) -> None:
        assert self._next is not None
        now = self.clock.seconds()
        observe(self._late, max(0.0, now - self._next.getTime()))
        self._next = self.clock.callLater(INTERVAL, self._look)
        fresh, *_ = gc.get_count()
        if not self._whole_is_due() and fresh < MANY:
            self._waits_since = now
            if fresh >= FEW:
                gc.collect(1)
        elif not self.room.held or now - self._waits_since >= PATIENCE:
            self._waits_since = now
            self._collect()

    def _whole_is_due(self) -> bool:
        late = self.clock.seconds() - self._whole_due
        return late >= PATIENCE or (late >= 0 and not self.busy())

    def _collect(self) -> None:
        if not self._whole_is_due():
            gc.collect(1)
            return
        start = self.timer()
        count = gc.collect()
        seconds = self.timer() - start
        self._whole_due = self.clock.seconds() + WHOLE * (SELDOM if seconds > SHORT else 1)
        self.log.debug(
            "{count} objects of garbage collected in {ms:.0f} ms", count=count, ms=seconds * 1000
        )
