"""Availability of the whole report and of each part of it, in one pass over the log. Pure."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence

from attrs import define, field

from monrest.logs.availability import NOTRUNNING, OUTSIDE, Availability, Times, _Object
from monrest.logs.events import Key

_BUCKETS = OUTSIDE + 1


@define(eq=False)
class PartedAvailability(Availability):
    """``bounds`` are the moments where a new part begins, in order, the start of the report first.

    Times are added up only when something changes, so that a part more costs next to nothing.
    """

    bounds: Sequence[int] = ()
    _parts: dict[int, tuple[list[list[int]], list[list[int]]]] = field(init=False, factory=dict)

    def parts(self, key: Key) -> list[Times]:
        """The result of one object part by part, after ``times``."""
        found = self._parts.get(id(self._objects[key]))
        if found is None:
            return [Times([0] * _BUCKETS, [0] * _BUCKETS) for _ in self.bounds]
        return [Times(*pair) for pair in zip(*found, strict=True)]

    def _add(self, one: _Object, time: int) -> None:
        since = max(one.since, self._start)
        Availability._add(self, one, time)
        until = min(time, self._end)
        if until <= since:
            return
        kept = self._parts.get(id(one))
        if kept is None:
            empty = [0] * _BUCKETS
            kept = ([list(empty) for _ in self.bounds], [list(empty) for _ in self.bounds])
            self._parts[id(one)] = kept
        seconds, scheduled = kept
        state = one.state if one.inside else OUTSIDE
        planned = one.inside and one.state != NOTRUNNING and (one.own.set or one.host.set)
        at = bisect_right(self.bounds, since) - 1
        while since < until:
            end = self.bounds[at + 1] if at + 1 < len(self.bounds) else until
            end = min(end, until)
            seconds[at][state] += end - since
            if planned:
                scheduled[at][state] += end - since
            since, at = end, at + 1
