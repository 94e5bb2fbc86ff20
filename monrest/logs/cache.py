"""The log cache as a service: an updater for each site, and the log that reports read.

A report reads a time in up to three pieces: what is older than the cache from the core, then from
the cache, then the newest lines from the core again. The numbers of a report do not depend on
which piece a line is in (docs/spec/logcache.md, "What is sure").
"""

from __future__ import annotations

import os
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from functools import partial
from typing import ClassVar, TypeVar

from attrs import define, evolve, field, frozen
from sqlalchemy import Connection, func, select
from twisted.application.service import Service
from twisted.internet.defer import Deferred, DeferredList, DeferredSemaphore
from twisted.internet.interfaces import IReactorTime
from twisted.logger import Logger

from monrest.base.clock import WallClock
from monrest.base.concurrency import Periodic, pause, together
from monrest.base.errors import Unavailable
from monrest.base.meters import Sample
from monrest.base.values import Progress, SiteProblem, always, no_progress
from monrest.config import LogcacheConfig
from monrest.livestatus.core_errors import LivestatusError
from monrest.logs import cache_records as records
from monrest.logs.cache_records import LOOK, LeaseLostError, Leases, LinesWritten
from monrest.logs.importer import (
    Again,
    SiteImport,
    UpdateRunningError,
    present,
)
from monrest.logs.line import service_of
from monrest.logs.model import CachedPiece, CachedSite, piece_of
from monrest.logs.reader import CachedSlices, CachePlan, CacheQuestion, CacheReader, reading
from monrest.logs.source import (
    CORES,
    HOST_STATES,
    MOST_LINES,
    SERVICE_STATES,
    LogSource,
    Wanted,
    cache_filter,
)
from monrest.logs.sql import EVERYTHING, Visible, contact_of
from monrest.logs.state_events import ObjectKey, TimedLine
from monrest.query.bind import Bound
from monrest.query.model import CoreFilter, Pushed, Test
from monrest.query.plan import Layout
from monrest.sites.site import Site
from monrest.store.database import Database, transaction
from monrest.store.duties import boot_time
from monrest.store.tables import logcache_lines as lines

_STATES = (1, 6)


@frozen(kw_only=True)
class CachedLog:
    """A LogSource. While the database is away the core alone is asked."""

    reader: CacheReader
    wall: WallClock
    core: LogSource = CORES
    most: int = MOST_LINES

    async def objects(self, site: Site, wanted: Wanted) -> list[ObjectKey] | None:
        """The hosts and services with states in the log; None unless all of it is in the cache."""
        cached = await self.reader.read(records.cached_site(site.id))
        piece = self._piece(site, cached, wanted)
        if cached is None or piece is None or not _covers(piece, wanted):
            return None
        return await self.reader.read(objects_of(site.id, piece, wanted))

    def _piece(self, site: Site, cached: CachedSite | None, wanted: Wanted) -> CachedPiece | None:
        now = present(site, self.wall)
        return piece_of(cached, wanted.since, wanted.until + 1, wanted.texts, now)

    async def slices(self, site: Site, wanted: Wanted) -> AsyncIterator[Sequence[TimedLine]]:
        """See ``LogSource``. A site that is down is not asked where the cache has everything."""
        low = wanted.since
        record = await self.reader.read(records.cached_site(site.id))
        piece = self._piece(site, record, wanted)
        begins = piece is not None and piece.start <= low and wanted.classes is not None
        if piece is None or not (begins or _covers(piece, wanted)):
            await site.verdict()
        named = site.capabilities is not None and not site.capabilities.icinga2
        if piece is not None:
            if low < piece.start:
                before = evolve(wanted, until=piece.start - 1)
                async for some in self.core.slices(site, before):
                    yield some
            pushed = Pushed(
                table="log",
                columns=("time", "number", "message"),
                filter=cache_filter(wanted, named=named),
            )
            cached = CachedSlices(
                reader=self.reader,
                site=site.id,
                piece=piece,
                question=CacheQuestion(pushed=pushed),
            )
            async for rows in cached.slices(self.most, site.memory.room):
                # No two lines have the same time and number.
                yield [(time, message) for time, _, message in sorted(rows)]
            low = cached.reached
        if low <= wanted.until:
            async for some in self.core.slices(site, evolve(wanted, since=low)):
                yield some


def _covers(piece: CachedPiece, wanted: Wanted) -> bool:
    """Whether nothing is wanted beside it."""
    return piece.start <= wanted.since and wanted.until < piece.end


