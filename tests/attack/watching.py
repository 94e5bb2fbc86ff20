"""A daemon whose memory and pauses are measured."""

import struct
import sys
from pathlib import Path

from harness.daemon import Daemon

MOST_MEMORY = 32_000_000
"""Bytes that a request takes at most."""
MOST_HELD = 0.05
"""Seconds of processor time between two turns of the reactor."""
TRIES = 4


class Watched(Daemon):
    """A daemon that says for how long its reactor was held."""

    def __init__(self, folder, sites, **more):
        super().__init__(folder, sites, **more)
        self.held_file = Path(folder) / "held"
        self.held_file.write_bytes(struct.pack("d", 0.0))
        self.prefix = (
            sys.executable,
            str(Path(__file__).with_name("watched.py")),
            str(self.held_file),
        )

    def forget(self):
        """Measure from now on."""
        self.held_file.open("r+b").write(struct.pack("d", 0.0))
        Path(f"/proc/{self.process.pid}/clear_refs").write_text("5")

    @property
    def held(self):
        """The seconds for which the reactor was held at most."""
        return struct.unpack("d", self.held_file.read_bytes())[0]

    def resident(self, name):
        """The bytes that are in memory: VmRSS just now, VmHWM at most."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return next(int(line.split()[1]) * 1024 for line in status.splitlines() if name in line)


def measured(daemon, ask):
    """Ask up to some times; gives the status, and the least bytes and seconds that it took."""
    memory, held = [], []
    for _ in range(TRIES):
        daemon.forget()
        before = daemon.resident("VmRSS")
        status = ask()
        held.append(daemon.held)
        memory.append(daemon.resident("VmHWM") - before)
        if held[-1] <= MOST_HELD and memory[-1] <= MOST_MEMORY:
            break
    return status, min(memory), min(held)
