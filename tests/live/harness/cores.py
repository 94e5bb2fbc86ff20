"""A Livestatus core as a process of its own: the embedded one and a real Icinga 2.

Both load the same small site and are brought into the same states by external commands; what
still differs is named in ``DIFFERENCES`` and nowhere else.
"""

from __future__ import annotations

import getpass
import grp
import json
import os
import shutil
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import ClassVar

from monrest.demo.__main__ import ENDED
from tests.forks import DEMO, start

from .waiting import until

HERE = Path(__file__).resolve().parent.parent
OBJECTS = HERE / "objects"
ICINGA2_SITE = HERE / "icinga2" / "site.conf"

HOST_RESULTS = {
    "db01": (0, "OK - alive|rta=12.5ms;3000;5000;0; pl=20%;80;100;;"),
    "router1": (1, "DOWN - no answer|rta=0.000ms;3000;5000;0; pl=100%;80;100;;"),
    "web01": (0, "OK - alive|rta=0.030ms;3000.000;5000.000;0; pl=0%;80;100;;"),
    "web02": (1, "DOWN - no route"),
    "leaf01": (2, "DOWN - behind a router"),
}
"""Host to state and plugin output; ``pend01`` is never checked."""

SERVICE_RESULTS = {
    ("db01", "ping"): (0, "OK - 12 ms|rta=12.5ms;100;500;0;"),
    ("db01", "Disk /var"): (1, "WARNING: 80% used, not 75%|/var=80%;75;90;0;100"),
    ("router1", "ping"): (2, "CRITICAL - lost"),
    ("router1", "uplink 1+1"): (3, "UNKNOWN - no data"),
    ("web01", "ping"): (0, "OK - 0 ms|rta=0.030ms;100;500;0;"),
    ("web01", "http"): (2, "CRITICAL - 503|time=1.5s;1;2 size=12kB"),
    ("web01", "Größe ü/€"): (0, "OK: Größe 5 €|Größe=5;8;9"),
    ("web02", "ping"): (2, "CRITICAL - no route"),
    ("web02", "http"): (1, "WARNING - slow|time=3s;2;4;0;"),
}
"""Service to state and plugin output; ``pend01``/``ping`` and the semicolon are never checked."""

DIFFERENCES = {
    "embedded": {
        "version": "1.",
        "command": "ping",
        "commandline": "/usr/lib/nagios/plugins/check_ping -H 127.0.0.3 -w 100.0,20% -c 500.0,60%",
        "downtime_comments": 1,
        "check_command": "ping!100.0,20%!500.0,60%",
        "contact_alias": "Olga Web",
        "logs_recovery_from_pending": False,
    },
    "naemon": {
        "version": "1.",
        "command": "ping",
        "commandline": "/usr/lib/nagios/plugins/check_ping -H 127.0.0.3 -w 100.0,20% -c 500.0,60%",
        "downtime_comments": 1,
        "check_command": "ping!100.0,20%!500.0,60%",
        "contact_alias": "Olga Web",
        "logs_recovery_from_pending": False,
    },
    "icinga2": {
        "version": "r2.",
        "command": "check_ping",
        "commandline": None,
        "downtime_comments": 0,
        "check_command": "check_ping!",
        "contact_alias": "olga",
        "logs_recovery_from_pending": True,
    },
}
"""Core to everything in which the same suite expects a different answer."""


class CoreMissing(Exception):
    """The program is not installed on this machine."""


def connect(path):
    """A connection to a Unix socket."""
    connection = socket.socket(socket.AF_UNIX)
    connection.connect(str(path))
    return connection


def ask(connection, request, *, timeout=20.0):
    """Send one request over a connection of its own and return the decoded rows."""
    text = request.rstrip("\n") + "\nOutputFormat: json\nResponseHeader: fixed16\n\n"
    with connection:
        connection.settimeout(timeout)
        connection.sendall(text.encode())
        received = b""
        while chunk := connection.recv(65536):
            received += chunk
    status, length = int(received[:3]), int(received[4:15])
    body = received[16:]
    assert len(body) == length, (status, length, len(body))
    assert status == 200, body
    return json.loads(body)


def command(path, *lines):
    """Send external commands, one write each, and close."""
    with connect(path) as connection:
        connection.settimeout(20)
        for line in lines:
            connection.sendall(f"COMMAND [{int(time.time())}] {line}\n\n".encode())
        connection.shutdown(socket.SHUT_WR)
        while connection.recv(65536):
            pass


