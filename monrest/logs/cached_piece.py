"""Which time of a site's log the cache has for sure (docs/spec/logcache.md, "What is sure")."""

from __future__ import annotations

from attrs import frozen

from monrest.logs.cache_records import CachedSite
from monrest.logs.importer import DRIFT
from monrest.logs.line import ceil, floor
from monrest.logs.source import Texts


@frozen(kw_only=True)
class CachedPiece:
    """The time ``start <= time < end`` of a site's log, which the cache has for sure.

    ``texts``: see ``Wanted``; a list of lines needs all of them.
    """

    start: int
    end: int
    texts: Texts

    def still(self, known: CachedSite | None, low: int) -> bool:
        """Whether it has the lines from ``low`` on after all that happened meanwhile."""
        if known is None or known.covered_from is None or known.covered_until is None:
            return False
        if known.covered_from > low or known.covered_until - DRIFT < self.end:
            return False
        if self.texts == "all":
            return known.compacted_until <= low
        return _whole_days(self.start, self.end, known, self.texts) == (self.start, self.end)


def piece_of(
    known: CachedSite | None, low: int, high: int | None, texts: Texts, now: float
) -> CachedPiece | None:
    """What the cache has for sure of ``low <= time < high``; None for nothing.

    Without a ``high`` everything up to ``now`` is wanted.
    """
    if known is None or known.covered_from is None or known.covered_until is None:
        return None
    start = max(low, known.covered_from)
    end = min(known.covered_until, int(now)) - DRIFT
    if high is not None:
        end = min(end, high)
    start, end = _whole_days(start, end, known, texts)
    return CachedPiece(start=start, end=end, texts=texts) if start < end else None


def _whole_days(start: int, end: int, known: CachedSite, texts: Texts) -> tuple[int, int]:
    """A time without what compaction has removed too much of.

    The first of equal alerts in a day stays, so a report may begin with any day; so does the
    latest, so that the text of an outage is there at the end of a day.
    """
    compacted = known.compacted_until
    if texts == "all":
        return max(start, compacted), end
    if texts == "latest":
        start = max(start, min(known.firsts_until or 0, compacted))
        if end < compacted:
            end = floor(end)
    if start < compacted:
        start = min(ceil(start), compacted)
    return start, end
