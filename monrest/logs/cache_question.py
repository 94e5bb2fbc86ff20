"""What a list of log lines asks of the cache; the newest lines are the core's to tell.

The cache is planned for like one more core. Its lines end five minutes before the last known one,
since later ones may still be followed by others of the same time; from there on the core itself
is asked, so that an answer is the same with the cache and without it (docs/spec/logcache.md).
"""

from __future__ import annotations

from attrs import evolve, frozen

from monrest.base.values import Capabilities
from monrest.logs.line import COLUMNS
from monrest.logs.model import CachedPiece, CachedSite, piece_of
from monrest.query.bind import Bound
from monrest.query.model import CoreFilter
from monrest.query.plan import Layout, SitePlan, plan, sort_keys, stats_of
from monrest.query.pushdown import push_log_times

_LIKE_A_CORE = Capabilities(kind="naemon", tables={"log": dict(COLUMNS)}, key="log cache")
_KEPT = frozenset(name for name, _ in COLUMNS)


@frozen(kw_only=True)
class CachePlan:
    """One question to the cache, the same for all sites.

    Lines from ``lowest`` to before ``highest`` are wanted.
    """

    plan: SitePlan
    lowest: int
    highest: int | None

    def piece(self, cached: CachedSite | None, now: float) -> CachedPiece | None:
        """What the cache has of it at a site; None unless it has all from the lowest time on."""
        piece = piece_of(cached, self.lowest, self.highest, "all", now)
        return piece if piece is not None and piece.start == self.lowest else None


def reading(bound: Bound, shape: Layout, seen: CoreFilter | None) -> CachePlan | None:
    """How to ask the cache; None for what only a core can tell.

    That is what its objects are like at present, and lines without a lowest time.
    """
    times = push_log_times(bound.row_filter)
    if times.lowest is None or not _KEPT.issuperset(name for name, _ in shape.columns):
        return None
    site_plan = plan(bound, shape, _LIKE_A_CORE, forced=seen)
    if site_plan is None:
        return None
    site_plan = _grouped(bound, site_plan) if bound.aggregates else _with_limit(bound, site_plan)
    return CachePlan(plan=site_plan, lowest=times.lowest, highest=times.highest)


def _grouped(bound: Bound, site_plan: SitePlan) -> SitePlan:
    """Groups and numbers, where SQL makes the same of the lines as we do."""
    stats = stats_of(bound, _LIKE_A_CORE) if site_plan.filtered else None
    if stats is None:
        return site_plan
    groups, counters = stats
    if any(stat.function == "sum" for stat in counters):
        # In SQL a sum may leave the numbers of 64 bits.
        return site_plan
    return evolve(site_plan, pushed=evolve(site_plan.pushed, columns=groups, stats=counters))


def _with_limit(bound: Bound, site_plan: SitePlan) -> SitePlan:
    """An order of one's own and a limit, where both can be left to SQL."""
    query = bound.query
    if not bound.sort or query.limit is None or not site_plan.filtered:
        return site_plan
    if bound.unpack or bound.element_filter:
        return site_plan
    keys = sort_keys(bound, _LIKE_A_CORE)
    if keys is None or any(name not in _KEPT for name, _ in keys):
        return site_plan
    limit = query.limit + query.offset
    return evolve(site_plan, pushed=evolve(site_plan.pushed, sort=keys, limit=limit))
