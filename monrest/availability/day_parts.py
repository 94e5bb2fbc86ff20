"""The times of one object in each part of a report, such as its days. Pure."""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Iterator, Sequence

from attrs import define, field


@define(eq=False)
class DayParts:
    """Seconds by bucket, and those of them in downtime, part by part.

    ``bounds`` are the moments where a part begins, in order; ``buckets`` is how many states there
    are. Times come only when something changes, so that a part more costs next to no time; it
    costs 16 bytes a bucket.
    """

    bounds: Sequence[int]
    buckets: int
    _seconds: array[int] = field(init=False)
    _scheduled: array[int] = field(init=False)

    def __attrs_post_init__(self) -> None:
        empty = bytes(8 * self.buckets * len(self.bounds))
        self._seconds, self._scheduled = array("q", empty), array("q", empty)

    def __iter__(self) -> Iterator[tuple[Sequence[int], Sequence[int]]]:
        """Seconds and seconds in downtime of each part, by bucket."""
        for at in range(0, len(self._seconds), self.buckets):
            end = at + self.buckets
            yield self._seconds[at:end], self._scheduled[at:end]

    def add(self, bucket: int, since: int, until: int, *, planned: bool) -> None:
        """Count a time that does not begin before the first part; ``planned``: in downtime."""
        bounds = self.bounds
        at = bisect_right(bounds, since) - 1
        while since < until:
            end = min(bounds[at + 1], until) if at + 1 < len(bounds) else until
            self._seconds[at * self.buckets + bucket] += end - since
            if planned:
                self._scheduled[at * self.buckets + bucket] += end - since
            since, at = end, at + 1
