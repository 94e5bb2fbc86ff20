"""What a daemon is made of, besides what serves HTTP: each part once, in the order of its life.

Parts are made from the configuration, opened before the reactor turns, set to work once it does,
given another configuration when it was read again, and stopped in the opposite order.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

from attrs import define, evolve, field
from twisted.application.service import IService
from twisted.internet.defer import DeferredList, maybeDeferred
from twisted.logger import Logger

from monrest import __version__
from monrest.accounts.contacts import Contacts
from monrest.accounts.keys import Keys
from monrest.accounts.passwords import Passwords
from monrest.accounts.sessions import Sessions
from monrest.accounts.slowdown import Slowdown
from monrest.accounts.user_endpoints import figures as figures_of_users
from monrest.accounts.users import Users
from monrest.api.endpoint import Context
from monrest.base.clock import WallClock
from monrest.base.concurrency import Threads, Turns
from monrest.base.metrics import Metrics
from monrest.base.spool import MOST_STORED, RowRoom, Spools
from monrest.base.values import Caller, Identity
from monrest.base.workers import Workers
from monrest.bp.commit import Commits
from monrest.bp.core_objects import Exporter
from monrest.bp.service import BusinessProcesses
from monrest.cluster.model import Own
from monrest.cluster.peers import Peers
from monrest.cluster.seal import key_of
from monrest.cluster.service import Cluster
from monrest.commands.lookups import existing
from monrest.config import Config, JobsConfig, LmdConfig, SiteConfig
from monrest.daemon.families import dispatch_of
from monrest.daemon.garbage import Garbage
from monrest.daemon.inherited import Inherited
from monrest.daemon.restart import Restarting
from monrest.downtimes.service import RecurringDowntimes
from monrest.jobs.service import DaemonNode, Jobs
from monrest.logs.cache import LogCache
from monrest.nodecontrol.service import NodeControl
from monrest.objectconfig.service import Staging
from monrest.panorama.service import Panorama
from monrest.reports.making import prepare
from monrest.reports.service import Owner, Reports
from monrest.reports.sheet import Sheet
from monrest.reports.smtp import Mailer, endpoint
from monrest.sites.registry import Registry
from monrest.store.database import Database
from monrest.store.database_health import DatabaseHealth
from monrest.store.duties import Duties
from monrest.store.shared_clock import SharedClock, clock_of
from monrest.web.api_site import ApiSite
from monrest.web.error_answers import describe

_THREADS = 4
_DATABASE_PATIENCE = 60.0
"""Seconds for which a start waits for a database that is away."""

_LAST_SECONDS = 4.0
"""How long a transaction may take once a daemon that stops has given up waiting for its clients."""


@define(eq=False, kw_only=True, repr=False)
class Parts:
    """All parts of a daemon, whose configuration is the file ``path``, if it has one.

    ``who`` says who a caller is by the configuration in force and ``owner`` as whom a report asks;
    ``site`` gives what serves HTTP.
    ``restart`` makes the process begin anew once it has stopped; None where that cannot be.
    ``inherited`` is what a parent has made, for the process of a worker.
    ``machine`` is the clock of this machine, ``wall`` the one by which all daemons go that share
    the database.
    """

    log: ClassVar[Logger] = Logger()

    reactor: Any
    machine: WallClock
    config: Config
    path: str
    who: Callable[[Caller], Awaitable[Identity]]
    owner: Owner
    site: Callable[[], ApiSite]
    restart: Callable[[], None] | None = None
    inherited: Inherited | None = None
    workers: Workers = field(init=False)
    wall: WallClock = field(init=False)
    log_wall: WallClock = field(init=False)
    registry: Registry = field(init=False)
    threads: Threads = field(init=False)
    sheets: Threads = field(init=False)
    garbage: Garbage = field(init=False)
    turns: Turns = field(init=False)
    spools: Spools = field(init=False)
    room: RowRoom = field(init=False)
    database: Database = field(init=False)
    health: DatabaseHealth = field(init=False)
    keys: Keys = field(init=False)
    sessions: Sessions = field(init=False)
    users: Users = field(init=False)
    passwords: Passwords = field(init=False)
    slowdown: Slowdown = field(init=False)
    contacts: Contacts = field(init=False)
    log_database: Database = field(init=False)
    logcache: LogCache = field(init=False)
    staging: Staging = field(init=False)
    jobs: Jobs = field(init=False)
    duties: Duties = field(init=False)
    downtimes: RecurringDowntimes = field(init=False)
    bp: BusinessProcesses = field(init=False)
    reports: Reports = field(init=False)
    cluster: Cluster = field(init=False)
    figures: Metrics = field(init=False)
    panorama: Panorama = field(init=False)
    nodecontrol: NodeControl = field(init=False)
    _context: Context = field(init=False)

    def __attrs_post_init__(self) -> None:
        clock, config = self.reactor, self.config
        folder = Path(config.server.var_dir)
        migrated = self.inherited is not None
        self.workers = workers = Workers() if self.inherited is None else self.inherited.workers
        self.registry = Registry(clock, self._sites(), lmd=self._lmd(), on_change=self._other_sites)
        self.threads = Threads(clock, _THREADS, "monrest")
        self.sheets = Threads(clock, 1, "sheets")
        self.turns = Turns(clock)
        self.spools = Spools(clock, folder / "spool", workers.share(MOST_STORED))
        self.room = RowRoom(clock)
        self._share_memory(config)
        self.garbage = Garbage(clock, self.room, self._serving)
        self.database = Database(
            clock, config.database.url, patience=_DATABASE_PATIENCE, migrated=migrated
        )
        self.health = DatabaseHealth(self.database, clock)
        self.wall = wall = clock_of(self.database, clock, self.machine)
        self.keys = Keys(self.database, clock, wall, config.auth, workers)
        self.sessions = Sessions(self.database, clock, wall, config.auth, config.names, workers)
        self.users = Users(self.database, clock, wall, config.auth, workers)
        self.passwords = Passwords(config.auth.htpasswd_file, self.threads, clock)
        self.slowdown = Slowdown(clock, workers)
        self.contacts = Contacts(self.registry, clock, workers=workers)
        self.figures = Metrics(clock, workers)
        self.figures.offer("sessions", self.sessions.figures)
        cached = config.logcache
        self.log_database, self.log_wall = self.database, wall
        if cached.url:
            self.log_database = Database(
                clock, cached.url, patience=_DATABASE_PATIENCE, migrated=migrated
            )
            self.log_wall = clock_of(self.log_database, clock, self.machine)
        self.logcache = LogCache(
            *(clock, self.log_wall, self.log_database, cached, self.registry.direct),
            duty=self._updates_logs,
        )
        self.staging = Staging(clock, wall, self.database, folder)
        self.jobs = Jobs(
            database=self.database,
            clock=clock,
            wall=wall,
            threads=self.sheets,
            config=self._jobs(),
            describe=describe,
            who=self.who,
            duty=lambda: self.cluster.does("old jobs"),
            workers=workers,
        )
        self.duties = Duties(self.database, clock, "")
        restarting = Restarting(
            reactor=clock,
            threads=self.threads,
            jobs=self.jobs,
            again=self.restart,
            path=self.path,
            config=lambda: self.config,
            site=self.site,
        )
        self.cluster = Cluster(
            database=self.database,
            health=self.health,
            clock=clock,
            wall=wall,
            duties=self.duties,
            peers=Peers(reactor=clock, names=config.names),
            config=config.cluster,
            drain=config.server.drain_timeout,
            check=restarting.check,
            leave=restarting.begin,
            workers=workers,
        )
        self.downtimes = RecurringDowntimes(
            database=self.database,
            clock=clock,
            wall=wall,
            duties=self.duties,
            registry=self.registry,
            existing=existing,
            zone=config.display.zone(),
        )
        self.bp = BusinessProcesses(
            database=self.database,
            duties=self.duties,
            clock=clock,
            wall=wall,
            sites=self.registry,
            threads=self.threads,
            config=config.bp,
            app=config.names.app,
            zone=config.display.zone(),
            exporter=Exporter(reactor=clock, wall=wall, threads=self.threads, var_dir=folder),
            commits=Commits(reactor=clock, threads=self.threads, folder=folder / "bp"),
            changed=partial(self.figures.expire, "business processes"),
        )

        self.reports = Reports(
            database=self.database,
            clock=clock,
            wall=wall,
            threads=self.threads,
            duties=self.duties,
            jobs=self.jobs,
            mailer=Mailer(clock=clock, threads=self.threads, connect=endpoint(clock)),
            config=config.reports,
            mail=config.mail,
            zone=config.display.zone(),
            prepare=self._prepare,
            owner=self.owner,
        )
        self.figures.offer("business processes", self.bp.statistics)
        self.figures.offer("users", self._count_users)
        self.panorama = Panorama(clock, wall, self.database, self.threads, config.panorama)
        self.nodecontrol = NodeControl(
            *(clock, wall, self.database, self.threads, self.duties, self.registry),
            config.nodecontrol,
            folder=config.server.var_dir,
            ended=self.jobs.ending,
            lease=self.jobs.lease,
            zone=config.display.zone(),
        )

    async def _count_users(self) -> dict[str, float]:
        """Figures of the users that are known under the configuration in force."""
        return await figures_of_users(
            *(self.users, self.contacts, self.passwords, self.registry.sites, self.config.auth)
        )

    async def _prepare(self, *asked: Any) -> Sheet:
        """Make what a report says under the configuration in force."""
        return await prepare(self._context, self.logcache, self.reports.templates, *asked)

    def _share_memory(self, config: Config) -> None:
        """Share the memory out by ``config``."""
        budget = config.server.memory
        self.spools.configure(budget)
        self.room.configure(budget)

    def _updates_logs(self) -> bool:
        """Whether it is this process that updates the log cache."""
        if not self.log_database.url.startswith("sqlite:"):
            return self.cluster.does("log cache")
        # A file is each node's own.
        return self.workers.count == 1 or self.cluster.does(f"log cache {self.cluster.own.id}")

    def _sites(self) -> list[SiteConfig]:
        """The sites with this process's part of the connections that a core may have."""
        share = self.workers.share
        return [evolve(one, connections=share(one.connections)) for one in self.config.sites]

    def _lmd(self) -> LmdConfig:
        """The LMD with this process's part of the connections."""
        lmd = self.config.lmd
        return evolve(lmd, connections=self.workers.share(lmd.connections))

    def _jobs(self) -> JobsConfig:
        """The limits of background jobs for this process."""
        config, share = self.config.jobs, self.workers.share
        return evolve(config, concurrent=share(config.concurrent), queue=share(config.queue))

    def _serving(self) -> bool:
        """Whether some request is being answered."""
        return any(channel.requests for channel in self.site().channels)

    def _databases(self) -> tuple[Database, ...]:
        """The front end's own, and that of the log cache where it is another one."""
        return tuple(dict.fromkeys((self.database, self.log_database)))

    def _clocks(self) -> tuple[SharedClock, ...]:
        """Those of the databases that have one of their own."""
        found = dict.fromkeys((self.wall, self.log_wall))
        return tuple(one for one in found if isinstance(one, SharedClock))

    def _state(self) -> tuple[IService, ...]:
        """What works on the database by itself."""
        return (self.keys, self.sessions, self.users, self.staging, self.jobs, self.panorama)

    def _periodic(self) -> tuple[IService, ...]:
        """What is done from time to time."""
        return (self.logcache, self.bp, self.downtimes, self.nodecontrol, self.reports)

    def open(self, key: str) -> None:
        """Open everything, which may block and fail; the reactor does not turn yet.

        ``key`` is the secret key, which the nodes of a cluster share.
        """
        if self.inherited is None:
            node = process = DaemonNode.open(Path(self.config.server.var_dir))
        else:
            node = self.inherited.node
            process = node.of_worker(self.workers.number)
        self.jobs.identify(process)
        for database in self._databases():
            database.startService()
        for clock in self._clocks():
            clock.startService()
        self.threads.startService()
        self.sheets.startService()
        self.spools.startService()
        self.reports.load()
        for part in self._state():
            part.startService()
        # Instances that federate know each other by it, also after one of them began anew.
        self.registry.identify(f"{node.id:x}")
        self.registry.startService()
        self.duties.identify(str(process.id))
        self.logcache.identify(f"{process.id}:{process.pid}")
        self.cluster.identify(Own.of(node, __version__))
        self.cluster.peers.configure(self.config.names, key_of(key))

    def begin(self) -> None:
        """Begin what is done from time to time; the reactor turns."""
        self.health.startService()
        for part in self._periodic():
            part.startService()
        self.jobs.look_after()
        self.duties.startService()
        self.cluster.startService()

    async def configure(self, config: Config, key: str) -> None:
        """Go on with another configuration and secret key."""
        zone = config.display.zone()
        self.config = config
        self.registry.configure(self._sites(), self._lmd())
        await self.logcache.configure(config.logcache, self.registry.direct)
        self._share_memory(config)
        self.keys.configure(config.auth)
        self.sessions.configure(config.auth, config.names)
        self.users.configure(config.auth)
        self.passwords = Passwords(config.auth.htpasswd_file, self.threads, self.reactor)
        self.cluster.peers.configure(config.names, key_of(key))
        self.cluster.configure(config.cluster, config.server.drain_timeout)
        self.jobs.configure(self._jobs())
        self.downtimes.configure(zone)
        await self.reports.configure(config.reports, config.mail, zone)
        self.panorama.configure(config.panorama)
        self.nodecontrol.configure(config.nodecontrol, zone)
        await self.bp.configure(config.bp, config.names.app, zone)

    def _other_sites(self) -> None:
        """An LMD or another instance has other sites than before."""
        self.logcache.follow(self.registry.direct)

    def hurry(self) -> None:
        """Have everything that is left end soon, also with a database that hangs."""
        for database in self._databases():
            database.hurry(_LAST_SECONDS)

    async def stop(self) -> None:
        """Stop what works by itself, then what it works on; what fails is logged."""
        # Together: each of them may have to wait until the database is given up.
        parts = (self.cluster, self.health, *self._periodic(), *self._state(), *self._clocks())
        stops = [maybeDeferred(part.stopService) for part in parts]
        for done, result in await DeferredList(stops, consumeErrors=True):
            if not done:
                self.log.failure("what is left was not stored", result)
        await self.duties.stopService()
        await DeferredList([database.stopService() for database in self._databases()])
        await self.registry.stopService()
        await self.spools.stopService()
        await self.sheets.stopService()
        self.garbage.stopService()

    def context(self) -> Context:
        """What handlers get while this configuration is in force."""
        config = self.config
        self._context = Context(
            dispatch=dispatch_of(config.names.app, self),
            clock=self.turns,
            wall=self.wall,
            sites=self.registry,
            instance=self.registry.instance,
            config=config,
            names=config.names,
            zone=config.display.zone(),
            chosen_zone=self.users.zone_of,
            contacts=self.contacts,
            reactor=self.reactor,
            threads=self.threads,
            spools=self.spools,
            room=self.room,
        )
        return self._context
