"""The workers of a daemon: which process each is, and clients that stay with one of them.

A connection stays with the worker that has accepted it, whose number is in its access lines.
"""

import contextlib
import os
import re
import secrets
from pathlib import Path

from .waiting import until


def processes(daemon):
    """The process of each worker by its number, as the log says it."""
    found = re.findall(r"worker (\d+) is process (\d+)", daemon.log)
    return {int(number): int(pid) for number, pid in found}


def living(daemon):
    """All processes below the parent that have not ended."""
    return daemon.workers()


def gone(pids):
    """Whether all these processes have ended."""
    return not any(runs(pid) for pid in pids)


def runs(pid):
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2][0] != "Z"
    return False


def worker_of(daemon, client):
    """The number of the worker to which the connection of a client goes."""
    name = secrets.token_hex(8)
    client.get("/mon/ready", headers={"X-Request-Id": name})
    line = until(
        lambda: re.search(rf"request_id={name} .*worker=(\d+)", daemon.log), "the access line"
    )
    return int(line[1])


def client_of(daemon, number, made=None):
    """A client whose connection goes to the worker with this number."""
    others = []
    try:
        while True:
            client = (made or daemon.client)()
            if worker_of(daemon, client) == number:
                return client
            others.append(client)
    finally:
        for one in others:
            one.close()


def kill(pid):
    """End a process that may have ended already."""
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, 9)
