"""The embedded core as a Twisted service: objects loaded, clock running, socket open.

It reads the object files again by a command or a signal (docs/spec/demo.md, "Objects").
"""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

from attrs import define, field, fields
from twisted.application.service import Service
from twisted.internet.defer import Deferred, maybeDeferred
from twisted.internet.interfaces import IListeningPort
from twisted.internet.task import deferLater
from twisted.internet.threads import deferToThreadPool
from twisted.logger import Logger

from monrest.base.clock import WallClock
from monrest.base.installed import shipped
from monrest.demo.command_table import run
from monrest.demo.core import PROGRAM_VERSION, Core, local_zone
from monrest.demo.core_tables import build_tables
from monrest.demo.history import generate
from monrest.demo.invented import invented_objects
from monrest.demo.inventory import Inventory, ObjectConfigError, make_inventory, read
from monrest.demo.objects import ATTRIBUTES, MODIFIED, Checkable, HostOrService
from monrest.demo.simulation import Simulation
from monrest.lql.protocol import LivestatusFactory

log = Logger()

_AWAY = 0.1
"""Seconds for which a core that restarts has no socket."""
_LAST_ANSWERS = 0.1
"""Seconds before that, in which it answers the sender of the command."""


def demo_objects() -> Path:
    return shipped("demo")


