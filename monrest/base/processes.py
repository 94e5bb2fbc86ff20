"""Running commands that the configuration names, as processes of their own.

Each is a process group of its own under ``timeout`` of coreutils, which ends all of it at the time
limit, also while the daemon is paused; its output is caught and bounded.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any

from attrs import define, field, frozen
from twisted.internet.defer import Deferred
from twisted.internet.error import ProcessDone
from twisted.internet.protocol import ProcessProtocol
from twisted.python.failure import Failure

MOST_OUTPUT = 1_048_576
"""Bytes that are kept of standard output, and of standard error."""

GRACE = 2.0
"""Seconds between asking a command to end and killing it."""

_LINGER = 0.5
"""Seconds for which output is awaited after the end of a command that left children behind."""

_LAUNCHER = ("setpriv", "--pdeathsig", "TERM", "setsid", "timeout", f"--kill-after={GRACE:g}")
"""``timeout`` passes the signal of a daemon's death, as every SIGTERM, to the whole group."""

_TIMED_OUT = (124, 128 + signal.SIGKILL)
_SHORTEST = 0.001  # 0 would be no limit

_OWN = frozenset(
    {
        "LISTEN_FDNAMES",
        "LISTEN_FDS",
        "LISTEN_PID",
        "NOTIFY_SOCKET",
        "PGPASSWORD",
        "WATCHDOG_PID",
        "WATCHDOG_USEC",
    }
)
"""Variables that are meant for the daemon alone."""

_OUT = 1
_LONGEST_LINE = 500


@frozen(kw_only=True)
class Ended:
    """How a process ended.

    ``status`` is its exit status, 128 and the number of the signal when one ended it.
    ``dropped`` is how many bytes it wrote beyond what is kept.
    """

    status: int
    out: bytes = b""
    err: bytes = b""
    timed_out: bool = False
    dropped: int = 0

    def reason(self) -> str:
        """The reason of a failure in one line; empty for success."""
        if self.timed_out:
            return "ended because it took too long"
        if self.status == 0:
            return ""
        output = self.err.decode("utf-8", "replace").strip() or self.out.decode("utf-8", "replace")
        line = (output.strip().splitlines() or [""])[-1][:_LONGEST_LINE]
        return f"exit status {self.status}{': ' if line else ''}{line}"


def run(
    reactor: Any,
    arguments: Sequence[str],
    environment: Mapping[str, str],
    seconds: float,
    heard: Callable[[bytes], object] | None = None,
) -> Deferred[Ended]:
    """Run a program with its ``arguments``, itself being the first; fires when it has ended.

    ``environment`` is added to the daemon's own; ``heard`` gets what it writes, as it comes.
    After ``seconds``, or when the daemon dies, it ends with its process group. Cancelling does the
    same; what then fires is a ``CancelledError``, and nothing else ever fails.
    """
    process = _Process(reactor=reactor, seconds=max(seconds, _SHORTEST), heard=heard)
    inherited = {name: text for name, text in os.environ.items() if name not in _OWN}
    command = (*_LAUNCHER, f"{process.seconds:.3f}", *arguments)
    try:
        reactor.spawnProcess(
            process, command[0], command, env={**inherited, **environment}, path="/"
        )
    except (OSError, ValueError) as error:
        reason = f"cannot start the command: {error}".encode("utf-8", "replace")
        process.done.callback(Ended(status=127, err=reason))
    return process.done


def shell(command: str) -> tuple[str, ...]:
    """Return the arguments that run a command line of the configuration."""
    return ("/bin/sh", "-c", command)


@define(eq=False, kw_only=True)
class _Process(ProcessProtocol):
    reactor: Any
    seconds: float
    heard: Callable[[bytes], object] | None
    done: Deferred[Ended] = field(init=False)
    _began: float = field(factory=time.monotonic, init=False)
    _kept: tuple[bytearray, bytearray] = field(
        factory=lambda: (bytearray(), bytearray()), init=False
    )
    _dropped: int = field(default=0, init=False)
    _pid: int = field(default=0, init=False)  # 0 once its end has been seen
    _status: int = field(default=0, init=False)
    _timed_out: bool = field(default=False, init=False)

    def __attrs_post_init__(self) -> None:
        self.done = Deferred(lambda _: self._end())

    def connectionMade(self) -> None:
        transport: Any = self.transport
        self._pid = transport.pid
        transport.closeStdin()

    def childDataReceived(self, descriptor: int, data: bytes) -> None:
        kept = self._kept[descriptor != _OUT]
        room = MOST_OUTPUT - len(kept)
        kept += data[:room]
        self._dropped += max(len(data) - room, 0)
        if self.heard is not None:
            self.heard(data)

    def processExited(self, reason: Failure) -> None:
        """Take its status; children that it left behind may hold the pipes open."""
        if not reason.check(ProcessDone):
            error: Any = reason.value
            self._status = 128 + error.signal if error.signal else error.exitCode or 1
        elapsed = time.monotonic() - self._began
        self._timed_out = self._status in _TIMED_OUT and elapsed >= self.seconds
        if self._timed_out or self.done.called:
            # Of the group, what ignored the SIGTERM on which the command itself ended.
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self._pid, signal.SIGKILL)
        self._pid = 0
        transport: Any = self.transport
        self.reactor.callLater(_LINGER, transport.loseConnection)

    def processEnded(self, _reason: Failure) -> None:
        out, err = self._kept
        if not self.done.called:
            self.done.callback(
                Ended(
                    status=self._status,
                    out=bytes(out),
                    err=bytes(err),
                    timed_out=self._timed_out,
                    dropped=self._dropped,
                )
            )

    def _end(self) -> None:
        if self._pid:
            os.kill(self._pid, signal.SIGTERM)
