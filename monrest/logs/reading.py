"""Reading log lines from the cache as far as it has them; the newest ones are the core's to tell.

The cache is planned for like one more core. Its lines end five minutes before the last known one,
since later ones may still be followed by others of the same time; from there on the core itself
is asked, so that an answer is the same with the cache and without it (availability.md, 8.1).
"""

from __future__ import annotations

from attrs import evolve, frozen
from sqlalchemy import Connection

from monrest.logs import records
from monrest.logs.importer import DRIFT
from monrest.logs.line import COLUMNS, DAY
from monrest.logs.sql import EVERYTHING, Builder, Visible
from monrest.query.bind import Bound
from monrest.query.model import CoreFilter, Every, Pushed, Test
from monrest.query.plan import Layout, SitePlan, plan, sort_keys
from monrest.query.pushdown import LogTimes, push_log_times
from monrest.values import Capabilities, Row

_LIKE_A_CORE = Capabilities(kind="naemon", tables={"log": dict(COLUMNS)}, key="log cache")
_KEPT = frozenset(name for name, _ in COLUMNS)


@frozen(kw_only=True)
class Cached:
    """Lines of a site from the cache, and what of the question is left for its core.

    All that the site has before the Unix time ``before`` is in ``rows``, which are of the layout
    of the request; ``plan`` says how far they are filtered. ``whole``: nothing is left to ask.
    """

    rows: list[Row]
    plan: SitePlan
    before: int
    whole: bool

    def rest(self, pushed: Pushed, capabilities: Capabilities) -> Pushed | None:
        """What of ``pushed`` the core has to answer."""
        if self.whole:
            return None
        bounds = [Test("time", ">=", str(self.before))]
        if capabilities.kind == "icinga2":
            # Files are chosen by their first line against the last lower bound of the query.
            bounds.append(Test("time", ">=", str(max(0, self.before - DAY))))
        given = (pushed.filter,) if pushed.filter is not None else ()
        return evolve(pushed, filter=Every((*given, *bounds)))


@frozen(kw_only=True)
class Reading:
    """One question to the cache, the same for all sites."""

    plan: SitePlan
    times: LogTimes
    lowest: int

    def of(
        self, site: str, now: float, visible: Visible = EVERYTHING
    ) -> records.Work[Cached | None]:
        """The lines of one site; None unless the cache has all from the lowest time on."""

        def work(connection: Connection) -> Cached | None:
            known = records.of_site(connection, site)
            if known is None or known.sure_from is None or known.covered_until is None:
                return None
            before = min(known.covered_until, int(now)) - DRIFT
            if self.lowest < max(known.sure_from, known.compacted_until):
                return None
            if before <= self.lowest:
                return None
            statement = Builder(connection=connection, visible=visible).select(
                known.id, self.plan.pushed, before
            )
            rows = [list(row) for row in connection.execute(statement)]
            return Cached(
                rows=rows, plan=self.plan, before=before, whole=_ends_before(self.times, before)
            )

        return work


def _ends_before(times: LogTimes, moment: int) -> bool:
    """Whether no line from ``moment`` on is wanted."""
    return any(
        (test.op == "<" and int(test.value) <= moment)
        or (test.op in ("<=", "=") and int(test.value) < moment)
        for test in times.tests
    )


def reading(bound: Bound, shape: Layout, seen: CoreFilter | None) -> Reading | None:
    """How to ask the cache; None for what only a core can tell.

    That is what its objects are like at present, and lines without a lowest time.
    """
    times = push_log_times(bound.row_filter)
    if times.lowest is None or not _KEPT.issuperset(name for name, _ in shape.columns):
        return None
    made = plan(bound, shape, _LIKE_A_CORE, forced=seen)
    if made is None:
        return None
    return Reading(plan=_with_limit(bound, made), times=times, lowest=times.lowest)


def _with_limit(bound: Bound, made: SitePlan) -> SitePlan:
    """An order of one's own and a limit, where both can be left to SQL."""
    query = bound.query
    if not bound.sort or query.limit is None or not made.filtered:
        return made
    if bound.aggregates or bound.unpack or bound.element_filter:
        return made
    keys = sort_keys(bound, _LIKE_A_CORE)
    if keys is None or any(name not in _KEPT for name, _ in keys):
        return made
    limit = query.limit + query.offset
    return evolve(made, pushed=evolve(made.pushed, sort=keys, limit=limit))
