"""Log lines of all sites, read in slices of time (docs/spec/logs.md).

Older lines come from the log cache as far as it has them for sure, the rest from the core.
"""

from __future__ import annotations

import pickle
import zlib
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from functools import partial
from typing import Any, TypeVar

from attrs import define, evolve, field, frozen
from twisted.internet.defer import Deferred, DeferredList, DeferredLock, FirstError
from twisted.internet.defer import TimeoutError as TooLate

from monrest.api.endpoint import Context
from monrest.api.fields import Flag
from monrest.base.answer_file import AnswerFile, AnswerFiles
from monrest.base.concurrency import shielded
from monrest.base.errors import all_sites_failed
from monrest.base.values import (
    Document,
    RestRequest,
    Row,
    Rows,
    SiteProblem,
    no_progress,
)
from monrest.livestatus.core_errors import LivestatusError
from monrest.logs.cache import LogCache
from monrest.logs.reader import CachedSlices, CachePlan, Slices, between, core_slices
from monrest.query.bind import Bound
from monrest.query.column_names import TableSchema
from monrest.query.flow import SitePart
from monrest.query.limit import Limit
from monrest.query.lines import FEW, Lines, SiteLines
from monrest.query.model import CoreFilter, FilterTree
from monrest.query.plan import Layout, SitePlan
from monrest.query.pushdown import push_log_times
from monrest.rows.fetch import constants_of
from monrest.rows.question import Plans, question
from monrest.sites.fanout import require_sites
from monrest.sites.site import Site

_BATCH = 200
"""Rows that are read together, of each run that is merged."""

_LEVEL = 1


@define(eq=False)
class RowStore:
    """Rows of one site; up to ``most`` of them stay in memory as they are.

    The file is one of ``files``, and gone with the rows.
    """

    files: AnswerFiles
    most: int
    _held: list[KeptRows] = field(init=False, factory=list)
    _rows: int = field(init=False, default=0)
    _file: AnswerFile | None = field(init=False, default=None)

    def keep(self, rows: list[Row]) -> KeptRows:
        """Return the same rows again later; raises Unavailable when the disk is full."""
        run = KeptRows(rows)
        self._held.append(run)
        self._rows += len(rows)
        if self._rows > self.most:
            for held in self._held:
                self._write(held)
            self._held, self._rows = [], 0
        return run

    def _write(self, run: KeptRows) -> None:
        if self._file is None:
            self._file = self.files.begun()
        rows = run.rows or []
        for start in range(0, len(rows), _BATCH):
            # A core may send numbers and texts that JSON does not have.
            data = zlib.compress(pickle.dumps(rows[start : start + _BATCH]), _LEVEL)
            run.places.append((self._file.write(data), len(data)))
        run.file, run.rows = self._file, None


@define(eq=False)
class KeptRows:
    """A run of rows, which may be gone through more than once."""

    rows: list[Row] | None
    places: list[tuple[int, int]] = field(init=False, factory=list)
    file: AnswerFile | None = field(init=False, default=None)

    def __iter__(self) -> Iterator[Row]:
        if self.rows is not None:
            return iter(self.rows)
        return (row for at, size in self.places for row in self._read(at, size))

    def _read(self, at: int, size: int) -> list[Row]:
        assert self.file is not None
        rows: list[Row] = pickle.loads(zlib.decompress(self.file.read(at, size)))  # noqa: S301  ours
        return rows


LOGCACHE = Flag("logcache", "0: read the whole log from the cores", default=1)


T = TypeVar("T")

_FEWEST = 500
"""Lines of a slice, where many sites are asked."""


@frozen
class _SiteOutcome:
    """The result of a site: its lines, and its problem if it is down nevertheless."""

    lines: SiteLines
    problem: SiteProblem | None = None


def wants_cache(request: RestRequest) -> bool:
    """Whether lines may come from the log cache; ``logcache=0`` asks for none of them."""
    return bool(LOGCACHE.asked(request.parameters))


