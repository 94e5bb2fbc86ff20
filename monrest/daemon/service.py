"""The composition root: builds every part from a configuration, starts, reloads and stops them.

The only module that knows all rooms. What may fail does so in ``startService``, before the
reactor turns, so that a start that went wrong ends the process with a message and a status.
"""

from __future__ import annotations

import platform
import signal
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

from attrs import define, field
from twisted.application.service import IService, Service
from twisted.internet.defer import Deferred, maybeDeferred
from twisted.internet.error import CannotListenError
from twisted.logger import ILogObserver, Logger
from twisted.python.failure import Failure

from monrest import __version__
from monrest.accounts.authenticate import Authenticator, Proxies
from monrest.accounts.family import Accounts
from monrest.accounts.secret_key import SecretKeyError, read_or_create
from monrest.base.audit import audit
from monrest.base.clock import MachineClock, WallClock
from monrest.base.concurrency import Periodic
from monrest.base.log import LineObserver
from monrest.base.values import Caller, Identity
from monrest.cluster.service import Cluster
from monrest.config import Config, ConfigError, LogConfig
from monrest.daemon.listeners import Listeners, StartError, error_text, prepare_var_dir
from monrest.daemon.parts import Parts
from monrest.daemon.restart import DAEMON, read_again, refuse_reload
from monrest.daemon.systemd import Notifier, watchdog_interval
from monrest.daemon.worker import Inherited
from monrest.store.database import StoreError
from monrest.web.api_site import ApiSite
from monrest.web.app import Api, FrontResource
from monrest.web.pages import Pages
from monrest.web.respond import Responder

_MOST_NAMED = 20
IN_THE_WAY = (StartError, SecretKeyError, StoreError, CannotListenError, OSError)


def configure_log(observer: LineObserver | None, config: LogConfig) -> None:
    if observer is not None:
        observer.configure(config.level, as_json=config.format == "json", access=config.access)


def introduce(log: Logger, config: Config, path: str) -> None:
    """Write the first line: which version of what starts, for which sites."""
    ids = [site.id for site in config.sites]
    named = ", ".join([*ids[:_MOST_NAMED], *(["…"] if len(ids) > _MOST_NAMED else [])])
    lmd = ", ".join(config.lmd.addresses)
    log.info(
        "monrest {version} starts with {count} {what}{named}{lmd}; {path}; Python {python}",
        version=__version__,
        count=len(ids),
        what="site" if len(ids) == 1 else "sites",
        named=f" ({named})" if named else "",
        lmd=f" and those of the LMD at {lmd}" if lmd else "",
        path=f"configuration {path}" if path else "no configuration file",
        python=platform.python_version(),
    )


