"""The processes of a run: cores, replaying sites, the bare handler and the daemon."""

from __future__ import annotations

import os
import queue
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import orjson

from bench.clients import BrokenRunError, Http

REPOSITORY = Path(__file__).resolve().parents[1]
TWISTD = ("-OO", "-c", "from twisted.scripts.twistd import run; run()")
"""As the unit starts it (etc/monrest.service)."""
ROOT = "/mon/r"
START_TIMEOUT = 60
SITE_TIMEOUT = 10
STOP_TIMEOUT = 10


def free_port() -> int:
    """A TCP port that nobody used a moment ago."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


class Processes:
    """Everything that was started, to be ended together."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.running: list[subprocess.Popen[bytes]] = []

    def python(self, name: str, *arguments: str, ready: bool = True) -> subprocess.Popen[bytes]:
        """Start this Python with ``arguments``; ``ready``: wait for that word on its output."""
        log = (self.folder / f"{name}.log").open("wb")
        process = subprocess.Popen(
            [sys.executable, *arguments],
            cwd=REPOSITORY,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE if ready else log,
            stderr=log,
        )
        self.running.append(process)
        if ready:
            self._wait_ready(name, process)
        return process

    def _wait_ready(self, name: str, process: subprocess.Popen[bytes]) -> None:
        lines: queue.Queue[bytes] = queue.Queue()
        output = process.stdout
        assert output is not None

        def read() -> None:
            for line in output:
                lines.put(line)
            lines.put(b"")

        threading.Thread(target=read, daemon=True).start()
        until = time.monotonic() + START_TIMEOUT
        with suppress(queue.Empty):
            while line := lines.get(timeout=max(0.0, until - time.monotonic())):
                if line.strip().startswith(b"ready"):
                    return
        raise BrokenRunError(f"{name} did not get ready: {self.log(name)}")

    def log(self, name: str) -> str:
        """The end of what the process printed."""
        return (self.folder / f"{name}.log").read_text(errors="replace")[-2000:]

    def core(self, name: str, hosts: int, services: int) -> str:
        """Start an embedded core; the path of its socket."""
        path = str(self.folder / f"{name}.core")
        size = ("--hosts", str(hosts), "--services", str(services))
        self.python(name, "-m", "monrest.demo", "--socket", path, *size)
        return path

    def replay(
        self,
        name: str,
        sites: Mapping[str, str],
        latency: float = 0.0,
        *,
        live: bool = False,
        waits: bool = True,
    ) -> dict[str, str]:
        """Start replaying sites (id to path of the core, empty for a dead one); their sockets.

        ``live``: they ask their cores each time. ``waits``: they are cores that can wait.
        """
        paths = {site: str(self.folder / f"{site}.live") for site in sites}
        arguments = [f"--site={paths[site]}={core}" for site, core in sites.items()]
        if live:
            arguments.append("--live")
        if not waits:
            arguments.append("--unable-to-wait")
        self.python(name, "-m", "bench.replay", f"--latency={latency}", *arguments)
        return paths

    def bare(self, body: bytes) -> Http:
        """Start the bare handler that answers ``body``; a connection to it."""
        return self.bare_handler(body)[1]

    def bare_handler(self, body: bytes) -> tuple[subprocess.Popen[bytes], Http]:
        """Start the bare handler that answers ``body``; its process and a connection to it."""
        port = free_port()
        path = self.folder / "bare.body"
        path.write_bytes(body)
        process = self.python("bare", "-m", "bench.bare", f"--port={port}", f"--body={path}")
        return process, Http(port, {})

    def stop(self, processes: Sequence[subprocess.Popen[bytes]] | None = None) -> None:
        """End ``processes``, by default all that were started."""
        ending = list(self.running if processes is None else processes)
        for process in ending:
            process.terminate()
        for process in ending:
            try:
                process.wait(STOP_TIMEOUT)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            if process.stdout is not None:
                process.stdout.close()
            self.running.remove(process)


