"""Updates on request: of many sites at once, just the newest lines or the whole first import."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import TypeVar

from attrs import define, field, frozen
from twisted.internet.defer import Deferred, DeferredList, DeferredSemaphore
from twisted.internet.interfaces import IReactorTime
from twisted.python.failure import Failure

from monrest.base.clock import WallClock
from monrest.base.concurrency import pause
from monrest.base.values import Progress, SiteProblem
from monrest.livestatus.core_errors import LivestatusError
from monrest.logs.cache_records import LeaseLostError, LinesWritten
from monrest.logs.importer import UpdateRunningError
from monrest.logs.model import CachedSite
from monrest.sites.site import Site

T = TypeVar("T")

_LOOK_AGAIN = 2.0
"""Seconds between two looks at how far another process is."""

_AT_ONCE = ((200, 8), (100, 5), (20, 3), (1, 2))


@frozen(kw_only=True)
class Updated:
    """What an update has done: lines that came and went, sites that failed or were left out."""

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


async def together(
    sites: Sequence[Site], update: Callable[[Site], Awaitable[LinesWritten]]
) -> Updated:
    results = await every([Deferred.fromCoroutine(reported(site, update(site))) for site in sites])
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
    ``record`` tells how far that is, ``busy`` whether who does it lives.
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

        return await together(sites, follow)

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


async def every(waiting: Sequence[Deferred[T]]) -> list[T]:
    """All results; the first failure is raised when everything has ended."""
    results: list[T] = []
    for _, result in await DeferredList(waiting, consumeErrors=True):
        if isinstance(result, Failure):
            result.raiseException()
        results.append(result)
    return results


def at_once(sites: int) -> int:
    """How many sites are updated at the same time."""
    return next((number for more, number in _AT_ONCE if sites > more), 1)
