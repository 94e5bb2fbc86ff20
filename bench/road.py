"""The road of a small request: which modules of ours it passes, and how many calls of functions.

    python -m bench.road [--list] [PATH]

The daemon runs in this process in front of an embedded core in another one; a warm request over
keep-alive is counted with ``sys.setprofile`` on the reactor's thread. What the reactor does by
itself meanwhile is not counted: calls count from the request's first byte to the answer's last.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import threading
import time
from collections import Counter
from pathlib import Path
from types import FrameType
from typing import Any

from bench.clients import Http
from bench.processes import REPOSITORY, ROOT, Processes, free_port

PATH = "/services?columns=host_name,description,state&state[ne]=0"
WARM = 200
COUNTED = 20
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


def count(path: str, folder: Path, processes: Processes) -> Counter[tuple[str, str]]:
    """Calls of our functions in one request, by file and name; the median run of several."""
    from twisted.internet import reactor

    from monrest.config.load import loads
    from monrest.daemon.service import Daemon

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

                reactor.callFromThread(begin)  # type: ignore[attr-defined]  # zope's stub
                ready.wait()
                http.body(path)
                ready.clear()

                def end(ready: threading.Event = ready) -> None:
                    sys.setprofile(None)
                    ready.set()

                reactor.callFromThread(end)  # type: ignore[attr-defined]
                ready.wait()
                found.append(counter.calls)
                time.sleep(0.01)
        except BaseException as error:
            failed.append(error)
        finally:
            reactor.callFromThread(reactor.stop)  # type: ignore[attr-defined]

    (folder / "var").mkdir(mode=0o700)
    daemon = Daemon(config=loads(text), reactor=reactor)
    daemon.startService()
    reactor.callWhenRunning(threading.Thread(target=ask, daemon=True).start)  # type: ignore[attr-defined]
    reactor.addSystemEventTrigger("before", "shutdown", daemon.stopService)  # type: ignore[attr-defined]
    reactor.run()  # type: ignore[attr-defined]
    if failed:
        raise failed[0]
    return sorted(found, key=lambda one: one.total())[len(found) // 2]


def main() -> None:
    parser = argparse.ArgumentParser(description="modules and calls of a small request")
    parser.add_argument("path", nargs="?", default=PATH)
    parser.add_argument("--list", action="store_true", help="every function with its calls")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        processes = Processes(Path(folder))
        try:
            calls = count(options.path, Path(folder), processes)
        finally:
            processes.stop()
    modules = {file for file, _ in calls}
    if options.list:
        for (file, name), number in sorted(calls.items()):
            print(f"{number:5} {file} {name}")
    print(f"{len(modules)} modules, {calls.total()} calls")


if __name__ == "__main__":
    main()
