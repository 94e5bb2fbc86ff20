"""The log of one site in slices of time, from its core and from the cache, for lists and reports.

A slice that has too many lines is asked again for a shorter time, so that neither the answer of a
core nor our rows take more memory than that, however long a log is. Each slice waits for its turn
in the room of rows, and has it until the next one is wanted.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import TypeAlias, TypeVar

from attrs import define, evolve, field, frozen
from sqlalchemy import Connection
from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IReactorTime

from monrest.base.errors import Unavailable
from monrest.base.room import RowRoom
from monrest.base.values import Capabilities, Row
from monrest.logs import cache_records as records
from monrest.logs.line import COLUMNS, DAY, LINE
from monrest.logs.model import CachedPiece, CachedSite, piece_of
from monrest.logs.sql import EVERYTHING, Builder, Visible, fetched
from monrest.query.bind import Bound
from monrest.query.lines import FEW, MOST_GROUPS
from monrest.query.model import CoreFilter, Group, Pushed, Test
from monrest.query.plan import Layout, SitePlan, plan, sort_keys, stats_of
from monrest.query.pushdown import push_log_times
from monrest.sites.normalise import RowTypes
from monrest.sites.site import Site
from monrest.store.database import Database, Work, transaction

T = TypeVar("T")

_HOURS = 14_400
"""Seconds of lines of the future that are asked for at once where there are too many."""

_QUICK, _SLOW = 0.5, 2.0
"""Seconds of a transaction after which the next one reads a longer or a shorter time."""

_LEFT_ALONE = 15.0
"""Seconds for which a database is not asked after it could not answer."""


@define(eq=False)
class Slices:
    """Times ``low <= time < high`` one after the other; without a ``high`` the last one.

    ``end`` is where the last one ends, None for a log that may have lines of the future, beyond
    ``now``. Each has ``seconds`` at most, None for all at once.
    """

    low: int
    end: int | None
    now: int
    seconds: int | None = None
    ended: bool = field(init=False, default=False)

    def __attrs_post_init__(self) -> None:
        self.ended = self.end is not None and self.end <= self.low

    @property
    def high(self) -> int | None:
        """The end of the slice; None: it has none, because the clock of a core may be ahead."""
        if self.seconds is None:
            return self.end
        high = self.low + self.seconds
        if self.end is not None:
            return min(high, self.end)
        return high if high <= self.now else None

    @property
    def divisible(self) -> bool:
        """Whether it is longer than a second."""
        return self.high is None or self.high - self.low > 1

    def shorten(self, span: int | None) -> None:
        """Ask for a shorter time: too many lines were of ``span`` seconds."""
        high = self.high
        length = max(self.now - self.low, _HOURS) if high is None else high - self.low
        seconds = length // 4 if span is None else min(length // 4, span)
        self.seconds = max(1, seconds)
        # A shorter slice has an end, wherever the present is.
        self.now = max(self.now, self.low + self.seconds)

    def next(self, *, few: bool) -> None:
        """Continue behind the slice, with a longer one if there were ``few`` lines."""
        high = self.high
        self.ended = high is None or high == self.end
        if high is not None:
            self.low = high
        if few and self.seconds is not None:
            self.seconds *= 2


async def core_slices(
    site: Site, pushed: Pushed, layout: RowTypes, slices: Slices, most: int
) -> AsyncIterator[list[Row]]:
    """The rows that the core of a site has for a question, without its limit.

    A slice has ``most`` rows at most, unless a single second has more. ``slices`` has gone on to
    the next one by then.
    """
    capabilities = site.capabilities
    assert capabilities is not None
    names = [name for name, _ in layout]
    at = names.index("time") if "time" in names else None
    while not slices.ended:
        limit = most + 1 if slices.divisible else None
        asked = between(pushed, slices.low, slices.high, capabilities)
        with site.memory.room.turn() as share:
            rows = await site.ask(evolve(asked, limit=limit), layout, share)
            if limit is not None and len(rows) >= limit:
                slices.shorten(None if at is None else _span(rows, at))
                continue
            slices.next(few=len(rows) <= most // 4)
            yield rows


def _span(rows: list[Row], at: int) -> int | None:
    """The seconds that so many rows are of; None where they do not tell."""
    times = [row[at] for row in rows if type(row[at]) is int]
    return max(times) - min(times) if times else None


def between(pushed: Pushed, low: int, high: int | None, capabilities: Capabilities) -> Pushed:
    """The same question for the lines with ``low <= time < high``."""
    given = () if pushed.filter is None else (pushed.filter,)
    end = () if high is None else (Test("time", "<", str(high)),)
    return evolve(pushed, filter=Group("and", (*given, *lines_from(low, capabilities, *end))))


def lines_from(low: int, capabilities: Capabilities, *end: Test) -> tuple[Test, ...]:
    """The conditions for lines from ``low`` on up to an ``end``; others of the time go before."""
    tests = (Test("time", ">=", str(low)), *end)
    if not capabilities.icinga2:
        return tests
    # Files are chosen by their first line against the last lower bound of the query.
    return *tests, Test("time", ">=", str(max(0, low - DAY)))


@define(eq=False)
class CacheReader:
    """Reads from the cache, for answers that can do without it."""

    database: Database
    clock: IReactorTime
    _away_until: float = field(init=False, default=0.0)

    async def read(self, work: Work[T | None]) -> T | None:
        """The result; None while the database is away, which only the first one waits for."""
        if self.clock.seconds() < self._away_until:
            return None
        try:
            return await self.database.run(work)
        except Unavailable:
            self._away_until = self.clock.seconds() + _LEFT_ALONE
            return None


Page: TypeAlias = tuple[list[Row], int]
"""Rows, and the second that comes after them."""


@frozen(kw_only=True)
class CacheQuestion:
    """A question to the cache of a site, in terms of a core.

    ``visible`` are the objects that a user sees whom the question names.
    """

    pushed: Pushed
    visible: Visible = EVERYTHING

    @property
    def once(self) -> bool:
        """Whether few rows answer it."""
        limit = self.pushed.limit
        return limit is not None and limit <= FEW


@define(eq=False, kw_only=True)
class CachedSlices:
    """The lines of the cache for a question at one site; ``reached`` is how far it was read."""

    reader: CacheReader
    site: str
    piece: CachedPiece
    question: CacheQuestion
    reached: int = field(init=False)
    _seconds: int = field(init=False)

    def __attrs_post_init__(self) -> None:
        self.reached = self.piece.start
        self._seconds = self.piece.end - self.piece.start if self.question.once else DAY

    @property
    def whole(self) -> bool:
        return self.reached >= self.piece.end

    async def slices(self, most: int, room: RowRoom) -> AsyncIterator[list[Row]]:
        """The rows, the oldest first, or groups of the lines of some time.

        It ends early when the cache has the rest no more, or its database is away.
        """
        limit = self.question.pushed.limit if self.question.once else None
        coming: Deferred[Page | None] | None = None
        try:
            while not self.whole:
                with room.turn() as share:
                    await share.admit(LINE * (limit or 2 * most))
                    next_page = await (coming or self._begun(most))
                    coming = None
                    if next_page is None:
                        return
                    rows, self.reached = next_page
                    if not self.whole:
                        # The next slice is read while this one is worked at.
                        coming = self._begun(most)
                    if rows:
                        yield rows
        finally:
            if coming is not None:
                coming.addErrback(lambda _: None).cancel()

    def _begun(self, most: int) -> Deferred[Page | None]:
        return Deferred.fromCoroutine(self._page(most))

    async def _page(self, most: int) -> Page | None:
        low, began = self.reached, self.reader.clock.seconds()
        high = min(low + self._seconds, self.piece.end)
        next_page = await self.reader.read(
            page(self.site, self.piece, self.question, low, high, most)
        )
        took = self.reader.clock.seconds() - began
        if took > _SLOW:
            self._seconds = max(self._seconds // 2, 1)
        elif took < _QUICK and next_page is not None and next_page[1] == high:
            self._seconds *= 2
        return next_page


@transaction
def page(
    connection: Connection,
    site: str,
    piece: CachedPiece,
    question: CacheQuestion,
    low: int,
    high: int,
    most: int,
) -> Page | None:
    """Rows from ``low`` to before ``high``, ``most`` of them unless a single second has more.

    None when the cache has them no more.
    """
    cached = records.of_site(connection, site)
    if cached is None or not piece.still(cached, low):
        return None
    builder, pushed = Builder(connection=connection, visible=question.visible), question.pushed
    if pushed.stats:
        # One more than there may be is refused.
        pushed = evolve(pushed, limit=MOST_GROUPS + 1)
    if question.once or pushed.stats:
        return fetched(connection, builder.select(cached.id, pushed, low, high)), high
    timed = evolve(pushed, columns=(*pushed.columns, "time"), sort=(("time", False),), limit=most)
    rows = fetched(connection, builder.select(cached.id, timed, low, high))
    after = high
    if len(rows) == most and rows[-1][-1] == low:
        # A second is never too much.
        second = evolve(timed, limit=None)
        rows = fetched(connection, builder.select(cached.id, second, low, low + 1))
        after = low + 1
    elif len(rows) == most:
        # There may be more of the last second.
        after = rows[-1][-1]
        rows = [row for row in rows if row[-1] < after]
    for row in rows:
        row.pop()
    return rows, after


# The cache is planned for like one more core. Its lines end five minutes before the last known one,
# since later ones may still be followed by others of the same time; from there on the core itself
# is asked, so that an answer is the same with the cache and without it (docs/spec/logcache.md).

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
        """The cached part of it at a site; None unless it has all from the lowest time on."""
        piece = piece_of(cached, self.lowest, self.highest, "all", now)
        return piece if piece is not None and piece.start == self.lowest else None


def reading(bound: Bound, shape: Layout, seen: CoreFilter | None) -> CachePlan | None:
    """The reading of the cache.

    None for questions that only a core can answer: the present values of objects, and lines
    without a lowest time.
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
