"""The parts of a daemon without HTTP: what all families share, and the families.

Each part is made once, from the configuration. All are opened before the reactor turns, started
once it does, and given another configuration when it was read again, in one order; they are stopped
in the opposite one. What belongs to one family is declared there (``monrest.daemon.families``).
"""

from __future__ import annotations

import platform
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, ClassVar

from attrs import define, evolve, field
from twisted.application.service import Service
from twisted.internet.defer import Deferred, DeferredList, maybeDeferred
from twisted.logger import Logger

from monrest import __version__
from monrest.accounts.family import Accounts
from monrest.api.endpoint import Context
from monrest.api.family import Common, Family, Life
from monrest.base.answer_file import MOST_STORED, AnswerFiles
from monrest.base.clock import WallClock
from monrest.base.concurrency import Threads
from monrest.base.daemon_node import DaemonNode
from monrest.base.meters import METERS, Meters, Sample
from monrest.base.metrics import Metrics
from monrest.base.room import RowRoom
from monrest.base.workers import Workers
from monrest.cluster.service import Cluster
from monrest.config import Config, LmdConfig, SiteConfig
from monrest.daemon.families import FAMILIES, dispatch_of
from monrest.daemon.garbage import Garbage
from monrest.daemon.restart import Restarting
from monrest.daemon.worker import Inherited
from monrest.livestatus.inbox import AnswerMemory
from monrest.rows.statistics import Estate
from monrest.sites.registry import Registry
from monrest.store.database import Database
from monrest.store.database_health import DatabaseHealth
from monrest.store.duties import Duties
from monrest.store.shared_clock import SharedClock, clock_of
from monrest.web.api_site import ApiSite

_THREADS = 4
_ANSWERS = 4
"""Large answers that are made at a time."""
_DATABASE_PATIENCE = 60.0
"""Seconds for which a start waits for a database that is away."""

_LAST_SECONDS = 4.0
"""Seconds for a transaction once a stopping daemon has given up waiting for its clients."""


