"""An LMD and the sites that it stands for (docs/spec/lmd.md).

Its list of sites is read every two seconds and has the health of each of them. Before it was
read for the first time there is one site with the id ``lmd``, which waits.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from attrs import define, evolve, field
from twisted.internet.defer import CancelledError, Deferred, DeferredList

from monrest.base.values import Capabilities, Row
from monrest.config.sections import SiteConfig
from monrest.livestatus.core_errors import (
    ConnectError,
    HangingError,
    LivestatusError,
    NoHeaderError,
    RefusedError,
)
from monrest.livestatus.endpoints import AlternativeEndpoints
from monrest.livestatus.inbox import AnswerMemory
from monrest.livestatus.lql import build
from monrest.livestatus.pool import CoreRequest, Pool
from monrest.query.model import Pushed
from monrest.sites.capabilities import UNKNOWN, Program
from monrest.sites.health import SIGN_OF_LIFE, Breaker, pause_after
from monrest.sites.lmd import lmd_list as listing
from monrest.sites.lmd.joint_queries import JointQueries
from monrest.sites.lmd.lmd_list import LmdFacts
from monrest.sites.lmd.lmd_site import LmdSite
from monrest.sites.site import PROBE_TIMEOUT
from monrest.sites.source import SiteSource

if TYPE_CHECKING:
    from monrest.config.sections import LmdConfig

NAME = "lmd"
"""Id of the site that stands for an LMD of which nothing is known yet."""
INTERVAL = 2.0
"""Seconds between two looks at the list of sites."""
SOON = 0.3
"""The same while some site is not ready."""
GRACE = 0.6
"""Seconds for which no connection can be made before all sites count as down."""
LONGEST_PAUSE = 0.5
"""Seconds at most between two attempts to reach an LMD that is down."""
IDLE = 30.0
"""Seconds that a connection without work is kept; an LMD closes it after 60."""

_SITES = Pushed(table="sites", columns=listing.SITE_COLUMNS)
_PROGRAMS = Pushed(table="status", columns=listing.PROGRAM_COLUMNS)
_COLUMNS = Pushed(table="columns", columns=listing.COLUMN_COLUMNS)


@define(eq=False, kw_only=True)
class LmdSource(SiteSource[LmdSite]):
    """An LMD, or several of which one is asked."""

    reactor: Any
    config: LmdConfig
    memory: AnswerMemory
    addresses: tuple[SiteConfig, ...] = field(init=False)
    endpoint: AlternativeEndpoints = field(init=False)
    breaker: Breaker = field(init=False)
    queries: JointQueries = field(init=False)
    _run: int = field(init=False, default=0)
    """Counts the runs of the LMD that were seen."""
    _process: int = field(init=False, default=0)
    _counted: Mapping[str, float] = field(init=False, factory=dict)
    _version: tuple[str, int] = field(init=False, default=("", -1))
    _capabilities: Capabilities | None = field(init=False, default=None)
    _strange: Sequence[str] = field(init=False, default=())
    _asking: Deferred[list[Row]] | None = field(init=False, default=None)
    _hung: LivestatusError | None = field(init=False, default=None)
    _settled: bool = field(init=False, default=False)

    def __attrs_post_init__(self) -> None:
        config = self.config
        self.addresses = tuple(
            SiteConfig(
                id=NAME,
                name="LMD",
                address=address,
                connections=config.connections,
                timeout=config.timeout,
            )
            for address in config.addresses
        )
        self.endpoint = AlternativeEndpoints(self.reactor, self.addresses)
        self.breaker = Breaker(
            clock=self.reactor,
            probe=self._look,
            site=NAME,
            interval=INTERVAL,
            retry=lambda failures: min(LONGEST_PAUSE, pause_after(failures)),
            grace=GRACE,
            on_hang=self._hangs,
            on_change=self._follow,
        )
        pool = partial(
            Pool,
            clock=self.reactor,
            endpoint=lambda: self.endpoint,
            limit=config.connections,
            idle=IDLE,
            local=all(address.where().local for address in self.addresses),
            on_heard=self.breaker.hear,
        )
        self.queries = JointQueries(
            self.reactor, pool(on_lost=self._lost), pool(), on_lost=self._lost
        )
        self.sites = (LmdSite(self.reactor, self.addresses[0], source=self, memory=self.memory),)

    def _lost(self) -> None:
        """A connection ended: whether the LMD is still there shows in a moment."""
        now = self.reactor.seconds()
        self.breaker.failed(ConnectError("connection lost", momentary=True), now)

    def _hangs(self, error: LivestatusError) -> None:
        """Nothing waits for it any longer; the next address is tried, where there is one."""
        for site in self.sites:
            site.give_up(error)
        self.endpoint.skip()
        for pool in (self.queries.pool, self.queries.logs):
            pool.keep(0.0)
            pool.keep(IDLE)
        if self._asking is not None and len(self.addresses) > 1:
            self._hung = error
            self._asking.cancel()

    def _follow(self) -> None:
        for site in self.sites:
            site.follow()
        ready = all(site.breaker.ready for site in self.sites)
        self.breaker.interval = INTERVAL if ready or self.breaker.error else SOON

    async def _look(self) -> Program:
        rows = await self._rows(_SITES)
        programs = await self._rows(_PROGRAMS)
        # Another run of the LMD is another process, or has counters that have gone back.
        key, sent, version_at = map(
            listing.SITE_COLUMNS.index, ("key", "bytes_send", "lmd_version")
        )
        counted = {str(row[key]): row[sent] for row in rows if isinstance(row[sent], (int, float))}
        process = self.queries.pool.process
        back = any(counted.get(program, 0) < count for program, count in self._counted.items())
        if process != self._process or back:
            self._run += 1
        self._process, self._counted = process, counted
        version = (str(rows[0][version_at]) if rows else "", self._run)
        if self._capabilities is None or self._version != version:
            self._capabilities = listing.capabilities_of(await self._rows(_COLUMNS))
            self._version = version
        facts, strange = listing.facts_of(rows, programs, f"lmd{self._run}")
        if strange and strange != self._strange:
            self.log.warn("sites of the LMD whose ids cannot be used: {ids!r}", ids=strange)
        self._strange = strange
        self._take(facts)
        return Program(program_version=version[0], instances=(f"lmd{self._run}",))

    async def _rows(self, pushed: Pushed) -> list[Row]:
        asked = CoreRequest(build(pushed, UNKNOWN), len(pushed.columns), urgent=True)
        self._asking = self.queries.pool.query(asked, min(PROBE_TIMEOUT, self.config.timeout))
        try:
            return await self._asking
        except CancelledError:
            if self._hung is None:
                raise
            raise HangingError(SIGN_OF_LIFE) from None
        except NoHeaderError as error:
            raise RefusedError(400, error.text) from None
        finally:
            self._asking = self._hung = None

    def _take(self, listed: dict[str, LmdFacts]) -> None:
        self._settled = True
        assert self._capabilities is not None
        current, before = {site.id: site for site in self.sites}, self.configs()
        away = {fact.id for fact in listed.values() if not fact.up}
        for site in self.sites:
            # Sites behind another LMD are listed once that one was read.
            facts = site.facts
            if facts is not None and site.id not in listed and facts.parent in away:
                listed[site.id] = evolve(facts, status=2, last_error="its LMD has not read it yet")
        sites: list[LmdSite] = []
        for facts in listed.values():
            config = self._config(facts)
            old = current.get(facts.id)
            site = (
                old
                if old is not None and old.config == config
                else LmdSite(self.reactor, config, source=self, facts=facts, memory=self.memory)
            )
            program = facts.program
            site.learn(
                facts,
                evolve(
                    listing.behind(self._capabilities, icinga2=facts.icinga2),
                    program_version=program.program_version if program else "",
                    livestatus_version=program.livestatus_version if program else "",
                ),
            )
            sites.append(site)
        # An LMD without any site shall not count as one that answers.
        self.take(sites or [site for site in self.sites if site.facts is None], before)

    def _config(self, facts: LmdFacts) -> SiteConfig:
        own = self.config.own(facts.id)
        return evolve(
            self.addresses[0],
            id=facts.id,
            name=facts.name,
            section=facts.section,
            hidden=own.hidden if own else False,
            groups=own.groups if own else (),
            resource_file=own.resource_file if own else "",
        )

    @property
    def name(self) -> str:
        return "the LMD"

    @property
    def settled(self) -> bool:
        return self._settled or not self.running or self.breaker.error is not None

    @property
    def quiet(self) -> bool:
        pools = self.queries.pool.quiet and self.queries.logs.quiet
        return pools and super().quiet and not self.breaker.running

    def startService(self) -> None:
        super().startService()
        self.breaker.startService()

    def _end(self) -> list[Deferred[None]]:
        return [self.breaker.stopService(), self.queries.pool.stop(), self.queries.logs.stop()]

    def retire(self) -> Deferred[None]:
        left = DeferredList([self.breaker.retire(), super().retire()])
        for pool in (self.queries.pool, self.queries.logs):
            pool.retire()
        return left.addCallback(lambda _: None)
