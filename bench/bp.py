"""The line about business processes: calculating many of them against the raw queries behind it.

A process of its own, which has the reactor: ``python -m bench.bp --site SOCKET``. It makes the
processes in a database of its own, calculates all of them in turns with reading the same answers
of the site by blocking calls, and prints the medians as JSON. In the case "still" the site says the
same each time, in the case "busy" a minute passes before each run, in which it has checked a fifth
of its services.
"""

from __future__ import annotations

import argparse
import gc
import json
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from typing import Any

import orjson
from twisted.internet.defer import Deferred

from bench.clients import BrokenRunError, Livestatus
from bench.processes import Processes
from bench.report import Line, times
from monrest.base.answer_file import AnswerFiles
from monrest.base.clock import MachineClock
from monrest.base.concurrency import Threads, pause
from monrest.base.room import RowRoom
from monrest.bp.core_objects import Exporter
from monrest.bp.service import DUTY, BusinessProcesses
from monrest.config import BpConfig, SiteConfig
from monrest.livestatus.inbox import AnswerMemory
from monrest.sites.registry import Registry
from monrest.store.database import Database
from monrest.store.duties import Duties

PROCESSES = 200
NODES = 50
BRANCHES = 4
ROUNDS = 10
TABLES = ("hosts", "services", "hostgroups", "servicegroups")


def calculating(processes: Processes, hosts: int, services: int) -> Iterator[Line]:
    """All processes together, from the question to the stored results."""
    core = processes.core("bp-core", hosts, services)
    socket = processes.replay("bp-sites", {"bp": core})["bp"]
    child = processes.python("bp", "-m", "bench.bp", f"--site={socket}", ready=False)
    if child.wait(120) != 0:
        raise BrokenRunError(f"business processes: {processes.log('bp')}")
    processes.running.remove(child)
    found = json.loads((processes.folder / "bp.log").read_text().splitlines()[-1])
    what = f"{PROCESSES} business processes of {NODES} nodes over {services} services"
    for case, meanwhile in (("still", "nothing new"), ("busy", "a fifth checked since")):
        yield times(
            f"{what}, {meanwhile}",
            found[case]["ours"],
            found[case]["raw"],
            2,
            beside=f" raw queries + loads ({found['bytes'] / 1e6:.1f} MB)",
        )


def definition(at: int, names: list[list[str]]) -> dict[str, Any]:
    """A root over branches over services, which are other ones for each process."""
    leaves = NODES - BRANCHES - 1
    branches = [f"b{number}" for number in range(BRANCHES)]
    nodes: list[dict[str, Any]] = [
        {"id": "node1", "label": "root", "function": "worst()", "depends": branches}
    ]
    for number, branch in enumerate(branches):
        children = [f"s{leaf}" for leaf in range(number, leaves, BRANCHES)]
        function = "at_least('60%', '40%')" if number % 2 else "worst()"
        nodes.append({"id": branch, "label": branch, "function": function, "depends": children})
    for leaf in range(leaves):
        host, service = names[(at * leaves + leaf) % len(names)]
        nodes.append({"id": f"s{leaf}", "label": service, "function": ["status", host, service]})
    return {"name": f"process {at}", "nodes": nodes}


async def measure(reactor: Any, path: str, folder: str) -> dict[str, Any]:
    """Medians in seconds of both in both cases, and how many bytes the site has answered."""
    raw = Livestatus(path)
    names = orjson.loads(
        raw.body(
            "GET services\nColumns: host_name description\nOutputFormat: json\n"
            "ResponseHeader: fixed16\nKeepAlive: on\n\n"
        )
    )
    database = Database(reactor, f"sqlite:///{folder}/bp.sqlite")
    database.startService()
    threads = Threads(reactor, 2, "bench")
    threads.startService()
    site = SiteConfig(id="bp", name="bp", address=f"unix:{path}")
    memory = AnswerMemory(RowRoom(reactor), AnswerFiles(Path(folder)), threads)
    registry = Registry(reactor, (site,), memory=memory)
    registry.startService()
    while not registry.sites[0].connected:
        await pause(reactor, 0.05)
    duties = Duties(database, reactor, "bench")
    service = BusinessProcesses(
        database=database,
        duties=duties,
        clock=reactor,
        wall=MachineClock(),
        sites=registry,
        threads=threads,
        config=BpConfig(refresh_interval=0),
        app="mon",
        exporter=Exporter(
            reactor=reactor,
            wall=MachineClock(),
            threads=threads,
            sites=registry,
            var_dir=Path(folder),
        ),
        folder=Path(folder, "bp"),
    )
    duties.want(DUTY)
    duties.startService()
    while duties.held(DUTY) is None:
        await pause(reactor, 0.05)
    for at in range(PROCESSES):
        made = await service.create(definition(at, names))
        await service.patch(made.nr, {})
    await service.regularly()
    raw.seen()
    await service.regularly()
    requests = raw.seen(*TABLES)
    size = sum(len(raw.body(request)) for request in requests)
    if size < 1_000_000:
        raise BrokenRunError(f"only {size} bytes for {requests}")
    gc.collect()
    gc.freeze()
    gc.disable()
    found: dict[str, Any] = {"bytes": float(size)}
    for case in ("still", "busy"):
        ours: list[float] = []
        limit: list[float] = []
        for _ in range(ROUNDS):
            if case == "busy":
                raw.minute()
            started = time.perf_counter()
            await service.regularly()
            ours.append(time.perf_counter() - started)
            limit.append(raw.seconds(requests))
        found[case] = {"ours": median(ours), "raw": median(limit)}
    states = {one.result.last_check for one in await service.several()}
    if 0 in states:
        raise BrokenRunError("a process was not calculated")
    await duties.stopService()
    await registry.stopService()
    await threads.stopService()
    await database.stopService()
    return found


def main() -> int:
    parser = argparse.ArgumentParser(prog="bench.bp")
    parser.add_argument("--site", required=True)
    options = parser.parse_args()
    from twisted.internet import reactor

    status = 1

    async def run() -> None:
        nonlocal status
        with tempfile.TemporaryDirectory(prefix="monrest-bench-bp-") as folder:
            found = await measure(reactor, options.site, str(Path(folder)))
        print(json.dumps(found), flush=True)
        status = 0

    def ended(result: object) -> None:
        if result is not None:
            print(result, file=sys.stderr)
        reactor.stop()  # type: ignore[attr-defined]  # the module is the reactor

    reactor.callWhenRunning(lambda: Deferred.fromCoroutine(run()).addBoth(ended))  # type: ignore[attr-defined]
    reactor.run()  # type: ignore[attr-defined]
    return status


if __name__ == "__main__":
    sys.exit(main())