@transaction
def objects_of(
    connection: Connection, site: str, piece: CachedPiece, wanted: Wanted
) -> list[ObjectKey] | None:
    """The hosts and services with states in a piece; None when it is not in the cache any more."""
    cached = records.of_site(connection, site)
    if cached is None or not piece.still(cached, piece.start):
        return None
    hosts = HOST_STATES if wanted.hosts else ()
    types = (*hosts, *(SERVICE_STATES if wanted.services else ()))
    rows = (
        select(lines.c.host_name, lines.c.service_description, func.min(lines.c.message))
        .where(
            lines.c.site == cached.id,
            lines.c.time >= piece.start,
            lines.c.time < piece.end,
            lines.c["class"].in_(_STATES),
            lines.c.type.in_(types),
        )
        .group_by(lines.c.host_name, lines.c.service_description)
    )
    return [
        (host, service_of(message, host, service))
        for host, service, message in connection.execute(rows)
    ]


_JOINED = frozenset({"naemon", "mk", "lmd"})
"""Cores in which a line belongs to the objects that it names, and to no others."""


_LOOK = 2.0
"""Seconds after which it is noticed that this daemon is to update, or that no other does."""


@define(eq=False)
class LogCache(Service):
    """Updates the cache of all ``sites`` and reads from it; does neither unless enabled.

    ``owner`` is this process among all that use the database: a name that no other living one has,
    a colon and its number. ``duty`` says whether it is this one that updates regularly. ``timer``
    measures seconds that pass.
    """

    log: ClassVar[Logger] = Logger()

    clock: IReactorTime
    wall: WallClock
    database: Database
    config: LogcacheConfig
    sites: Sequence[Site]
    owner: str = field(factory=lambda: f"{secrets.token_hex(8)}:{os.getpid()}")
    duty: Callable[[], bool] = always
    timer: Callable[[], float] = boot_time
    _leases: Leases = field(init=False)
    _looking: Periodic = field(init=False)
    _due: dict[str, float] = field(init=False, factory=dict)
    _periodic: dict[str, Periodic] = field(init=False, factory=dict)
    _imports: dict[str, SiteImport] = field(init=False, factory=dict)
    _running: set[str] = field(init=False, factory=set)
    _turns: DeferredSemaphore = field(init=False)
    _reader: CacheReader = field(init=False)

    def __attrs_post_init__(self) -> None:
        self._turns = DeferredSemaphore(at_once(len(self.sites)))
        self._reader = CacheReader(self.database, self.clock)
        self._leases = Leases(self.database, timer=self.timer)
        self._looking = Periodic(self.clock, LOOK, self._look, "looking at leases")

    @property
    def enabled(self) -> bool:
        return self.config.enabled

    def startService(self) -> None:
        super().startService()
        self._looking.startService()
        self._begin()

    def stopService(self) -> Deferred[None]:
        """Fires when no update runs; what was imported until then is kept."""
        super().stopService()
        return Deferred.fromCoroutine(self._stop())

    async def _stop(self) -> None:
        await self._looking.stopService()
        await self._end()

    async def _look(self) -> None:
        if self.enabled:
            await self._leases.look()

    def identify(self, owner: str) -> None:
        self.owner = owner

    async def configure(self, config: LogcacheConfig, sites: Sequence[Site]) -> None:
        await self._end()
        self.config, self.sites = config, sites
        self._turns = DeferredSemaphore(at_once(len(sites)))
        if self.running:
            self._begin()

    def follow(self, sites: Sequence[Site]) -> None:
        """Continue with other sites, as those of an LMD come and go."""
        before, self.sites = {site.id: site for site in self.sites}, sites
        if not self.running or not self.enabled:
            return
        for site in sites:
            if before.get(site.id) is site:
                del before[site.id]
        for gone in before.keys() & self._periodic.keys():
            self._periodic.pop(gone).stopService()
            self._imports.pop(gone, None)
            self._due.pop(gone, None)
        self._begin()

    def _begin(self) -> None:
        for site in self.sites if self.enabled else ():
            if site.id in self._periodic:
                continue
            periodic = Periodic(
                self.clock,
                min(_LOOK, self.config.update_interval),
                partial(self._when_due, site),
                f"updating the log cache of {site.id}",
            )
            self._periodic[site.id] = periodic
            periodic.startService()

    async def _end(self) -> None:
        periodic, self._periodic = self._periodic, {}
        await DeferredList([task.stopService() for task in periodic.values()])
        self._imports.clear()
        self._due.clear()

    async def _when_due(self, site: Site) -> None:
        """Update a site when that is this daemon's duty and its time has come."""
        if not self.duty():
            self._due.pop(site.id, None)
            return
        interval = self.config.update_interval
        if self.clock.seconds() < self._due.get(site.id, 0.0):
            return
        again = await self._regularly(site)
        self._due[site.id] = self.clock.seconds() + (_LOOK if again else interval)

    async def _regularly(self, site: Site) -> bool:
        """Update a site; it, the database or a peer may be in the way and are reported elsewhere.

        True where another process was at it, which may be dead.
        """
        # A new configuration brings new turns while this one is waited for or used.
        turns = self._turns
        await turns.acquire()
        try:
            done = await self.update(site, back=True)
        except (LivestatusError, Unavailable) as error:
            self.log.debug("log cache of {site}: {error}", site=site.id, error=str(error))
        except UpdateRunningError:
            return True
        except LeaseLostError:
            self.log.warn("log cache of {site}: another process has taken over", site=site.id)
        else:
            if done.added:
                self.log.debug("log cache of {site}: {n} lines", site=site.id, n=done.added)
        finally:
            turns.release()
        return False

    async def update(
        self,
        site: Site,
        *,
        back: bool = False,
        again: Again | None = None,
        progress: Progress = no_progress,
    ) -> LinesWritten:
        """Bring a site up to date; the numbers of lines that came and went.

        ``back``, ``again``, ``progress``: see ``SiteImport``. Raises UpdateRunningError,
        LeaseLostError, LivestatusError and Unavailable.
        """
        if site.id in self._running:
            raise UpdateRunningError(site.id)
        importing = self._imports.get(site.id)
        if importing is None:
            importing = self._imports[site.id] = SiteImport(
                # The site of the first request may be one with a deadline.
                site=next((current for current in self.sites if current.id == site.id), site),
                database=self.database,
                clock=self.clock,
                wall=self.wall,
                owner=self.owner,
                leases=self._leases,
                config=self.config,
            )
        self._running.add(site.id)
        try:
            return await importing.update(back=back, again=again, progress=progress)
        finally:
            self._running.discard(site.id)

    async def update_all(self, sites: Sequence[Site], again: Again | None = None) -> Updated:
        """Fetch the newest lines of these sites, and some ``again``; what became of it."""
        return await of_all_sites(sites, lambda site: self.update(site, again=again))

    async def import_all(
        self, sites: Sequence[Site], progress: Progress, again: Again | None = None
    ) -> Updated:
        """Bring these sites up to date with their whole first import, which any process may do.

        Or, where lines are to be imported ``again``, with these.
        """
        imports = Imports(
            clock=self.clock,
            wall=self.wall,
            update=lambda site, progress: self.update(
                site, back=True, again=again, progress=progress
            ),
            record=self.record,
            busy=self.busy,
            progress=progress,
        )
        return await imports.all(sites)

    async def record(self, site: Site) -> CachedSite | None:
        """The record of a site; None before its first import."""
        return await self.database.run(records.record(site.id))

    async def measured(self) -> list[Sample]:
        if not self.enabled:
            return []
        now, updates = self.wall.now(), await self.database.run(records.updates)
        return [
            sample
            for site, last, items in updates
            for sample in (
                ("logcache_lag_seconds", (site,), max(0.0, now - last)),
                ("logcache_lines", (site,), items),
            )
        ]

    def busy(self, cached: CachedSite) -> bool:
        """Whether a living daemon brings a site up to date."""
        return self._leases.living(cached)

    def planned(self, bound: Bound, shape: Layout, seen: CoreFilter | None) -> CachePlan | None:
        """The query to the cache; None for questions that only the cores can answer.

        ``seen`` is what the user may see, in core terms.
        """
        return reading(bound, shape, seen) if self.enabled else None

    async def part(
        self, site: Site, planned: CachePlan, seen: CoreFilter | None
    ) -> CachedSlices | None:
        """The cached part of a question at one site; None for nothing.

        The core is asked which objects the user is a contact of, so LivestatusError is raised.
        """
        cached = await self._reader.read(records.cached_site(site.id))
        piece = planned.piece(cached, present(site, self.wall))
        if piece is None:
            return None
        visible = await self._visible(site, seen)
        if visible is None:
            return None
        question = CacheQuestion(pushed=planned.plan.pushed, visible=visible)
        return CachedSlices(reader=self._reader, site=site.id, piece=piece, question=question)

    async def objects(self, site: Site, wanted: Wanted) -> list[ObjectKey] | None:
        """The objects of a site by its log, which is wholly in the cache; None where it is not."""
        if not self.enabled:
            return None
        return await CachedLog(reader=self._reader, wall=self.wall).objects(site, wanted)

    def source(self) -> LogSource:
        """The log of every site for users that see all of it; the cores' own while switched off."""
        return CachedLog(reader=self._reader, wall=self.wall) if self.enabled else CORES

    async def _visible(self, site: Site, seen: CoreFilter | None) -> Visible | None:
        """The objects of the user at this site; None where only the core knows them."""
        if seen is None:
            return EVERYTHING
        core = site.capabilities
        if core is None or core.kind not in _JOINED or core.over_icinga2:
            return None
        contact = contact_of(seen)
        if contact is None:
            return EVERYTHING
        mine = Test("contacts", ">=", contact)
        hosts = await site.ask(Pushed(table="hosts", columns=("name",), filter=mine))
        services = await site.ask(
            Pushed(table="services", columns=("host_name", "description"), filter=mine)
        )
        return Visible(
            hosts=tuple(str(name) for (name,) in hosts),
            services=tuple((str(host), str(service)) for host, service in services),
        )


