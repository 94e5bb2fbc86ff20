"""A daemon whose reactor is watched: how long it did not look at its sockets at most, and how much
of that it worked: the machine may be shared.

    python -m bench.watched --pauses FILE -- ARGUMENTS OF TWISTD

SIGUSR1 forgets what was seen, SIGUSR2 writes the longest pause and the longest work in seconds into
FILE.
"""

from __future__ import annotations

import argparse
import signal
import sys
import time
from pathlib import Path
from typing import Any


class Watched:
    """A poller that measures the time between the end of one call and the next."""

    def __init__(self, poller: Any) -> None:
        self.poller = poller
        self.longest = self.longest_work = 0.0
        self.since, self.worked = time.perf_counter(), time.thread_time()

    def poll(self, *arguments: Any) -> Any:
        """Wait for events, as the poller itself does."""
        self.longest = max(self.longest, time.perf_counter() - self.since)
        self.longest_work = max(self.longest_work, time.thread_time() - self.worked)
        try:
            return self.poller.poll(*arguments)
        finally:
            self.since, self.worked = time.perf_counter(), time.thread_time()

    def forget(self, *_: object) -> None:
        """Begin anew."""
        self.longest = self.longest_work = 0.0

    def __getattr__(self, name: str) -> Any:
        return getattr(self.poller, name)


def main() -> None:
    parser = argparse.ArgumentParser(description="a daemon whose reactor is watched")
    parser.add_argument("--pauses", type=Path, required=True, metavar="FILE")
    parser.add_argument("arguments", nargs="+")
    options = parser.parse_args()

    from twisted.internet import reactor

    watched = Watched(reactor._poller)
    reactor._poller = watched

    def write(*_: object) -> None:
        part = options.pauses.with_suffix(".part")
        part.write_text(f"{watched.longest} {watched.longest_work}\n")
        part.rename(options.pauses)

    signal.signal(signal.SIGUSR1, watched.forget)
    signal.signal(signal.SIGUSR2, write)
    sys.argv = ["twistd", *options.arguments]
    from twisted.scripts.twistd import run

    run()


if __name__ == "__main__":
    main()
