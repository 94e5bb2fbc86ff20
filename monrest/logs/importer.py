"""Bringing the cache of one site up to date, in slices that are each complete by themselves.

First the newest lines, from five minutes before the newest known one, then further back, newest
first, until the configured beginning. A slice is covered in the transaction of its last lines:
after a kill the next run asks for that slice again and stores what is not there yet.
Rules: docs/spec/logcache.md.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any, ClassVar

from attrs import define, field, frozen
from twisted.internet.interfaces import IReactorTime
from twisted.logger import Logger

from monrest.base.clock import WallClock
from monrest.base.concurrency import Periodic
from monrest.base.errors import Unavailable
from monrest.base.values import Capabilities, Progress, Row, no_progress
from monrest.config import LogcacheConfig
from monrest.livestatus.core_errors import RefusedError
from monrest.logs import cache_records as records
from monrest.logs import compaction
from monrest.logs.cache_records import LEASE, LeaseLostError, Leases, LinesWritten, UpdateLease
from monrest.logs.line import COLUMNS, DAY, TIME, LogLine, ceil, floor, in_order, kept
from monrest.logs.model import DRIFT, CachedSite
from monrest.logs.reader import Slices, between, core_slices
from monrest.query.model import Pushed, Stat
from monrest.sites.site import Site
from monrest.store.database import Database, Work

LONGEST_SLICE = 30 * DAY
"""Seconds of a slice, at most."""

MANY = 20_000
"""Lines of a slice, at most."""

_RENEWALS = 5
"""The number of renewals of a lease while it holds."""

AT_ONCE = 5_000
"""Lines of one transaction, so that others who write need not wait for long."""


def present(site: Site, wall: WallClock) -> float:
    """The time now, by our clock or by that of the core, the one that is behind.

    What a core writes after its clock was put back is new, although it does not look so.
    """
    localtime = site.health.program.localtime
    return wall.now() if localtime is None else min(wall.now(), localtime)


class UpdateRunningError(Exception):
    """Another process updates the site."""


@frozen(kw_only=True)
class Again:
    """The time ``start <= time < end`` that is imported once more.

    ``exactly``: lines that the core does not have are removed.
    """

    start: int
    end: int
    exactly: bool = False


@define(eq=False, kw_only=True)
class SiteImport:
    """The updater of one site; ``owner`` names this process in the cluster, see ``acquire``.

    ``slice``: seconds of the next slice, see ``Slices``.
    """

    log: ClassVar[Logger] = Logger()

    site: Site
    database: Database
    clock: IReactorTime
    wall: WallClock
    owner: str
    leases: Leases
    config: LogcacheConfig
    slice: int = 600

    async def update(
        self, *, back: bool = True, again: Again | None = None, progress: Progress = no_progress
    ) -> LinesWritten:
        """Bring the site up to date; the numbers of lines that came and went.

        ``back``: continue the first import, and compact and remove what is old enough.
        ``again``: import a time once more. Raises UpdateRunningError, LeaseLostError,
        LivestatusError and Unavailable; what was imported until then is kept.
        """
        date, began = self.wall.now(), self.clock.seconds()
        gone = self.leases.gone
        cached = await self.database.change(
            records.acquire(self.site.id, self.owner, "update", date, gone=gone)
        )
        if cached is None:
            raise UpdateRunningError(self.site.id)
        lease = UpdateLease(id=cached.id, owner=self.owner)
        # A core may need longer for one slice than a lease holds.
        renewing = Periodic(
            self.clock,
            LEASE / _RENEWALS,
            lambda: self._renew(lease),
            f"renewing the lease of {self.site.id}",
            now=False,
        )
        renewing.startService()
        noted: dict[str, Any] = {}
        run = _Run(self, lease, progress)
        try:
            await run.forward(cached)
            if again is not None:
                await run.again(again)
            elif back:
                await run.backward()
            if run.written.added >= MANY:
                await self.database.change(compaction.analyze)
            noted["last_update"] = int(date)
            noted["update_duration"] = self.clock.seconds() - began
            if back:
                progress(100.0, message="removing what is old")
                noted.update(await self._thin(lease))
            return run.written
        finally:
            await renewing.stopService()
            await self.database.change(records.release(lease, **noted))

    async def _renew(self, lease: UpdateLease) -> None:
        # The next write without the lease fails, and so does one without a database.
        with suppress(LeaseLostError, Unavailable):
            await self.database.change(records.renew(lease, self.wall.now()))

    async def _thin(self, lease: UpdateLease) -> dict[str, Any]:
        cached = await self.database.run(records.record(self.site.id))
        if cached is None or cached.progress < 1:
            return {}
        compact, keep = int(self.config.compact_after), int(self.config.keep)
        return await compaction.thin(
            self.database, self.clock, self.wall, lease, cached, compact, keep
        )


@define(eq=False)
class _Run:
    """One run of an updater that holds the lease; ``written`` counts what it has done."""

    log: ClassVar[Logger] = Logger()

    of: SiteImport
    lease: UpdateLease
    progress: Progress
    written: LinesWritten = field(init=False, factory=LinesWritten)
    wanted: int = field(init=False, default=0)
    first: int = field(init=False, default=0)

    @property
    def _core(self) -> Capabilities:
        """The capabilities of the core, which decide how it is asked; it was waited for."""
        capabilities = self.of.site.capabilities
        assert capabilities is not None
        return capabilities

    def _now(self) -> float:
        return self.of.wall.now()

    def _tell(self, at: int, until: int) -> None:
        """Report how much of the time up to now is covered, while the lines of ``at`` come."""
        whole = int(self._now()) - self.wanted
        share = (until - self.first) / whole if whole > 0 else 1.0
        day = datetime.fromtimestamp(max(at, 0), UTC).date()
        self.progress(100 * min(max(share, 0.0), 1.0), message=f"importing the lines of {day}")

    async def forward(self, cached: CachedSite) -> None:
        """All lines since the newest known one; the first time the last hour."""
        await self.of.site.verdict()
        now = int(self._now())
        covered: dict[str, int] = {}
        if cached.covered_from is None or cached.covered_until is None:
            start = self.first = now - 3600
            self.wanted = max(0, min(start, now - int(self.of.config.first_import)))
            covered = {
                "covered_from": start,
                "covered_until": start,
                "wanted_from": self.wanted,
            }
            await self._write((), **covered)
        else:
            self.first, self.wanted = cached.covered_from, cached.wanted_from or cached.covered_from
            # A clock that was wrong may have left lines of the future behind.
            start = min(cached.covered_until, int(present(self.of.site, self.of.wall))) - DRIFT
        # Lines of a core whose clock is ahead are new as well.
        slices = Slices(start, None, now, self.of.slice)
        async for rows in self._from_core(slices):
            until: dict[str, int] = {}
            if rows and not slices.ended:
                # Up to the newest line and no further: lines may come late after that one.
                until = {"covered_until": max(self.first, *(row[TIME] for row in rows))}
            await self._store(rows, until)
            self._tell(slices.low, slices.low)
        await self._ends_with_newest(int(self._now()))

    async def _ends_with_newest(self, now: int) -> None:
        """Cover up to the newest line: without one the clock of the core is not known."""
        cached = await self._cached()
        newest = cached.last_entry if cached.last_entry is not None else cached.covered_from
        assert newest is not None
        assert cached.covered_from is not None
        until = max(cached.covered_from, min(now, newest))
        await self._write((), covered_until=until)

    async def backward(self) -> None:
        """All lines down to the configured beginning."""
        cached = await self._cached()
        first, wanted = cached.covered_from, cached.wanted_from
        assert first is not None
        assert wanted is not None
        self.first, self.wanted = first, wanted
        while self.first > wanted:
            high, low = self.first, max(wanted, self.first - self.of.slice)
            self._tell(low, cached.covered_until or first)
            slices = Slices(low, high, high, self.of.slice)
            async for rows in self._from_core(slices):
                await self._store(rows, {"covered_from": low} if slices.ended else {})
            self.first = low
        if self.first < first:
            # The newest line may be older than where the first import began.
            await self._ends_with_newest(int(self._now()))

    async def again(self, again: Again) -> None:
        """Import a time that is covered once more, and all that is missing back to its start."""
        cached = await self._cached()
        assert cached.covered_from is not None
        assert cached.covered_until is not None
        newest = max(cached.covered_until, cached.last_entry or 0)
        start, end = again.start, min(again.end, newest + 1)
        if start < cached.covered_from:
            await self._write((), wanted_from=min(start, cached.wanted_from or start))
            await self.backward()
            start = cached.covered_from
        if start >= end:
            return
        low, slices = start, Slices(start, end, end, self.of.slice)
        async for rows in self._from_core(slices):
            exactly = again.exactly and await self._complete(rows, low, slices.low)
            await self._store(rows, {}, exactly=(low, slices.low) if exactly else None)
            low = slices.low
            date = datetime.fromtimestamp(low - 1, UTC).date()
            percent = 100 * (low - start) / (end - start)
            self.progress(percent, message=f"importing the lines of {date} again")
        for day in range(floor(start), min(cached.compacted_until, ceil(end)), DAY):
            await compaction.compact_day(self.of.database, self.of.wall, self.lease, day)

    async def _complete(self, rows: list[Row], start: int, end: int) -> bool:
        """Whether the core returns all lines that it counts, or does not count."""
        site = self.of.site
        if self._core.kind == "lmd":
            # It counts the answers of its sites in place of lines (docs/spec/lmd.md, "Logs").
            return True
        counting = Pushed(table="log", stats=(Stat("count"),), waits_long=True)
        try:
            counted = await site.ask(between(counting, start, end, self._core))
        except RefusedError:
            return True
        return len(rows) >= sum(int(count) for (count,) in counted)

    async def _from_core(self, slices: Slices) -> AsyncIterator[list[Row]]:
        """The lines of the core in these times, one after the other."""
        names = tuple(name for name, _ in COLUMNS if self._core.has("log", name))
        if not names:
            slices.ended = True
            yield []
            return
        asked = Pushed(table="log", columns=names, waits_long=True)
        async for rows in core_slices(self.of.site, asked, COLUMNS, slices, MANY):
            self.of.slice = slices.seconds = min(slices.seconds or 1, LONGEST_SLICE)
            yield rows

    async def _store(
        self,
        rows: list[Row],
        covered: Mapping[str, int],
        *,
        exactly: tuple[int, int] | None = None,
    ) -> None:
        """Store lines in transactions that end with a second; the last one covers.

        ``exactly``: no other lines shall be there between these moments.
        """
        newest_first = self._core.newest_first
        lines = await self.of.site.memory.threads.run(
            lambda: in_order(list(map(kept, rows)), newest_first=newest_first)
        )
        parts = list(_portions(lines)) or [[]]
        for part in parts[:-1]:
            if exactly is None:
                await self._write(part)
            else:
                exactly = await self._replace(part, exactly[0], part[-1][TIME] + 1), exactly[1]
        if exactly is None:
            await self._write(parts[-1], **covered)
        else:
            await self._replace(parts[-1], *exactly)

    async def _write(self, part: Sequence[LogLine], **covered: int) -> None:
        await self._count(records.write(self.lease, self._now(), part, **covered))

    async def _replace(self, part: Sequence[LogLine], start: int, end: int) -> int:
        """Replace all stored lines of a time by these; return the end of that time."""
        await self._count(records.replace(self.lease, self._now(), part, start, end))
        return end

    async def _count(self, work: Work[LinesWritten]) -> None:
        done = await self.of.database.change(work)
        self.written = LinesWritten(
            added=self.written.added + done.added, removed=self.written.removed + done.removed
        )

    async def _cached(self) -> CachedSite:
        cached = await self.of.database.run(records.record(self.of.site.id))
        assert cached is not None
        return cached


def _portions(lines: list[LogLine]) -> Iterator[list[LogLine]]:
    """Lines in parts of about ``AT_ONCE``, none of which begins within a second."""
    start = 0
    while start < len(lines):
        end = min(start + AT_ONCE, len(lines))
        while end < len(lines) and lines[end][TIME] == lines[end - 1][TIME]:
            end += 1
        yield lines[start:end]
        start = end
