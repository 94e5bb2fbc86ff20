"""Bringing the cache of one site up to date, in slices that are each complete by themselves.

First the newest lines, from five minutes before the newest known one, then further back, newest
first, until the configured beginning. Each slice is one question to the core, and what it covers
is noted in the transaction of its last lines: after a kill the next run asks for that slice again
and stores what is not there yet. Rules: frontend-data.md, sections 10.4 and 10.5.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

from attrs import define, field, frozen
from twisted.internet.interfaces import IReactorTime

from monrest.clocks import WallClock
from monrest.concurrency import Periodic, sliced
from monrest.errors import Unavailable
from monrest.logs import records, thinning
from monrest.logs.leases import Leases
from monrest.logs.line import COLUMNS, TIME, Line, in_order, kept
from monrest.logs.records import Lease, LeaseLostError, Record
from monrest.query.model import Every, Pushed, Test
from monrest.sites.site import Site
from monrest.store.database import Database
from monrest.values import Progress, Row, nobody_follows

DRIFT = 300
"""Seconds before the newest known line in which others may still turn up."""

DAY = 86400
LONGEST = 30 * DAY
"""Seconds of a slice, at most."""

FEW, MANY = 5_000, 20_000
"""Lines of a slice below which the next one is longer, and above which it is shorter."""

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


class BusyError(Exception):
    """Another updater is at work on the site."""


@frozen(kw_only=True)
class Periods:
    """How far the cache goes back, in seconds; 0 is never for the last two.

    ``first``: what the first import fetches. ``compact``, ``keep``: the age at which repetitions
    and whole lines are removed.
    """

    first: int
    compact: int = 0
    keep: int = 0


@define(eq=False, kw_only=True)
class SiteImport:
    """The updater of one site; ``owner`` names this process in the cluster, see ``acquire``.

    ``slice``: seconds of the next slice, grown and shrunk by what comes.
    """

    site: Site
    database: Database
    clock: IReactorTime
    wall: WallClock
    owner: str
    leases: Leases
    periods: Periods
    slice: int = 600

    async def update(self, *, back: bool = True, progress: Progress = nobody_follows) -> int:
        """Bring the site up to date; the number of new lines.

        ``back``: go on with the first import, and compact and remove what is old enough. Raises
        BusyError, LeaseLostError, LivestatusError and Unavailable; what was imported until then
        is kept.
        """
        date, began = self.wall.now(), self.clock.seconds()
        gone = self.leases.gone
        known = await self.database.change(
            records.acquire(self.site.id, self.owner, "update", date, gone=gone)
        )
        if known is None:
            raise BusyError(self.site.id)
        lease = Lease(id=known.id, owner=self.owner)
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
        try:
            run = _Run(self, lease, progress)
            count = await run.forward(known)
            if back:
                count += await run.backward()
            if count >= MANY:
                await self.database.change(thinning.analyze)
            noted["last_update"] = int(date)
            noted["update_duration"] = self.clock.seconds() - began
            if back:
                progress(100.0, message="removing what is old")
                noted.update(await self._thin(lease))
            return count
        finally:
            await renewing.stopService()
            await self.database.change(records.release(lease, **noted))

    async def _renew(self, lease: Lease) -> None:
        # Whoever writes next without the lease is told, and so is who has no database.
        with suppress(LeaseLostError, Unavailable):
            await self.database.change(records.renew(lease, self.wall.now()))

    async def _thin(self, lease: Lease) -> dict[str, Any]:
        known = await self.database.run(records.record(self.site.id))
        if known is None or known.progress < 1:
            return {}
        compact, keep = self.periods.compact, self.periods.keep
        return await thinning.thin(
            self.database, self.clock, self.wall, lease, known, compact, keep
        )


@define(eq=False)
class _Run:
    """One run of an updater that holds the lease."""

    of: SiteImport
    lease: Lease
    progress: Progress
    wanted: int = field(init=False, default=0)
    first: int = field(init=False, default=0)

    def _now(self) -> float:
        return self.of.wall.now()

    def _tell(self, at: int, until: int) -> None:
        """Say how much of the time up to now is covered, while the lines of ``at`` come."""
        whole = int(self._now()) - self.wanted
        share = (until - self.first) / whole if whole > 0 else 1.0
        day = datetime.fromtimestamp(max(at, 0), UTC).date()
        self.progress(100 * min(max(share, 0.0), 1.0), message=f"importing the lines of {day}")

    async def forward(self, known: Record) -> int:
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
            await self._change(records.write(self.lease, self._now(), (), **covered))
        else:
            self.first, self.wanted = known.covered_from, known.wanted_from or known.covered_from
            # A clock that was wrong may have left lines of the future behind.
            start = min(known.covered_until, int(present(self.of.site, self.of.wall))) - DRIFT
        count = 0
        while True:
            end = start + self.of.slice
            # Lines of a core whose clock is ahead are new as well.
            found = await self._lines(start, end if end < now else None, now)
            if found is None:
                now = max(now, start + self.of.slice + 1)
                continue
            if end >= now:
                count += await self._store(found)
                await self._ends_with_newest(int(self._now()))
                return count
            count += await self._store(found, covered_until=end)
            start = end
            self._tell(start, start)

    async def _ends_with_newest(self, now: int) -> None:
        """Cover up to the newest line: without one the clock of the core is not known."""
        known = await self.of.database.run(records.record(self.of.site.id))
        assert known is not None
        newest = known.last_entry if known.last_entry is not None else known.covered_from
        assert newest is not None
        assert known.covered_from is not None
        until = max(known.covered_from, min(now, newest))
        await self._change(records.write(self.lease, self._now(), (), covered_until=until))

    async def backward(self) -> int:
        """Everything down to the configured beginning."""
        count = 0
        while True:
            known = await self.of.database.run(records.record(self.of.site.id))
            assert known is not None
            first, wanted = known.covered_from, known.wanted_from
            if first is None or wanted is None or first <= wanted:
                return count
            start = max(wanted, first - self.of.slice)
            self.first, self.wanted = first, wanted
            self._tell(start, known.covered_until or first)
            found = await self._lines(start, first, first)
            if found is None:
                continue
            count += await self._store(found, covered_from=start)

    # ------------------------------------------------------------ the core

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
        rows = await of.site.ask(self._asked(start, end, names, limit), COLUMNS)
        if limit is not None and len(rows) >= limit:
            of.slice = max(1, min(of.slice, (end or about) - start) // 4)
            return None
        if len(rows) > MANY:
            of.slice = max(1, of.slice // 2)
        elif len(rows) < FEW:
            of.slice = min(LONGEST, of.slice * 2)
        return rows

    def _asked(
        self, start: int, end: int | None, columns: tuple[str, ...], limit: int | None
    ) -> Pushed:
        bounds = [Test("time", ">=", str(max(0, start)))]
        if end is not None:
            bounds.append(Test("time", "<", str(max(0, end))))
        capabilities = self.of.site.capabilities
        if capabilities is not None and capabilities.kind == "icinga2":
            # Files are chosen by their first line against the last lower bound.
            bounds.append(Test("time", ">=", str(max(0, start - DAY))))
        return Pushed(
            table="log",
            columns=columns,
            filter=Every(tuple(bounds)),
            limit=limit,
            waits_long=True,
        )

    # ------------------------------------------------------------ the database

    async def _store(self, rows: list[Row], **covered: int) -> int:
        """Store lines in transactions that end with a second; the last one covers."""
        capabilities = self.of.site.capabilities
        newest_first = capabilities is None or capabilities.kind != "icinga2"
        lines = await sliced(_as_lines(rows, newest_first=newest_first), self.of.clock)
        count = 0
        parts = list(_portions(lines))
        for part in parts[:-1]:
            count += await self._change(records.write(self.lease, self._now(), part))
        last = parts[-1] if parts else []
        return count + await self._change(records.write(self.lease, self._now(), last, **covered))

    async def _change(self, work: records.Work[int]) -> int:
        return await self.of.database.change(work)


def _as_lines(rows: list[Row], *, newest_first: bool) -> Any:
    """Rows of a core as lines in order, in steps."""
    lines: list[Line] = []
    for start in range(0, len(rows), 500):
        lines += [kept(row) for row in rows[start : start + 500]]
        yield
    return in_order(lines, newest_first=newest_first)


def _portions(lines: list[Line]) -> Iterator[list[Line]]:
    """Lines in parts of about ``AT_ONCE``, none of which begins within a second."""
    start = 0
    while start < len(lines):
        end = min(start + AT_ONCE, len(lines))
        while end < len(lines) and lines[end][TIME] == lines[end - 1][TIME]:
            end += 1
        yield lines[start:end]
        start = end
