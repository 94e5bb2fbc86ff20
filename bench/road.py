"""The road of a small request: which modules of ours it passes, and how many calls of functions.

    python -m bench.road [--list] [--cpu] [PATH]

The daemon runs in this process in front of an embedded core in another one; a warm request over
keep-alive is counted with ``sys.setprofile`` on the reactor's thread. What the reactor does by
itself meanwhile is not counted: calls count from the request's first byte to the answer's last.

``--cpu`` measures the processor time of such a request instead, beside that of a bare Klein
handler.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any

from bench.clients import BrokenRunError, Http
from bench.lines import in_turns
from bench.processes import REPOSITORY, ROOT, Daemon, Processes, cpu_seconds, free_port
from bench.report import Line

PATH = "/services?columns=host_name,description,state&state[ne]=0"
WARM = 200
COUNTED = 20
AT_A_TIME = 1000
ROUNDS = 7
MOST_MODULES, MOST_CALLS, MOST_CPU = 25, 130, 2.0
_OURS = str(REPOSITORY / "monrest") + "/"
_CONFIG = """
[server]
listen = ["tcp:{port}:interface=127.0.0.1"]
var_dir = "{folder}/var"

[logcache]
enabled = false

[[sites]]
id = "core"
name = "core"
address = "unix:{core}"
"""


class CallCounter:
    """Counts calls of our functions while it is the profiler of a thread."""

    def __init__(self) -> None:
        self.calls: Counter[tuple[str, str]] = Counter()

    def __call__(self, frame: FrameType, event: str, _: Any) -> None:
        if event == "call" and frame.f_code.co_filename.startswith(_OURS):
            code = frame.f_code
            self.calls[code.co_filename.removeprefix(_OURS), code.co_qualname] += 1


def count(path: str, folder: Path, processes: Processes, reactor: Any) -> Counter[tuple[str, str]]:
    """Calls of our functions in one request, by file and name; the median run of several."""
    from monrest.config.load import loads
    from monrest.daemon.service import build

    core = processes.core("core", 20, 100)
    port = free_port()
    text = _CONFIG.format(port=port, folder=folder, core=core)
    found: list[Counter[tuple[str, str]]] = []
    failed: list[BaseException] = []

    def ask() -> None:
        try:
            key = (folder / "var/secret.key").read_text().strip()
            http = Http(port, {"X-Mon-Auth-Key": key, "X-Mon-Auth-User": "admin"}, ROOT)
            for _ in range(WARM):
                http.body(path)
            for _ in range(COUNTED):
                counter, ready = CallCounter(), threading.Event()

                def begin(counter: CallCounter = counter, ready: threading.Event = ready) -> None:
                    sys.setprofile(counter)
                    ready.set()

                reactor.callFromThread(begin)
                ready.wait()
                http.body(path)
                ready.clear()

                def end(ready: threading.Event = ready) -> None:
                    sys.setprofile(None)
                    ready.set()

                reactor.callFromThread(end)
                ready.wait()
                found.append(counter.calls)
                time.sleep(0.01)
        except BaseException as error:
            failed.append(error)
        finally:
            reactor.callFromThread(reactor.stop)

    (folder / "var").mkdir(mode=0o700)
    daemon = build(loads(text), reactor)
    daemon.startService()
    reactor.callWhenRunning(threading.Thread(target=ask, daemon=True).start)
    reactor.addSystemEventTrigger("before", "shutdown", daemon.stopService)
    reactor.run()
    if failed:
        raise failed[0]
    return sorted(found, key=lambda one: one.total())[len(found) // 2]


def cpu(processes: Processes, path: str = PATH) -> Line:
    """Processor time of one request over keep-alive, against the same bytes from bare Klein."""
    core = processes.core("road", 20, 100)
    # As when calls are counted: what the log cache reads meanwhile is no part of a request.
    daemon = Daemon(processes, "road", {"core": core}, extra=("[logcache]", "enabled = false"))
    ours = daemon.http()
    bare, theirs = processes.bare_handler(ours.body(path))

    def taken(process: subprocess.Popen[bytes], http: Http) -> float:
        began = cpu_seconds(process.pid)
        for _ in range(AT_A_TIME):
            http.body(path if http is ours else "/hosts/one")
        return (cpu_seconds(process.pid) - began) / AT_A_TIME

    asked, handled = partial(taken, daemon.process, ours), partial(taken, bare, theirs)
    in_turns(asked, handled, 1)
    mine, limit = in_turns(asked, handled, ROUNDS)
    return Line(
        what="processor time of a small request",
        ours=f"{mine * 1e6:.0f} µs",
        limit=f"{limit * 1e6:.0f} µs bare Klein",
        ratio=f"{mine / limit:.2f}x",
        target=f"<= {MOST_CPU:g}x",
        met=mine / limit <= MOST_CPU,
    )


def road(processes: Processes) -> Iterator[Line]:
    """What a small request costs, and how many modules and calls of ours it passes."""
    yield cpu(processes)
    # The reactor of a process runs only once.
    command = (sys.executable, "-m", "bench.road")
    printed = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=False)
    counted = re.search(r"(\d+) modules, (\d+) calls", printed.stdout)
    if counted is None:
        raise BrokenRunError(f"bench.road: {printed.stderr[-500:]}")
    for what, number, most in zip(
        ("modules", "calls"), map(int, counted.groups()), (MOST_MODULES, MOST_CALLS), strict=True
    ):
        yield Line(
            what=f"{what} of ours in a small request",
            ours=str(number),
            limit="",
            ratio="",
            target=f"<= {most}",
            met=number <= most,
        )


def main() -> None:
    parser = argparse.ArgumentParser(description="modules and calls of a small request")
    parser.add_argument("path", nargs="?", default=PATH)
    parser.add_argument("--list", action="store_true", help="every function with its calls")
    parser.add_argument("--cpu", action="store_true", help="processor time instead")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        processes = Processes(Path(folder))
        try:
            if options.cpu:
                line = cpu(processes, options.path)
                print(f"{line.what}: {line.ours} / {line.limit} = {line.ratio}")
                return
            from twisted.internet import reactor

            calls = count(options.path, Path(folder), processes, reactor)
        finally:
            processes.stop()
    modules = {file for file, _ in calls}
    if options.list:
        for (file, name), number in sorted(calls.items()):
            print(f"{number:5} {file} {name}")
    print(f"{len(modules)} modules, {calls.total()} calls")


if __name__ == "__main__":
    main()
