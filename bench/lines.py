"""The lines of the table: what is measured, against which limit, with which target.

Ours and the limit are measured in turns, and medians are compared, so that whatever else the
machine does hits both.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from functools import partial
from statistics import median, quantiles
from urllib.parse import quote

import orjson
from attrs import frozen

from bench.clients import BrokenRunError, Http, Livestatus, requests_per_second
from bench.processes import ROOT, Daemon, Processes, cpu_seconds
from bench.report import Line, milliseconds, times
from monrest.base.values import nothing

ALL = "/services"
HUNDRED = "/services?limit=100"
THREE = "/services?columns=host_name,description,state"
FIRST = "/services?sort=host_name,description&limit=100"
TOTALS = "/services/totals"
COUNTS = (
    "/services?columns=count(*),state",
    TOTALS,
    "/services/stats",
    "/hosts/stats",
)
CLIENTS = 8
WATCHERS, WATCHED = 50, 3.0
"""Clients who watch the same, and seconds for which they do."""
MOST_SECONDS = 12.0
"""No pair of measurements goes on for longer."""


@frozen(kw_only=True)
class Bench:
    """A daemon before one large site (``main``) and a hidden small one (``small``)."""

    processes: Processes
    daemon: Daemon
    sockets: dict[str, str]
    host: str


def in_turns(
    ours: Callable[[], float], limit: Callable[[], float], rounds: int
) -> tuple[float, float]:
    """Medians of both, measured alternately ``rounds`` times or until time is up."""
    first: list[float] = []
    second: list[float] = []
    until = time.monotonic() + MOST_SECONDS
    while len(first) < rounds and (time.monotonic() < until or not first):
        first.append(ours())
        second.append(limit())
    return median(first), median(second)


def requests_behind(http: Http, site: Livestatus, path: str, table: str) -> list[str]:
    """What the daemon asks the core for ``path``; ``BrokenRunError`` when it asks nothing."""
    # What is learned of a core for the first such request is not what the request costs.
    http.body(path)
    site.seen()
    http.body(path)
    requests = site.seen(table)
    if not requests:
        raise BrokenRunError(f"{path}: no request for {table} reached the core")
    return requests


ABOVE_IDLE = 120 << 20
"""Bytes that one large answer may take for as long as it is made."""


def memory(bench: Bench) -> Iterator[Line]:
    """Peak memory of the first large answer of this daemon's life, above idle."""
    http = bench.daemon.http()
    for _ in range(20):
        http.seconds("/hosts?columns=name&limit=1")
    bench.daemon.forget_peak()
    idle = bench.daemon.memory("VmRSS")
    size = len(http.body(ALL))
    above = bench.daemon.memory("VmHWM") - idle
    ratio = above / size
    yield Line(
        what="all services, all columns: peak memory above idle",
        ours=f"{above / 2**20:.0f} MiB",
        limit=f"{size / 2**20:.0f} MiB answer",
        ratio=f"{ratio:.2f}x",
        target=f"<= {ABOVE_IDLE >> 20} MiB",
        met=above <= ABOVE_IDLE,
    )


def one_host(bench: Bench) -> Iterator[Line]:
    """One host by name over keep-alive, alone and with eight clients, against bare Klein."""
    path = f"/hosts/{quote(bench.host, safe='')}"
    http = bench.daemon.http()
    body = http.body(path)
    if len(orjson.loads(body)) != 1:
        raise BrokenRunError(f"{path}: expected one host, got {body[:200]!r}")
    bare = bench.processes.bare(body)

    def hundred(client: Http) -> Callable[[], float]:
        return lambda: median(client.seconds(path) for _ in range(100))

    for client in (http, bare):
        hundred(client)()
    ours, limit = in_turns(hundred(http), hundred(bare), 15)
    yield times("one host by name, keep-alive", ours, limit, 2.5, beside=" bare Klein")

    def rate(client: Http) -> Callable[[], float]:
        return lambda: requests_per_second(client, path, CLIENTS, 1.0)

    ours, limit = in_turns(rate(http), rate(bare), 5)
    ratio = ours / limit
    yield Line(
        what=f"one host by name, {CLIENTS} clients",
        ours=f"{ours:.0f}/s",
        limit=f"{limit:.0f}/s bare Klein",
        ratio=f"{ratio:.0%}",
        target=">= 40%",
        met=ratio >= 0.4,
    )


