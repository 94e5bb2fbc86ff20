"""Lines about logs: how fast lines get into the cache, how fast they are found and counted there,
and how much memory a month of log takes that comes straight from a core.

Run by hand on other numbers of lines with ``python -m bench.logs 10000000`` for the cache, and with
``python -m bench.logs 2000000 straight`` for the core.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from datetime import UTC
from pathlib import Path
from statistics import median
from typing import Any

from sqlalchemy import Engine

from bench.processes import Daemon, Processes
from bench.report import Line, milliseconds, plain
from monrest.logs import cache_records, compaction
from monrest.logs import cache_records as records
from monrest.logs.line import LogLine, kept
from monrest.logs.reader import CachePlan, CacheQuestion, page, reading
from monrest.query.bind import bind
from monrest.query.column_names import ColumnNames, View
from monrest.query.functions import Moment
from monrest.query.parse import parse_query
from monrest.query.plan import layout
from monrest.rows.columns import LOGS
from monrest.store import engines, migrate
from monrest.store.tables import logcache_lines

FIRST = 1_700_000_000
PER_DAY = 100_000
COUNT = 200_000
"""Lines that are written for one measurement."""

READ = 2_000_000
"""Lines among which the newest are looked for."""

PORTION = 5_000

KINDS = ("SERVICE ALERT", "SERVICE NOTIFICATION", "PASSIVE SERVICE CHECK")
COUNTED = 0.75
"""Seconds that counting a million cached lines by a column may take in SQLite."""

MONTH = 30
STRAIGHT = 500_000
"""Lines of a month that is read straight from a core."""

MEMORY = 300 << 20
"""Bytes above idle that such a month may need, however many lines it has."""


def lines(first: int, count: int) -> list[LogLine]:
    """So many lines from the number ``first`` on, ten to a second or so, as a core has them."""
    made = []
    for at in range(first, first + count):
        moment = FIRST + at * 86400 // PER_DAY
        host, service = f"host-{at * 7 % 1000:05}", f"service {at % 20:02}"
        output = f"CRITICAL - Socket timeout after {at % 60} seconds on {host}"
        rest = f"{host};{service};CRITICAL;HARD;3;{output}"
        kind = KINDS[at % len(KINDS)]
        message = f"[{moment}] {kind}: {rest}"
        made.append(
            kept([moment, at + 1, 1, kind, 2, "HARD", 3, host, service, "", "", output,
                  "", message, rest])
        )  # fmt: skip
    return made


def opened(url: str) -> Engine:
    """An engine that writes, on migrated tables."""
    parsed = engines.parse(url)
    if engines.is_sqlite(parsed):
        engines.prepare_file(Path(parsed.database or ""))
    migrate.upgrade(parsed)
    return engines.writing(parsed, 1, 600.0)


def lease_on(engine: Engine, site: str) -> records.UpdateLease:
    """The lease of a site that is new."""
    with engine.begin() as connection:
        known = records.acquire(site, "bench", "update", time.time())(connection)
    assert known is not None
    return records.UpdateLease(id=known.id, owner="bench")


def portions(given: list[LogLine]) -> list[list[LogLine]]:
    return [given[at : at + PORTION] for at in range(0, len(given), PORTION)]


def imported(engine: Engine, site: str, given: list[LogLine]) -> float:
    """Seconds of storing lines as the importer does."""
    lease = lease_on(engine, site)
    started = time.perf_counter()
    for portion in portions(given):
        with engine.begin() as connection:
            records.write(lease, time.time(), portion)(connection)
    return time.perf_counter() - started


def bare(engine: Engine, site: int, given: list[LogLine]) -> float:
    """Seconds of the same rows by executemany or COPY, in transactions of the same size."""
    rows = [(site, line[0], line[1], at, *line[2:]) for at, line in enumerate(given)]
    columns = ", ".join(f'"{one.name}"' for one in logcache_lines.columns)
    marks = ", ".join("?" * len(logcache_lines.columns))
    with engine.begin() as connection:  # room in PostgreSQL is made once for both
        cache_records.insert_lines(connection, [(site + 1, *rows[at][1:]) for at in (0, -1)])
    started = time.perf_counter()
    for at in range(0, len(rows), PORTION):
        with engine.begin() as connection:
            driver: Any = connection.connection.driver_connection
            if connection.dialect.name == "sqlite":
                driver.executemany(
                    f"INSERT INTO logcache_lines ({columns}) VALUES ({marks})",
                    rows[at : at + PORTION],
                )
                continue
            with (
                driver.cursor() as cursor,
                cursor.copy(f"COPY logcache_lines ({columns}) FROM STDIN") as copy,
            ):
                for row in rows[at : at + PORTION]:
                    copy.write_row(row)
    return time.perf_counter() - started


def importing(what: str, url: str) -> Line:
    """The importer's way against the bare one, in turns."""
    engine = opened(url)
    given = lines(0, COUNT // 5)
    ours, limit = [], []
    for turn in range(5):
        ours.append(imported(engine, f"ours{turn}", given))
        limit.append(bare(engine, 1000 + 2 * turn, given))
    engine.dispose()
    first, second = median(ours), median(limit)
    return Line(
        what=f"log lines into {what}",
        ours=f"{len(given) / first:,.0f}/s",
        limit=f"{len(given) / second:,.0f}/s bare {'COPY' if 'postgres' in url else 'executemany'}",
        ratio=f"{first / second:.2f}x",
        target="<= 2x",
        met=first <= 2 * second,
    )


def questions() -> dict[str, tuple[tuple[str, str], ...]]:
    return {
        "/logs?limit=100": (("limit", "100"),),
        "/logs?limit=100&type=SERVICE ALERT&state=2": (
            ("limit", "100"),
            ("type", "SERVICE ALERT"),
            ("state", "2"),
        ),
        "/logs?limit=100&host_name=host-00007": (("limit", "100"), ("host_name", "host-00007")),
    }


def asked(reader: Engine, planned: CachePlan, end: int) -> tuple[float, list[Any]]:
    """Seconds of one question to the cache about all of its time, and what it gave."""
    started = time.perf_counter()
    with reader.connect() as connection:
        piece = planned.piece(records.cached_site("main")(connection), float(end))
        assert piece is not None
        question = CacheQuestion(pushed=planned.plan.pushed)
        found = page("main", piece, question, piece.start, piece.end, 0)(connection)
    assert found is not None
    return time.perf_counter() - started, found[0]


def prepared(parameters: tuple[tuple[str, str], ...], end: int) -> CachePlan:
    """The question to the cache that a request about all of its time makes."""
    moment = Moment(now=float(end), zone=UTC)
    query = parse_query((*parameters, ("time[gte]", str(FIRST)), ("time[lt]", str(end - 600))))
    bound = bind(query, ColumnNames(LOGS), View(), moment)
    planned = reading(bound, layout(bound, ()), None)
    assert planned is not None
    return planned


def cached(url: str, count: int) -> Iterator[Line]:
    """What requests want of many cached lines."""
    engine = opened(url)
    lease = lease_on(engine, "main")
    for start in range(0, count, 100_000):
        with engine.begin() as connection:
            records.write(lease, time.time(), lines(start, 100_000))(connection)
    end = FIRST + count * 86400 // PER_DAY
    with engine.begin() as connection:
        covered = {"covered_from": FIRST, "covered_until": end, "wanted_from": FIRST}
        records.write(lease, time.time(), (), **covered)(connection)
        compaction.analyze(connection)
    reader = engines.reading(engines.parse(url), 1, 600.0)
    yield from newest(reader, count, end)
    yield counted(reader, count, end)
    reader.dispose()
    engine.dispose()


def newest(reader: Engine, count: int, end: int) -> Iterator[Line]:
    """The hundred newest of many lines."""
    for what, parameters in questions().items():
        question = prepared(parameters, end)

        def ask(question: Any = question) -> float:
            seconds, rows = asked(reader, question, end)
            assert len(rows) == 100
            return seconds

        seconds = median(ask() for _ in range(20))
        yield Line(
            what=f"{what} of {count:,} cached lines",
            ours=milliseconds(seconds),
            limit="-",
            ratio=milliseconds(seconds),
            target="< 50 ms",
            met=seconds < 0.05,
        )


def counted(reader: Engine, count: int, end: int) -> Line:
    """How many lines of each type there are."""
    question = prepared((("columns", "type,count(*)"),), end)

    def ask() -> float:
        seconds, rows = asked(reader, question, end)
        assert len(rows) == len(KINDS)
        return seconds

    seconds = median(ask() for _ in range(3))
    most = COUNTED * count / 1e6
    return Line(
        what=f"/logs?columns=type,count(*) of {count:,} lines in {reader.dialect.name}",
        ours=f"{seconds:.2f} s",
        limit="-",
        ratio=f"{seconds:.2f} s",
        target=f"<= {most:g} s",
        met=seconds <= most,
    )


def straight(processes: Processes, count: int = STRAIGHT) -> Iterator[Line]:
    """The memory of a month of log that comes straight from a core."""
    first = int(time.time()) - (MONTH + 1) * 86400
    behind, socket = processes.core("logged", 10, 10), str(processes.folder / "long.live")
    month = (f"--count={count}", f"--first={first}", f"--days={MONTH}")
    processes.python("long", "-m", "bench.longlog", f"--site={socket}={behind}", *month)
    extra = ("[logcache]", "enabled = false")
    patient = ("request_timeout = 600",)
    span = f"time[gte]={first}&time[lt]={first + MONTH * 86400}"
    for what in ("", "&sort=host_name,-message", "&columns=type,host_name,count(*)"):
        # A daemon of its own each time, because a process does not give back what it had.
        daemon = Daemon(
            processes, f"long{len(what)}", {"main": socket}, extra=extra, server=patient
        )
        daemon.http().body("/logs?limit=1000")
        daemon.forget_peak()
        idle = daemon.memory("VmRSS")
        seconds, size = daemon.http().length(f"/logs?{span}{what}")
        above = daemon.memory("VmHWM") - idle
        yield Line(
            what=f"{count:,} lines from a core{what and ', '}{what[1:]}: memory above idle",
            ours=f"{above / 2**20:.0f} MiB, {seconds:.0f} s",
            limit=f"{size / 2**20:.0f} MiB answer",
            ratio=f"{above / MEMORY:.2f}x",
            target=f"<= {MEMORY >> 20} MiB",
            met=above <= MEMORY,
        )


def with_postgres(work: Callable[[str], Iterator[Line]]) -> Iterator[Line]:
    """Lines on a PostgreSQL of our own; none where it is not installed."""
    try:
        from tests.fakes.postgres import PostgresMissing, PostgresServer
    except ImportError:
        return
    try:
        server = PostgresServer()
    except PostgresMissing:
        return
    try:
        yield from work(server.url(server.create()))
    finally:
        server.remove()


def cache(count: int = READ) -> Iterator[Line]:
    """All lines about the log cache."""
    with tempfile.TemporaryDirectory(prefix="monrest-bench-") as folder:
        yield importing("SQLite", f"sqlite:///{folder}/import.sqlite")
        yield from cached(f"sqlite:///{folder}/read.sqlite", count)
    yield from with_postgres(lambda url: iter([importing("PostgreSQL", url)]))
    yield from with_postgres(lambda url: cached(url, count))


def main() -> None:
    """Print the lines about the cache, or ``straight`` about a core, for so many log lines."""
    count = int(sys.argv[1]) if len(sys.argv) > 1 else READ
    if sys.argv[2:] != ["straight"]:
        print(plain(list(cache(count))))
        return
    with tempfile.TemporaryDirectory(prefix="monrest-bench-") as folder:
        processes = Processes(Path(folder))
        try:
            print(plain(list(straight(processes, count))))
        finally:
            processes.stop()


if __name__ == "__main__":
    main()
