"""Many clients at once: what they make the daemon hold, and how long it does not look up."""

from __future__ import annotations

import os
import signal
import socket
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from pathlib import Path

from bench.clients import BrokenRunError
from bench.lines import ALL
from bench.processes import Daemon, Processes
from bench.report import Line

SLOW, UNFINISHED, LARGE, AT_A_TIME = 10, 40, 20, 4
FORMATS = ("", "/wrapped_json", "/csv")
PIECE = b"a" * 65536
PATIENCE = 60
MOST_HELD = 128 << 20
"""Bytes above idle that slow readers, or bodies that never end, may make the daemon hold."""
MOST_PAUSE = 0.05


def readers(processes: Processes, hosts: int, services: int) -> Iterator[Line]:
    """Everything about many clients of one large site."""
    core = processes.core("read", hosts, services)
    sockets = processes.replay("reading", {"main": core})
    pauses = processes.folder / "pauses"
    watched = ("-m", "bench.watched", f"--pauses={pauses}", "--")
    daemon = Daemon(processes, "reading-daemon", sockets, starter=watched)
    yield slow_readers(daemon)
    yield unfinished_bodies(daemon)
    yield longest_pause(daemon, pauses)


def held(what: str, daemon: Daemon, idle: int, seconds: float) -> Line:
    """The line of the most memory in so many seconds."""
    peak, until = 0, time.monotonic() + seconds
    while time.monotonic() < until:
        peak = max(peak, daemon.proportional())
        time.sleep(0.1)
    above = peak - idle
    return Line(
        what=what,
        ours=f"{above / 2**20:.0f} MiB above idle, {peak / 2**20:.0f} MiB at most",
        limit=f"{MOST_HELD / 2**20:.0f} MiB",
        ratio=f"{above / MOST_HELD:.2f}x",
        target="<= 1x",
        met=above <= MOST_HELD,
    )


def slow_readers(daemon: Daemon) -> Line:
    """Clients that ask for everything and read nothing of it."""
    http, idle = daemon.http(), daemon.proportional()
    with ExitStack() as stack:
        for _ in range(SLOW):
            connection = stack.enter_context(socket.socket())
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65536)
            connection.connect(("127.0.0.1", daemon.port))
            connection.sendall(http.request(ALL))
        return held(f"{SLOW} slow readers of all services", daemon, idle, 20)


def unfinished_bodies(daemon: Daemon) -> Line:
    """Clients without credentials that announce a long body and send half of it."""
    idle = daemon.proportional()
    head = b"POST /mon/r/hosts HTTP/1.1\r\nHost: x\r\nContent-Length: 33000000\r\n\r\n"
    with ExitStack() as stack:
        for _ in range(UNFINISHED):
            address = ("127.0.0.1", daemon.port)
            connection = stack.enter_context(socket.create_connection(address, timeout=1))
            with suppress(OSError):
                connection.sendall(head)
                for _ in range(250):
                    connection.sendall(PIECE)
        return held(f"{UNFINISHED} connections with unfinished bodies", daemon, idle, 3)


def longest_pause(daemon: Daemon, pauses: Path) -> Line:
    """How long the reactor did not look at its sockets while large answers were read."""
    os.kill(daemon.process.pid, signal.SIGUSR1)
    paths = [FORMATS[at % len(FORMATS)] + ALL for at in range(LARGE)]
    with ThreadPoolExecutor(AT_A_TIME) as clients:
        for _ in clients.map(lambda path: daemon.http().body(path), paths):
            pass
    os.kill(daemon.process.pid, signal.SIGUSR2)
    until = time.monotonic() + PATIENCE
    while not pauses.exists():
        if time.monotonic() > until:
            raise BrokenRunError("the watched daemon does not tell its pauses")
        time.sleep(0.1)
    longest, work = map(float, pauses.read_text().split())
    return Line(
        what=f"longest pause of the reactor during {LARGE} large answers",
        ours=f"{longest * 1000:.0f} ms ({work * 1000:.0f} ms of work)",
        limit=f"{MOST_PAUSE * 1000:.0f} ms",
        ratio=f"{longest / MOST_PAUSE:.2f}x",
        target="<= 1x",
        met=longest <= MOST_PAUSE,
    )
