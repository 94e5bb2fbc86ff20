"""Telling from their beats which daemons are gone."""

from __future__ import annotations

from collections.abc import Mapping

from attrs import define, field

GONE_AFTER = 30.0
"""Seconds for which the beat of a daemon that is alive and has jobs never stands still."""


@define(eq=False)
class Watch:
    """``own`` is the run that is not watched.

    Beats are compared with each other and never with a clock of another machine. Time counts
    only between two looks that both succeeded.
    """

    own: int
    _seen: dict[int, tuple[int | None, float]] = field(factory=dict, init=False)
    _last: float | None = field(default=None, init=False)

    def missed(self) -> None:
        """Note that a look failed: nobody could beat then."""
        self._last = None

    def look(self, beats: Mapping[int, int | None], now: float) -> list[int]:
        """Take the beats of all runs with jobs to do; which of these runs are gone."""
        passed = 0.0 if self._last is None else max(0.0, now - self._last)
        self._last = now
        seen: dict[int, tuple[int | None, float]] = {}
        for run, beat in beats.items():
            before, still = self._seen.get(run, (beat, 0.0))
            known = run in self._seen and before == beat
            seen[run] = (beat, still + passed if known else 0.0)
        self._seen = seen
        return [run for run, (_, still) in seen.items() if still >= GONE_AFTER and run != self.own]
