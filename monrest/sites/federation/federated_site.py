"""A site of another instance, which is asked like one of our own."""

from __future__ import annotations

from copy import copy
from typing import TYPE_CHECKING, ClassVar, Self, TypeVar
from urllib.parse import quote
from weakref import WeakSet

from attrs import define, field
from twisted.internet.defer import Deferred, fail
from twisted.python.failure import Failure

from monrest.base.values import Capabilities, Row
from monrest.livestatus.core_errors import LivestatusError
from monrest.livestatus.pool import CoreRequest
from monrest.sites.capabilities import Program
from monrest.sites.federation.queries import RestQueries, Running
from monrest.sites.federation.remote import JSON, OnBehalfOf, RefusedByRemoteError
from monrest.sites.federation.remote_commands import RestCommands
from monrest.sites.federation.remote_list import Facts
from monrest.sites.health import INTERVAL
from monrest.sites.site import Deadline, Site
from monrest.sites.transport import Hops

if TYPE_CHECKING:
    from monrest.config.sections import SiteConfig
    from monrest.sites.federation.federation_source import FederationSource


S = TypeVar("S", bound="FederatedSite")


class DownThereError(LivestatusError):
    """The other side answers that it cannot ask the core."""


@define(eq=False)
class FederatedSite(Site):
    """``config`` is that of the address with what is this site's own: id, name, section, groups.

    ``facts`` are what the other side lists of it, None until it was asked for the first time.
    """

    kind: ClassVar[str] = "http"

    source: FederationSource = field(kw_only=True)
    facts: Facts | None = field(kw_only=True, default=None)
    _copies: WeakSet[FederatedSite] = field(init=False, factory=WeakSet)

    def _connect(self) -> None:
        running = Running()
        self.pool = RestQueries(self.source.remote, self._path, running=running)
        self.commands = RestCommands(self.source.remote, self._path, self.memory.threads)
        # All sites of one address are looked at together: one request serves all of them.
        self.breaker.interval = INTERVAL

    def _path(self) -> str:
        """The path of the site below the API's root of the other side. Raises DownThereError."""
        if self.facts is None:
            raise DownThereError("not known on the other side")
        return f"/sites/{quote(self.facts.id, safe='')}"

    @property
    def remote_id(self) -> str:
        """The id of the site on the other side; empty while that is not known."""
        return self.facts.id if self.facts is not None else ""

    @property
    def whom(self) -> OnBehalfOf:
        """On behalf of which user it is asked."""
        assert isinstance(self.pool, RestQueries)
        return self.pool.whom

    @property
    def hops(self) -> Hops:
        """The address first, then what the other side lists."""
        far = self.facts
        if far is None:
            return super().hops
        return Hops(
            keys=(self.id, *far.keys),
            names=(self.name, *far.names),
            addresses=(self.address, *far.addresses),
            kinds=(self.kind, *far.kinds),
            versions=("", *far.versions),
            instances=far.instances,
        )

    def call(
        self,
        method: str,
        path: str,
        seconds: float,
        body: bytes | None = None,
        content_type: str = JSON,
        *,
        reads: bool = True,
    ) -> Deferred[bytes]:
        """The body of the answer to a request below the site on the other side.

        See ``Remote.call``; what only reads is sent again where a query would be.
        """

        def send(left: float) -> Deferred[bytes]:
            whole, whom = self._path() + path, self.whom
            sent = self.source.remote.call(
                method, whole, left, whom, body, content_type, reads=reads
            )
            return sent.addErrback(self._doubt)

        left = self._in_time(seconds)
        if left <= 0:
            return fail(self.too_late())
        limited = self.deadline is not None
        return self.in_flight.run(send, left, once=not reads, has_deadline=limited)

    def _send(self, ask: CoreRequest, core: str, seconds: float) -> Deferred[list[Row]]:
        def heard(rows: list[Row]) -> list[Row]:
            self.breaker.hear()
            return rows

        return super()._send(ask, core, seconds).addCallbacks(heard, self._doubt)

    def _doubt(self, failure: Failure) -> Failure:
        """The last list of the other side is no proof that it lives."""
        if isinstance(failure.value, RefusedByRemoteError):
            self.breaker.hear()
        self.source.doubt()
        return failure

    def acting(self, whom: OnBehalfOf) -> FederatedSite:
        """The same site, asked on behalf of a user."""
        twin = copy(self)
        assert isinstance(self.pool, RestQueries)
        assert isinstance(self.commands, RestCommands)
        twin.pool, twin.commands = self.pool.acting(whom), self.commands.acting(whom)
        return self._copied(twin)

    def within(self, deadline: Deadline | None) -> Self:
        return self._copied(super().within(deadline))

    def _copied(self, site: S) -> S:
        if self.capabilities is None:
            self._copies.add(site)
        return site

    def learn(self, config: SiteConfig, facts: Facts, capabilities: Capabilities) -> None:
        for site in (self, *self._copies):
            site.config, site.facts = config, facts
        self._core.capabilities = capabilities
        self._copies.clear()

    async def _probe(self) -> Program:
        await self.source.look()
        facts = self.facts
        if facts is None or not self.source.lists(facts.id):
            raise DownThereError("not a site of the other side")
        if not facts.connected:
            raise DownThereError(f"down on the other side: {facts.last_error}".rstrip(": "))
        return Program(
            program_version="monrest",
            livestatus_version=facts.versions[-1],
            program_start=facts.program_start,
            localtime=facts.localtime or None,
            instances=facts.instances,
        )


def selectors(site: Site) -> tuple[str, ...]:
    """What selects a site: id, name and section; those of an address mean all of its sites."""
    if isinstance(site, FederatedSite):
        base = site.source.config
        return (site.id, site.name, site.section, base.id, base.name)
    return (site.id, site.name, site.section)


def openly(site: Site) -> Site:
    """The site on behalf of no user; for details of objects that the user sees anyway."""
    if isinstance(site, FederatedSite):
        return site.acting(OnBehalfOf(visited=site.whom.visited))
    return site
