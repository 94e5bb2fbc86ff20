"""The composition root: builds every part from a configuration, starts, reloads and stops them.

The only module that knows all rooms. Whatever may fail does so in ``startService``, before the
reactor turns, so that a start that went wrong ends the process with a message and a status.
"""

from __future__ import annotations

import gc
import signal
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

from attrs import define, field
from twisted.application.service import IService, Service
from twisted.internet.defer import Deferred, DeferredList, maybeDeferred
from twisted.internet.error import CannotListenError
from twisted.internet.interfaces import IListeningPort
from twisted.logger import ILogObserver, Logger
from twisted.python.failure import Failure

from monrest import __version__
from monrest.audit import audit
from monrest.auth.authenticate import Authenticator
from monrest.auth.contacts import Contacts
from monrest.auth.keys import Keys
from monrest.auth.passwords import Passwords
from monrest.auth.proxies import Proxies
from monrest.auth.secret import SecretKeyError, read_or_create
from monrest.auth.sessions import Sessions
from monrest.auth.slowdown import Slowdown
from monrest.auth.users import Users
from monrest.concurrency import Threads
from monrest.config import Config, ConfigError, load
from monrest.downtimes.service import RecurringDowntimes
from monrest.jobs.service import Jobs
from monrest.listeners import StartError, bind, prepare_var_dir, spelled, told
from monrest.log import LineObserver
from monrest.logs.cache import LogCache
from monrest.objectconfig.staging import Staging
from monrest.reports.record import Report
from monrest.reports.service import Reports
from monrest.reports.smtp import Mailer, endpoint
from monrest.resources.declare import Context
from monrest.resources.dispatch import dispatch
from monrest.resources.lookups import existing
from monrest.resources.registry import router
from monrest.resources.reportmaking import prepare
from monrest.sites.registry import Registry
from monrest.store.database import Database, StoreError
from monrest.store.duties import Duties
from monrest.systemd import Notifier, Watchdog, watchdog_interval
from monrest.values import Answer, Caller, Identity, RestRequest
from monrest.web.app import Api
from monrest.web.errors import describe
from monrest.web.front import FrontResource
from monrest.web.respond import Responder
from monrest.web.site import ApiSite

_DAEMON = "(daemon)"
"""Who reads the configuration again, as far as the audit log can tell."""
_THREADS = 4
_COLLECT_AFTER = (100_000, 50, 50)


def build(config: Config, reactor: Any, **parts: Any) -> Daemon:
    """Make the root service for ``config``; ``parts`` are further fields of ``Daemon``."""
    return Daemon(config=config, reactor=reactor, **parts)