@define(eq=False, kw_only=True, repr=False)
class Parts(Common):
    """All parts of a daemon.

    ``site`` returns what serves HTTP. ``again`` makes the process begin anew once it has stopped;
    None where that cannot be. ``inherited`` is what a parent has made, for the process of a worker.
    """

    log: ClassVar[Logger] = Logger()

    site: Callable[[], ApiSite]
    again: Callable[[], None] | None = None
    inherited: Inherited | None = None
    families: Sequence[Family] = FAMILIES
    garbage: Garbage = field(init=False)
    _databases: list[Database] = field(factory=list, init=False)
    _clocks: list[SharedClock] = field(factory=list, init=False)

    def __attrs_post_init__(self) -> None:
        clock, config = self.reactor, self.config
        self.folder = Path(config.server.var_dir)
        self.workers = workers = Workers() if self.inherited is None else self.inherited.workers
        self.threads = Threads(clock, _THREADS, "monrest")
        self.answers = Threads(clock, _ANSWERS, "answers")
        self.files = AnswerFiles(self.folder / "spool", workers.share(MOST_STORED))
        self.room = RowRoom(clock)
        self.room.configure(config.server.memory)
        self.registry = Registry(
            *(clock, self._sites()),
            memory=AnswerMemory(self.room, self.files, self.answers),
            lmd=self._lmd(),
        )
        self.garbage = Garbage(clock, self.room, self._serving)
        self.connect = self._connect
        self.database, self.wall = self._connect(config.database.url)
        self.health = DatabaseHealth(self.database, clock)
        self.duties = Duties(self.database, clock, "")
        self.figures = Metrics()
        self.meters = Meters(clock, workers)
        self.meters.offer(_process_measured)
        self.meters.offer(self.registry.measured)
        self.meters.offer(self.garbage.measured)
        self.meters.offer(Estate(lambda: self.registry.sites).measured, of_all=True)
        restarting = Restarting(common=self, again=self.again, site=self.site)
        self.may_restart, self.restart = restarting.check, restarting.begin
        self.does = lambda duty: self.the(Cluster).does(duty)
        for family in self.families:
            if family.life is not None:
                service = family.life.service(self)
                self._services[type(service)] = service

    def _connect(self, url: str) -> tuple[Database, WallClock]:
        migrated = self.inherited is not None
        database = Database(self.reactor, url, patience=_DATABASE_PATIENCE, migrated=migrated)
        wall = clock_of(database, self.reactor, self.machine)
        self._databases.append(database)
        if isinstance(wall, SharedClock):
            self._clocks.append(wall)
        return database, wall

    def _sites(self) -> list[SiteConfig]:
        """The sites with this process's part of the connections that a core may have."""
        share = self.workers.share
        return [evolve(site, connections=share(site.connections)) for site in self.config.sites]

    def _lmd(self) -> LmdConfig:
        """The LMD with this process's part of the connections."""
        lmd = self.config.lmd
        return evolve(lmd, connections=self.workers.share(lmd.connections))

    def _serving(self) -> bool:
        """Whether some request is being answered."""
        return any(channel.requests for channel in self.site().channels)

    def laden(self) -> bool:
        """Whether a large answer is made here, or waits for its reader."""
        return self.room.held > 0 or self.files.stored > 0

    def _lives(self) -> Iterator[tuple[Life[Any], Service]]:
        """The services of families, in the order of the registry."""
        lives = [family.life for family in self.families if family.life is not None]
        return zip(lives, self._services.values(), strict=True)

    def open(self, key: str) -> None:
        """Open everything, which may block and fail; the reactor does not turn yet."""
        self.key = key
        if self.inherited is None:
            self.node = self.process = DaemonNode.open(self.folder)
        else:
            self.node = self.inherited.node
            self.process = self.node.of_worker(self.workers.number)
        self.files.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        for part in (*self._databases, *self._clocks, self.threads, self.answers):
            part.startService()
        # Instances that federate know each other by it, also after one of them began anew.
        self.registry.identify(f"{self.node.id:x}")
        self.registry.startService()
        self.duties.identify(str(self.process.id))
        for life, service in self._lives():
            life.open(self, service)

    def begin(self) -> None:
        """Begin what is done by itself; the reactor turns."""
        self.health.startService()
        for service in self._services.values():
            service.startService()
        # They look at once, and take what families want by now.
        self.duties.startService()

    async def configure(self, config: Config, key: str) -> None:
        self.config, self.key = config, key
        self.registry.configure(self._sites(), self._lmd())
        self.room.configure(config.server.memory)
        for life, service in self._lives():
            if (done := life.configure(self, service)) is not None:
                await done

    async def leave(self, seconds: float) -> None:
        """Let families begin nothing new; running work may continue for ``seconds``."""
        left = [life.leave(service, seconds) for life, service in reversed([*self._lives()])]
        await self._ended(
            Deferred.fromCoroutine(stopping) for stopping in left if stopping is not None
        )

    def hurry(self) -> None:
        """End all remaining work soon, also with a database that hangs."""
        for database in self._databases:
            database.hurry(_LAST_SECONDS)

    async def stop(self) -> None:
        """Stop what works by itself, then what it works on; what fails is logged."""
        # Together: each of them may have to wait until the database is given up.
        parts = (*reversed(self._services.values()), self.health, *self._clocks)
        await self._ended(maybeDeferred(part.stopService) for part in parts)
        await self.duties.stopService()
        await DeferredList([database.stopService() for database in self._databases])
        await self.registry.stopService()
        await self.answers.stopService()
        self.garbage.stopService()

    async def _ended(self, stops: Iterable[Deferred[None]]) -> None:
        """Wait for all; what fails is logged."""
        for done, result in await DeferredList([*stops], consumeErrors=True):
            if not done:
                self.log.failure("what is left was not stored", result)

    def renew(self) -> Context:
        """The context of handlers while this configuration is in force."""
        config = self.config
        accounts = self.the(Accounts)
        self.context = Context(
            dispatch=dispatch_of(
                config.names.app, self, self.families, public_docs=config.server.public_docs
            ),
            clock=self.reactor,
            wall=self.wall,
            sites=self.registry,
            instance=self.registry.instance,
            config=config,
            names=config.names,
            zone=config.display.zone(),
            chosen_zone=accounts.users.zone_of,
            contacts=accounts.contacts,
            reactor=self.reactor,
            threads=self.threads,
            memory=self.registry.memory,
        )
        return self.context


def _process_measured() -> Iterator[Sample]:
    """The version, and the processor time, memory and files of this process."""
    # Many daemons are asked by no Prometheus.
    from prometheus_client import ProcessCollector

    names = {meter.name for meter in METERS}
    yield "build_info", (__version__, platform.python_version()), 1
    for family in ProcessCollector(registry=None).collect():
        for sample in family.samples:
            if sample.name in names:
                yield sample.name, (), sample.value
