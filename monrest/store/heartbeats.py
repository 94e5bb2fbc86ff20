"""Telling from their beats which daemons of a database are gone.

Heartbeats are compared with each other and never with a clock of another machine.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Generic, TypeVar

from attrs import define, field

B = TypeVar("B")


def boot_time() -> float:
    """Measure seconds that pass, also while the machine sleeps; this clock cannot be set."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


@define(eq=False)
class Heartbeats(Generic[B]):
    """For how long the beat of each run stands still, as far as its looks can tell.

    Time counts only between two looks that both succeeded, and never more than ``most`` seconds
    of it: a look that came late, because this process did not run or its clock was set, says
    little about others, who may not have run either.
    """

    most: float
    _seen: dict[int, tuple[B, float]] = field(factory=dict, init=False)
    _last: float | None = field(default=None, init=False)

    def missed(self) -> None:
        """Note that a look failed: no daemon could beat then."""
        self._last = None

    def look(self, beats: Mapping[int, B], began: float, ended: float) -> dict[int, float]:
        """Take the beats that were read between two moments; the seconds each stands still.

        It counts from the end of one look to the beginning of the next: surely between the two.
        """
        passed = 0.0 if self._last is None else max(0.0, min(began - self._last, self.most))
        self._last = ended
        seen: dict[int, tuple[B, float]] = {}
        for run, beat in beats.items():
            before, still = self._seen.get(run, (beat, 0.0))
            seen[run] = (beat, still + passed if run in self._seen and before == beat else 0.0)
        self._seen = seen
        return {run: still for run, (_, still) in seen.items()}
