"""The log cache of a site, and the time that it covers for certain. Pure.

Rules: docs/spec/logcache.md, "What is sure".
"""

from __future__ import annotations

from typing import Annotated

from attrs import frozen

from monrest.logs.line import Texts, ceil, floor
from monrest.store.stored import (
    NOT_STORED,
    NUMBERED,
    UNIQUE,
    Shown,
    StoredRow,
    shown_time,
    stored,
)

DRIFT = 300
"""Seconds before the newest known line in which others may still turn up."""


@stored("logcache_sites")
@frozen(kw_only=True)
class CachedSite(StoredRow):
    """The record of a site; times in Unix seconds.

    All lines with ``covered_from <= time < covered_until`` are there, except late ones near the
    end; both are None before the first import, which goes down to ``wanted_from``. Repetitions
    before ``compacted_until`` are removed; before ``firsts_until`` so were the latest of equal
    alerts, as version 0.1 did it. ``owner`` is the process that may change the lines, empty for
    none; ``owned_until`` differs after every renewal: others only look whether it still changes.
    """

    id: Annotated[int, NUMBERED] = 0
    site: Annotated[str, UNIQUE, Shown("id of the site", name="key")]
    covered_from: int | None = None
    covered_until: int | None = None
    wanted_from: int | None = None
    compacted_until: Annotated[
        int, shown_time("lines before this time are compacted, 0 for none", "compact_till")
    ] = 0
    firsts_until: int | None = None
    items: Annotated[int, Shown("number of lines", "number")] = 0
    data_size: Annotated[int, Shown("size of the lines, roughly", "number", "bytes")] = 0
    index_size: Annotated[int, Shown("size of the index, roughly", "number", "bytes")] = 0
    last_update: Annotated[int | None, shown_time("last update, 0 for never")] = None
    update_duration: Annotated[float, Shown("duration of the last update", "number", "s")] = 0.0
    last_compact: Annotated[int | None, shown_time("last compaction, 0 for never")] = None
    compact_duration: Annotated[float, Shown("duration of the last compaction", "number", "s")] = (
        0.0
    )
    mode: str = ""
    mode_since: int = 0
    owner: str = ""
    owned_until: float = 0.0
    last_entry: Annotated[
        int | None, NOT_STORED, shown_time("time of the newest line, 0 without any")
    ] = None

    @property
    def progress(self) -> float:
        """The finished part of the first import, 0 to 1."""
        return 0.0 if self.covered_until is None else self.share(self.covered_until)

    def share(self, now: float) -> float:
        """The part of the time up to ``now`` that is stored, 0 to 1."""
        if self.covered_from is None or self.covered_until is None or self.wanted_from is None:
            return 0.0
        whole = now - self.wanted_from
        done = self.covered_until - self.covered_from
        return min(1.0, max(0.0, done / whole)) if whole > 0 else 1.0


@frozen(kw_only=True)
class CachedPiece:
    """The time ``start <= time < end`` of a site's log, which the cache has for sure.

    ``texts``: see ``Wanted``; a list of lines needs all of them.
    """

    start: int
    end: int
    texts: Texts

    def still(self, cached: CachedSite | None, low: int) -> bool:
        """Whether it has the lines from ``low`` on after all that happened meanwhile."""
        if cached is None or cached.covered_from is None or cached.covered_until is None:
            return False
        if cached.covered_from > low or cached.covered_until - DRIFT < self.end:
            return False
        if self.texts == "all":
            return cached.compacted_until <= low
        return _whole_days(self.start, self.end, cached, self.texts) == (self.start, self.end)


def piece_of(
    cached: CachedSite | None, low: int, high: int | None, texts: Texts, now: float
) -> CachedPiece | None:
    """The part of ``low <= time < high`` that the cache covers for certain; None for nothing.

    Without a ``high`` everything up to ``now`` is wanted.
    """
    if cached is None or cached.covered_from is None or cached.covered_until is None:
        return None
    start = max(low, cached.covered_from)
    end = min(cached.covered_until, int(now)) - DRIFT
    if high is not None:
        end = min(end, high)
    start, end = _whole_days(start, end, cached, texts)
    return CachedPiece(start=start, end=end, texts=texts) if start < end else None


def _whole_days(start: int, end: int, cached: CachedSite, texts: Texts) -> tuple[int, int]:
    """A time without what compaction has removed too much of.

    The first of equal alerts in a day stays, so a report may begin with any day; so does the
    latest, so that the text of an outage is there at the end of a day.
    """
    compacted = cached.compacted_until
    if texts == "all":
        return max(start, compacted), end
    if texts == "latest":
        start = max(start, min(cached.firsts_until or 0, compacted))
        if end < compacted:
            end = floor(end)
    if start < compacted:
        start = min(ceil(start), compacted)
    return start, end
