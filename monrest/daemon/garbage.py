"""Collecting garbage when it hurts nobody (docs/spec/memory.md, "Pauses").

The interpreter would do it after a number of new objects, which is in the middle of the largest
answers: all their rows are looked at, and none of them is garbage.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import ClassVar

from attrs import define, field
from twisted.application.service import Service
from twisted.internet.defer import CancelledError, Deferred
from twisted.internet.defer import TimeoutError as TooLate
from twisted.internet.interfaces import IDelayedCall, IReactorTime
from twisted.logger import Logger
from twisted.python.failure import Failure

from monrest.base.concurrency import pause
from monrest.base.meters import Sample, Spread, observe, spread
from monrest.base.spool import RowRoom

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

    What is there when it starts stays for good and is never looked at. ``busy``: somebody is
    served just now.
    """

    log: ClassVar[Logger] = Logger()

    clock: IReactorTime
    room: RowRoom
    busy: Callable[[], bool]
    timer: Callable[[], float] = time.perf_counter
    _next: IDelayedCall | None = field(default=None, init=False)
    _turn: Deferred[None] | None = field(default=None, init=False)
    _whole_due: float = field(default=0.0, init=False)
    _late: Spread = field(factory=spread, init=False)
    """How late the looks came, which is how long the reactor was busy."""

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
        if self._turn is not None:
            self._turn.cancel()
        gc.enable()

    def measured(self) -> Iterator[Sample]:
        """Give how late the reactor was."""
        yield "reactor_lag_seconds", (), self._late.copy()

    def _look(self) -> None:
        assert self._next is not None
        observe(self._late, max(0.0, self.clock.seconds() - self._next.getTime()))
        self._next = self.clock.callLater(INTERVAL, self._look)
        if self._turn is not None:
            return
        fresh, *_ = gc.get_count()
        if self._whole_is_due() or fresh >= MANY:
            self._wait_for_turn()
        elif fresh >= FEW:
            gc.collect(1)

    def _whole_is_due(self) -> bool:
        late = self.clock.seconds() - self._whole_due
        return late >= PATIENCE or (late >= 0 and not self.busy())

    def _wait_for_turn(self) -> None:
        self._turn = Deferred.fromCoroutine(self._in_turn()).addErrback(_stopped)

    async def _in_turn(self) -> None:
        """Collect when nobody has rows in the room; new ones have to wait meanwhile."""
        share = self.room.share()
        try:
            with suppress(TooLate):
                await share.admit(self.room.most).addTimeout(PATIENCE, self.clock)
            # Whoever gave the room back is just about to let go of its rows.
            await pause(self.clock)
            self._collect()
        finally:
            self._turn = None
            share.release()

    def _collect(self) -> None:
        if not self._whole_is_due():
            fresh, *_ = gc.get_count()
            if fresh >= FEW:
                gc.collect(1)
            return
        start = self.timer()
        found = gc.collect()
        seconds = self.timer() - start
        self._whole_due = self.clock.seconds() + WHOLE * (SELDOM if seconds > SHORT else 1)
        self.log.debug(
            "{count} objects of garbage collected in {ms:.0f} ms", count=found, ms=seconds * 1000
        )


def _stopped(failure: Failure) -> None:
    failure.trap(CancelledError)
