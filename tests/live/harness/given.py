"""A core that is there already: ``make test-core SOCKET=…`` runs the suite against it.

Nothing is changed there: a guard in front of it passes requests on and no commands, but for those
on hosts that were named. What the suite expects comes from the core itself.
"""

from __future__ import annotations

import os
import re
import socket
from functools import cached_property

from attrs import field, frozen

from tests.fakes.given_lmd import lmd_sites

from .cores import Core, ask
from .expect import HOSTS as SUITE_HOSTS
from .recorder import Recorder, half_close

NEVER = ("SHUTDOWN_PROGRAM", "SHUTDOWN_PROCESS")
"""No test ends a core that was there before."""

GLOBAL = "all"
"""Word for ``COMMANDS`` on a test bench: those that concern the whole core too."""


@frozen
class Given:
    """What was said on the command line of ``make test-core``.

    ``address`` is ``unix:PATH`` or ``tcp:HOST:PORT``. ``commands``: empty for none, ``1`` for those on
    hosts that match ``hosts``, ``all`` for every one. ``config``: the main file of its object
    configuration, which is copied.
    """

    address: str
    commands: str = ""
    hosts: str = ""
    config: str = ""
    pattern: re.Pattern[str] | None = field(init=False)

    @pattern.default
    def _compiled(self):
        if self.commands and not self.hosts and self.commands != GLOBAL:
            raise ValueError("COMMANDS=1 needs HOSTS=regex: the hosts that may be told something")
        return re.compile(self.hosts or ".*") if self.commands else None

    def connect(self):
        kind, _, rest = self.address.partition(":")
        if kind == "unix":
            connection = socket.socket(socket.AF_UNIX)
            connection.connect(rest)
            return connection
        if kind == "tcp":
            host, _, port = rest.rpartition(":")
            return socket.create_connection((host.strip("[]"), int(port)), 10)
        raise ValueError(f"SOCKET={self.address}: expected unix:PATH or tcp:HOST:PORT")


def given():
    """What the environment says, None in an ordinary run."""
    address = os.environ.get("MONREST_CORE", "")
    if not address:
        return None
    names = ("commands", "hosts", "config")
    return Given(
        address, **{one: os.environ.get(f"MONREST_CORE_{one.upper()}", "") for one in names}
    )


GIVEN = given()


class Guard(Recorder):
    """Passes every request on to the core, and of commands only those that were allowed.

    What it kept back is in ``kept``; the client gets the text that a Naemon gives for a refusal.
    """

    def __init__(self, path, core):
        self.core = core
        self.kept = []
        super().__init__(path, "")

    def connect(self):
        return self.core.given.connect()

    def passes(self, request, client):
        if not request.startswith(b"COMMAND "):
            return True
        line = request.split(b"\n")[0].decode(errors="replace").partition("] ")[2]
        if self.core.allows(line):
            return True
        self.kept.append(line)
        client.sendall(b"400: kept back by the guard of the test\n")
        return False


class GivenCore(Core):
    """The core of the command line, behind a guard that listens where the suite's own cores do."""

    def __init__(self, folder, config=GIVEN):
        super().__init__(folder)
        self.given = config
        self.guard = None

    @property
    def lmd_sites(self):
        """The ids of the sites of an LMD; the suite is about the first of them."""
        return lmd_sites(self.given.address)

    def ask(self, request):
        return super().ask("\n".join([request.rstrip("\n"), *self.only()]))

    def command(self, *lines):
        super().command(*("\n".join([line, *self.only()]) for line in lines))

    def only(self):
        """The header that names the first site of an LMD."""
        return [f"Backends: {key}" for key in self.lmd_sites[:1]]

    def start(self):
        self.guard = Guard(self.socket, self)
        self.ask("GET status\nColumns: program_version")

    def stop(self):
        self.guard.close()

    def prime(self):
        """Bring the suite's own objects into their states, if they are there and may be told."""
        if self.holds_the_suite and self.given.commands == GLOBAL:
            self.clear()
            super().prime()

    def clear(self):
        """Take away comments, downtimes and acknowledgements of a run before."""
        for table, word in (("comments", "COMMENT"), ("downtimes", "DOWNTIME")):
            for number, service in self.ask(f"GET {table}\nColumns: id is_service"):
                self.command(f"DEL_{'SVC' if service else 'HOST'}_{word};{number}")

    @cached_property
    def name(self):
        """The kind of core, by which differences are declared."""
        (program, livestatus), *_ = self.ask(
            "GET status\nColumns: program_version livestatus_version"
        )
        versions = f"{program} {livestatus}".lower()
        if "-demo" in versions:
            return "embedded"
        kinds = ("icinga2", "shinken", "naemon")
        return next((kind for kind in kinds if kind in versions), "nagios")

    @cached_property
    def hosts(self):
        return sorted(row[0] for row in self.ask("GET hosts\nColumns: name"))

    @property
    def holds_the_suite(self):
        """Whether its objects are those of ``tests/live/objects``."""
        return self.hosts == sorted(SUITE_HOSTS)

    def allows(self, line):
        """Whether a command may reach the core: on hosts that match only."""
        config = self.given
        if config.pattern is None or line.startswith(NEVER):
            return False
        if config.commands == GLOBAL and not config.hosts:
            return True
        name, *arguments = line.split(";")
        if re.fullmatch(r"DEL_(?:HOST|SVC)_(?:COMMENT|DOWNTIME)", name):
            return self._allows_id(
                "comments" if name.endswith("COMMENT") else "downtimes", arguments
            )
        # Everything else that names a host names it first.
        return bool(arguments and arguments[0] in self.hosts and self.told(arguments[0]))

    def _allows_id(self, table, arguments):
        if not arguments or not arguments[0].isdigit():
            return False
        rows = ask(
            self.given.connect(), f"GET {table}\nColumns: host_name\nFilter: id = {arguments[0]}"
        )
        return all(self.told(row[0]) for row in rows)

    def told(self, host):
        """Whether commands on this host are allowed."""
        pattern = self.given.pattern
        return pattern is not None and pattern.search(host) is not None


__all__ = ["GIVEN", "GLOBAL", "Given", "GivenCore", "half_close"]