class Core:
    """What both cores share: a folder, a process, a socket."""

    name = ""
    program = ""
    """What a fork calls instead of executing the command line."""

    def __init__(self, folder):
        self.folder = Path(folder)
        self.socket = self.folder / "live"
        self.process = None

    @property
    def address(self):
        """How a configuration names it."""
        return f"unix:{self.socket}"

    lmd_sites: ClassVar = ()
    """The ids of the sites of an LMD; nothing for a core."""

    @property
    def differences(self):
        """How this core differs, by name."""
        return DIFFERENCES[self.name]

    def arguments(self):
        raise NotImplementedError

    def start(self):
        """Start the process and wait until it answers."""
        self.log = (self.folder / "output").open("wb")
        self.process = start(self.arguments(), self.log, program=self.program, cwd=self.folder)
        until(self.answers, f"the {self.name} core answers")

    def answers(self):
        """Whether the core answers a query."""
        if self.process.poll() is not None:
            raise AssertionError((self.folder / "output").read_text(errors="replace"))
        try:
            return self.ask("GET status\nColumns: program_start")
        except OSError:
            return False

    def ask(self, request):
        """Ask the core itself, past the daemon."""
        return ask(connect(self.socket), request)

    def command(self, *lines):
        command(self.socket, *lines)

    def prime(self):
        """Bring every object into the state that the suite expects."""
        for host, (state, output) in HOST_RESULTS.items():
            self.command(f"PROCESS_HOST_CHECK_RESULT;{host};{self.host_state(state)};{output}")
        for (host, service), (state, output) in SERVICE_RESULTS.items():
            self.command(f"PROCESS_SERVICE_CHECK_RESULT;{host};{service};{state};{output}")
        now = int(time.time())
        until(self.states_arrived, "the primed states are visible")
        self.command(
            "ACKNOWLEDGE_SVC_PROBLEM;web01;http;2;0;1;admin;on it",
            "ADD_HOST_COMMENT;web01;1;admin;first; with ü and €",
            "ADD_SVC_COMMENT;db01;ping;1;olga;looks fine",
            f"SCHEDULE_HOST_DOWNTIME;web02;{now - 60};{now + 7200};1;0;7260;admin;new disks",
        )
        until(self.extras_arrived, "comments and downtimes are visible")

    def host_state(self, state):
        """The code with which a passive result says ``state``."""
        return state

    def states_arrived(self):
        """Whether all passive results are in."""
        hosts = self.ask("GET hosts\nColumns: name state\nFilter: has_been_checked = 1")
        services = self.ask(
            "GET services\nColumns: host_name description state\nFilter: has_been_checked = 1"
        )
        return {row[0]: row[1] for row in hosts} == {
            host: state for host, (state, _output) in HOST_RESULTS.items()
        } and {(row[0], row[1]): row[2] for row in services} == {
            service: state for service, (state, _output) in SERVICE_RESULTS.items()
        }

    def extras_arrived(self):
        """Whether the downtime runs and the acknowledgement is set."""
        return (
            len(self.ask("GET comments\nColumns: id")) >= 3 + self.differences["downtime_comments"]
            and self.ask("GET downtimes\nColumns: id")
            and self.ask("GET hosts\nColumns: name\nFilter: scheduled_downtime_depth > 0")
            and self.ask("GET services\nColumns: description\nFilter: acknowledged = 1")
        )

    def stop(self):
        """End the process that ``start`` started."""
        if self.process is not None and self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(300)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait(300)
        self.log.close()


class EmbeddedCore(Core):
    """``python -m monrest.demo`` over the suite's object files."""

    name = "embedded"
    program = DEMO
    started: ClassVar = []
    """Those that run, so that ``deaths`` can look after them."""

    def __init__(self, folder, objects=OBJECTS, arguments=()):
        super().__init__(folder)
        self.objects = objects
        self.extra = tuple(arguments)

    def start(self):
        super().start()
        self.started.append(self)

    def stop(self):
        super().stop()
        if self in self.started:
            self.started.remove(self)

    def prime(self):
        """See ``Core``; objects that were invented have states of their own."""
        if self.objects is not None:
            super().prime()

    @classmethod
    def deaths(cls):
        """The lines that ended one of them, because no real core would have survived them."""
        found = []
        for core in list(cls.started):
            if core.process.poll() is not None:
                said = (core.folder / "output").read_text(errors="replace").splitlines()
                found += [line for line in said if line.startswith(f"{ENDED}GET ")]
                cls.started.remove(core)
        return found

    def arguments(self):
        return [
            *(sys.executable, "-m", "monrest.demo", "--socket", str(self.socket)),
            *(("--objects", str(self.objects)) if self.objects else ()),
            *self.extra,
        ]


class Icinga2Core(Core):
    """The real thing, started from a site file in a folder of its own."""

    name = "icinga2"

    @staticmethod
    def installed():
        """The path of the program, None where it is not installed."""
        return shutil.which("icinga2", path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin")

    def arguments(self):
        program = self.installed()
        if program is None:
            raise CoreMissing("icinga2 is not installed: run tests/install-cores.sh")
        for name in ("data", "log/compat/archives", "cache", "spool", "run"):
            (self.folder / name).mkdir(parents=True, exist_ok=True)
        constants = {
            "RunAsUser": getpass.getuser(),
            "RunAsGroup": grp.getgrgid(os.getgid()).gr_name,
            "DataDir": self.folder / "data",
            "LogDir": self.folder / "log",
            "CacheDir": self.folder / "cache",
            "SpoolDir": self.folder / "spool",
            "InitRunDir": self.folder / "run",
            "PidPath": self.folder / "run" / "icinga2.pid",
            "SocketPath": self.socket,
        }
        defines = [text for item in constants.items() for text in ("-D", "{}={}".format(*item))]
        return [program, "daemon", "-c", str(ICINGA2_SITE), *defines]

    def host_state(self, state):
        """Icinga 2 takes up and down only and computes unreachable itself."""
        return min(state, 1)


CORES = {"embedded": EmbeddedCore, "icinga2": Icinga2Core}
