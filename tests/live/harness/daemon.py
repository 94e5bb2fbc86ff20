"""The daemon as a process: twistd with a configuration of its own, in a folder of its own."""

import base64
import contextlib
import fcntl
import hashlib
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

from tests.forks import TWISTD, start
from tests.forks.doors import STRAY

from .client import Client
from .waiting import until
from .workers import client_of

WORKERS = int(os.environ.get("MONREST_TEST_WORKERS", "1"))
"""Workers of each daemon whose test does not say how many."""

ALL_LISTEN = " workers listen on "
"""What the parent of several workers says when all of them answer."""

FIRST, COUNT = 20000, 12000
"""Ports that no system gives to a connection by itself."""

COUNTER = Path("/tmp/monrest-tests.port")
"""One for all runs of a machine, wherever they have their files."""


def free_port():
    """A TCP port that no other call gets from here, in any worker, for a long time."""
    with COUNTER.open("a+") as counter:
        fcntl.flock(counter, fcntl.LOCK_EX)
        counter.seek(0)
        last = int(counter.read() or FIRST)
        for step in range(1, COUNT):
            port = FIRST + (last - FIRST + step) % COUNT
            with socket.socket() as probe, contextlib.suppress(OSError):
                probe.bind(("127.0.0.1", port))
                break
        counter.truncate(0)
        counter.write(str(port))
    return port


def site(key, core, **more):
    """One entry of ``[[sites]]``: a core, or an address as text; ``more`` are further keys."""
    address = core if isinstance(core, str) else core.address
    return {"id": key, "name": key.upper(), "address": address, **more}


def toml_value(value):
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, (int, float)):
        return str(value)
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(map(toml_value, value)) + "]"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key} = {toml_value(one)}" for key, one in value.items()) + "}"
    text = str(value).replace("\\", "\\\\").replace('"', '\\"')
    return f'"{text}"'


def command_line(*options):
    """``twistd monrest`` with these options."""
    return [
        *(sys.executable, "-c", "from twisted.scripts.twistd import run; run()"),
        *("--nodaemon", "--pidfile=", "monrest", *options),
    ]


def sha(password):
    """As in a file of passwords; the only format that the standard library can write."""
    return "{SHA}" + base64.b64encode(hashlib.sha1(password.encode()).digest()).decode()


