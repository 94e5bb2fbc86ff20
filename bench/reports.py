"""A line about reports: a month's availability of many hosts out of the log cache.

The daemon answers over its socket; the limit is a bare scan of the same rows in this process.
Run by hand with ``python -m bench.reports``.
"""

from __future__ import annotations

import sqlite3
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing
from itertools import islice
from pathlib import Path

import orjson

from bench.clients import BrokenRunError
from bench.lines import in_turns
from bench.logs import lease_on, opened
from bench.processes import Daemon, Processes
from bench.report import Line, plain
from monrest.logs import cache_records
from monrest.logs import cache_records as records
from monrest.logs.line import kept

HOSTS = 1000
COUNT = 2_000_000
DAYS = 30
BACKTRACK = 4
PORTION = 20_000
MOST = 4.0
"""Times a bare scan that a report may take."""

MEMORY = 100 << 20
"""Bytes that a report may need, however many lines there are."""

WORDS = ("UP", "DOWN", "UNREACHABLE")
SITE = "main"


def rows(site: int, hosts: int, first: int, count: int, days: int) -> Iterator[tuple[object, ...]]:
    """So many lines of a time that all matter: alerts, states after rotation, downtimes."""
    for at in range(count):
        moment = first + at * days * 86400 // count
        host = f"host-{at * 7919 % hosts:05}"
        word = WORDS[at // 1000 % 7 % 3]
        kind, number = "HOST ALERT", 1
        rest = f"{host};{word};{'SOFT' if at % 5 == 4 else 'HARD'};3;{word} - rta {at % 90} ms"
        if at % 10 == 8:
            kind, number = "CURRENT HOST STATE", 6
        elif at % 10 == 9:
            kind = "HOST DOWNTIME ALERT"
            rest = f"{host};{'STARTED' if at // 1000 % 2 else 'STOPPED'}; planned work"
        message = f"[{moment}] {kind}: {rest}"
        line = kept(
            [moment, at + 1, number, kind, 0, "HARD", 3, host, "", "", "", "", "", message, rest]
        )
        yield (site, moment, at + 1, at, *line[2:])


def fill(file: Path, hosts: int, first: int, count: int, days: int = DAYS) -> None:
    """Make a cache that has these lines and nothing else, up to now."""
    engine = opened(f"sqlite:///{file}")
    lease = lease_on(engine, SITE)
    given = rows(lease.id, hosts, first, count, days)
    while part := list(islice(given, PORTION)):
        with engine.begin() as connection:
            cache_records.insert_lines(connection, part)
    with engine.begin() as connection:
        end = first + days * 86400
        covered = {"covered_from": first, "covered_until": end, "wanted_from": first}
        records.write(lease, time.time(), (), **covered)(connection)
        records.release(lease)(connection)
    engine.dispose()


def scan(file: Path, first: int, end: int) -> float:
    """Seconds of reading time and text of all rows, and of nothing more."""
    started = time.perf_counter()
    with closing(sqlite3.connect(file)) as connection:
        found = connection.execute(
            "SELECT time, message FROM logcache_lines WHERE time >= ? AND time < ? ORDER BY time",
            (first, end),
        )
        for _ in found:
            pass
    return time.perf_counter() - started


def month(processes: Processes, count: int = COUNT) -> Iterator[Line]:
    """How long a month of a thousand hosts takes, and how much memory."""
    core = processes.core("reported", HOSTS, HOSTS)
    file = processes.folder / "lines.sqlite"
    first = int(time.time()) - DAYS * 86400
    fill(file, HOSTS, first, count)
    extra = ("[logcache]", f'url = "sqlite:///{file}"', "update_interval = 86400", "keep = 0")
    daemon = Daemon(processes, "reporting", {SITE: core}, extra=extra)
    end = first + DAYS * 86400 - 600
    path = f"/hosts/availability?start={first + BACKTRACK * 86400}&end={end}"
    body = orjson.loads(daemon.http().body(path))
    known = [row for row in body if row["time_indeterminate_nodata"] == 0]
    if len(body) != HOSTS or not known:
        raise BrokenRunError(f"{len(body)} rows, {len(known)} of them from the cache")
    before = daemon.memory("VmRSS")
    daemon.forget_peak()
    ours, limit = in_turns(lambda: daemon.http().seconds(path), lambda: scan(file, first, end), 3)
    yield Line(
        what=f"a month's availability of {HOSTS:,} hosts, {count:,} lines",
        ours=f"{ours:.1f} s",
        limit=f"{limit:.1f} s bare scan",
        ratio=f"{ours / limit:.1f}x",
        target=f"<= {MOST:g}x",
        met=ours <= MOST * limit,
    )
    grown = daemon.memory("VmHWM") - before
    yield Line(
        what="... and its memory",
        ours=f"{grown / 2**20:.0f} MB",
        limit="-",
        ratio=f"{grown / 2**20:.0f} MB",
        target=f"<= {MEMORY >> 20} MB",
        met=grown <= MEMORY,
    )


SLA_HOSTS = 100
SLA_COUNT = 200_000
SLA_DAYS = 31
SLA_MOST = 6.0
"""Times the bare availability of the same hosts that a whole report may take."""


def service_level(processes: Processes, count: int = SLA_COUNT) -> Iterator[Line]:
    """A 31-day SLA report of a hundred hosts as PDF, page, workbook and CSV, day by day."""
    core = processes.core("levelled", SLA_HOSTS, SLA_HOSTS)
    file = processes.folder / "levels.sqlite"
    # Some days more, so that of the whole time a state is known.
    days = SLA_DAYS + BACKTRACK
    fill(file, SLA_HOSTS, int(time.time()) - days * 86400, count * days // SLA_DAYS, days)
    extra = ("[logcache]", f'url = "sqlite:///{file}"', "update_interval = 86400", "keep = 0")
    daemon = Daemon(processes, "levels", {SITE: core}, extra=extra)
    http = daemon.http()
    params = {"timeperiod": "last31days", "breakdown": "days", "filter_type": "Hosts"}
    record = {"template": "sla_report.tt", "params": params}
    made = http.body("/mon/reports", orjson.dumps(record), json=True)
    number = orjson.loads(made)["id"]

    def whole() -> float:
        started = time.perf_counter()
        job = orjson.loads(http.body(f"/mon/reports/{number}/generate", b""))["job"]
        answer = orjson.loads(http.body(f"/mon/jobs/{job}/output"))
        if answer.get("message") != "report finished":
            raise BrokenRunError(f"the report was not made: {answer}")
        return time.perf_counter() - started

    path = "/hosts/availability?timeperiod=last31days"
    ours, limit = in_turns(whole, lambda: http.seconds(path), 3)
    size = len(http.body(f"/mon/reports/{number}/report"))
    yield Line(
        what=f"a {SLA_DAYS}-day SLA report for {SLA_HOSTS} hosts, {count:,} lines",
        ours=f"{ours:.1f} s, {size >> 10} kB PDF",
        limit=f"{limit:.1f} s bare numbers",
        ratio=f"{ours / limit:.1f}x",
        target=f"<= {SLA_MOST:g}x",
        met=ours <= SLA_MOST * limit,
    )


def main() -> None:
    """Print the lines, for as many log lines as the first argument says."""
    with tempfile.TemporaryDirectory(prefix="monrest-bench-") as folder:
        processes = Processes(Path(folder))
        try:
            print(plain(list(month(processes, int(sys.argv[1]) if len(sys.argv) > 1 else COUNT))))
        finally:
            processes.stop()


if __name__ == "__main__":
    main()