@define(eq=False, kw_only=True, repr=False)
class Daemon(Service):
    """The root service.

    ``path`` is the configuration file, empty when there is none to read again. ``core`` is the
    embedded core of the demo, started before and stopped after everything that asks it.
    ``on_ready`` gets the address and the secret key once requests are answered, ``on_stopped``
    is called when nothing is left, also after a start that failed.
    """

    log: ClassVar[Logger] = Logger()

    reactor: Any
    config: Config
    path: str = ""
    observer: LineObserver | None = None
    notifier: Notifier = field(factory=Notifier.from_environment)
    core: IService | None = None
    on_ready: Callable[[str, str], None] | None = None
    on_stopped: Callable[[], None] | None = None
    registry: Registry = field(init=False)
    database: Database = field(init=False)
    keys: Keys = field(init=False)
    sessions: Sessions = field(init=False)
    users: Users = field(init=False)
    slowdown: Slowdown = field(init=False)
    contacts: Contacts = field(init=False)
    log_database: Database = field(init=False)
    logcache: LogCache = field(init=False)
    staging: Staging = field(init=False)
    threads: Threads = field(init=False)
    jobs: Jobs = field(init=False)
    duties: Duties = field(init=False)
    downtimes: RecurringDowntimes = field(init=False)
    reports: Reports = field(init=False)
    site: ApiSite = field(init=False)
    ports: list[IListeningPort] = field(factory=list, init=False)
    _started: float = field(default=0.0, init=False)
    _key: str = field(default="", init=False, repr=False)
    _authenticator: Authenticator = field(init=False)
    _watchdog: Watchdog | None = field(default=None, init=False)
    _reloading: Deferred[None] | None = field(default=None, init=False)
    _again: bool = field(default=False, init=False)

    def __attrs_post_init__(self) -> None:
        self.registry = Registry(self.reactor, self.config.sites)
        self.threads = Threads(self.reactor, _THREADS, "monrest")
        auth = self.config.auth
        self.database = Database(self.reactor, self.config.database.url)
        self.keys = Keys(self.database, self.reactor)
        self.sessions = Sessions(self.database, self.reactor, auth, self.config.names)
        self.users, self.slowdown = Users(self.database, self.reactor, auth), Slowdown(self.reactor)
        self.contacts = Contacts(self.registry, self.reactor)
        cached = self.config.logcache
        self.log_database = Database(self.reactor, cached.url) if cached.url else self.database
        self.logcache = LogCache(self.reactor, self.log_database, cached, self.registry.sites)
        self.jobs = Jobs(
            database=self.database,
            clock=self.reactor,
            threads=self.threads,
            config=self.config.jobs,
            folder=Path(self.config.server.var_dir),
            describe=describe,
            who=self._who,
        )
        self.staging = Staging(self.reactor, self.database, Path(self.config.server.var_dir))
        self.duties = Duties(self.database, self.reactor, "")
        self.downtimes = RecurringDowntimes(
            database=self.database,
            clock=self.reactor,
            duties=self.duties,
            registry=self.registry,
            existing=existing,
            zone=self.config.display.zone(),
        )
        self.reports = Reports(
            database=self.database,
            clock=self.reactor,
            threads=self.threads,
            duties=self.duties,
            jobs=self.jobs,
            mailer=Mailer(clock=self.reactor, threads=self.threads, connect=endpoint(self.reactor)),
            config=self.config.reports,
            mail=self.config.mail,
            zone=self.config.display.zone(),
        )

    def setServiceParent(self, parent: Any) -> None:
        """Join the application and take over its log lines."""
        super().setServiceParent(parent)
        if self.observer is not None:
            parent.setComponent(ILogObserver, self.observer)

    # ---------------------------------------------------------------- start

    def startService(self) -> None:
        """Start everything; ends the process with a message when something is in the way."""
        super().startService()
        try:
            self._start()
        except BaseException as error:
            if self.on_stopped is not None:
                self.on_stopped()
            if isinstance(
                error, (StartError, SecretKeyError, StoreError, CannotListenError, OSError)
            ):
                raise SystemExit(f"monrest: {told(error)}") from None
            raise

    def _start(self) -> None:
        self._started = self.reactor.seconds()
        prepare_var_dir(Path(self.config.server.var_dir))
        self._key = read_or_create(Path(self.config.auth.secret_key_file))
        for database in self._databases():
            database.startService()
        if self.core is not None:
            self.core.startService()
        self.threads.startService()
        self.registry.startService()
        for part in self._state():
            part.startService()
        self.duties.owner = str(self.jobs.node.id)
        server = self.config.server
        self.site = ApiSite(
            self._resource(self.config, self._key), server, self.config.names, self.reactor
        )
        if self.observer is not None:
            self.site.access_line = self.observer.access
        for text in server.listen:
            self.ports.append(bind(self.reactor, text, self.site))
        self.reactor.callWhenRunning(self._run)

    def _state(self) -> tuple[IService, ...]:
        """What works on the database by itself."""
        return (self.keys, self.sessions, self.users, self.staging, self.jobs)

    def _databases(self) -> tuple[Database, ...]:
        """The front end's own, and that of the log cache where it is another one."""
        return tuple(dict.fromkeys((self.database, self.log_database)))

    def _run(self) -> None:
        """Report readiness; the reactor turns now and twistd's own signal handlers are set."""
        self.logcache.startService()
        signal.signal(signal.SIGHUP, lambda *_: self.reactor.callFromThread(self.reload))
        if interval := watchdog_interval():
            self._watchdog = Watchdog(self.reactor, self.notifier, interval)
            self._watchdog.start()
        # What was built so far stays: keep it out of every collection, and collect rarely,
        # because parsing rows makes millions of small objects and no cycles.
        gc.collect()
        gc.freeze()
        gc.set_threshold(*_COLLECT_AFTER)
        self.jobs.look_after()
        self.downtimes.startService()
        self.reports.startService()
        self.duties.startService()
        addresses = [spelled(port.getHost()) for port in self.ports]
        self.log.info("listening on {addresses}", addresses=", ".join(addresses))
        self.notifier.ready()
        self.notifier.status(f"{len(self.config.sites)} sites configured")
        if self.on_ready is not None:
            self.on_ready(f"http://{addresses[0]}{self.config.names.root}", self._key)

    async def _who(self, caller: Caller) -> Identity:
        """Say who a caller is by the configuration that is in force now."""
        return await self._authenticator.authenticate(caller)

    async def _owner(self, report: Report) -> Identity:
        """Say as whom a report asks: its owner, as far as he went when he wrote it."""
        limit = None if report.limit is None else frozenset(report.limit)
        return await self._authenticator.of_user(report.owner, limit)

    def _resource(self, config: Config, key: str) -> FrontResource:
        """Make everything that one generation of the configuration needs to serve requests."""
        passwords = Passwords(config.auth.htpasswd_file, self.threads, self.reactor)
        context = Context(
            clock=self.reactor,
            sites=self.registry,
            config=config,
            names=config.names,
            zone=config.display.zone(),
            started=self._started,
            version=__version__,
            config_path=self.path,
            database=self.database,
            keys=self.keys,
            sessions=self.sessions,
            users=self.users,
            contacts=self.contacts,
            passwords=passwords,
            slowdown=self.slowdown,
            logcache=self.logcache,
            staging=self.staging,
            threads=self.threads,
            jobs=self.jobs,
            reports=self.reports,
        )

        async def answer(request: RestRequest) -> Answer:
            return await dispatch(context, request)

        self._authenticator = Authenticator(
            config=config.auth,
            names=config.names,
            secret_key=key,
            keys=self.keys,
            sessions=self.sessions,
            users=self.users,
            passwords=passwords,
            slowdown=self.slowdown,
            contacts=self.contacts,
        )
        self.reports.prepare = partial(prepare, context)
        self.reports.owner = self._owner
        routes = router(config.names.app)
        return Api(
            server=config.server,
            names=config.names,
            authenticator=self._authenticator,
            proxies=Proxies.of(config.auth.trusted_proxies),
            dispatch=answer,
            allowed=routes.allowed,
            public=routes.public,
            responder=Responder(self.reactor, self.threads),
            clock=self.reactor,
        ).resource()

    # ---------------------------------------------------------------- reload

    def reload(self) -> None:
        """Read the configuration again and put it in force (SIGHUP); one at a time."""
        if not self.running:
            return
        if self._reloading is not None:
            self._again = True
            return
        self._reloading = Deferred.fromCoroutine(self._reload())
        self._reloading.addErrback(lambda failure: self.log.failure("reload failed", failure))
        self._reloading.addBoth(self._reloaded)

    def _reloaded(self, _: object) -> None:
        self._reloading = None
        self.notifier.ready()
        if self._again:
            self._again = False
            self.reload()

    async def _reload(self) -> None:
        self.notifier.reloading()
        if not self.path:
            self.log.warn("there is no configuration file to read again")
            return
        try:
            config, key = await self.threads.run(lambda: _read_again(self.path))
        except ConfigError as error:
            self._refuse(error.problems)
            return
        except (SecretKeyError, OSError) as error:
            self._refuse([f"auth.secret_key_file: {error}"])
            return
        if problems := fixed_while_running(self.config, config):
            self._refuse(problems)
            return
        self.registry.reconfigure(config.sites)
        await self.logcache.reconfigure(config.logcache, self.registry.sites)
        self.sessions.config = self.users.config = config.auth
        self.jobs.reconfigure(config.jobs)
        self.downtimes.zone = config.display.zone()
        self.reports.reconfigure(config.reports, config.mail, config.display.zone())
        self.sessions.names = config.names
        self.site.serve(self._resource(config, key), config.server, config.names)
        self.config, self._key = config, key
        self.notifier.status(f"{len(config.sites)} sites configured")
        self.log.info("configuration read again: {count} sites", count=len(config.sites))
        audit(_DAEMON, None, "configuration reload", target=self.path)

    def _refuse(self, problems: Sequence[str]) -> None:
        for problem in problems:
            self.log.warn("configuration not read again: {problem}", problem=problem)
        self.log.warn("the old configuration stays in force")
        audit(_DAEMON, None, "configuration reload", target=self.path, result="refused")

    # ---------------------------------------------------------------- stop

    def stopService(self) -> Deferred[None]:
        """Stop in order, each step waited for; running requests finish up to the drain limit."""
        super().stopService()
        return Deferred.fromCoroutine(self._stop()).addBoth(self._stopped)

    async def _stop(self) -> None:
        self.notifier.stopping()
        ports, self.ports = self.ports, []
        await DeferredList(
            [maybeDeferred(port.stopListening) for port in ports], consumeErrors=True
        )
        self.reports.leave()
        drain_timeout = self.config.server.drain_timeout
        drained = Deferred.fromCoroutine(self.jobs.drain(drain_timeout))
        await self.site.drain(drain_timeout)
        await drained
        if self._reloading is not None:
            self._again = False
            await self._reloading
        # Together: each of them may have to wait until the database is given up.
        parts = (self.logcache, self.downtimes, self.reports, *self._state())
        stops = [maybeDeferred(part.stopService) for part in parts]
        for done, result in await DeferredList(stops, consumeErrors=True):
            if not done:
                self.log.failure("what is left was not stored", result)
        await self.duties.stopService()
        for database in self._databases():
            await database.stopService()
        await self.registry.stopService()
        if self.core is not None:
            await maybeDeferred(self.core.stopService)
        if self._watchdog is not None:
            self._watchdog.stop()
        await self.threads.stopService()
        self.log.info("stopped")

    def _stopped(self, result: Failure | None) -> Failure | None:
        """Clean up even when a step failed."""
        if self.observer is not None:
            self.observer.flush()
        if self.on_stopped is not None:
            self.on_stopped()
        return result


def _read_again(path: str) -> tuple[Config, str]:
    config = load(path)
    return config, read_or_create(Path(config.auth.secret_key_file))


def fixed_while_running(old: Config, new: Config) -> list[str]:
    """Name what differs and cannot change in a running daemon."""
    fixed = (
        ("server.listen", old.server.listen, new.server.listen),
        ("server.var_dir", old.server.var_dir, new.server.var_dir),
        ("database.url", old.database.url, new.database.url),
        ("logcache.url", old.logcache.url, new.logcache.url),
    )
    return [
        f"{path}: cannot change while the daemon runs, restart it"
        for path, before, after in fixed
        if before != after
    ]