class Daemon:
    """A running ``twistd monrest`` with its address and key."""

    def __init__(self, folder, sites, *, sections=None):
        self.folder = Path(folder)
        self.port = free_port()
        self.sites = list(sites)
        self.sections = {
            "server": {
                "listen": [f"tcp:{self.port}:interface=127.0.0.1"],
                "var_dir": str(self.folder / "var"),
                "workers": WORKERS,
            },
            "auth": {"secret_key_file": str(self.folder / "secret.key")},
            "auth.roles": {"admin": ["admin"]},
        }
        for name, values in (sections or {}).items():
            self.sections.setdefault(name, {}).update(values)
        self.config = self.folder / "monrest.toml"
        self.process = None
        self.prefix = ()
        """A program with arguments that starts the process in its place."""
        self.write_config()

    def write_config(self):
        lines = []
        # Keys without a table stand in front of all tables.
        for name, values in sorted(self.sections.items(), key=lambda one: one[0] != ""):
            lines += [f"[{name}]"] if name else []
            lines += [f"{key} = {toml_value(value)}" for key, value in values.items()]
        for entry in self.sites:
            lines.append("[[sites]]")
            lines += [f"{key} = {toml_value(value)}" for key, value in entry.items()]
        self.config.write_text("\n".join(lines) + "\n")

    @property
    def log(self):
        """Everything that the process has printed so far."""
        return (self.folder / "twistd.log").read_text(errors="replace")

    @property
    def key(self):
        """The secret key that the daemon made."""
        return (self.folder / "secret.key").read_text().strip()

    def spawn(self, **environment):
        """Start the process without waiting for it."""
        assert self.process is None or self.process.poll() is not None, "it runs already"
        self.output = (self.folder / "twistd.log").open("ab")
        # Who is started in another way, or runs with other modules, is no fork.
        forked = not self.prefix and "PYTHONPATH" not in environment
        self.process = start(
            [*self.prefix, *command_line("--config", str(self.config))],
            self.output,
            program=TWISTD if forked else "",
            env={**os.environ, **environment},
        )

    def start(self, *, connected=None, **environment):
        """Start and wait until the API answers and the sites named ``connected`` are up.

        Of several workers all answer then.
        """
        before = self.log.count(ALL_LISTEN) if (self.folder / "twistd.log").exists() else 0
        self.spawn(**environment)
        until(self.answers, f"the daemon answers:\n{self.log}", seconds=300)
        if self.sections.get("server", {}).get("workers", 1) > 1:
            until(lambda: self.log.count(ALL_LISTEN) > before, "all workers listen")
        wanted = {entry["id"] for entry in self.sites} if connected is None else set(connected)
        self.wait_connected(wanted)
        return self

    def wait_connected(self, wanted):
        """Wait until every site in ``wanted`` is reported as connected, by each worker."""
        workers = self.sections.get("server", {}).get("workers", 1)
        for number in range(1, workers + 1):
            with client_of(self, number) if workers > 1 else self.client() as client:
                until(
                    lambda client=client: (
                        wanted
                        <= {row["id"] for row in client.rows("/sites") if row["connected"] == 1}
                    ),
                    f"sites {sorted(wanted)} are connected",
                    seconds=300,
                )

    def answers(self):
        """Whether the process listens and knows its key."""
        if self.process.poll() is not None:
            raise AssertionError(f"exit status {self.process.returncode}\n{self.log}")
        try:
            with self.client() as client:
                return client.get("/mon").status == 200
        except OSError:
            return False

    def client(self, user="admin", **more):
        return Client(self.port, self.key, user, **more)

    def memory(self):
        """The bytes of memory that the process has for itself, its share of shared pages."""
        rollup = Path(f"/proc/{self.process.pid}/smaps_rollup").read_text()
        return next(
            int(line.split()[1]) * 1024 for line in rollup.splitlines() if line.startswith("Pss:")
        )

    def descriptors(self):
        """How many file descriptors the process holds, but for its database."""
        return len(self.descriptor_targets())

    def descriptor_targets(self):
        """What the descriptors are, for the text of a failure.

        Without the database: each thread opens that for itself when it is first needed, and how
        many are needed depends on how busy the machine is.
        """
        found = []
        for entry in Path(f"/proc/{self.process.pid}/fd").iterdir():
            with contextlib.suppress(FileNotFoundError):
                found.append(str(entry.readlink()))
        return sorted(one for one in found if ".sqlite" not in one)

    def workers(self):
        """The processes below the parent that have not ended; none where it serves by itself."""
        children = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children")
        return [int(one) for one in children.read_text().split()]

    def pids(self):
        """The process that was started, and its workers where it has several."""
        several = self.sections.get("server", {}).get("workers", 1) > 1
        return [self.process.pid, *(self.workers() if several else ())]

    def send_signal(self, number):
        """Send a signal to all of its processes, as to a machine that ends or stands still."""
        for pid in self.pids():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)

    def kill(self):
        """End all of its processes at once; a worker that lost its parent alone ends in order."""
        self.send_signal(signal.SIGKILL)
        self.process.wait(300)

    def reload(self):
        """Write the configuration and wait until every worker has read it again."""
        line = "configuration read again"
        wanted = self.log.count(line) + self.sections.get("server", {}).get("workers", 1)
        self.write_config()
        self.hang_up()
        until(lambda: self.log.count(line) >= wanted, "each worker has read it")

    def hang_up(self):
        self.process.send_signal(signal.SIGHUP)

    def stop(self, number=signal.SIGTERM, *, seconds=300):
        """End the process and return its exit status."""
        if self.process is None:
            return None
        if self.process.poll() is None:
            if number == signal.SIGKILL:
                self.kill()
            else:
                self.process.send_signal(number)
            try:
                self.process.wait(seconds)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait(300)
                raise
        self.output.close()
        assert STRAY not in self.log, self.log
        return self.process.returncode
