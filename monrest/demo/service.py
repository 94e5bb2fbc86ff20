"""The embedded core as a Twisted service: objects loaded, clock running, socket open.

It reads the object files again by a command or a signal (docs/spec/demo.md, "Objects").
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

from attrs import define, field, fields
from twisted.application.service import Service
from twisted.internet.defer import Deferred, gatherResults, maybeDeferred
from twisted.internet.interfaces import IListeningPort
from twisted.internet.task import deferLater
from twisted.internet.threads import deferToThreadPool
from twisted.logger import Logger
from twisted.python.failure import Failure

from monrest.base.clock import WallClock
from monrest.base.shipped import shipped
from monrest.config import ConfigTool
from monrest.demo.command_table import run
from monrest.demo.core import PROGRAM_VERSION, Core, local_zone
from monrest.demo.core_tables import build_tables
from monrest.demo.definitions import ObjectConfigError, read_file, unreadable
from monrest.demo.history import generate
from monrest.demo.inventory import Inventory, make_inventory, synthetic_site
from monrest.demo.objects import ATTRIBUTES, MODIFIED, Checkable, HostOrService
from monrest.demo.protocol import LivestatusFactory
from monrest.demo.registration import ConfiguredSite, build, load
from monrest.demo.simulation import Simulation
from monrest.objectconfig.document import FileProblem
from monrest.objectconfig.site_files import discover

log = Logger()

_AWAY = 0.1
"""Seconds for which a core that restarts has no socket."""
_LAST_ANSWERS = 0.1
"""Seconds before that, in which it answers the sender of the command."""


def demo_objects() -> Path:
    """The folder of the demo's object files."""
    return shipped("demo")


@define(eq=False)
class DemoCore(Service):
    """A simulated core that listens on a Unix socket, and on a TCP port if one is given.

    It is a test bench and a demo. ``reactor`` must give time, threads, Unix and TCP sockets,
    ``wall`` is its clock.

    ``objects_dir`` is a folder of object files or the main file that names them, None loads the
    demo's own; the command RESTART_PROCESS and ``reload`` read them again. With ``hosts`` and
    ``services`` an invented site of that size is made instead. ``history_days`` days of log are
    invented at the start.

    It ends where a real core does (docs/spec/livestatus.md): at a request that those do not
    survive, and when its object files do not load any more. ``ended`` says why, and ``on_end`` is
    called; there is no socket from then on.
    Starting raises ObjectConfigError for wrong files and CannotListenError.
    """

    reactor: Any
    wall: WallClock
    socket_path: str
    objects_dir: Path | str | None = None
    seed: int = 1
    hosts: int | None = None
    services: int | None = None
    history_days: float = 2
    tcp_port: int | None = None
    on_end: Callable[[], None] | None = None
    ended: str = field(default="", init=False)
    core: Core | None = field(default=None, init=False)
    _simulation: Simulation | None = field(default=None, init=False)
    _factory: LivestatusFactory | None = field(default=None, init=False)
    _ports: list[IListeningPort] = field(factory=list, init=False)
    _reading: Deferred[Any] | None = field(default=None, init=False)
    _again: bool = field(default=False, init=False)

    def site(self) -> ConfiguredSite:
        if self.hosts is not None or self.services is not None:
            hosts = self.hosts if self.hosts is not None else 20
            services = self.services if self.services is not None else hosts * 5
            return synthetic_site(hosts, services)
        return read(self._objects())

    def _objects(self) -> Path:
        return Path(self.objects_dir) if self.objects_dir else demo_objects()

    def startService(self) -> None:
        """Load, invent the past, listen, and let time run."""
        Service.startService(self)
        accidents = Random(self.seed)  # noqa: S311 - a simulation
        inventory = make_inventory(self.site())
        core = Core(self.reactor, self.wall, inventory, accidents, local_zone())
        core.pid = os.getpid()
        self.core = core
        if self.hosts is None and self.services is None:
            core.restart = self.reload
        simulation = self._simulation = Simulation(core)
        generate(core, self.history_days)
        factory = self._factory = LivestatusFactory(
            core,
            build_tables(core),
            self.reactor,
            lambda text: run(simulation, text),
            self._die,
        )
        path = Path(self.socket_path)
        if path.is_socket():
            path.unlink()
        self._listen(factory)
        simulation.start()

    def _listen(self, factory: LivestatusFactory) -> None:
        self._ports.append(self.reactor.listenUNIX(self.socket_path, factory, mode=0o660))
        if self.tcp_port is not None:
            self._ports.append(
                self.reactor.listenTCP(self.tcp_port, factory, interface="127.0.0.1")
            )

    def _hush(self) -> list[Deferred[Any]]:
        """Close the sockets and all connections; fires when no client can connect any more."""
        ports, self._ports = self._ports, []
        closing = [maybeDeferred(port.stopListening) for port in ports]
        if self._factory is not None:
            for connection in list(self._factory.open_connections):
                connection.close()
        return closing

    def _die(self, line: str) -> None:
        """End at a request that a real core does not survive."""
        log.critical("a real core does not survive this: {line}", line=line)
        self._end(line)

    def _end(self, why: str) -> None:
        self.ended = why
        if self._simulation is not None:
            self._simulation.stop()
        gatherResults(self._hush()).addCallback(lambda _: self.on_end and self.on_end())

    def reload(self) -> None:
        """Read the object files in a thread and put them in force, or end if they are wrong."""
        if self.ended or self.core is None or self.core.restart is None:
            return
        if self._reading is not None:
            self._again = True
            return

        def fresh() -> Inventory:
            return make_inventory(read(self._objects()))

        def ended(_: object) -> None:
            self._reading = None
            if self._again and self.running:
                self._again = False
                self.reload()

        pool = self.reactor.getThreadPool()
        self._reading = deferToThreadPool(self.reactor, pool, fresh)
        self._reading.addCallbacks(
            lambda fresh: Deferred.fromCoroutine(self._take(fresh)), self._refuse
        )
        self._reading.addErrback(lambda failure: log.failure("restart failed", failure))
        self._reading.addBoth(ended)

    async def _take(self, fresh: Inventory) -> None:
        """Put the objects in force; meanwhile no client can connect, as with a real core."""
        if self.core is None or self._simulation is None or self._factory is None:
            return
        await deferLater(self.reactor, _LAST_ANSWERS)
        await gatherResults(self._hush())
        await deferLater(self.reactor, _AWAY)
        if self.running and not self.ended:
            restart(self.core, self._simulation, fresh)
            self._listen(self._factory)

    def _refuse(self, failure: Failure) -> None:
        """End: a real core that is to restart has no objects to continue with."""
        failure.trap(ObjectConfigError, OSError)
        if self.core is not None:
            for line in str(failure.value).splitlines():
                self.core.note(f"Error: {line}")
        text = "the object files do not load"
        log.warn("the embedded core ends: {text}:\n{why}", text=text, why=failure.value)
        if self.running:
            self._end(text)

    def stopService(self) -> Deferred[Any]:
        """Stop the clock, the socket and all connections."""
        Service.stopService(self)
        if self._simulation is not None:
            self._simulation.stop()
        closing = self._hush()
        if self._reading is not None:
            done: Deferred[Any] = Deferred()
            self._reading.addBoth(lambda _: done.callback(None))
            closing.append(done)
        return gatherResults(closing)