async def ask(
    cache: LogCache,
    context: Context,
    request: RestRequest,
    schema: TableSchema,
    *,
    extra: tuple[FilterTree, ...] = (),
) -> Rows | Document:
    """The lines that a request wants, as ``rows.fetch`` returns those of other collections."""
    asked = await question(context, request, schema, extra)
    bound, shape, seen = asked.bound, asked.shape, asked.seen
    cached = wants_cache(request)
    lines = LogReading(
        cache=cache,
        context=context,
        request=request,
        constants=partial(constants_of, context, request.identity),
        bound=bound,
        shape=shape,
        plans=asked.plans,
        sites=asked.sites,
        seen=seen,
        cache_plan=cache.planned(bound, shape, seen) if cached else None,
    )
    return await lines.answer()


@define(eq=False, kw_only=True)
class LogReading:
    """The answer to one request about log lines.

    ``seen`` is what the user may see, in core terms; ``cache_plan`` how the cache is asked, None
    for not at all. ``constants``: what every row of a site carries.
    """

    cache: LogCache
    context: Context
    request: RestRequest
    constants: Callable[[Site], Mapping[str, Any]]
    bound: Bound
    shape: Layout
    plans: Plans
    sites: Sequence[Site]
    seen: CoreFilter | None
    cache_plan: CachePlan | None
    most: int = field(init=False)
    lowest: int = field(init=False)
    highest: int | None = field(init=False)
    now: int = field(init=False)
    _lines: Lines = field(init=False)
    _limit: Limit = field(init=False, factory=Limit)
    _turn: DeferredLock = field(init=False, factory=DeferredLock)
    """Lines of one site after the other become rows."""
    _shares: dict[str, float] = field(init=False, factory=dict)

    def __attrs_post_init__(self) -> None:
        number = max(1, len(self.sites))
        self.most = max(_FEWEST, min(FEW, 2 * FEW // number))
        times = push_log_times(self.bound.row_filter)
        self.lowest, self.highest = times.first, times.highest
        self.now = int(self.context.wall.now())
        store = partial(RowStore, self.context.memory.files, FEW // number)
        self._lines = Lines(self.bound, self.shape, number, store, self._limit)

    async def answer(self) -> Rows | Document:
        """The answer; raise SitesFailed when no site answered."""
        require_sites(self.sites)
        began = self.context.clock.seconds()
        outcomes = await asked_in_time(self.context, self.request, self.sites, self._of_site)
        parts: list[_SiteOutcome] = []
        problems: list[SiteProblem] = []
        for _, outcome in outcomes:
            if isinstance(outcome, _SiteOutcome):
                parts.append(outcome)
            problem = outcome.problem if isinstance(outcome, _SiteOutcome) else outcome
            if problem is not None:
                problems.append(problem)
        if not parts:
            require_answers(self.sites, problems)
        lines = [part.lines for part in parts]
        async with self._turn:
            result = await self._computed(lambda _: self._lines.answer(lines), self._lines.count)
        seconds = self.context.clock.seconds() - began
        return evolve(result, failed_sites=tuple(problems), backend_seconds=seconds)

    async def _of_site(self, site: Site) -> _SiteOutcome:
        """All lines of a site; raise LivestatusError where they are not all to be had.

        Lines that are completely in the cache are returned although the site is down, and the
        site is named.
        """
        lines = self._lines.site()
        cached, complete = await self._cached(site)
        if cached is not None:
            assert self.cache_plan is not None
            async for rows in cached.slices(self.most, self.context.memory.room):
                await self._take(site, lines, self.cache_plan.plan, rows)
                self._reached(site, cached.reached)
            if complete and cached.whole:
                error = site.breaker.error
                return _SiteOutcome(lines, None if error is None else site.problem(error))
        await site.verdict()
        assert site.capabilities is not None
        planned = self.plans.of(site.capabilities)
        if planned is not None:
            await self._from_core(site, planned, lines, None if cached is None else cached.reached)
        self._reached(site, self._top)
        return _SiteOutcome(lines)

    async def _cached(self, site: Site) -> tuple[CachedSlices | None, bool]:
        """The lines of the cache, unless the core must be asked as well and is down.

        And whether they are all that is wanted.
        """
        if self.cache_plan is None:
            return None, False
        if not site.connected:
            # Before the first probe is over it is not known.
            with suppress(LivestatusError):
                await site.verdict()
        part = await self.cache.part(site, self.cache_plan, self.seen)
        complete = part is not None and part.piece.end == self.cache_plan.highest
        if part is not None and not complete:
            await site.verdict()
        return part, complete

    async def _from_core(
        self, site: Site, planned: SitePlan, lines: SiteLines, low: int | None
    ) -> None:
        """The lines from ``low`` on, None for all."""
        pushed, capabilities = planned.pushed, site.capabilities
        assert capabilities is not None
        if pushed.limit is not None and pushed.limit <= self.most:
            asked = pushed if low is None else between(pushed, low, None, capabilities)
            with site.memory.room.turn() as share:
                rows = await site.ask(asked, self.shape.columns, share)
                await self._take(site, lines, planned, rows)
            return
        planned = evolve(planned, pushed=evolve(pushed, sort=(), limit=None))
        slices = Slices(self.lowest if low is None else low, self.highest, self.now)
        asking = core_slices(site, planned.pushed, self.shape.columns, slices, self.most)
        async for rows in asking:
            await self._take(site, lines, planned, rows)
            self._reached(site, slices.low)

    async def _take(self, site: Site, lines: SiteLines, planned: SitePlan, rows: list[Row]) -> None:
        part = SitePart(plan=planned, rows=rows, constants=self.constants(site))
        # A site that is too late does not give up the turn: its lines are still worked on.
        await shielded(self._taken(lines, part))

    async def _taken(self, lines: SiteLines, part: SitePart) -> None:
        async with self._turn:
            await self._computed(lambda _: lines.take(part), len(part.rows))

    async def _computed(self, work: Callable[[Limit], T], rows: int) -> T:
        values = rows * (self.shape.width + self.bound.effort)
        return await self.context.compute(work, values, self._limit)

    @property
    def _top(self) -> int:
        return self.now if self.highest is None else min(self.highest, self.now)

    def _reached(self, site: Site, time: int) -> None:
        """Report that the lines of a site are there up to a moment."""
        if self.request.progress is no_progress:
            return
        whole = self._top - self.lowest
        share = (time - self.lowest) / whole if whole > 0 else 1.0
        self._shares[site.id] = min(max(share, 0.0), 1.0)
        percent = 80 * sum(self._shares.values()) / len(self.sites)
        day = datetime.fromtimestamp(min(time, self._top), self.context.zone).date()
        self.request.progress(percent, message=f"reading the log of {site.id}: {day}")


# This may take long: a site that is too late is named beside the rows of the others.

_PATIENCE = 0.8
"""Part of a request's time after which a site is left out, so that the others are answered.

A core may take minutes for a log query, which is longer than a request may last. A job has all
the time there is.
"""


async def asked_in_time(
    context: Context,
    request: RestRequest,
    sites: Sequence[Site],
    ask: Callable[[Site], Coroutine[Any, Any, T]],
) -> list[tuple[Site, T | SiteProblem]]:
    """Ask all sites at once; the answer or the problem of each, in their order.

    Any other error of ``ask`` ends the others and is raised.
    """
    seconds = context.config.server.request_timeout * _PATIENCE

    async def ask_site(site: Site) -> T | SiteProblem:
        try:
            return await Deferred.fromCoroutine(ask(site)).addTimeout(seconds, context.clock)
        except LivestatusError as error:
            return site.problem(error)
        except TooLate:
            more = ", background=1 gives it more time" if request.progress is no_progress else ""
            reason = f"its log was not read in {seconds:g} s{more}"
            return SiteProblem(site.id, site.name, reason, timed_out=True)

    waiting = [Deferred.fromCoroutine(ask_site(site)) for site in sites]
    try:
        outcomes = await DeferredList(waiting, fireOnOneErrback=True, consumeErrors=True)
    except FirstError as first:
        for left in waiting:
            left.cancel()
        first.subFailure.raiseException()
    return [(site, value) for site, (_, value) in zip(sites, outcomes, strict=True)]


def require_answers(sites: Sequence[Site], problems: Sequence[SiteProblem]) -> None:
    """Raise SitesFailed, or SitesTimedOut, where no site has answered."""
    if sites and len(problems) == len(sites):
        raise all_sites_failed(problems)
