"""Running commands that the configuration names, as processes of their own.

Each is the head of a session of its own, so that everything it started can be ended together; its
output is caught and bounded, its time limited.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any

from attrs import define, field, frozen
from twisted.internet.defer import Deferred
from twisted.internet.error import ProcessDone
from twisted.internet.interfaces import IDelayedCall
from twisted.internet.protocol import ProcessProtocol
from twisted.python.failure import Failure

from monrest.base import minder

MOST_OUTPUT = 1_048_576
"""Bytes that are kept of standard output, and of standard error."""

GRACE = 2.0
"""Seconds between asking a command to end and ending it."""

_LINGER = 0.5
"""Seconds for which output is awaited after the end of a command that left children behind."""

_LAUNCHER = """
import os, sys
os.setsid()
try:
    os.execvp(sys.argv[1], sys.argv[1:])
except (OSError, ValueError) as error:
    print(f"cannot start {sys.argv[1]}: {error}", file=sys.stderr)
    sys.exit(127)
"""
"""Twisted starts processes in the daemon's own group, of which a part cannot be ended alone."""

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

_MINDER = minder.__file__
_MINDED_GRACE = GRACE + minder.GRACE
"""The same for a minder, which ends what it minds before."""

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
        """One line about why it failed; empty when it did not."""
        if self.timed_out:
            return "ended because it took too long"
        if self.status == 0:
            return ""
        output = self.err.decode("utf-8", "replace").strip() or self.out.decode("utf-8", "replace")
        line = (output.strip().splitlines() or [""])[-1][:_LONGEST_LINE]
        return f"exit status {self.status}{': ' if line else ''}{line}"


@define(eq=False)
class Lease:
    """Until when others surely take this daemon for alive, as CLOCK_BOOTTIME measures."""

    until: float = field(default=0.0, init=False)
    _watching: list[Callable[[float], object]] = field(factory=list, init=False)

    def renew(self, until: float) -> None:
        """Extend it until then, if it is not longer already."""
        if until > self.until:
            self.until = until
            for renewed in tuple(self._watching):
                renewed(until)

    def watch(self, renewed: Callable[[float], object]) -> Callable[[], None]:
        """Call ``renewed`` at each renewal, until the result of this is called."""
        self._watching.append(renewed)
        return lambda: self._watching.remove(renewed)


@frozen
class Minded:
    """How a command is ended with its daemon: by whose ``lease``; by which file it is alone."""

    lease: Lease
    lock: str


def run(
    reactor: Any,
    arguments: Sequence[str],
    environment: Mapping[str, str],
    seconds: float,
    heard: Callable[[bytes], object] | None = None,
    minded: Minded | None = None,
) -> Deferred[Ended]:
    """Run a program with its ``arguments``, itself being the first; fires when it has ended.

    ``environment`` is added to the daemon's own; ``heard`` gets what it writes, as it comes.
    After ``seconds`` it and everything that it started is ended. Cancelling does the same; what
    then fires is a ``CancelledError``, and nothing else ever fails. With ``minded`` it is also
    ended when the lease is over or the daemon is dead, and does not begin while the lock is held.
    """
    process = _Process(reactor=reactor, seconds=seconds, heard=heard, minded=minded)
    return process.start(arguments, environment)


def shell(command: str) -> tuple[str, ...]:
    """Give the arguments that run a command line of the configuration."""
    return ("/bin/sh", "-c", command)


@define(eq=False, kw_only=True)
class _Process(ProcessProtocol):
    reactor: Any
    seconds: float
    heard: Callable[[bytes], object] | None
    minded: Minded | None
    done: Deferred[Ended] = field(init=False)
    _kept: tuple[bytearray, bytearray] = field(
        factory=lambda: (bytearray(), bytearray()), init=False
    )
    _dropped: int = field(default=0, init=False)
    _pid: int = field(default=0, init=False)
    _timed_out: bool = field(default=False, init=False)
    _status: int = field(default=0, init=False)
    _ended: bool = field(default=False, init=False)
    _calls: list[IDelayedCall] = field(factory=list, init=False)
    _leave: Callable[[], object] = field(default=lambda: None, init=False)

    def start(self, arguments: Sequence[str], environment: Mapping[str, str]) -> Deferred[Ended]:
        self.done = Deferred(lambda _: self._end())
        inherited = {name: text for name, text in os.environ.items() if name not in _OWN}
        launcher: tuple[str, ...] = ("-c", _LAUNCHER)
        if self.minded is not None:
            launcher = (_MINDER, self.minded.lock, repr(self.minded.lease.until))
        try:
            self.reactor.spawnProcess(
                self,
                sys.executable,
                [sys.executable, "-I", "-S", *launcher, *arguments],
                env={**inherited, **environment},
                path="/",
            )
        except (OSError, ValueError) as error:
            self._kept[1][:] = f"cannot start the command: {error}".encode("utf-8", "replace")
            self._status = 127
            self._finish()
        return self.done

    def connectionMade(self) -> None:
        """Close the command's input, and let its time begin."""
        transport: Any = self.transport
        self._pid = transport.pid
        if self.minded is None:
            transport.closeStdin()
        else:
            # The minder ends the command when it has heard nothing until then.
            def extend(until: float) -> None:
                transport.write(b"%r\n" % until)

            self._leave = self.minded.lease.watch(extend)
            extend(self.minded.lease.until)
        self._calls.append(self.reactor.callLater(self.seconds, self._too_late))

    def childDataReceived(self, descriptor: int, data: bytes) -> None:
        kept = self._kept[descriptor != _OUT]
        room = MOST_OUTPUT - len(kept)
        kept += data[:room]
        self._dropped += max(len(data) - room, 0)
        if self.heard is not None:
            self.heard(data)

    def processExited(self, reason: Failure) -> None:
        """Take its status; children that it left behind may hold the pipes open."""
        self._cancel()
        self._leave()
        if not reason.check(ProcessDone):
            error: Any = reason.value
            signalled = error.signal
            self._status = 128 + signalled if signalled else error.exitCode or 1
        self._ended = True
        if self._timed_out:
            self._signal(signal.SIGKILL)
        transport: Any = self.transport
        self._calls.append(self.reactor.callLater(_LINGER, transport.loseConnection))

    def processEnded(self, _reason: Failure) -> None:
        self._cancel()
        self._finish()

    def _too_late(self) -> None:
        self._timed_out = True
        self._end()

    def _end(self) -> None:
        """Ask the command and its children to end, and a little later do it."""
        self._cancel()
        self._signal(signal.SIGTERM)
        grace = GRACE if self.minded is None else _MINDED_GRACE
        self._calls.append(self.reactor.callLater(grace, self._signal, signal.SIGKILL))

    def _signal(self, number: signal.Signals) -> None:
        # Before its first instruction the process is not yet the head of a group of its own.
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._pid, number)
            return
        if not self._ended:
            with suppress(ProcessLookupError, PermissionError):
                os.kill(self._pid, number)

    def _cancel(self) -> None:
        calls, self._calls = self._calls, []
        for call in calls:
            if call.active():
                call.cancel()

    def _finish(self) -> None:
        out, err = self._kept
        if not self.done.called:
            self.done.callback(
                Ended(
                    status=self._status or int(self._timed_out),
                    out=bytes(out),
                    err=bytes(err),
                    timed_out=self._timed_out,
                    dropped=self._dropped,
                )
            )