class Daemon:
    """A running daemon in front of Unix sockets."""

    def __init__(
        self,
        processes: Processes,
        name: str,
        sites: Mapping[str, str],
        *,
        hidden: Sequence[str] = (),
        dead: Sequence[str] = (),
        extra: Sequence[str] = (),
        server: Sequence[str] = (),
        port: int = 0,
        key_file: Path | None = None,
        starter: Sequence[str] = TWISTD,
    ) -> None:
        """Start it and wait until every site but the ``dead`` ones answers.

        ``extra`` are further lines of its configuration, ``server`` those of that table. Without
        a ``port`` it is a free one, without a ``key_file`` it makes a key of its own. ``starter``
        is what starts twistd.
        """
        folder = processes.folder / name
        folder.mkdir(mode=0o700)
        self.port = port or free_port()
        self.key_file = key_file or folder / "secret.key"
        lines = [
            "[server]",
            f'listen = ["tcp:{self.port}:interface=127.0.0.1"]',
            f'var_dir = "{folder}"',
            *server,
            "[auth]",
            f'secret_key_file = "{self.key_file}"',
            "[auth.roles]",
            'admin = ["admin"]',
            *extra,
        ]
        for site, path in sites.items():
            lines += [
                "[[sites]]",
                f'id = "{site}"',
                f'name = "{site}"',
                f'address = "unix:{path}"',
                f"hidden = {str(site in hidden).lower()}",
                f"timeout = {SITE_TIMEOUT}",
            ]
        config = folder / "monrest.toml"
        config.write_text("\n".join(lines) + "\n")
        options = ("--nodaemon", "--pidfile=", "monrest", "--config", str(config))
        self.process = processes.python(name, *starter, *options, ready=False)
        self._wait(set(sites) - set(dead), lambda: processes.log(name))

    def _wait(self, alive: set[str], log: object) -> None:
        until = time.monotonic() + START_TIMEOUT
        problem: object = "no answer"
        while time.monotonic() < until:
            if self.process.poll() is not None:
                break
            try:
                rows = orjson.loads(self.http().body("/sites/ALL/hosts?columns=count(*),peer_key"))
                missing = alive - {row["peer_key"] for row in rows}
                if not missing:
                    return
                problem = f"sites that do not answer: {sorted(missing)[:5]}"
            except (OSError, ValueError, BrokenRunError) as error:
                problem = error
            time.sleep(0.2)
        raise BrokenRunError(
            f"the daemon did not get ready: {problem}\n{log() if callable(log) else ''}"
        )

    def http(self) -> Http:
        """A connection of the administrator."""
        key = self.key_file.read_text().strip()
        return Http(self.port, {"X-Mon-Auth-Key": key, "X-Mon-Auth-User": "admin"}, ROOT)

    def memory(self, field: str) -> int:
        """``VmRSS`` or ``VmHWM`` of the process in bytes."""
        for line in Path(f"/proc/{self.process.pid}/status").read_text().splitlines():
            if line.startswith(field + ":"):
                return int(line.split()[1]) * 1024
        raise BrokenRunError(f"no {field} in /proc")

    def proportional(self) -> int:
        """The bytes of the process, with its share of what it shares with others."""
        return proportional(self.process.pid)

    def forget_peak(self) -> None:
        """Let ``VmHWM`` begin anew at the present size, where the machine allows it."""
        with suppress(OSError):
            Path(f"/proc/{self.process.pid}/clear_refs").write_text("5")


def proportional(pid: int) -> int:
    """The bytes of a process, with its share of what it shares with others."""
    for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
        if line.startswith("Pss:"):
            return int(line.split()[1]) * 1024
    raise BrokenRunError("no Pss in /proc")


def cpu_seconds(pid: int) -> float:
    """Seconds of processor time that a running process has taken, in all threads that it has."""
    # /proc/PID/stat counts hundredths of a second, which many a request does not take.
    threads = Path(f"/proc/{pid}/task").glob("*/schedstat")
    return sum(int(one.read_text().split()[0]) for one in threads) / 1e9


def describe_machine() -> str:
    """Processors and Python of this run, for the head of the table."""
    version = ".".join(map(str, sys.version_info[:3]))
    return f"{os.cpu_count()} processors, Python {version}"
