"""What brings sites: a core of the configuration, another instance, an LMD.

A kind of core that has more than one site, or another protocol, is one more of them
(docs/architecture.md, "A new kind of core").
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Generic, TypeVar

from attrs import define, field
from twisted.internet.defer import Deferred, DeferredList
from twisted.logger import Logger

from monrest.config.sections import SiteConfig
from monrest.sites.site import Site

S = TypeVar("S", bound=Site)


@define(eq=False)
class SiteSource(ABC, Generic[S]):
    """``changed`` is called when there are other sites than before.

    A subclass has at least one in ``sites`` from its beginning on, which waits for what is not
    known yet. ``config`` is what it was made of.
    """

    log: ClassVar[Logger] = Logger()

    config: Any
    changed: Callable[[], None]
    sites: tuple[S, ...] = field(init=False)
    running: bool = field(init=False, default=False)
    _gone: list[S] = field(init=False, factory=list)

    @property
    @abstractmethod
    def name(self) -> str:
        """What the log calls it."""

    @property
    @abstractmethod
    def settled(self) -> bool:
        """Whether it is known which sites there are, or that none can be asked."""

    @property
    def quiet(self) -> bool:
        """Whether nothing is left of it: no probe, no connection, no query, no command."""
        return all(site.quiet for site in (*self.sites, *self._gone))

    def configs(self) -> list[tuple[S, SiteConfig]]:
        """The sites with their configuration, which they may learn to be another one."""
        return [(site, site.config) for site in self.sites]

    def take(self, sites: Sequence[S], before: Sequence[tuple[S, SiteConfig]]) -> None:
        """Stand for these sites from now on; those of ``before`` that are left end their work."""
        old = [site for site, _ in before]
        if list(before) == [(site, site.config) for site in sites]:
            return
        self.sites = tuple(sites)
        self.log.info(
            "{source} has {sites}", source=self.name, sites=", ".join(site.id for site in sites)
        )
        for site in sites if self.running else ():
            if site not in old:
                site.startService()
        self.changed()
        self._gone = [site for site in self._gone if not site.quiet]
        for site in old:
            if site not in sites:
                site.retire()
                self._gone.append(site)

    def startService(self) -> None:
        """Ask in the background."""
        self.running = True
        for site in self.sites:
            site.startService()

    def stopService(self) -> Deferred[None]:
        """Fires when no connection is left."""
        self.running = False
        left = [site.stopService() for site in (*self.sites, *self._gone)]
        return DeferredList([*left, *self._end()]).addCallback(lambda _: None)

    def retire(self) -> Deferred[None]:
        """Stop looking, but finish what requests still ask."""
        self.running = False
        left = [site.retire() for site in self.sites]
        return DeferredList(left).addCallback(lambda _: None)

    def _end(self) -> list[Deferred[None]]:
        """End what belongs to no site of its own."""
        return []


@define(eq=False)
class OneCore(SiteSource[Site]):
    """A core of the configuration is one site."""

    site: Site = field(kw_only=True)

    def __attrs_post_init__(self) -> None:
        self.sites = (self.site,)

    @property
    def name(self) -> str:
        return self.site.id

    @property
    def settled(self) -> bool:
        return True
