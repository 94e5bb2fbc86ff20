"""A core that is reloaded while clients ask: how many of their requests fail."""

from __future__ import annotations

import signal
import socket
import threading
import time
from collections.abc import Iterator

from bench.clients import Http, length_of, unchunked
from bench.processes import Daemon, Processes
from bench.report import Line, milliseconds

CLIENTS = 8
RELOADS = 5
LONGEST = 2.0
"""Seconds for which the socket may be away."""

PATHS = (
    "/hosts?columns=name,state",
    "/services?columns=host_name,description,state",
    "/services?columns=count(*),state",
    "/services/totals",
    "/services?sort=-last_check,host_name,description&limit=10",
    "/logs?time[gte]=-1h&columns=time,message",
    "/processinfo",
)


class Clients:
    """Threads that ask one path after the other; ``failed`` are answers without the site."""

    def __init__(self, daemon: Daemon) -> None:
        self.asked = 0
        self.failed: list[str] = []
        self.longest = 0.0
        self._over = threading.Event()
        connections = [daemon.http() for _ in range(CLIENTS)]
        self._threads = [
            threading.Thread(target=self._ask, args=(http, number))
            for number, http in enumerate(connections)
        ]
        for thread in self._threads:
            thread.start()

    def _ask(self, http: Http, number: int) -> None:
        while not self._over.is_set():
            path = PATHS[number % len(PATHS)]
            number += 1
            seconds, head, raw = http.fetch(path)
            self.asked += 1
            self.longest = max(self.longest, seconds)
            lines = head.lower()
            if not lines.startswith(b"http/1.1 200") or b"x-mon-failed-sites" in lines:
                body = raw if length_of(head) is not None else unchunked(raw)
                self.failed.append(f"{path}: {body[:200]!r}")

    def stop(self) -> None:
        """Let each finish the request that it waits for."""
        self._over.set()
        for thread in self._threads:
            thread.join()


def seconds_away(path: str) -> float:
    """How long nobody can connect to a socket that is about to go away."""
    began = None
    until = time.monotonic() + 10 * LONGEST
    while time.monotonic() < until:
        with socket.socket(socket.AF_UNIX) as probe:
            try:
                probe.connect(path)
            except OSError:
                began = began or time.monotonic()
            else:
                if began is not None:
                    return time.monotonic() - began
        time.sleep(0.002)
    return 10 * LONGEST


def reloads(processes: Processes) -> Iterator[Line]:
    """The requests of eight clients that fail while a core is reloaded again and again."""
    path = str(processes.folder / "reloaded.core")
    core = processes.python("reloaded", "-m", "monrest.demo", "--socket", path)
    daemon = Daemon(processes, "reloading", {"core": path})
    clients = Clients(daemon)
    away = []
    try:
        for _ in range(RELOADS):
            time.sleep(1)
            core.send_signal(signal.SIGHUP)
            away.append(seconds_away(path))
        time.sleep(1)
    finally:
        clients.stop()
    yield Line(
        what=f"{RELOADS} reloads of a core under {CLIENTS} clients: failed requests",
        ours=f"{len(clients.failed)} of {clients.asked}",
        limit=f"socket away for {milliseconds(max(away))} at most",
        ratio=f"longest {milliseconds(clients.longest)}",
        target="0",
        met=not clients.failed or max(away) >= LONGEST,
    )
