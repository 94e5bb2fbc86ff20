"""One daemon with one and with two workers: requests a second, their cost, pauses, memory."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

from bench.clients import Livestatus, requests_per_second
from bench.lines import ALL, CLIENTS, percentile, requests_behind
from bench.processes import ROOT, Daemon, Processes, cpu_seconds, proportional
from bench.report import Line, milliseconds

SECONDS = 3.0
LARGE_SECONDS = 7.0
PAUSE = 0.015
"""Seconds that 99 of 100 small requests may take beside large answers, with two workers."""
IDLE, FURTHER = 80 << 20, 45 << 20
"""Bytes of an idle daemon with one worker, and of each further one."""
START = 0.8
"""Seconds of processor time until a daemon has answered for the first time."""


def workers(processes: Processes, hosts: int, services: int) -> Iterator[Line]:
    """Measure the same daemon with one worker and with two, one after the other."""
    core = processes.core("workers-core", hosts, services)
    sockets = processes.replay("workers-replay", {"main": core})
    raw = Livestatus(sockets["main"])
    sizes: list[int] = []
    for count in (1, 2):
        server = [f"workers = {count}"]
        daemon = Daemon(processes, f"workers{count}", sockets, server=server)
        if count == 1:
            yield start(daemon)
        http = daemon.http()
        host = http.body("/csv/hosts?columns=name&sort=name&limit=1&headers=0").decode().strip()
        path = f"/hosts/{quote(host, safe='')}"
        sizes.append(sum(map(proportional, pids(daemon))))
        rate = requests_per_second(http, path, CLIENTS, SECONDS)
        before = spent(daemon)
        rate = requests_per_second(http, path, CLIENTS, SECONDS)
        each = (spent(daemon) - before) / (rate * SECONDS)
        limit = raw_rate(raw, requests_behind(http, raw, path, "hosts"))
        yield Line(
            what=f"one host by name, {CLIENTS} clients, workers = {count}",
            ours=f"{rate:.0f}/s, {milliseconds(each)} of CPU each",
            limit=f"{limit:.0f}/s raw replay, one client",
            ratio=f"{rate / limit:.0%}",
            target="",
            met=True,
        )
        beside = small_beside_large(processes, daemon, path)
        yield Line(
            what=f"p99 of one host by name while all services are answered, workers = {count}",
            ours=milliseconds(beside),
            limit="",
            ratio="",
            target=f"<= {milliseconds(PAUSE)}" if count > 1 else "",
            met=count == 1 or beside <= PAUSE,
        )
        processes.stop([daemon.process])
    daemon = Daemon(processes, "workers3", sockets, server=["workers = 3"])
    daemon.http().body("/csv/hosts?columns=name&sort=name&limit=1&headers=0")
    sizes.append(sum(map(proportional, pids(daemon))))
    processes.stop([daemon.process])
    yield from idle(*sizes)


def start(daemon: Daemon) -> Line:
    """What it took until the first answer."""
    took = spent(daemon)
    return Line(
        what="processor time of a start",
        ours=f"{took:.2f} s",
        limit="",
        ratio="",
        target=f"<= {START:g} s",
        met=took <= START,
    )


def idle(one: int, two: int, three: int) -> Iterator[Line]:
    """The memory of idle daemons with so many workers, the parent of several included."""
    yield Line(
        what="memory of an idle daemon with one worker",
        ours=f"{one / 1e6:.0f} MB",
        limit="",
        ratio="",
        target=f"<= {IDLE / 1e6:.0f} MB",
        met=one <= IDLE,
    )
    yield Line(
        what="memory of an idle daemon with two workers, above that with one",
        ours=f"{(two - one) / 1e6:.0f} MB",
        limit=f"{one / 1e6:.0f} MB with one",
        ratio=f"{two / one:.2f}x",
        target=f"<= {FURTHER / 1e6:.0f} MB",
        met=two - one <= FURTHER,
    )
    yield Line(
        what="... with three workers, above that with two",
        ours=f"{(three - two) / 1e6:.0f} MB",
        limit=f"{two / 1e6:.0f} MB with two",
        ratio=f"{three / two:.2f}x",
        target=f"<= {FURTHER / 1e6:.0f} MB",
        met=three - two <= FURTHER,
    )


def pids(daemon: Daemon) -> list[int]:
    """The process that was started, and its workers."""
    pid = daemon.process.pid
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return [pid, *map(int, children)]


def spent(daemon: Daemon) -> float:
    """Seconds of processor time that all processes have taken."""
    return sum(map(cpu_seconds, pids(daemon)))


def raw_rate(site: Livestatus, requests: list[str]) -> float:
    """How often a second one client of the replay gets what these ask, read and parsed."""
    count, took = 0, 0.0
    while took < 1.0:
        took += site.seconds(requests)
        count += 1
    return count / took


def small_beside_large(processes: Processes, daemon: Daemon, path: str) -> float:
    """The 99th percentile of a small request while another client reads large answers."""
    reader = processes.python(
        "load",
        *("-m", "bench.load", f"--port={daemon.port}", f"--seconds={LARGE_SECONDS + 1}"),
        *(f"--key-file={daemon.key_file}", f"--path={ROOT}{ALL}"),
    )
    http = daemon.http()
    found, until = [], time.monotonic() + LARGE_SECONDS
    while time.monotonic() < until:
        found.append(http.seconds(path))
        time.sleep(0.005)
    processes.stop([reader])
    return percentile(found)
