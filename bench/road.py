"""Processor time of a small request over keep-alive, against the same bytes from bare Klein.

    python -m bench.road [PATH]

Warm: the same request again. Cold: each request has another filter, so that nothing is known of it.
"""

from __future__ import annotations

import argparse
import itertools
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

from bench.lines import in_turns
from bench.processes import Daemon, Processes, cpu_seconds
from bench.report import Line

PATH = "/services?columns=host_name,description,state&state[ne]=0"
COLD = "&description[ne]=none{}"
AT_A_TIME = 1000
ROUNDS = 7
MOST_CPU = 2.0


def road(processes: Processes, path: str = PATH) -> Iterator[Line]:
    """What a small request costs."""
    core = processes.core("road", 20, 100)
    # What the log cache reads meanwhile is no part of a request.
    daemon = Daemon(processes, "road", {"core": core}, extra=("[logcache]", "enabled = false"))
    ours = daemon.http()
    bare, theirs = processes.bare_handler(ours.body(path))
    number = itertools.count()

    def taken(process: subprocess.Popen[bytes], ask: Callable[[], object]) -> Callable[[], float]:
        def measure() -> float:
            began = cpu_seconds(process.pid)
            for _ in range(AT_A_TIME):
                ask()
            return (cpu_seconds(process.pid) - began) / AT_A_TIME

        return measure

    handled = taken(bare, lambda: theirs.body("/hosts/one"))
    for kind, ask, target in (
        ("warm", lambda: ours.body(path), MOST_CPU),
        ("cold", lambda: ours.body(path + COLD.format(next(number))), None),
    ):
        asked = taken(daemon.process, ask)
        in_turns(asked, handled, 1)
        mine, limit = in_turns(asked, handled, ROUNDS)
        yield Line(
            what=f"processor time of a small request, {kind}",
            ours=f"{mine * 1e6:.0f} µs",
            limit=f"{limit * 1e6:.0f} µs bare Klein",
            ratio=f"{mine / limit:.2f}x",
            target=f"<= {target:g}x" if target else "",
            met=target is None or mine / limit <= target,
        )


def main() -> None:
    parser = argparse.ArgumentParser(description="processor time of a small request")
    parser.add_argument("path", nargs="?", default=PATH)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        processes = Processes(Path(folder))
        try:
            for line in road(processes, options.path):
                print(f"{line.what}: {line.ours} / {line.limit} = {line.ratio}")
        finally:
            processes.stop()


if __name__ == "__main__":
    main()
