"""Very many services: sites that all replay one large core, asked all at once.

What is measured is how time and memory grow from one site to many. The full list is read as NDJSON,
a line at a time, by a client that keeps nothing.
"""

from __future__ import annotations

import http.client
import time
from collections.abc import Callable, Iterator

from bench.clients import BrokenRunError
from bench.processes import ROOT, Daemon, Processes, cpu_seconds
from bench.report import Line, milliseconds

SITES = 50
BUDGET = 512 << 20
PATIENCE = 200
PIECE = 1 << 20
ASKED = (
    ("totals", "/services/totals"),
    ("grouped counts", "/services?columns=count(*),state"),
    ("limit=100 sorted", "/services?sort=host_name,description&limit=100"),
    ("all as NDJSON, three columns", "/ndjson/services?columns=host_name,description,state"),
)


def million(processes: Processes, hosts: int, services: int) -> Iterator[Line]:
    """What an idle daemon has and costs, and how questions grow to fifty sites."""
    core = processes.core("grown", hosts, services)
    sockets = processes.replay("many", {f"site{at:02}": core for at in range(SITES)})
    daemon = Daemon(processes, "million", sockets)
    yield Line(
        what="idle: memory (proportional), processor time of the start",
        ours=f"{daemon.proportional() / 2**20:.0f} MiB, {cpu_seconds(daemon.process.pid):.1f} s",
        limit="80 MiB, 0.8 s",
        ratio="",
        target="<= 80 MiB",
        met=daemon.proportional() <= 80 << 20,
    )
    for what, path in ASKED:
        few, _ = taken(daemon, f"/sites/site00{path}")
        daemon.forget_peak()
        idle = daemon.memory("VmRSS")
        many, size = taken(daemon, f"/sites/ALL{path}")
        above = daemon.memory("VmHWM") - idle
        yield Line(
            what=f"{what}: {SITES * services:,} services ({size / 1e6:.1f} MB)",
            ours=f"{milliseconds(many)}, {above / 2**20:.0f} MiB above before",
            limit=f"{milliseconds(few)} for {services:,}",
            ratio=f"{many / few:.1f}x",
            target="<= 512 MiB",
            met=above <= BUDGET,
        )


def taken(daemon: Daemon, path: str) -> tuple[float, int]:
    """Seconds and bytes of an answer that is read and thrown away, asked the second time."""
    key = daemon.key_file.read_text().strip()
    headers = {"X-Mon-Auth-Key": key, "X-Mon-Auth-User": "admin"}

    def ask() -> int:
        connection = http.client.HTTPConnection("127.0.0.1", daemon.port, timeout=PATIENCE)
        connection.request("GET", ROOT + path, headers=headers)
        answer, size = connection.getresponse(), 0
        if answer.status != 200:
            raise BrokenRunError(f"{path}: {answer.status} {answer.read(500)!r}")
        while piece := answer.read(PIECE):
            size += len(piece)
        connection.close()
        return size

    return _timed(ask)


def _timed(ask: Callable[[], int]) -> tuple[float, int]:
    ask()
    began = time.perf_counter()
    size = ask()
    return time.perf_counter() - began, size
