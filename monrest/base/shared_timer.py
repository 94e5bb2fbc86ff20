"""One timer for many deadlines: moved only when something is due earlier than it rings.

A query that is answered in time then costs no timed call of its own.
"""

from __future__ import annotations

from collections.abc import Callable

from attrs import define, field
from twisted.internet.interfaces import IDelayedCall, IReactorTime

FOREVER = float("inf")


@define(eq=False)
class SharedTimer:
    """Calls ``ring`` at the earliest of the times it was given, or sooner than needed."""

    clock: IReactorTime
    ring: Callable[[], None]
    at: float = FOREVER
    _call: IDelayedCall | None = field(init=False, default=None)

    def by(self, due: float) -> None:
        """Ring at ``due`` at the latest; nothing happens if it rings earlier anyway."""
        if due < self.at:
            self.set(due)

    def set(self, due: float) -> None:
        """Ring at ``due``, a time of the clock; never if it is infinite."""
        if self._call is not None:
            self._call.cancel()
            self._call = None
        self.at = due
        if due < FOREVER:
            self._call = self.clock.callLater(max(0.0, due - self.clock.seconds()), self._ring)

    def _ring(self) -> None:
        self._call = None
        self.at = FOREVER
        self.ring()
