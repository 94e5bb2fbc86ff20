"""A configured address of another instance, and the sites that it stands for.

Before the other side was asked for the first time there is one site with the configured id, which
waits. What the other side lists is looked at as often as a core is; all sites of an address share
one request (docs/spec/sites.md, "Federation").
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from attrs import define, evolve, field
from twisted.internet.defer import CancelledError, Deferred, fail, succeed
from twisted.python.failure import Failure

from monrest.base.concurrency import Shared
from monrest.livestatus.core_errors import LivestatusError, ProtocolError, StoppedError
from monrest.livestatus.inbox import AnswerMemory
from monrest.sites.federation import remote_list as listing
from monrest.sites.federation.answers import Record, records
from monrest.sites.federation.federated_site import FederatedSite
from monrest.sites.federation.remote import RefusedByRemoteError, Remote
from monrest.sites.federation.remote_list import Facts
from monrest.sites.site import PROBE_TIMEOUT
from monrest.sites.source import SiteSource

if TYPE_CHECKING:
    from monrest.config.sections import SiteConfig

_FRESH = 1.0
"""Seconds for which a list of the other side serves all sites that ask for it."""
_MISSED = 0.03
"""Seconds for which all sites of an address share a failure: less than between two looks."""
_KEY_REFUSED = (401, 403)
_FOR_USERS_ONLY = "by secret key"
"""In what an instance answers to its own secret key, which acts for users only."""
_NO_SUCH_LIST = (400, 404, 405, 410)
_DEFAULT = "Default"


class NotListedError(LivestatusError):
    """The other side does not list its sites."""


@define(eq=False, kw_only=True)
class FederationSource(SiteSource[FederatedSite]):
    """``instance`` gives the id of this one."""

    reactor: Any
    config: SiteConfig
    instance: Callable[[], str]
    memory: AnswerMemory
    remote: Remote = field()
    _facts: Mapping[str, Facts] = field(init=False, factory=dict)
    _tables: dict[str, Mapping[str, Mapping[str, str]]] = field(init=False, factory=dict)
    _looking: Shared[None] | None = field(init=False, default=None)
    _work: Deferred[None] | None = field(init=False, default=None)
    _looked: float | None = field(init=False, default=None)
    _error: LivestatusError | None = field(init=False, default=None)

    @remote.default
    def _usual(self) -> Remote:
        return Remote(reactor=self.reactor, config=self.config, instance=self.instance)

    def __attrs_post_init__(self) -> None:
        self.sites = (FederatedSite(self.reactor, self.config, source=self, memory=self.memory),)

    def lists(self, remote_id: str) -> bool:
        """Whether the other side has this site, as far as is known."""
        return remote_id in self._facts

    def doubt(self) -> None:
        """Something failed: the last list proves nothing any more."""
        self._looked = float("-inf")

    def look(self) -> Deferred[None]:
        """Ask for the list, or wait for the answer to another site; fails with LivestatusError."""
        shared = self._looking
        if shared is None:
            now, fresh = self.reactor.seconds(), _FRESH if self._error is None else _MISSED
            if self._looked is not None and 0 <= now - self._looked < fresh:
                return succeed(None) if self._error is None else fail(self._error.anew())
            shared = self._looking = Shared()
            shared.run(self._look(), self._ended)
        return shared.wait()

    def _ended(self) -> None:
        self._looking = self._work = None

    async def _look(self) -> None:
        try:
            self._work = Deferred.fromCoroutine(self._ask())
            await self._work
        except LivestatusError as error:
            self._error = error
            raise
        except CancelledError:
            raise StoppedError from None
        except Exception as error:
            self.log.failure("reading the sites of {site} failed", Failure(), site=self.config.id)
            self._error = ProtocolError("strange list of sites")
            raise self._error from error
        else:
            self._error = None
        finally:
            self._looked = self.reactor.seconds()

    async def _ask(self) -> None:
        try:
            records = await self._records(listing.LISTING)
        except RefusedByRemoteError as error:
            if error.status in _KEY_REFUSED or _FOR_USERS_ONLY in error.reason:
                raise NotListedError(
                    "auth_key: expected the API key of a superuser on the other side, which says "
                    + error.reason
                ) from None
            if error.status in _NO_SUCH_LIST:
                raise NotListedError(
                    f"the other side is too old or no monrest, it says {error.reason}"
                ) from None
            raise
        # Another product has the same paths, but ignores filters: its rows would be wrong.
        if not all(isinstance(record.get("instances"), list) for record in records):
            raise NotListedError("not a monrest: its list of sites has no instances")
        sites = listing.facts(records, self.instance())
        if not sites:
            raise NotListedError("the other side has no site for us")
        for site in sites:
            await self._learn(site)
        self._looked = self.reactor.seconds()
        self._error = None
        self._take(sites)

    async def _learn(self, facts: Facts) -> None:
        """Ask once for the tables of each kind of core."""
        if facts.core in self._tables:
            return
        records: Sequence[Record] = ()
        if facts.core:
            try:
                path = f"/sites?columns=id,tables&id={quote(facts.id, safe='')}"
                records = await self._records(path)
            except RefusedByRemoteError as error:
                self.log.warn(
                    "{site} does not tell the tables of {there}: {error}",
                    site=self.config.id,
                    there=facts.id,
                    error=error.reason,
                )
        self._tables[facts.core] = listing.tables(records)

    async def _records(self, path: str) -> list[Record]:
        timeout = min(PROBE_TIMEOUT, self.config.timeout)
        body = await self.remote.call("GET", path, timeout, urgent=True)
        return await records(body, self.memory.threads)

    def _take(self, listed: Sequence[Facts]) -> None:
        self._facts = {facts.id: facts for facts in listed}
        used = {facts.core for facts in listed}
        self._tables = {core: columns for core, columns in self._tables.items() if core in used}
        old, before = {site.id: site for site in self.sites}, self.configs()
        sites: list[FederatedSite] = []
        for facts in listed:
            config = self._config(facts, alone=len(listed) == 1)
            site = old.pop(config.id, None)
            if site is None or site.remote_id not in ("", facts.id):
                site = FederatedSite(self.reactor, config, source=self, memory=self.memory)
            site.learn(
                config, facts, listing.capabilities(self._tables[facts.core], facts.versions[-1])
            )
            sites.append(site)
        self.take(sites, before)

    def _config(self, facts: Facts, *, alone: bool) -> SiteConfig:
        base = self.config
        here, there = base.section, facts.section
        parts = [part for part in (here, there) if part and part != _DEFAULT]
        return evolve(
            base,
            id=base.id if alone else f"{base.id}-{facts.id}",
            name=base.name if alone else f"{base.name} {facts.name}",
            section="/".join(parts) or _DEFAULT,
            hidden=base.hidden or facts.hidden,
            groups=base.groups or facts.groups,
        )

    @property
    def name(self) -> str:
        return self.config.id

    @property
    def settled(self) -> bool:
        return self._looked is not None or not self.running

    @property
    def quiet(self) -> bool:
        return self._looking is None and super().quiet

    def stopService(self) -> Deferred[None]:
        if self._work is not None:
            self._work.cancel()
        return super().stopService().addCallback(lambda _: self.remote.close())