# Updates on request: of many sites at once, just the newest lines or the whole first import.

T = TypeVar("T")

_LOOK_AGAIN = 2.0
"""Seconds between two looks at how far another process is."""

_AT_ONCE = ((200, 8), (100, 5), (20, 3), (1, 2))


@frozen(kw_only=True)
class Updated:
    """The result of an update: added and removed lines, sites that failed or were left out."""

    inserted: int = 0
    removed: int = 0
    failed: tuple[SiteProblem, ...] = ()
    skipped: tuple[str, ...] = ()


async def reported(site: Site, work: Awaitable[LinesWritten]) -> Updated:
    try:
        done = await work
        return Updated(inserted=done.added, removed=done.removed)
    except LivestatusError as error:
        return Updated(failed=(site.problem(error),))
    except (UpdateRunningError, LeaseLostError):
        return Updated(skipped=(f"{site.id}: an update is running already",))


async def of_all_sites(
    sites: Sequence[Site], update: Callable[[Site], Awaitable[LinesWritten]]
) -> Updated:
    results = await together(reported(site, update(site)) for site in sites)
    return Updated(
        inserted=sum(result.inserted for result in results),
        removed=sum(result.removed for result in results),
        failed=tuple(problem for result in results for problem in result.failed),
        skipped=tuple(text for result in results for text in result.skipped),
    )


