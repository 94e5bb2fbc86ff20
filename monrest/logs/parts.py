"""The times of one object in each part of a report, such as its days. Pure."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence

from attrs import define, field


@define(eq=False)
class Parts:
    """Seconds by bucket, and those of them in downtime, part by part (``pairs``).

    ``bounds`` are the moments where a part begins, in order; ``buckets`` is how many states there
    are. Times come only when something changes, so that a part more costs next to nothing.
    """

    bounds: Sequence[int]
    buckets: int
    pairs: list[tuple[list[int], list[int]]] = field(init=False)

    def __attrs_post_init__(self) -> None:
        empty = [0] * self.buckets
        self.pairs = [(list(empty), list(empty)) for _ in self.bounds]

    def add(self, bucket: int, since: int, until: int, *, planned: bool) -> None:
        """Count a time that does not begin before the first part; ``planned``: in downtime."""
        bounds = self.bounds
        at = bisect_right(bounds, since) - 1
        while since < until:
            end = min(bounds[at + 1], until) if at + 1 < len(bounds) else until
            seconds, scheduled = self.pairs[at]
            seconds[bucket] += end - since
            if planned:
                scheduled[bucket] += end - since
            since, at = end, at + 1
