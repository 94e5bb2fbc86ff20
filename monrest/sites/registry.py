"""The configured sites, in their order, and which of them a request means."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

from attrs import define, field, frozen
from twisted.application.service import Service
from twisted.internet.defer import Deferred, DeferredList
from twisted.logger import Logger

from monrest.base.errors import BadRequest
from monrest.base.meters import Sample
from monrest.base.signals import Signal
from monrest.config.sections import SiteConfig
from monrest.livestatus.inbox import AnswerMemory
from monrest.sites.federation.federated_site import FederatedSite, FederationSource, selectors
from monrest.sites.federation.remote import OnBehalfOf
from monrest.sites.lmd.lmd_source import LmdSite, LmdSource
from monrest.sites.site import Deadline, Site
from monrest.sites.source import OneCore, SiteSource

if TYPE_CHECKING:
    from monrest.config.sections import LmdConfig

ALL = "ALL"
LOCAL = "LOCAL"


@frozen(eq=False)
class SiteList:
    """Some of the configured sites; what is not among them does not exist."""

    sites: tuple[Site, ...]
    restricted: bool = field(init=False)
    federated: bool = field(init=False)
    """Whether some are of other instances."""
    _visible: tuple[Site, ...] = field(init=False)
    """The sites that are meant when nothing is selected."""

    @restricted.default
    def _for_some(self) -> bool:
        return any(site.config.groups for site in self.sites)

    @federated.default
    def _of_others(self) -> bool:
        return any(isinstance(site, FederatedSite) for site in self.sites)

    @_visible.default
    def _not_hidden(self) -> tuple[Site, ...]:
        return tuple(site for site in self.sites if not site.hidden)

    @property
    def listed(self) -> SiteList:
        return self

    def permitted(self, groups: frozenset[str]) -> SiteList:
        """The sites for a member of these contact groups."""
        return SiteList(
            tuple(
                site
                for site in self.sites
                if not site.config.groups or not groups.isdisjoint(site.config.groups)
            )
        )

    def acting(self, whom: OnBehalfOf) -> SiteList:
        """The same sites; those of other instances are asked on behalf of ``whom``."""
        return SiteList(
            tuple(
                site.acting(whom) if isinstance(site, FederatedSite) else site
                for site in self.sites
            )
        )

    def within(self, deadline: Deadline) -> SiteList:
        """The same sites, for a request with this deadline."""
        return SiteList(tuple(site.within(deadline) for site in self.sites))

    async def settled(self, items: Sequence[str] = ()) -> None:
        """What is in a list is known already."""

    def select(self, items: Sequence[str] = ()) -> tuple[Site, ...]:
        """The sites meant by ids, names, sections, ``ALL`` or ``LOCAL``, in configured order.

        Nothing selected means all that are not hidden. Raise BadRequest naming every item that
        matches no site.
        """
        wanted = dict.fromkeys(item for item in items if item)
        if not wanted:
            return self._visible
        # Once for each site, because a client may send thousands of names.
        meant: dict[str, set[str]] = {}
        for site in self.sites:
            for word in selectors(site):
                meant.setdefault(word, set()).add(site.id)
        meant[ALL] = {site.id for site in self.sites}
        meant[LOCAL] = {site.id for site in self.sites if site.local}
        unknown = [item for item in wanted if item not in meant]
        if unknown:
            raise BadRequest(
                f"failed to find backend(s): {', '.join(unknown)}",
                "backends: expected ids, names or sections of configured sites, ALL or LOCAL",
            )
        chosen = {number for item in wanted for number in meant[item]}
        return tuple(site for site in self.sites if site.id in chosen)


def remembered_sites(
    kept: Mapping[str, str], sites: Sequence[Site]
) -> tuple[list[Site], list[str]]:
    """Those of ``sites`` that a stored record is for, and the ids that are none any more.

    ``kept`` are ids with the names they had, all sites if it is empty. A site whose id was changed
    is known by its name.
    """
    if not kept:
        return list(sites), []
    by_id, by_name = {site.id: site for site in sites}, {site.name: site for site in sites}
    ids: set[str] = set()
    unknown: list[str] = []
    for key, name in kept.items():
        site = by_id.get(key) or by_name.get(name)
        if site is None:
            unknown.append(key)
        else:
            ids.add(site.id)
    return [site for site in sites if site.id in ids], unknown


@define(eq=False)
class Registry(Service):
    """All sites. Their list is replaced as a whole, so a request keeps those it started with.

    An address of another instance, and an LMD, stand for as many sites as these have, so that the
    list may change at any time; ``changed`` is called then. ``instance`` is the random id by
    which instances notice that a request has been here before; it is looked at once sites are
    asked. ``memory`` is where the rows of all of them are.
    """

    log: ClassVar[Logger] = Logger()

    reactor: Any
    configs: Sequence[SiteConfig]
    make: Callable[..., Site] = Site
    memory: AnswerMemory = field(kw_only=True)
    lmd: LmdConfig | None = field(kw_only=True, default=None)
    instance: str = field(factory=lambda: secrets.token_hex(8))
    changed: Signal[[]] = field(factory=Signal)
    listed: SiteList = field(init=False)
    """All sites as a value, which is another one whenever they change."""
    _sources: tuple[SiteSource[Any], ...] = field(init=False, default=())
    _retired: list[SiteSource[Any]] = field(init=False, factory=list)

    def __attrs_post_init__(self) -> None:
        self._sources = tuple(self._source(config) for config in self._wanted())
        self._relist()

    def _wanted(self) -> list[SiteConfig | LmdConfig]:
        """The configurations of sources; the sites of an LMD come last."""
        lmd = [self.lmd] if self.lmd is not None and self.lmd.addresses else []
        return [*self.configs, *lmd]

    def _source(self, config: SiteConfig | LmdConfig) -> SiteSource[Any]:
        if not isinstance(config, SiteConfig):
            return LmdSource(
                reactor=self.reactor, config=config, changed=self._relist, memory=self.memory
            )
        if config.federated:
            return FederationSource(
                reactor=self.reactor,
                config=config,
                instance=lambda: self.instance,
                changed=self._relist,
                memory=self.memory,
            )
        site = self.make(self.reactor, config, memory=self.memory)
        return OneCore(config=config, changed=self._relist, site=site)

    def _relist(self) -> None:
        """Put the list together; a site with an id that is taken already is left out."""
        configured = {config.id for config in self.configs}
        sites: dict[str, Site] = {}
        for source in self._sources:
            for site in source.sites:
                if site.id in sites or (site.id in configured and site.id != source.name):
                    self.log.error(
                        "a site of {source} is left out, because its id {id} is that of another "
                        "site",
                        source=source.name,
                        id=site.id,
                    )
                else:
                    sites[site.id] = site
        self.listed = SiteList(tuple(sites.values()))
        if self.running:
            self.changed()

    @property
    def sites(self) -> tuple[Site, ...]:
        """All sites, in configured order and those of another instance in its order."""
        return self.listed.sites

    @property
    def direct(self) -> tuple[Site, ...]:
        """The sites whose core is asked by this instance itself, through an LMD or not."""
        return tuple(
            site
            for site in self.sites
            if not isinstance(site, FederatedSite)
            and not (isinstance(site, LmdSite) and site.facts is None)
        )

    @property
    def restricted(self) -> bool:
        return self.listed.restricted

    def select(self, items: Sequence[str] = ()) -> tuple[Site, ...]:
        return self.listed.select(items)

    def permitted(self, groups: frozenset[str]) -> SiteList:
        return self.listed.permitted(groups)

    def acting(self, whom: OnBehalfOf) -> Sites:
        return self.listed.acting(whom) if self.listed.federated else self

    def within(self, deadline: Deadline) -> SiteList:
        return self.listed.within(deadline)

    async def settled(self, items: Sequence[str] = ()) -> None:
        """Wait until it is known which sites are meant by these ids, names or sections.

        Right after the start an address of another instance may stand for any number of sites.
        """
        waiting = [source for source in self._sources if not source.settled]
        if not waiting:
            return
        words = {word for site in self.direct for word in selectors(site)}
        if not items or not words.issuperset(items):
            verdicts = [source.sites[0].breaker.verdict() for source in waiting]
            await DeferredList(verdicts, consumeErrors=True)

    def identify(self, instance: str) -> None:
        """Take over the id by which instances that federate know this one."""
        self.instance = instance

    def configure(self, configs: Sequence[SiteConfig], lmd: LmdConfig | None = None) -> None:
        """Take over a new list: unchanged sites keep their connections and their health.

        Removed and changed ones finish what is running on them and then close.
        """
        self.configs, self.lmd = tuple(configs), lmd
        old = list(self._sources)
        sources: list[SiteSource[Any]] = []
        for config in self._wanted():
            kept = next((source for source in old if source.config == config), None)
            if kept is not None:
                old.remove(kept)
            else:
                kept = self._source(config)
                if self.running:
                    kept.startService()
            sources.append(kept)
        self._sources = tuple(sources)
        self._relist()
        self._retired = [source for source in self._retired if not source.quiet]
        for former in old:
            former.retire()
            self._retired.append(former)

    def measured(self) -> Iterator[Sample]:
        """Samples of all sites; the connections to an LMD are those of ``lmd``."""
        for site in self.sites:
            yield from site.measured()
        for source in self._sources:
            if isinstance(source, LmdSource):
                yield from source.queries.pool.measured("lmd")

    def startService(self) -> None:
        """Connect to all sites in the background."""
        super().startService()
        for source in self._sources:
            source.startService()

    def stopService(self) -> Deferred[None]:
        """Close everything; fires when no connection is left."""
        super().stopService()
        left = DeferredList([source.stopService() for source in (*self._sources, *self._retired)])
        return left.addCallback(lambda _: None)


Sites: TypeAlias = Registry | SiteList
"""The sites that exist for a user: all of them, or those for the user's contact groups."""