def large_answers(bench: Bench) -> Iterator[Line]:
    """All services with all and with three columns, against a blocking read and parse."""
    http, site = bench.daemon.http(), Livestatus(bench.sockets["main"])
    for what, path, rounds in (
        ("all services, all columns", ALL, 7),
        ("all services, three columns", THREE, 25),
    ):
        requests = requests_behind(http, site, path, "services")
        ours, limit = in_turns(
            partial(http.seconds, path),
            partial(site.seconds, requests),
            rounds,
        )
        # The core's bytes are the limit's; ours are several times as many, as they carry keys.
        core = sum(len(site.body(request)) for request in requests) / 1e6
        sizes = f" ({len(http.body(path)) / 1e6:.1f} MB from {core:.1f} MB)"
        yield times(what + sizes, ours, limit, 3, beside=" raw read + loads of the core's")


NO_LOGS = ("[logcache]", "enabled = false")
"""What the log cache reads meanwhile is no part of an answer."""

STRAIGHT = (
    ("100 services, all columns", HUNDRED, 2, 100),
    ("100 services, all columns, a minute later", HUNDRED, 2, 20),
    ("all services, three columns", THREE, 1.3, 25),
    ("all services, all columns", ALL, 1.1, 7),
)
"""What is measured against the straight way, how many times that it may take, and rounds."""


def minute(site: Livestatus, http: Http) -> None:
    """Let a minute pass at the site, after which the daemon has been asked for other pages."""
    site.minute()
    for _ in range(5):
        http.body("/hosts?limit=100")


def straight(bench: Bench) -> Iterator[Line]:
    """The cost of a row: ours against reading, parsing, naming and writing in one process."""
    http, site = bench.daemon.http(), Livestatus(bench.sockets["main"])
    for what, path, most, rounds in STRAIGHT:
        wait = partial(minute, site, http) if what.endswith("later") else nothing
        asked = requests_behind(http, site, path, "services")[-1]
        # The straight way takes rows as they come, whether or not that is known to be our order.
        kept = [text for text in asked.split("\n") if not text.startswith("Sort: ")]
        request = "\n".join(kept)
        pid, used = bench.daemon.process.pid, [0.0, 0.0]

        def asked_of_us(
            path: str = path,
            pid: int = pid,
            used: list[float] = used,
            wait: Callable[[], None] = wait,
        ) -> float:
            wait()
            began = cpu_seconds(pid)
            seconds = http.seconds(path)
            used[0] += cpu_seconds(pid) - began
            return seconds

        def made_here(request: str = request, used: list[float] = used) -> float:
            began = time.process_time()
            seconds = site.straight_seconds(request)
            used[1] += time.process_time() - began
            return seconds

        ours, limit = in_turns(asked_of_us, made_here, rounds)
        yield times(what, ours, limit, most, beside=" straight in one process")
        yield times(f"{what}: processor time of all rounds", *used, most, beside=" straight")


def counts(bench: Bench) -> Iterator[Line]:
    """Grouped counts, totals and statistics: what we add to the raw query."""
    http, site = bench.daemon.http(), Livestatus(bench.sockets["main"])
    for path in COUNTS:
        table = path.split("/")[1].split("?")[0]
        requests = requests_behind(http, site, path, table)
        size = sum(len(site.body(request)) for request in requests)
        ours, limit = in_turns(
            partial(http.seconds, path),
            partial(site.seconds, requests),
            60,
        )
        yield Line(
            what=f"{path} ({size} bytes from the core)",
            ours=milliseconds(ours),
            limit=milliseconds(limit) + " raw query",
            ratio=f"+{milliseconds(ours - limit)}",
            target="<= +3 ms",
            met=ours - limit <= 0.003,
        )