@define(eq=False, kw_only=True)
class Imports:
    """The first imports of several sites, and what is new since, for a caller that follows them.

    ``update`` brings a site up to date, and raises UpdateRunningError while another process does.
    ``record`` returns how far that is, ``busy`` whether the process that does it lives.
    """

    clock: IReactorTime
    wall: WallClock
    update: Callable[[Site, Progress], Awaitable[LinesWritten]]
    record: Callable[[Site], Awaitable[CachedSite | None]]
    busy: Callable[[CachedSite], bool]
    progress: Progress
    _begun: dict[str, float] = field(init=False, factory=dict)
    _shares: dict[str, float] = field(init=False, factory=dict)

    async def all(self, sites: Sequence[Site]) -> Updated:
        self._shares = {site.id: 0.0 for site in sites}
        turns = DeferredSemaphore(at_once(len(sites)))

        async def follow(site: Site) -> LinesWritten:
            await turns.acquire()
            try:
                return await self._whole(site)
            finally:
                turns.release()

        return await of_all_sites(sites, follow)

    async def _whole(self, site: Site) -> LinesWritten:
        """Import one site; where another process does, wait for that and do what is left."""
        reached = partial(self._reached, site)
        while True:
            try:
                return await self.update(site, reached)
            except (UpdateRunningError, LeaseLostError):
                await self._followed(site, reached)

    async def _followed(self, site: Site, reached: Progress) -> None:
        """Wait until no process is at work on a site."""
        while True:
            await pause(self.clock, _LOOK_AGAIN)
            cached = await self.record(site)
            if cached is None or not self.busy(cached):
                return
            share = cached.share(self.wall.now())
            reached(100 * share, message="another process imports its lines")

    def _reached(
        self, site: Site, percent: float, remaining: float | None = None, message: str = ""
    ) -> None:
        """Report how much of what was left to do is done."""
        del remaining
        begun = self._begun.setdefault(site.id, percent)
        left = 100.0 - begun
        self._shares[site.id] = max(0.0, percent - begun) / left if left > 0 else 1.0
        done = 100 * sum(self._shares.values()) / len(self._shares)
        self.progress(done, message=f"{site.id}: {message}")


def at_once(sites: int) -> int:
    """The number of sites that are updated at the same time."""
    return next((number for more, number in _AT_ONCE if sites > more), 1)
