"""Bringing the cache of one site up to date, in slices that are each complete by themselves.

First the newest lines, from five minutes before the newest known one, then further back, newest
first, until the configured beginning. Each slice is one question to the core. A closed day is
covered once its lines were compared with the core's own count: after a kill the next run asks for
that day again and stores what is not there yet. Rules: docs/spec/logcache.md.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any, ClassVar

from attrs import define, field, frozen
from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IReactorTime
from twisted.logger import Logger

from monrest.base.clock import WallClock
from monrest.base.concurrency import Periodic
from monrest.base.errors import Unavailable
from monrest.base.room import Share
from monrest.base.values import Progress, Row, nobody_follows
from monrest.livestatus.core_errors import RefusedError
from monrest.logs import cache_records as records
from monrest.logs import compaction, compared_days
from monrest.logs.cache_records import (
    CachedSite,
    LeaseLostError,
    LinesWritten,
    MissingDays,
    UpdateLease,
)
from monrest.logs.compared_days import Count, Day, ceil, floor
from monrest.logs.leases import Leases
from monrest.logs.line import COLUMNS, DAY, TIME, LogLine, in_order, kept
from monrest.query.model import Group, Pushed, Test
from monrest.sites.site import Site
from monrest.store.database import Database, Work

DRIFT = 300
"""Seconds before the newest known line in which others may still turn up."""

LONGEST_SLICE = 30 * DAY
"""Seconds of a slice, at most."""

FEW, MANY = 5_000, 20_000
"""Lines of a slice below which the next one is longer, and above which it is shorter."""

MOST_COMPARED = 40
"""Days that one run compares once more, so that a core is not busy with counting for long."""

_RENEWALS = 5
"""How often a lease is renewed while it holds."""

AT_ONCE = 5_000
"""Lines of one transaction, so that others who write need not wait for long."""


def present(site: Site, wall: WallClock) -> float:
    """The time now, by our clock or by that of the core, whichever is behind.

    What a core writes after its clock was put back is new, although it does not look so.
    """
    told = site.health.program.localtime
    return wall.now() if told is None else min(wall.now(), told)


class UpdateRunningError(Exception):
    """Another process updates the site."""


@frozen(kw_only=True)
class Periods:
    """How far the cache goes back, in seconds; 0 is never for the last two.

    ``first``: what the first import fetches. ``compact``, ``keep``: the age at which repetitions
    and whole lines are removed.
    """

    first: int
    compact: int = 0
    keep: int = 0


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

    ``slice``: seconds of the next slice, grown and shrunk by what comes.
    """

    log: ClassVar[Logger] = Logger()

    site: Site
    database: Database
    clock: IReactorTime
    wall: WallClock
    owner: str
    leases: Leases
    periods: Periods
    slice: int = 600
    _said: MissingDays | None = field(init=False, default=None)

    async def update(
        self, *, back: bool = True, again: Again | None = None, progress: Progress = nobody_follows
    ) -> LinesWritten:
        """Bring the site up to date; the numbers of lines that came and went.

        ``back``: go on with the first import, compare days, and compact and remove what is old
        enough. ``again``: import a time once more. Raises UpdateRunningError, LeaseLostError,
        LivestatusError and Unavailable; what was imported until then is kept.
        """
        date, began = self.wall.now(), self.clock.seconds()
        gone = self.leases.gone
        known = await self.database.change(
            records.acquire(self.site.id, self.owner, "update", date, gone=gone)
        )
        if known is None:
            raise UpdateRunningError(self.site.id)
        lease = UpdateLease(id=known.id, owner=self.owner)
        # A core may need longer for one slice than a lease holds.
        renewing = Periodic(
            self.clock,
            lease.seconds / _RENEWALS,
            lambda: self._renew(lease),
            f"renewing the lease of {self.site.id}",
            now=False,
        )
        renewing.startService()
        noted: dict[str, Any] = {}
        run = _Run(self, lease, progress)
        try:
            before = await self.database.run(compared_days.known(lease.id))
            await run.forward(known)
            if again is not None:
                await run.again(again)
            elif back:
                await run.backward()
                await run.compare()
            await self._say(lease, before)
            if run.written.added >= MANY:
                await self.database.change(compaction.analyze)
            noted["last_update"] = int(date)
            noted["update_duration"] = self.clock.seconds() - began
            if back:
                progress(100.0, message="removing what is old")
                noted.update(await self._thin(lease))
            return run.written
        finally:
            run.let_go()
            await renewing.stopService()
            await self.database.change(records.release(lease, **noted))

    async def _say(self, lease: UpdateLease, before: Mapping[int, Day]) -> None:
        """Log which days the core does not give, and which it has lost."""
        known = await self.database.run(records.known(self.site.id))
        said, self._said = self._said, None if known is None else known.missing
        if self._said is not None and self._said != said:
            self.log.warn(
                "log cache of {site}: {doubt}; times before are read from the core, which is asked "
                "again every hour and after its next start",
                site=self.site.id,
                doubt=str(self._said),
            )
        elif said is not None and self._said is None:
            self.log.info("log cache of {site}: it is complete again", site=self.site.id)
        after = await self.database.run(compared_days.known(lease.id))
        lost = [
            day
            for _, day in sorted(after.items())
            if day.gone and (day.day not in before or before[day.day].gone != day.gone)
        ]
        if lost:
            self.log.warn(
                "log cache of {site}: the core has lost {gone} of {lines} lines of {days}, the "
                "cache keeps them; where its archives are still there, it has them after its "
                "next start",
                site=self.site.id,
                gone=sum(day.gone for day in lost),
                lines=sum(day.lines for day in lost),
                days=records.span(lost[0].day, lost[-1].day + DAY),
            )

    async def _renew(self, lease: UpdateLease) -> None:
        # Whoever writes next without the lease is told, and so is who has no database.
        with suppress(LeaseLostError, Unavailable):
            await self.database.change(records.renew(lease, self.wall.now()))

    async def _thin(self, lease: UpdateLease) -> dict[str, Any]:
        known = await self.database.run(records.record(self.site.id))
        if known is None or known.progress < 1:
            return {}
        compact, keep = self.periods.compact, self.periods.keep
        return await compaction.thin(
            self.database, self.clock, self.wall, lease, known, compact, keep
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
    _share: Share = field(init=False)
    """The room of the lines at hand."""

    def __attrs_post_init__(self) -> None:
        self._share = self.of.site.memory.room.turn()

    def let_go(self) -> None:
        self._share.release()

    def _now(self) -> float:
        return self.of.wall.now()

    def _tell(self, at: int, until: int) -> None:
        """Report how much of the time up to now is covered, while the lines of ``at`` come."""
        whole = int(self._now()) - self.wanted
        share = (until - self.first) / whole if whole > 0 else 1.0
        day = datetime.fromtimestamp(max(at, 0), UTC).date()
        self.progress(100 * min(max(share, 0.0), 1.0), message=f"importing the lines of {day}")

    async def forward(self, known: CachedSite) -> None:
        """Everything since the newest known line; the first time the last hour."""
        now = int(self._now())
        covered: dict[str, int] = {}
        if known.covered_from is None or known.covered_until is None:
            start = self.first = now - 3600
            self.wanted = min(start, now - self.of.periods.first)
            covered = {
                "covered_from": start,
                "covered_until": start,
                "wanted_from": self.wanted,
            }
            await self._write((), **covered)
        else:
            self.first, self.wanted = known.covered_from, known.wanted_from or known.covered_from
            # A clock that was wrong may have left lines of the future behind.
            start = min(known.covered_until, int(present(self.of.site, self.of.wall))) - DRIFT
        while True:
            end = start + self.of.slice
            # Lines of a core whose clock is ahead are new as well.
            found = await self._lines(start, end if end < now else None, now)
            if found is None:
                now = max(now, start + self.of.slice + 1)
                continue
            if end >= now:
                await self._store(found)
                await self._ends_with_newest(int(self._now()))
                return
            # Up to the newest line and no further: lines may come late after that one.
            until = (
                {"covered_until": max(self.first, *(row[TIME] for row in found))} if found else {}
            )
            await self._store(found, **until)
            start = end
            self._tell(start, start)

    async def _ends_with_newest(self, now: int) -> None:
        """Cover up to the newest line: without one the clock of the core is not known."""
        known = await self._known()
        newest = known.last_entry if known.last_entry is not None else known.covered_from
        assert newest is not None
        assert known.covered_from is not None
        until = max(known.covered_from, min(now, newest))
        await self._write((), covered_until=until)

    async def backward(self) -> None:
        """Everything down to the configured beginning.

        What lies within a closed day is covered with the whole day, after it was compared.
        """
        known = await self._known()
        first, wanted = known.covered_from, known.wanted_from
        assert first is not None
        assert wanted is not None
        began = first
        self.first, self.wanted = first, wanted
        closed = self._closed(known)
        low = first
        while low > wanted:
            high, low = low, _lower(low, self.of.slice, max(wanted, closed if low > closed else 0))
            self._tell(low, known.covered_until or first)
            found = await self._lines(low, high, high)
            if found is None:
                low = high
            elif high > closed:
                await self._store(found, covered_from=low)
                self.first = first = low
            else:
                await self._store(found)
                if low == wanted or low % DAY == 0:
                    await self._close(low, first, silent=not found)
                    await self._write((), covered_from=low)
                    self.first = first = low
        if low < began:
            # The newest line may be older than where the first import began.
            await self._ends_with_newest(int(self._now()))

    def _closed(self, known: CachedSite) -> int:
        """The end of the last day to which no line will come any more."""
        until = min(known.covered_until or 0, int(present(self.of.site, self.of.wall)))
        return floor(until - DRIFT)

    async def compare(self) -> None:
        """Compare the closed days that never were, and some of those that are due again."""
        known = await self._known()
        assert known.covered_from is not None
        found = await self._days()
        first = floor(max(known.covered_from, known.compacted_until))
        due = compared_days.due(found, first, self._closed(known), self._since(), self._now())
        for day in due[:MOST_COMPARED]:
            await self._compare(day, max(day, known.covered_from), found.get(day))

    async def _close(self, start: int, end: int, *, silent: bool) -> None:
        """Compare days for the first time, newest first; ``silent`` ones are counted together."""
        closed = range(floor(end - 1), floor(start) - DAY, -DAY)
        if silent and len(closed) > 1:
            told, had = await self._told(start, end), await self._counted(start, end)
            if told is not None and not told and not had:
                await self._note([self._day(day, told, had) for day in closed])
                return
        for day in closed:
            await self._compare(day, max(day, start))

    async def _compare(self, day: int, start: int, before: Day | None = None) -> None:
        """Compare a day from ``start`` on; import it again where the core has more, and note it."""
        end = day + DAY
        told, had = await self._told(start, end), await self._counted(start, end)
        if told is not None and told - had:
            await self._import(start, end)
            told, had = await self._told(start, end), await self._counted(start, end)
        await self._note([self._day(day, told, had, before)])

    def _day(self, day: int, told: Count | None, had: Count, before: Day | None = None) -> Day:
        """What is known of a day: the lines that the core has told, those the cache ``had``."""
        since = self._since()
        return Day(
            day=day,
            lines=had.total(),
            missing=0 if told is None else (told - had).total(),
            gone=0 if told is None else (had - told).total(),
            compared=int(self._now()),
            since=since,
            settled=told is None or (before is not None and before.since != since),
        )

    async def _note(self, noted: Sequence[Day]) -> None:
        await self.of.database.change(compared_days.note(self.lease, self._now(), noted))

    async def _told(self, start: int, end: int) -> Count | None:
        """How many lines the core has of each class; None from a core that does not count."""
        site = self.of.site
        bounds = Group("and", self._bounds(start, end))
        if site.capabilities is not None and site.capabilities.kind == "lmd":
            # It counts the answers of its sites in place of lines (docs/spec/lmd.md, "Logs").
            listed = Pushed(table="log", columns=("class",), filter=bounds, waits_long=True)
            return compared_days.among(await site.ask(listed, None, self._share))
        try:
            rows = await site.ask(compared_days.counting(bounds))
        except RefusedError as error:
            self.log.warn(
                "log cache of {site}: its core does not count lines: {error}",
                site=self.of.site.id,
                error=str(error),
            )
            return None
        return compared_days.told(rows)

    def _counted(self, start: int, end: int) -> Deferred[Count]:
        return self.of.database.run(compared_days.counted(self.lease.id, start, end))

    def _days(self) -> Deferred[dict[int, Day]]:
        return self.of.database.run(compared_days.known(self.lease.id))

    def _since(self) -> int:
        return int(self.of.site.health.program_start)

    async def again(self, again: Again) -> None:
        """Import a time that is covered once more, and all that is missing back to its start."""
        known = await self._known()
        assert known.covered_from is not None
        assert known.covered_until is not None
        newest = max(known.covered_until, known.last_entry or 0)
        start, end = again.start, min(again.end, newest + 1)
        if start < known.covered_from:
            await self._write((), wanted_from=min(start, known.wanted_from or start))
            await self.backward()
            start = known.covered_from
        if start >= end:
            return
        await self._import(start, end, exactly=again.exactly, told=True)
        known, found = await self._known(), await self._days()
        for day in range(floor(start), min(self._closed(known), ceil(end)), DAY):
            if day < known.compacted_until:
                await compaction.compact_day(self.of.database, self.of.wall, self.lease, day)
            else:
                await self._compare(day, max(day, start), found.get(day))

    async def _import(
        self, start: int, end: int, *, exactly: bool = False, told: bool = False
    ) -> None:
        """Import what lies between two moments once more.

        ``exactly``: what the core does not have is removed, unless it gives less than it counts.
        ``told``: whoever follows the run is told of it.
        """
        low = start
        while low < end:
            high = min(low + self.of.slice, end)
            found = await self._lines(low, high, high)
            if found is None:
                continue
            if not exactly:
                await self._store(found)
            else:
                count = await self._told(low, high)
                whole = count is None or len(found) >= count.total()
                await self._store(found, exactly=(low, high) if whole else None)
            low = high
            if told:
                day = datetime.fromtimestamp(low - 1, UTC).date()
                percent = 100 * (low - start) / (end - start)
                self.progress(percent, message=f"importing the lines of {day} again")

    async def _lines(self, start: int, end: int | None, about: int) -> list[Row] | None:
        """What the core has with ``start <= time < end``; None when that is too much at once.

        Then the next slice is shorter. A second is never too much. Without an ``end`` it is
        expected to be ``about`` that.
        """
        of = self.of
        capabilities = of.site.capabilities
        names = tuple(
            name for name, _ in COLUMNS if capabilities is None or capabilities.has("log", name)
        )
        if not names:
            return []
        limit = 2 * MANY + 1 if of.slice > 1 else None
        # The lines before are stored.
        self.let_go()
        asked = self._asked(start, end, names, limit)
        rows = await of.site.ask(asked, COLUMNS, self._share)
        if limit is not None and len(rows) >= limit:
            of.slice = max(1, min(of.slice, (end or about) - start) // 4)
            return None
        if len(rows) > MANY:
            of.slice = max(1, of.slice // 2)
        elif len(rows) < FEW:
            of.slice = min(LONGEST_SLICE, of.slice * 2)
        return rows

    def _asked(
        self, start: int, end: int | None, columns: tuple[str, ...], limit: int | None
    ) -> Pushed:
        return Pushed(
            table="log",
            columns=columns,
            filter=Group("and", self._bounds(start, end)),
            limit=limit,
            waits_long=True,
        )

    def _bounds(self, start: int, end: int | None) -> tuple[Test, ...]:
        bounds = [Test("time", ">=", str(max(0, start)))]
        if end is not None:
            bounds.append(Test("time", "<", str(max(0, end))))
        capabilities = self.of.site.capabilities
        if capabilities is not None and capabilities.icinga2:
            # Files are chosen by their first line against the last lower bound.
            bounds.append(Test("time", ">=", str(max(0, start - DAY))))
        return tuple(bounds)

    async def _store(
        self, rows: list[Row], *, exactly: tuple[int, int] | None = None, **covered: int
    ) -> None:
        """Store lines in transactions that end with a second; the last one covers.

        ``exactly``: no other lines shall be there between these moments.
        """
        capabilities = self.of.site.capabilities
        newest_first = capabilities is None or capabilities.newest_first
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
        # The core may take minutes for what it is asked next.
        self.let_go()

    async def _write(self, part: Sequence[LogLine], **covered: int) -> None:
        await self._count(records.write(self.lease, self._now(), part, **covered))

    async def _replace(self, part: Sequence[LogLine], start: int, end: int) -> int:
        """Make these lines all that are there; give the end of that time."""
        await self._count(records.replace(self.lease, self._now(), part, start, end))
        return end

    async def _count(self, work: Work[LinesWritten]) -> None:
        done = await self.of.database.change(work)
        self.written = LinesWritten(
            added=self.written.added + done.added, removed=self.written.removed + done.removed
        )

    async def _known(self) -> CachedSite:
        known = await self.of.database.run(records.record(self.of.site.id))
        assert known is not None
        return known


def _lower(high: int, seconds: int, least: int) -> int:
    """Where the slice that ends with ``high`` begins: with a day, unless it is within one."""
    low = max(least, high - seconds)
    return low if low == least or ceil(low) >= high else ceil(low)


def _portions(lines: list[LogLine]) -> Iterator[list[LogLine]]:
    """Lines in parts of about ``AT_ONCE``, none of which begins within a second."""
    start = 0
    while start < len(lines):
        end = min(start + AT_ONCE, len(lines))
        while end < len(lines) and lines[end][TIME] == lines[end - 1][TIME]:
            end += 1
        yield lines[start:end]
        start = end
