"""A program of its own between the daemon and a command, which ends the command in time.

Started with the path of a lock, a moment and the command. The daemon writes later moments into its
standard input, one a line, for as long as others surely know that it lives. When the last of them
has passed (the daemon is paused, or cut off from its database), when the input ends (the daemon is
dead) or when it is asked to end, it ends the command with everything that the command has started.

Moments are those of CLOCK_BOOTTIME. While it runs it holds the lock, for which it waits shortly, so
that the daemon's next life does not begin before all is over. It knows nothing of monrest and needs
only the standard library: it starts in a few milliseconds, without site packages.
"""

from __future__ import annotations

import ctypes
import fcntl
import os
import select
import signal
import sys
import time
from contextlib import suppress
from pathlib import Path

GRACE = 2.0
"""Seconds between asking a command to end and ending it."""

LOCKED = 10.0
"""Seconds for which another command may take to end."""

_SET_PDEATHSIG = 1
_SET_CHILD_SUBREAPER = 36
_ROUNDS = 200
_FAILED, _MISSING = 1, 127


def now() -> float:
    """Measure seconds that pass, also while the machine sleeps; this clock cannot be set."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def main(lock: str, until: float, command: list[str]) -> int:
    """Run the command; its exit status, 128 and the number of the signal that ended it."""
    held = _lock(lock, until)
    if held is None:
        return _failed("another command still runs on this machine")
    if now() >= until:
        return _failed("it was not begun: the daemon could not say that it lives")
    # Processes that the command leaves behind without a parent become children of this one.
    ctypes.CDLL(None).prctl(_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    asked: list[int] = []
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.signal(signal.SIGTERM, lambda number, _: asked.append(number))
    own = os.getpid()
    child = os.fork()
    if child == 0:
        _become(command, own)
    heard = b""
    open_ = True
    while True:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            code = os.waitstatus_to_exitcode(status)
            return code if code >= 0 else 128 - code
        left = until - now()
        if asked or not open_ or left <= 0:
            _end(child)
            if not asked:
                why = "the daemon could not say that it lives" if open_ else "the daemon ended"
                return _failed(f"it was ended: {why}")
            return 128 + signal.SIGTERM
        ready, _, _ = select.select([0, reader], [], [], left)
        if reader in ready:
            os.read(reader, 4096)
        if 0 in ready:
            data = os.read(0, 4096)
            open_ = bool(data)
            *lines, heard = (heard + data).split(b"\n")
            until = max([until, *map(float, lines)])


def _failed(reason: str) -> int:
    # The daemon may be dead, and the pipe may be full.
    os.set_blocking(2, False)
    with suppress(OSError):
        os.write(2, f"{reason}\n".encode())
    return _FAILED


def _lock(path: str, until: float) -> int | None:
    """Take the lock; None when another process keeps it."""
    held = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    end = min(now() + LOCKED, until)
    while True:
        try:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            if now() >= end:
                return None
            time.sleep(0.05)
        else:
            return held


def _become(command: list[str], parent: int) -> None:
    """Be the command, at the head of a session; ended when its parent is."""
    try:
        os.setsid()
        signal.set_wakeup_fd(-1)
        for number in (signal.SIGCHLD, signal.SIGTERM):
            signal.signal(number, signal.SIG_DFL)
        ctypes.CDLL(None).prctl(_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        if os.getppid() != parent:
            os._exit(_FAILED)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.execvp(command[0], command)  # noqa: S606  a command of the configuration
    except (OSError, ValueError) as error:
        os.write(2, f"cannot start {command[0]}: {error}\n".encode("utf-8", "replace"))
    os._exit(_MISSING)


def _end(child: int) -> None:
    """Ask the command and all below it to end, and a little later do it."""
    _signal({child, *_below()}, signal.SIGTERM)
    end = now() + GRACE
    while now() < end and _reaped() and _below():
        time.sleep(0.02)
    # A process that starts others while it is being ended is ended as well.
    for _ in range(_ROUNDS):
        _signal(_below(), signal.SIGKILL)
        if not _reaped():
            return
        time.sleep(0.01)


def _signal(processes: set[int], number: int) -> None:
    for one in processes:
        try:
            os.kill(one, number)
        except (ProcessLookupError, PermissionError):
            continue


def _reaped() -> bool:
    """Take the status of all that have ended; whether any child is left."""
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        return False
    return True


def _below() -> set[int]:
    """Find all descendants that live."""
    parents: dict[int, int] = {}
    for entry in os.scandir("/proc"):
        if entry.name.isdigit():
            try:
                fields = Path(entry.path, "stat").read_text(errors="replace").rpartition(")")[2]
            except OSError:
                continue
            state, parent = fields.split()[:2]
            if state != "Z":
                parents[int(entry.name)] = int(parent)
    found: set[int] = set()
    fresh = {os.getpid()}
    while fresh:
        fresh = {one for one, parent in parents.items() if parent in fresh} - found
        found |= fresh
    return found


if __name__ == "__main__":
    os.setsid()
    sys.exit(main(sys.argv[1], float(sys.argv[2]), sys.argv[3:]))
