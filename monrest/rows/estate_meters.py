"""How many hosts and services are in which state, for Prometheus (docs/spec/metrics.md)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

from attrs import frozen
from twisted.internet.defer import Deferred, gatherResults

from monrest.base.meters import Sample
from monrest.livestatus.core_errors import LivestatusError
from monrest.query.model import Pushed, Stat
from monrest.query.sendable import uses
from monrest.query.states import NUMBERS, PENDING
from monrest.sites.site import Site

_GROUPS = ("state", "has_been_checked", "acknowledged", "scheduled_downtime_depth")
_TABLES = (("hosts", tuple(NUMBERS["host"])), ("services", tuple(NUMBERS["service"])))


@frozen
class Estate:
    """All sites; each is asked one grouped question about hosts and one about services.

    A core that cannot group gives the four columns of all.
    """

    sites: Callable[[], Sequence[Site]]

    async def measured(self) -> list[Sample]:
        """Count the objects of each site that is up; one that fails is left out."""
        asked = [
            Deferred.fromCoroutine(_counted(site, table, words))
            for site in self.sites()
            if site.connected
            for table, words in _TABLES
        ]
        return [sample for found in await gatherResults(asked) for sample in found]


async def _counted(site: Site, table: str, words: Sequence[str]) -> list[Sample]:
    known = site.capabilities
    grouped = known is not None and all("group" in uses(known, table, name) for name in _GROUPS)
    stats = (Stat("count"),) if grouped else ()
    try:
        rows = await site.ask(Pushed(table=table, columns=_GROUPS, stats=stats))
    except LivestatusError:
        return []
    found: Counter[tuple[str, str]] = Counter()
    for row in rows:
        # Cores write the values by which they group as texts.
        state, checked, acknowledged, depth, *count = (int(value or 0) for value in row)
        word = PENDING if not checked else words[state] if state < len(words) else str(state)
        found[word, "1" if acknowledged or depth else "0"] += count[0] if count else 1
    return [(table, (site.id, *labels), count) for labels, count in found.items()]
