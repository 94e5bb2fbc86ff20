"""Sources of sites: a core of the configuration, another instance, an LMD.

A kind of core that has more than one site, or another protocol, is one more of them
(docs/architecture.md, "A new kind of core").
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Generic, TypeVar

from attrs import define, field, frozen
from twisted.application.service import Service
from twisted.internet.defer import Deferred, DeferredList, succeed
from twisted.logger import Logger

from monrest.config.sections import SiteConfig
from monrest.livestatus.core_errors import ConnectError, LivestatusError, StoppedError
from monrest.sites.capabilities import Program
from monrest.sites.health import INTERVAL, Breaker
from monrest.sites.site import Site
from monrest.sites.transport import BehindRelayError

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
        """Its name in the log."""

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


STARTS = 2.0
"""Seconds for which a site that its relay has not read yet is waited for."""


@frozen(kw_only=True)
class SiteReport:
    """The report of a relay on one site: ``program`` is the core there if the site is up.

    ``reason`` is why it is not; ``begins``: that will be known in a moment.
    """

    program: Program | None = None
    reason: str = ""
    begins: bool = False


@define(eq=False)
class FollowingBreaker(Breaker):
    """The health of a site as its relay reports it; ``leader`` is that of the relay itself."""

    leader: Breaker = field(kw_only=True)
    _beginning: float | None = field(init=False, default=None)
    """Since when the relay reports that it begins with the site."""

    def startService(self) -> None:
        """Wait for what the relay reports."""
        Service.startService(self)

    def stopService(self) -> Deferred[None]:
        """Fail what waits."""
        Service.stopService(self)
        self._end_waiting(StoppedError())
        return succeed(None)

    def retire(self) -> Deferred[None]:
        return self.stopService()

    def failed(self, error: LivestatusError, sent: float) -> None:
        """See ``Breaker``; the relay is probed after an error of this site alone."""
        if isinstance(error, BehindRelayError):
            self.leader.suspect()
        else:
            self.leader.failed(error, sent)

    def hear(self) -> None:
        self.leader.hear()

    def suspect(self) -> None:
        self.leader.suspect()

    def slow(self) -> None:
        self.leader.slow()

    def probed(self) -> Deferred[None]:
        return self.leader.probed()

    async def program_now(self) -> Program | None:
        await self.leader.program_now()
        return self.health.program if self.ready and self.running else None

    def follow(self, report: SiteReport) -> None:
        """Take over how the relay is, and what it reports of the site."""
        leader = self.leader
        if leader.error is not None:
            self._down(leader.error)
        elif leader.missed is not None:
            if self.error is None:
                self.missed = leader.missed
        elif leader.health.state == "up":
            self._follow_site(report)

    def _follow_site(self, report: SiteReport) -> None:
        now = self.clock.seconds()
        if report.program is not None:
            self._beginning, self._started = None, self.leader._started
            self._up(report.program)
        elif report.begins and self._beginning is None:
            self._beginning = now
            if self.error is None:
                self.missed = ConnectError(report.reason, momentary=True)
        elif report.begins and self._beginning is not None and now - self._beginning < STARTS:
            return
        else:
            self._beginning = self._beginning if report.begins else None
            if self.error is None or self.error.reason != report.reason:
                self._down(BehindRelayError(report.reason))


@define(eq=False)
class RelayedSite(Site):
    """A site behind an LMD or another instance."""

    source: RelaySource[Any] = field(kw_only=True)

    def _new_breaker(self, on_hang: Callable[[LivestatusError], None]) -> Breaker:
        return FollowingBreaker(
            clock=self.reactor,
            probe=self._probe,
            site=self.config.id,
            on_hang=on_hang,
            leader=self.source.breaker,
        )

    def report(self) -> SiteReport:
        """The last report of the relay on it."""
        raise NotImplementedError

    def follow(self) -> None:
        assert isinstance(self.breaker, FollowingBreaker)
        self.breaker.follow(self.report())


R = TypeVar("R", bound=RelayedSite)


@define(eq=False)
class RelaySource(SiteSource[R]):
    """An LMD or another instance, which asks any number of cores; ``breaker`` looks at its list."""

    interval: ClassVar[float] = INTERVAL
    """Seconds between two looks."""

    breaker: Breaker = field(init=False)

    @property
    def settled(self) -> bool:
        return self.breaker.health.state != "pending" or not self.running

    @property
    def quiet(self) -> bool:
        return super().quiet and not self.breaker.running

    def _follow(self) -> None:
        for site in self.sites:
            site.follow()
        ready = all(site.breaker.ready for site in self.sites)
        self.breaker.interval = self.interval if ready or self.breaker.error else self.soon()

    def soon(self) -> float:
        """The seconds between two looks while some site is not ready.

        As many as it is down already: one that was away for a moment is seen soon.
        """
        now = self.breaker.clock.seconds()
        down = (now - site.health.since for site in self.sites if not site.breaker.ready)
        return min(self.interval, max(1.0, min(down)))

    def _hangs(self, error: LivestatusError) -> None:
        """Nothing waits for it any longer."""
        for site in self.sites:
            site.give_up(error)

    def startService(self) -> None:
        super().startService()
        self.breaker.startService()

    def _end(self) -> list[Deferred[None]]:
        return [self.breaker.stopService()]

    def retire(self) -> Deferred[None]:
        # Requests may wait for its first answer.
        return self.breaker.retire().addCallback(lambda _: super(RelaySource, self).retire())


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
