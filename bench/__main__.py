"""Run all benchmarks: ``python -m bench [--only MEASURE …] [--markdown FILE]``.

Status 0 unless something broke; a missed target is printed, not an error.
"""

from __future__ import annotations

import argparse
import gc
import signal
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from types import FrameType

from bench import (
    bp,
    cluster,
    events,
    hooks,
    identity,
    lines,
    logs,
    million,
    objects,
    readers,
    reload,
    reports,
    road,
    workers,
)
from bench.clients import BrokenRunError
from bench.processes import Daemon, Processes, describe_machine
from bench.report import Line, markdown, plain

LONGEST_MEASURE = 240
"""Seconds after which a measure is given up."""

DISTANT = 100
LATENCY = 0.05
PARTS = (
    lines.memory,
    lines.one_host,
    identity.api_key,
    lines.large_answers,
    lines.straight,
    lines.counts,
    lines.same_question,
    lines.first_hundred,
    lines.small_beside_large,
)


class OutOfTimeError(BrokenRunError):
    """A measure took too long."""


def near(processes: Processes, hosts: int, services: int, broken: list[str]) -> Iterator[Line]:
    """Everything that needs one large site: the replay of an embedded core beside us.

    What breaks in one part is added to ``broken`` and leaves the other parts alone.
    """
    cores = {
        "main": processes.core("large", hosts, services),
        "small": processes.core("tenth", max(1, hosts // 10), services // 10),
    }
    sockets = processes.replay("near", cores)
    daemon = Daemon(processes, "daemon", sockets, hidden=["small"], extra=lines.NO_LOGS)
    host = first_host(daemon, "main")
    bench = lines.Bench(processes=processes, daemon=daemon, sockets=sockets, host=host)
    for part in PARTS:
        try:
            yield from part(bench)
        except OutOfTimeError:
            raise
        except (BrokenRunError, OSError) as error:
            broken.append(f"{part.__name__}: {error}")


def far(processes: Processes) -> Iterator[Line]:
    """Everything that needs many distant sites."""
    core = processes.core("distant", 20, 100)
    cores = {f"site{number:03}": core for number in range(DISTANT)}
    sockets = processes.replay("far", {**cores, "dead": ""}, LATENCY)
    daemon = Daemon(processes, "far-daemon", sockets, hidden=["dead"], dead=["dead"])
    yield from lines.distant_sites(daemon, sockets, "dead", first_host(daemon, "site000"))


def commanded(processes: Processes) -> Iterator[Line]:
    """Everything that changes a core: an embedded one of its own."""
    core = processes.core("commanded", 100, 500)
    allow = ("[webhooks]", 'allow = ["127.0.0.1"]')
    daemon = Daemon(processes, "commanding", {"core": core}, extra=allow)
    yield from identity.bulk(daemon, core)
    yield from hooks.burst(daemon, core)
    yield from events.streams(daemon, core)
    yield from events.without_waiting(processes)


def cached(_: Processes) -> Iterator[Line]:
    """Everything about the log cache, which needs no daemon."""
    yield from logs.cache()


def object_files(processes: Processes, hosts: int, services: int) -> Iterator[Line]:
    """Everything about object files, which needs no process."""
    yield from objects.parsing(processes.folder, hosts, services)


def reported(processes: Processes) -> Iterator[Line]:
    """Everything about reports."""
    yield from reports.month(processes)
    yield from reports.service_level(processes)


def first_host(daemon: Daemon, site: str) -> str:
    """The first host of a site, as CSV gives it."""
    return (
        daemon.http()
        .body(f"/sites/{site}/csv/hosts?columns=name&sort=name&limit=1&headers=0")
        .decode()
        .strip()
    )


def out_of_time(_signal: int, _frame: FrameType | None) -> None:
    """Give the measure up."""
    raise OutOfTimeError(f"not finished after {LONGEST_MEASURE} s")


def run(hosts: int, services: int, only: Sequence[str] = ()) -> tuple[list[Line], list[str]]:
    """All lines that could be measured, of ``only`` these measures, and what broke."""
    found: list[Line] = []
    broken: list[str] = []
    signal.signal(signal.SIGALRM, out_of_time)
    measures: dict[str, Callable[[Processes], Iterator[Line]]] = {
        "near": lambda p: near(p, hosts, services, broken),
        "road": road.road,
        "far": far,
        "readers": lambda p: readers.readers(p, hosts, services),
        "workers": lambda p: workers.workers(p, hosts, services),
        "commanded": commanded,
        "reload": reload.reloads,
        "cache": cached,
        "logs": logs.straight,
        "reports": reported,
        "cluster": cluster.heartbeat,
        "objects": lambda p: object_files(p, hosts, services),
        "million": lambda p: million.million(p, hosts, services),
        "bp": lambda p: bp.calculating(p, hosts, services),
    }
    unknown = set(only) - set(measures)
    if unknown:
        raise SystemExit(f"{', '.join(sorted(unknown))}: expected some of {', '.join(measures)}")
    for measure in [measures[name] for name in only or measures]:
        with ExitStack() as stack:
            folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="monrest-bench-"))
            processes = Processes(Path(folder))
            stack.callback(processes.stop)
            stack.callback(signal.alarm, 0)
            signal.alarm(LONGEST_MEASURE)
            try:
                for line in measure(processes):
                    print(f"{line.what}: {line.ours} / {line.limit}", file=sys.stderr, flush=True)
                    found.append(line)
            except (BrokenRunError, OSError) as error:
                broken.append(str(error))
    return found, broken


def main() -> int:
    parser = argparse.ArgumentParser(prog="bench", description="monrest beside its limits")
    parser.add_argument("--markdown", type=Path, metavar="FILE", help="write the table there too")
    parser.add_argument("--only", nargs="+", default=[], metavar="MEASURE")
    parser.add_argument("--hosts", type=int, default=1000)
    parser.add_argument("--services", type=int, default=20000)
    options = parser.parse_args()
    # The limit is a client without the cyclic garbage collector, and this is the client.
    gc.disable()
    found, broken = run(options.hosts, options.services, options.only)
    print(f"{options.hosts} hosts, {options.services} services, {describe_machine()}\n")
    print(plain(found))
    if options.markdown is not None:
        options.markdown.write_text(markdown(found, describe_machine()))
    for problem in broken:
        print(f"BROKEN: {problem}", file=sys.stderr)
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
