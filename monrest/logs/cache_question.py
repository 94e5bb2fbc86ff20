"""Reading log lines from the cache as far as it has them; the newest ones are the core's to tell.

The cache is planned for like one more core. Its lines end five minutes before the last known one,
since later ones may still be followed by others of the same time; from there on the core itself
is asked, so that an answer is the same with the cache and without it (docs/spec/logcache.md).
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import Any

from attrs import define, evolve, field, frozen
from sqlalchemy import Connection
from twisted.internet.interfaces import IReactorTime

from monrest.base.room import RowRoom
from monrest.base.values import Capabilities, Row
from monrest.logs import cache_records as records
from monrest.logs.line import COLUMNS, DAY, LINE
from monrest.logs.model import CachedPiece, CachedSite, piece_of
from monrest.logs.sql import Builder, Visible, fetched
from monrest.query.bind import Bound
from monrest.query.lines import FEW, MOST_GROUPS
from monrest.query.model import CoreFilter
from monrest.query.plan import Layout, SitePlan, plan, sort_keys, stats_of
from monrest.query.pushdown import push_log_times
from monrest.store.database import Work

_LIKE_A_CORE = Capabilities(kind="naemon", tables={"log": dict(COLUMNS)}, key="log cache")
_KEPT = frozenset(name for name, _ in COLUMNS)

_QUICK, _SLOW = 0.5, 2.0
"""Seconds of a transaction after which the next one reads a longer or a shorter time."""


@frozen(kw_only=True)
class CacheQuestion:
    """One question to the cache, the same for all sites.

    Lines from ``lowest`` to before ``highest`` are wanted. ``once``: few rows answer it.
    """

    plan: SitePlan
    lowest: int
    highest: int | None
    once: bool

    @property
    def limit(self) -> int | None:
        """How many rows are enough where that is few."""
        return self.plan.pushed.limit if self.once else None

    def piece(self, known: CachedSite | None, now: float) -> CachedPiece | None:
        """What the cache has of it at a site; None unless it has all from the lowest time on."""
        found = piece_of(known, self.lowest, self.highest, "all", now)
        return found if found is not None and found.start == self.lowest else None

    def rows(
        self, site: str, piece: CachedPiece, low: int, high: int, most: int | None, visible: Visible
    ) -> Work[tuple[list[Row], int] | None]:
        """Rows from ``low`` to before ``high``, and the second that comes after them.

        There are ``most`` of them at most, unless a single second has more. None when the cache
        has them no more.
        """

        def work(connection: Connection) -> tuple[list[Row], int] | None:
            known = records.of_site(connection, site)
            if known is None or not piece.still(known, low):
                return None
            builder = Builder(connection=connection, visible=visible)
            pushed = self.plan.pushed
            if pushed.stats:
                # One more than there may be is refused.
                pushed = evolve(pushed, limit=MOST_GROUPS + 1)
            if most is None or pushed.stats:
                return builder.rows(builder.select(known.id, pushed, low, high), pushed), high
            return _page(builder, known.id, self.plan, low, high, most)

        return work


def _page(
    builder: Builder, site: int, planned: SitePlan, low: int, high: int, most: int
) -> tuple[list[Row], int]:
    pushed = planned.pushed
    timed = evolve(pushed, columns=(*pushed.columns, "time"), sort=(("time", False),), limit=most)
    rows = fetched(builder.connection, builder.select(site, timed, low, high))
    after = high
    if len(rows) == most and rows[-1][-1] == low:
        # A second is never too much.
        rows = fetched(
            builder.connection, builder.select(site, evolve(timed, limit=None), low, low + 1)
        )
        after = low + 1
    elif len(rows) == most:
        # There may be more of the last second.
        after = rows[-1][-1]
        rows = [row for row in rows if row[-1] < after]
    for row in rows:
        row.pop()
    return rows, after


@define(eq=False, kw_only=True)
class CachedPart:
    """What the cache has of a question at one site; ``reached`` is how far it was read."""

    question: CacheQuestion
    site: str
    piece: CachedPiece
    visible: Visible
    read: Callable[[Work[Any]], Any]
    clock: IReactorTime
    reached: int = field(init=False)

    def __attrs_post_init__(self) -> None:
        self.reached = self.piece.start

    async def slices(self, most: int, room: RowRoom) -> AsyncIterator[list[Row]]:
        """The rows, the oldest first, or groups of the lines of some time.

        Each slice waits for its turn in the ``room``, and has it until the next one is wanted.
        It ends early when the cache has the rest no more, or its database is away.
        """
        end, seconds = self.piece.end, DAY
        if self.question.once:
            seconds = end - self.reached
        while self.reached < end:
            high = min(self.reached + seconds, end)
            with room.turn() as share:
                await share.admit(LINE * (self.question.limit or most))
                began = self.clock.seconds()
                found = await self.read(
                    self.question.rows(
                        self.site, self.piece, self.reached, high,
                        None if self.question.once else most, self.visible,
                    )
                )  # fmt: skip
                if found is None:
                    return
                rows, self.reached = found
                took = self.clock.seconds() - began
                if took > _SLOW:
                    seconds = max(seconds // 2, 1)
                elif took < _QUICK and self.reached == high:
                    seconds *= 2
                if rows:
                    yield rows

    @property
    def complete(self) -> bool:
        return self.piece.end == self.question.highest

    @property
    def whole(self) -> bool:
        """Whether all that is wanted was read."""
        return self.complete and self.reached >= self.piece.end


def reading(bound: Bound, shape: Layout, seen: CoreFilter | None) -> CacheQuestion | None:
    """How to ask the cache; None for what only a core can tell.

    That is what its objects are like at present, and lines without a lowest time.
    """
    times = push_log_times(bound.row_filter)
    if times.lowest is None or not _KEPT.issuperset(name for name, _ in shape.columns):
        return None
    made = plan(bound, shape, _LIKE_A_CORE, forced=seen)
    if made is None:
        return None
    made = _grouped(bound, made) if bound.aggregates else _with_limit(bound, made)
    limit = made.pushed.limit
    return CacheQuestion(
        plan=made,
        lowest=times.lowest,
        highest=times.highest,
        once=limit is not None and limit <= FEW,
    )


def _grouped(bound: Bound, made: SitePlan) -> SitePlan:
    """Groups and numbers, where SQL makes the same of the lines as we do."""
    stats = stats_of(bound, _LIKE_A_CORE) if made.filtered else None
    if stats is None:
        return made
    groups, counters = stats
    return evolve(made, pushed=evolve(made.pushed, columns=groups, stats=counters))


def _with_limit(bound: Bound, made: SitePlan) -> SitePlan:
    """An order of one's own and a limit, where both can be left to SQL."""
    query = bound.query
    if not bound.sort or query.limit is None or not made.filtered:
        return made
    if bound.unpack or bound.element_filter:
        return made
    keys = sort_keys(bound, _LIKE_A_CORE)
    if keys is None or any(name not in _KEPT for name, _ in keys):
        return made
    limit = query.limit + query.offset
    return evolve(made, pushed=evolve(made.pushed, sort=keys, limit=limit))