_CONTACT_SWITCHES = (
    "host_notifications_enabled",
    "service_notifications_enabled",
    "host_notification_period",
    "service_notification_period",
)
_NAMES = [one.name for one in fields(Checkable)]
_KEPT = _NAMES[_NAMES.index("state") :]
"""What of an object is its present state."""


def read(path: Path) -> ConfiguredSite:
    """Read a site: a folder of object files, or the main file of a core that names them.

    Raises ObjectConfigError with everything a core would refuse.
    """
    try:
        return _read(path)
    except OSError as error:
        raise unreadable(error) from None


def _read(path: Path) -> ConfiguredSite:
    if path.is_dir():
        return load(path)
    found = discover(ConfigTool(core_conf=str(path)))
    files = [read_file(Path(one.path)) for one in found.files]
    problems = [FileProblem(str(path), 0, text) for text in found.problems]
    problems += [problem for item in files for problem in item.problems]
    if not files and not problems:
        problems.append(FileProblem(str(path), 0, "no object files (*.cfg) found"))
    return build([item for file in files for item in file.definitions], problems)


def report(path: Path) -> tuple[int, str]:
    """What ``--check-config`` says, and its exit status: errors, or how many objects there are."""
    try:
        site = read(path)
    except ObjectConfigError as error:
        lines = [f"Error: {problem}" for problem in error.problems]
        return 1, "\n".join([*lines, f"Total Errors: {len(lines)}", ""])
    counts = [
        f"Checked {len(table)} {name}."
        for name, table in (
            ("hosts", site.hosts),
            ("services", site.services),
            ("host groups", site.hostgroups),
            ("service groups", site.servicegroups),
            ("contacts", site.contacts),
            ("contact groups", site.contactgroups),
            ("commands", site.commands),
            ("time periods", site.timeperiods),
        )
    ]
    return 0, "\n".join([*counts, "Total Errors: 0", ""])


def restart(core: Core, simulation: Simulation, fresh: Inventory) -> None:
    """Put new objects in force."""
    old = core.inventory
    for target in fresh.targets():
        before = old.find(target.host.name, target.description)
        if before is not None:
            _carry(before, target)
    for name, contact in fresh.contacts.items():
        known = old.contacts.get(name)
        if known is not None and known.modified_attributes:
            for switch in (*_CONTACT_SWITCHES, "modified_attributes"):
                setattr(contact, switch, getattr(known, switch))
    _forget(core, fresh)
    old.replace(fresh)
    core.state_serial += 1
    now = core.now()
    core.program_start = now
    core.note(f"Naemon {PROGRAM_VERSION} starting... (PID={core.pid})")
    simulation.replan()
    core.tell("program")


def _carry(before: HostOrService, target: HostOrService) -> None:
    for name in _KEPT:
        setattr(target, name, getattr(before, name))
    for state in target.states:
        name = f"last_time_{state.lower()}"
        setattr(target, name, getattr(before, name))
    for word, attribute in ATTRIBUTES.items():
        if before.modified_attributes & MODIFIED[word]:
            setattr(target, attribute, getattr(before, attribute))
    target.comments, target.downtimes = before.comments, before.downtimes
    for comment in target.comments.values():
        comment.target = target
    for downtime in target.downtimes.values():
        downtime.target = target


def _forget(core: Core, fresh: Inventory) -> None:
    """Take away what belongs to objects that are gone."""
    kept = {id(target) for target in fresh.targets()}
    entries: tuple[dict[int, Any], ...] = (core.comments, core.downtimes)
    for table in entries:
        for number in [n for n, entry in table.items() if id(entry.target) not in kept]:
            del table[number]
