"""Leases of the log cache that are not renewed any more, because their holder died.

What a holder writes with each renewal is a beat to the others: where it stands still for as long
as a lease holds, as this daemon measures, the holder is gone. That no clock of one machine is
compared with another's, and that a paused holder cannot write, is as with ``store.duties``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from attrs import define, field

from monrest.base.errors import Unavailable
from monrest.logs import cache_records as records
from monrest.logs.cache_records import LEASE, Held
from monrest.logs.model import CachedSite
from monrest.store.database import Database
from monrest.store.duties import Heartbeats, boot_time

LOOK = 2.5
"""Seconds between two looks."""


@define(eq=False)
class Leases:
    """``gone`` are the leases whose holders are, by the number of the site."""

    database: Database
    timer: Callable[[], float] = field(default=boot_time, kw_only=True)
    gone: Mapping[int, Held] = field(init=False, factory=dict)
    _beats: Heartbeats[Held] = field(init=False, factory=lambda: Heartbeats(2 * LOOK))

    async def look(self) -> None:
        """See which leases were renewed since the last look."""
        began = self.timer()
        try:
            held = await self.database.run(records.held)
        except Unavailable:
            # No holder can renew meanwhile: that time does not count against any.
            self._beats.missed()
            return
        stands = self._beats.look(held, began, self.timer())
        self.gone = {site: held[site] for site, still in stands.items() if still >= LEASE}

    def living(self, cached: CachedSite) -> bool:
        """Whether a living process holds the lease of a site, as far as this daemon knows."""
        return bool(cached.owner) and self.gone.get(cached.id) != (cached.owner, cached.owned_until)