def same_question(bench: Bench) -> Iterator[Line]:
    """What many clients who ask the same at the same time cost the core."""
    http, site = bench.daemon.http(), Livestatus(bench.sockets["main"])
    queries = len(requests_behind(http, site, TOTALS, "services"))
    rate = requests_per_second(http, TOTALS, WATCHERS, WATCHED)
    asked = rate * WATCHED * queries
    sent = len(site.all_seen("services"))
    yield Line(
        what=f"{WATCHERS} clients ask for the same totals: queries that reach the core",
        ours=str(sent),
        limit=f"{asked:.0f} asked",
        ratio=f"1/{asked / max(1, sent):.0f}",
        target="<= 1/20",
        met=sent * 20 <= asked,
    )


def first_hundred(bench: Bench) -> Iterator[Line]:
    """The first 100 services by name of the large and of the small site."""
    http = bench.daemon.http()
    raw = {site: Livestatus(bench.sockets[site]) for site in ("main", "small")}
    paths = {site: f"/sites/{site}{FIRST}" for site in raw}
    behind = {site: requests_behind(http, raw[site], paths[site], "services") for site in raw}
    large, small = in_turns(
        lambda: http.seconds(paths["main"]), lambda: http.seconds(paths["small"]), 40
    )
    raw_large, raw_small = in_turns(
        lambda: raw["main"].seconds(behind["main"]),
        lambda: raw["small"].seconds(behind["small"]),
        40,
    )
    # The core's own growth is allowed; a tenth of the small time is noise.
    allowed = max(0.0, raw_large - raw_small) + 0.1 * small
    yield Line(
        what="limit=100 sorted by name, all columns: large against small table",
        ours=milliseconds(large),
        limit=f"{milliseconds(small)} (core: {milliseconds(raw_large)}, {milliseconds(raw_small)})",
        ratio=f"{large / small:.2f}x",
        target=f"<= {1 + allowed / small:.2f}x",
        met=large - small <= allowed,
    )


def small_beside_large(bench: Bench) -> Iterator[Line]:
    """The 99th percentile of a small request while large answers are produced."""
    path = f"/hosts/{quote(bench.host, safe='')}"
    http = bench.daemon.http()

    def sample(seconds: float) -> list[float]:
        until = time.monotonic() + seconds
        found = []
        while time.monotonic() < until:
            found.append(http.seconds(path))
            time.sleep(0.005)
        return found

    alone = percentile(sample(2.0))
    reader = bench.processes.python(
        "load",
        *("-m", "bench.load", f"--port={bench.daemon.port}", "--seconds=8"),
        *(f"--key-file={bench.daemon.key_file}", f"--path={ROOT}{ALL}"),
    )
    beside = percentile(sample(7.0))
    bench.processes.stop([reader])
    yield Line(
        what="p99 of one host by name while all services are answered",
        ours=milliseconds(beside),
        limit=f"{milliseconds(alone)} alone",
        ratio=f"{beside / alone:.1f}x",
        target="<= 100 ms",
        met=beside <= 0.1,
    )


def percentile(found: list[float]) -> float:
    """The 99th percentile."""
    return quantiles(found, n=100)[98]


def distant_sites(daemon: Daemon, sockets: dict[str, str], dead: str, host: str) -> Iterator[Line]:
    """One host on each of many sites, all alive and one of them dead."""
    http = daemon.http()
    alive = [site for site in sockets if site != dead]
    near = Livestatus(sockets[alive[0]])
    for what, chosen in (
        (f"{len(alive)} sites, each 50 ms away", alive),
        (f"{len(alive)} sites, 1 of them dead", [*alive[:-1], dead]),
    ):
        path = f"/sites/{','.join(chosen)}/hosts?name={quote(host)}&columns=name,state"
        requests = requests_behind(http, near, path, "hosts")
        rows = orjson.loads(http.body(path))
        if len(rows) != len(chosen) - (dead in chosen):
            raise BrokenRunError(f"{what}: {len(rows)} rows")
        ours, limit = in_turns(
            partial(http.seconds, path),
            partial(near.seconds, requests),
            20,
        )
        yield Line(
            what=what,
            ours=milliseconds(ours),
            limit=milliseconds(limit) + " one site, raw",
            ratio=f"{ours / limit:.2f}x",
            target="<= 80 ms",
            met=ours <= 0.08,
        )
