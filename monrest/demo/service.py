"""The embedded core as a Twisted service: objects loaded, clock running, socket open."""

from __future__ import annotations

import os
from pathlib import Path
from random import Random
from typing import Any

from attrs import define, field
from twisted.application.service import Service
from twisted.internet.defer import Deferred, gatherResults, maybeDeferred
from twisted.internet.interfaces import IListeningPort

from monrest.demo.commands import run
from monrest.demo.core import Core, local_zone
from monrest.demo.history import generate
from monrest.demo.inventory import build
from monrest.demo.protocol import LivestatusFactory
from monrest.demo.simulation import Simulation
from monrest.demo.synthetic import synthetic_site
from monrest.demo.tables import build_tables
from monrest.objectconfig.site import ConfiguredSite, load


def demo_objects() -> Path:
    """The folder of the demo's object files: ``etc/demo`` beside the package, as in a checkout.

    An installed package carries them as ``monrest/demo/objects`` instead.
    """
    package = Path(__file__).resolve().parent
    checkout = package.parent.parent / "etc" / "demo"
    return checkout if checkout.is_dir() else package / "objects"


@define(eq=False)
class DemoCore(Service):
    """A simulated core that listens on a Unix socket, and on a TCP port if one is given.

    It is a test bench and a demo. ``reactor`` must give time, Unix and TCP sockets.
    ``objects_dir`` None loads the demo's own files; with ``hosts`` and ``services`` an invented
    site of that size is made instead. ``history_days`` days of log are invented at the start.
    Starting raises ObjectConfigError for wrong files and CannotListenError.
    """

    reactor: Any
    socket_path: str
    objects_dir: Path | str | None = None
    seed: int = 1
    hosts: int | None = None
    services: int | None = None
    history_days: float = 2
    tcp_port: int | None = None
    core: Core | None = field(default=None, init=False)
    _simulation: Simulation | None = field(default=None, init=False)
    _factory: LivestatusFactory | None = field(default=None, init=False)
    _ports: list[IListeningPort] = field(factory=list, init=False)

    def site(self) -> ConfiguredSite:
        """The site to load."""
        if self.hosts is not None or self.services is not None:
            hosts = self.hosts if self.hosts is not None else 20
            services = self.services if self.services is not None else hosts * 5
            return synthetic_site(hosts, services)
        return load(Path(self.objects_dir) if self.objects_dir else demo_objects())

    def startService(self) -> None:
        """Load, invent the past, listen, and let time run."""
        Service.startService(self)
        core = Core(self.reactor, build(self.site()), Random(self.seed), local_zone())  # noqa: S311 - a simulation
        core.pid = os.getpid()
        self.core = core
        simulation = self._simulation = Simulation(core)
        generate(core, self.history_days)
        factory = self._factory = LivestatusFactory(
            core, build_tables(core), self.reactor, lambda text: run(core, simulation, text)
        )
        path = Path(self.socket_path)
        if path.is_socket():
            path.unlink()
        self._ports.append(self.reactor.listenUNIX(str(path), factory, mode=0o660))
        if self.tcp_port is not None:
            self._ports.append(
                self.reactor.listenTCP(self.tcp_port, factory, interface="127.0.0.1")
            )
        simulation.start()

    def stopService(self) -> Deferred[Any]:
        """Stop the clock, the socket and all connections."""
        Service.stopService(self)
        if self._simulation is not None:
            self._simulation.stop()
        ports, self._ports = self._ports, []
        closing = [maybeDeferred(port.stopListening) for port in ports]
        if self._factory is not None:
            for connection in list(self._factory.open_connections):
                connection.close()
        return gatherResults(closing)
