"""The configured sites, in their order, and who of them is meant by a request."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from attrs import define, field, frozen
from twisted.application.service import Service
from twisted.internet.defer import Deferred, DeferredList

from monrest.errors import BadRequest
from monrest.sites.site import Site

if TYPE_CHECKING:
    from monrest.config.values import SiteConfig

ALL = "ALL"
LOCAL = "LOCAL"


class Sites(Protocol):
    """The sites that exist for somebody: all of them, or those that his groups may use."""

    @property
    def sites(self) -> tuple[Site, ...]:
        """Every one of them, hidden ones included, in configured order."""

    @property
    def restricted(self) -> bool:
        """Whether some are only for members of certain contact groups."""

    def select(self, items: Sequence[str] = ()) -> tuple[Site, ...]:
        """See ``SiteList.select``."""

    def permitted(self, groups: frozenset[str]) -> Sites:
        """See ``SiteList.permitted``."""


@frozen(eq=False)
class SiteList:
    """Some of the configured sites; what is not among them does not exist."""

    sites: tuple[Site, ...]
    restricted: bool = field(init=False)
    _shown: tuple[Site, ...] = field(init=False)
    """The sites that are meant when nothing is selected."""

    @restricted.default
    def _for_some(self) -> bool:
        return any(site.config.groups for site in self.sites)

    @_shown.default
    def _not_hidden(self) -> tuple[Site, ...]:
        return tuple(site for site in self.sites if not site.hidden)

    def permitted(self, groups: frozenset[str]) -> SiteList:
        """The sites for a member of these contact groups (auth-and-commands.md, section 3.1)."""
        return SiteList(
            tuple(
                site
                for site in self.sites
                if not site.config.groups or not groups.isdisjoint(site.config.groups)
            )
        )

    def select(self, items: Sequence[str] = ()) -> tuple[Site, ...]:
        """The sites meant by ids, names, sections, ``ALL`` or ``LOCAL``, in configured order.

        Nothing selected means all that are not hidden (query-engine.md, section 1.3). Raise
        BadRequest naming every item that matches no site.
        """
        wanted = [item for item in items if item]
        if not wanted:
            return self._shown
        chosen: set[str] = set()
        unknown: list[str] = []
        for item in wanted:
            if item == ALL:
                found = {site.id for site in self.sites}
            elif item == LOCAL:
                found = {site.id for site in self.sites if site.local}
            else:
                found = {s.id for s in self.sites if item in (s.id, s.name, s.section)}
                if not found:
                    unknown.append(item)
            chosen |= found
        if unknown:
            raise BadRequest(
                f"failed to find backend(s): {', '.join(dict.fromkeys(unknown))}",
                "backends: expected ids, names or sections of configured sites, ALL or LOCAL",
            )
        return tuple(site for site in self.sites if site.id in chosen)


@define(eq=False)
class Registry(Service):
    """All sites. Their list is replaced as a whole, so a request keeps those it started with."""

    reactor: Any
    configs: Sequence[SiteConfig]
    make: Callable[[Any, SiteConfig], Site] = Site
    _list: SiteList = field(init=False)
    _retired: list[Site] = field(init=False, factory=list)

    def __attrs_post_init__(self) -> None:
        self._list = SiteList(tuple(self.make(self.reactor, config) for config in self.configs))

    @property
    def sites(self) -> tuple[Site, ...]:
        """All configured sites, in configured order."""
        return self._list.sites

    @property
    def restricted(self) -> bool:
        """Whether some are only for members of certain contact groups."""
        return self._list.restricted

    def select(self, items: Sequence[str] = ()) -> tuple[Site, ...]:
        """See ``SiteList.select``."""
        return self._list.select(items)

    def permitted(self, groups: frozenset[str]) -> SiteList:
        """See ``SiteList.permitted``."""
        return self._list.permitted(groups)

    def reconfigure(self, configs: Sequence[SiteConfig]) -> None:
        """Take over a new list: unchanged sites keep their connections and their health.

        Removed and changed ones finish what is running on them and then close.
        """
        old = {site.id: site for site in self.sites}
        sites: list[Site] = []
        for config in configs:
            known = old.get(config.id)
            if known is not None and known.config == config:
                sites.append(old.pop(config.id))
                continue
            site = self.make(self.reactor, config)
            sites.append(site)
            if self.running:
                site.startService()
        self.configs = tuple(configs)
        self._list = SiteList(tuple(sites))
        self._retired = [site for site in self._retired if not site.quiet]
        for site in old.values():
            site.retire()
            self._retired.append(site)

    def startService(self) -> None:
        """Connect to all sites in the background."""
        super().startService()
        for site in self.sites:
            site.startService()

    def stopService(self) -> Deferred[None]:
        """Close everything; fires when no connection is left."""
        super().stopService()
        left = DeferredList([site.stopService() for site in (*self.sites, *self._retired)])
        return left.addCallback(lambda _: None)