@define(eq=False, kw_only=True, repr=False)
class Daemon(Service):
    """The root service; ``wall`` is the clock of this machine.

    ``path`` is the configuration file, empty when there is none to read again. ``core`` is the
    embedded core of the demo, started before and stopped after everything that asks it.
    ``port_hint`` follows the message that a port is taken.
    ``on_ready`` gets the address and the secret key once requests are answered, ``on_stopped``
    is called when nothing is left, also after a start that failed. ``restart`` makes the process
    begin anew when everything has stopped; None where that is not possible. ``inherited`` is what a
    parent has made, for the process of a worker.
    """

    log: ClassVar[Logger] = Logger()

    reactor: Any
    config: Config
    wall: WallClock = field(factory=MachineClock)
    path: str = ""
    observer: LineObserver | None = None
    notifier: Notifier = field(factory=Notifier.from_environment)
    core: IService | None = None
    on_ready: Callable[[str, str], None] | None = None
    on_stopped: Callable[[], None] | None = None
    port_hint: str = ""
    restart: Callable[[], None] | None = None
    inherited: Inherited | None = None
    listeners: Listeners = field(init=False)
    parts: Parts = field(init=False)
    site: ApiSite = field(init=False)
    _key: str = field(default="", init=False, repr=False)
    _authenticator: Authenticator = field(init=False)
    _watchdog: Periodic | None = field(default=None, init=False)
    _reloading: Deferred[None] | None = field(default=None, init=False)
    _again: bool = field(default=False, init=False)

    def __attrs_post_init__(self) -> None:
        self.parts = Parts(
            reactor=self.reactor,
            machine=self.wall,
            config=self.config,
            path=self.path,
            who=self._who,
            as_user=self._as_user,
            site=lambda: self.site,
            again=self.restart,
            inherited=self.inherited,
        )
        bound = () if self.inherited is None else self.inherited.bound
        self.listeners = Listeners(
            *(self.reactor, self.config.server.listen, self.parts.workers, bound),
            laden=self.parts.laden,
        )

    def setServiceParent(self, parent: Any) -> None:
        """Join the application and take over its log lines."""
        super().setServiceParent(parent)
        if self.observer is not None:
            parent.setComponent(ILogObserver, self.observer)

    def startService(self) -> None:
        """Start everything; ends the process with a message when something is in the way."""
        super().startService()
        configure_log(self.observer, self.config.log)
        if self.inherited is None:
            introduce(self.log, self.config, self.path)
        try:
            self._start()
        except BaseException as error:
            if self.on_stopped is not None:
                self.on_stopped()
            if isinstance(error, IN_THE_WAY):
                text = error_text(error)
                hint = self.port_hint if "Address already in use" in text else ""
                raise SystemExit(f"monrest: {text}{hint}") from None
            raise

    def _start(self) -> None:
        if self.inherited is None:
            prepare_var_dir(Path(self.config.server.var_dir))
            self._key = read_or_create(Path(self.config.auth.secret_key_file))
        else:
            self._key = self.inherited.key
        if self.core is not None:
            self.core.startService()
        self.parts.open(self._key)
        server = self.config.server
        self.site = ApiSite(
            self._resource(self.config, self._key),
            server,
            self.config.names,
            self.reactor,
            self.wall,
            count_connections=self.parts.workers.count_connections,
        )
        self.parts.meters.offer(self.site.measured)
        if self.observer is not None:
            self.site.access_line = self.observer.access
        self.listeners.open(self.site)
        self.reactor.callWhenRunning(self._run)

    def _run(self) -> None:
        """Report readiness; the reactor turns now and twistd's own signal handlers are set."""
        signal.signal(signal.SIGHUP, lambda *_: self.reactor.callFromThread(self.reload))
        inherited = self.inherited
        if interval := watchdog_interval() if inherited is None else inherited.signs:
            self._watchdog = Periodic(self.reactor, interval, self._sign, "signs of life")
            self._watchdog.startService()
        self.parts.begin()
        self.parts.garbage.startService()
        addresses = self.listeners.addresses()
        self.log.info("listening on {addresses}", addresses=", ".join(addresses))
        self.notifier.ready()
        self.notifier.status(f"{len(self.config.sites)} sites configured")
        if self.on_ready is not None:
            self.on_ready(f"http://{addresses[0]}{self.config.names.root}", self._key)

    async def _sign(self) -> None:
        """Show that the reactor turns."""
        self.notifier.watchdog()

    async def _who(self, caller: Caller) -> Identity:
        """Identify a caller by the configuration that is in force now."""
        return await self._authenticator.authenticate(caller)

    async def _as_user(self, name: str, limit: frozenset[str] | None) -> Identity:
        """Identify a user for whom something is done, such as a report or a webhook."""
        return await self._authenticator.of_user(name, limit)

    def _resource(self, config: Config, key: str) -> FrontResource:
        """The parts that serve requests under one state of the configuration."""
        parts = self.parts
        context, accounts = parts.renew(), parts.the(Accounts)
        self._authenticator = Authenticator(
            config=config.auth,
            names=config.names,
            secret_key=key,
            keys=accounts.keys,
            sessions=accounts.sessions,
            users=accounts.users,
            passwords=accounts.passwords,
            slowdown=accounts.slowdown,
            contacts=accounts.contacts,
        )
        router = context.dispatch.router
        return Api(
            server=config.server,
            names=config.names,
            authenticator=self._authenticator,
            proxies=Proxies.of(config.auth.trusted_proxies),
            dispatch=partial(context.dispatch, context),
            router=router,
            responder=Responder(
                self.reactor,
                parts.answers,
                parts.files,
                ascii_json=config.server.ascii_json,
            ),
            pages=Pages(
                names=config.names,
                version=__version__,
                threads=parts.threads,
                public_docs=config.server.public_docs,
            ),
        ).resource()

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
            config, key = await self.parts.threads.run(lambda: read_again(self.path, self.config))
        except ConfigError as error:
            refuse_reload(self.log, self.path, error)
            return
        configure_log(self.observer, config.log)
        await self.parts.configure(config, key)
        self.site.serve(self._resource(config, key), config.server, config.names)
        try:
            self.listeners.renew(self.site)
        except StartError as error:
            self.log.warn("certificates not read again: {error}", error=str(error))
        self.config, self._key = config, key
        self.notifier.status(f"{len(config.sites)} sites configured")
        self.log.info("configuration read again: {count} sites", count=len(config.sites))
        audit(DAEMON, None, "configuration reload", target=self.path)

    def stopService(self) -> Deferred[None]:
        """Stop in order, each step waited for; running requests finish up to the drain limit."""
        super().stopService()
        return Deferred.fromCoroutine(self._stop()).addBoth(self._stopped)

    async def _stop(self) -> None:
        if self.parts.the(Cluster).leaving:
            self.notifier.reloading()
        else:
            self.notifier.stopping()
        await self.listeners.close()
        drain_timeout = self.config.server.drain_timeout
        over = self.reactor.callLater(drain_timeout, self.parts.hurry)
        left = Deferred.fromCoroutine(self.parts.leave(drain_timeout))
        await self.site.drain(drain_timeout)
        await left
        if over.active():
            over.cancel()
            self.parts.hurry()
        if self._reloading is not None:
            self._again = False
            await self._reloading
        await self.parts.stop()
        if self.core is not None:
            await maybeDeferred(self.core.stopService)
        if self._watchdog is not None:
            await self._watchdog.stopService()
        await self.parts.threads.stopService()
        self.log.info("stopped")

    def _stopped(self, result: Failure | None) -> Failure | None:
        """Clean up even when a step failed."""
        if self.on_stopped is not None:
            self.on_stopped()
        return result
