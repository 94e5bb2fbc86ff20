"""``twistd monrest --demo`` at a date that stands still: ``python -m tests.contract.frozen OPTION...``.

The reactor keeps its own clock, so that whatever waits goes on waiting. The embedded core plans its
checks and runs none, because each of them would change what the next request finds.
"""

import itertools
import os
import secrets
import shutil
import socket
import tempfile
import time
from contextlib import suppress
from pathlib import Path

NOW = 1741773600.0
"""2025-03-12 10:00:00 UTC, a Wednesday: before every date that a file of this machine has."""

FOLDER = Path("/tmp/monrest-demo-contract")


def lock():
    """Wait for other frozen demos on this machine to end; the address is free when the process has."""
    held = socket.socket(socket.AF_UNIX)
    while True:
        with suppress(OSError):
            held.bind("\0monrest-contract")
            return held
        time.sleep(0.1)


def folder(prefix):
    """The same in each demo: ids of object definitions are made of the paths of their files."""
    shutil.rmtree(FOLDER, ignore_errors=True)
    FOLDER.mkdir(0o700)
    return str(FOLDER)


def main():
    held = lock()
    os.environ["TZ"] = "UTC"
    time.tzset()
    time.time = lambda: NOW
    time.time_ns = lambda: int(NOW) * 1_000_000_000
    socket.gethostname = lambda: "demo"
    tempfile.mkdtemp = folder
    # Ids of jobs are a date and a random number: they are in the order in which they were made.
    numbers = itertools.count(1)
    secrets.randbelow = lambda limit: next(numbers) % limit
    # Imported from here on: a module that has a function by its own name has one of these.
    from twisted.scripts.twistd import run

    from monrest.demo.simulation import Simulation

    Simulation.start = Simulation.replan
    with held:
        run()


if __name__ == "__main__":
    main()
