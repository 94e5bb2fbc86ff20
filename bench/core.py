"""What a row costs before a core that somebody has: ``make test-core SOCKET=… BENCH=1``.

    python -m bench.core unix:PATH
    python -m bench.core tcp:HOST:PORT

Both ways go over the same relay, which knows what the daemon asked and passes no command on. Status
0 unless something broke.
"""

from __future__ import annotations

import argparse
import gc
import tempfile
from pathlib import Path

from bench import lines
from bench.processes import Daemon, Processes
from bench.report import plain


def main() -> None:
    parser = argparse.ArgumentParser(description="the cost of a row before a core")
    parser.add_argument("address", metavar="SOCKET", help="unix:PATH or tcp:HOST:PORT")
    options = parser.parse_args()
    gc.disable()
    with tempfile.TemporaryDirectory() as folder:
        processes = Processes(Path(folder))
        try:
            sockets = processes.replay("relay", {"main": options.address}, live=True)
            daemon = Daemon(processes, "daemon", sockets, extra=lines.NO_LOGS)
            bench = lines.Bench(processes=processes, daemon=daemon, sockets=sockets, host="")
            print(plain(list(lines.straight(bench))))
        finally:
            processes.stop()


if __name__ == "__main__":
    main()
