"""How far a report is, by the time whose log was read, for those who follow it as a job."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime, tzinfo

from attrs import define, field

from monrest.base.values import Progress
from monrest.sites.site import Site


@define(eq=False, kw_only=True)
class LogProgress:
    """The logs of ``sites`` are read from ``since`` to ``until``, which is what takes its time."""

    progress: Progress
    sites: Collection[Site]
    since: int
    until: int
    zone: tzinfo
    _shares: dict[str, float] = field(init=False, factory=dict)

    def reached(self, site: Site, time: int) -> None:
        """Say that the log of a site is read up to a moment."""
        whole = self.until - self.since
        share = (time - self.since) / whole if whole > 0 else 1.0
        self._shares[site.id] = min(max(share, 0.0), 1.0)
        percent = 100 * sum(self._shares.values()) / len(self.sites)
        day = datetime.fromtimestamp(min(time, self.until), self.zone).date()
        self.progress(percent, message=f"reading the log of {site.id}: {day}")

    def done(self, site: Site) -> None:
        """Say that a site has its numbers."""
        self.reached(site, self.until)