@define(eq=False)
class DemoCore(Service):
    """A simulated core that listens on a Unix socket: a test bench and a demo.

    ``reactor`` must give time, threads and Unix sockets, ``wall`` is its clock.

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
    on_end: Callable[[], None] | None = None
    ended: str = field(default="", init=False)
    core: Core | None = field(default=None, init=False)
    _simulation: Simulation | None = field(default=None, init=False)
    _factory: LivestatusFactory | None = field(default=None, init=False)
    _port: IListeningPort | None = field(default=None, init=False)
    _reading: Deferred[Any] | None = field(default=None, init=False)
    _again: bool = field(default=False, init=False)

    def _inventory(self) -> Inventory:
        if not self._is_invented:
            return read(Path(self.objects_dir) if self.objects_dir else demo_objects())
        hosts = 20 if self.hosts is None else self.hosts
        services = hosts * 5 if self.services is None else self.services
        return make_inventory({"synthetic": invented_objects(hosts, services)}, checked=False)

    @property
    def _is_invented(self) -> bool:
        return self.hosts is not None or self.services is not None

    def startService(self) -> None:
        Service.startService(self)
        accidents = Random(self.seed)  # noqa: S311 - a simulation
        core = Core(self.reactor, self.wall, self._inventory(), accidents, local_zone())
        core.pid = os.getpid()
        self.core = core
        if not self._is_invented:
            core.restart = self.reload
        self._simulation = Simulation(core)
        generate(core, self.history_days)
        self._factory = livestatus(self._simulation, self._die)
        path = Path(self.socket_path)
        if path.is_socket():
            path.unlink()
        self._listen()
        self._simulation.start()

    def _listen(self) -> None:
        self._port = self.reactor.listenUNIX(self.socket_path, self._factory, mode=0o660)

    def _hush(self) -> Deferred[Any]:
        """Close the socket and all connections; fires when no client can connect any more."""
        port, self._port = self._port, None
        if self._factory is not None:
            for connection in list(self._factory.open_connections):
                connection.close()
        return maybeDeferred(lambda: port and port.stopListening())

    def _die(self, line: str) -> None:
        """End at a request that a real core does not survive."""
        log.critical("a real core does not survive this: {line}", line=line)
        self._end(line)

    def _end(self, why: str) -> None:
        self.ended = why
        if self._simulation is not None:
            self._simulation.stop()
        self._hush().addCallback(lambda _: self.on_end and self.on_end())

    def reload(self) -> None:
        """Read the object files in a thread and put them in force, or end if they are wrong."""
        self._again = self._reading is not None
        if not self._again and self.core is not None and self.core.restart is not None:
            self._reading = Deferred.fromCoroutine(self._reload(self.core))
            self._reading.addErrback(lambda failure: log.failure("restart failed", failure))

    async def _reload(self, core: Core) -> None:
        pool = self.reactor.getThreadPool()
        assert self._simulation is not None
        try:
            while self.running and not self.ended:
                fresh = await deferToThreadPool(self.reactor, pool, self._inventory)
                # Meanwhile no client can connect, as with a real core.
                await deferLater(self.reactor, _LAST_ANSWERS)
                await self._hush()
                await deferLater(self.reactor, _AWAY)
                if self.running and not self.ended:
                    restart(core, self._simulation, fresh)
                    self._listen()
                if not self._again:
                    return
                self._again = False
        except ObjectConfigError as error:
            # A real core that is to restart has no objects to continue with.
            for line in error.problems:
                core.note(f"Error: {line}")
            text = "the object files do not load"
            log.warn("the embedded core ends: {text}:\n{why}", text=text, why=error)
            if self.running:
                self._end(text)
        finally:
            self._reading = None

    async def _stop(self) -> None:
        await self._hush()
        if self._reading is not None:
            await self._reading

    def stopService(self) -> Deferred[Any]:
        Service.stopService(self)
        if self._simulation is not None:
            self._simulation.stop()
        return Deferred.fromCoroutine(self._stop())


def livestatus(simulation: Simulation, die: Callable[[str], None]) -> LivestatusFactory:
    """The Livestatus of a core; ``die`` is called at requests that a real core does not survive."""
    core = simulation.core
    factory = LivestatusFactory(
        build_tables(core), core.clock, core.wall, partial(run, simulation), die, core.counters
    )
    core.happened.hear(factory.happened)
    return factory


def report(path: Path) -> tuple[int, str]:
    """The output of ``--check-config`` and its exit status: errors, or the number of objects."""
    try:
        inventory = read(path)
    except ObjectConfigError as error:
        lines = [f"Error: {problem}" for problem in error.problems]
        return 1, "\n".join([*lines, f"Total Errors: {len(lines)}", ""])
    counts = [
        f"Checked {len(table)} {name}."
        for name, table in (
            ("hosts", inventory.hosts),
            ("services", inventory.services),
            ("host groups", inventory.hostgroups),
            ("service groups", inventory.servicegroups),
            ("contacts", inventory.contacts),
            ("contact groups", inventory.contactgroups),
            ("commands", inventory.commands),
            ("time periods", inventory.timeperiods),
        )
    ]
    return 0, "\n".join([*counts, "Total Errors: 0", ""])


_CONTACT_SWITCHES = (
    "host_notifications_enabled",
    "service_notifications_enabled",
    "host_notification_period",
    "service_notification_period",
    "modified_attributes",
)
_NAMES = [attribute.name for attribute in fields(Checkable)]
_KEPT = _NAMES[_NAMES.index("state") :]
"""The attributes that are the present state of an object."""


def restart(core: Core, simulation: Simulation, fresh: Inventory) -> None:
    """Put new objects in force, with the present state of those that were there before."""
    old = core.inventory
    for target in fresh.targets():
        before = old.find(target.host.name, target.description)
        if before is not None:
            _carry(before, target)
    for name, contact in fresh.contacts.items():
        former = old.contacts.get(name)
        if former is not None and former.modified_attributes:
            for switch in _CONTACT_SWITCHES:
                setattr(contact, switch, getattr(former, switch))
    entries: tuple[dict[int, Any], ...] = (core.comments, core.downtimes)
    for table in entries:
        for number, target in [(number, entry.target) for number, entry in table.items()]:
            if fresh.find(target.host.name, target.description) is not target:
                del table[number]
    old.replace(fresh)
    core.state_serial += 1
    core.program_start = core.now()
    core.note(f"Naemon {PROGRAM_VERSION} starting... (PID={core.pid})")
    simulation.replan()
    core.happened("program")


def _carry(before: HostOrService, target: HostOrService) -> None:
    kept = [*_KEPT, *(f"last_time_{state.lower()}" for state in target.states)]
    changed = [
        name
        for word, name in ATTRIBUTES.items()
        if name and before.modified_attributes & MODIFIED[word]
    ]
    for name in (*kept, *changed, "modified_attributes", "comments", "downtimes"):
        setattr(target, name, getattr(before, name))
    for comment in target.comments.values():
        comment.target = target
    for downtime in target.downtimes.values():
        downtime.target = target
