"""Running the commands that a site's configuration names: checks, reloads, hooks around saving.

Each runs through a shell in a session of its own, so that everything it started can be ended
together; its output is caught and bounded, its time limited (object-config.md, sections 12, 14
and 15).
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from attrs import define, field, frozen
from twisted.internet.defer import Deferred
from twisted.internet.error import ProcessDone
from twisted.internet.interfaces import IDelayedCall
from twisted.internet.protocol import ProcessProtocol
from twisted.python.failure import Failure

MOST_OUTPUT = 1_048_576
"""Bytes of output that are kept; what a command writes beyond that is read and dropped."""

GRACE = 2.0
"""Seconds between asking a command to end and ending it."""

_LINGER = 0.5
"""Seconds for which output is awaited after the end of a command that left children behind."""

_LAUNCHER = (
    "import os, sys; os.setsid(); os.dup2(1, 2); os.execv('/bin/sh', ['sh', '-c', sys.argv[1]])"
)
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
"""Variables that are meant for the daemon and nobody below it."""


@frozen(kw_only=True)
class CommandResult:
    """How a command ended.

    ``output`` is what it wrote to standard output and standard error, in that order of arrival,
    with a last line about what went wrong with the running of it. ``status`` is the exit status,
    128 and the number of the signal when one ended it.
    """

    status: int
    output: str
    timed_out: bool = False

    @property
    def failed(self) -> bool:
        """Whether it did not end with status 0."""
        return self.status != 0


def run(
    reactor: Any, command: str, environment: Mapping[str, str], seconds: float
) -> Deferred[CommandResult]:
    """Run ``command`` through ``/bin/sh``; fires when it has ended, and never fails.

    ``environment`` is added to the daemon's own. After ``seconds`` the command and everything
    that it started is ended. Cancelling does the same; what then fires is a ``CancelledError``.
    """
    process = _Process(reactor=reactor, seconds=seconds)
    return process.start(command, environment)


@define(eq=False, kw_only=True)
class _Process(ProcessProtocol):
    reactor: Any
    seconds: float
    done: Deferred[CommandResult] = field(init=False)
    _kept: bytearray = field(factory=bytearray, init=False)
    _dropped: int = field(default=0, init=False)
    _pid: int = field(default=0, init=False)
    _timed_out: bool = field(default=False, init=False)
    _status: int = field(default=0, init=False)
    _ended: bool = field(default=False, init=False)
    _calls: list[IDelayedCall] = field(factory=list, init=False)

    def start(self, command: str, environment: Mapping[str, str]) -> Deferred[CommandResult]:
        """Start the process."""
        self.done = Deferred(lambda _: self._end())
        inherited = {name: text for name, text in os.environ.items() if name not in _OWN}
        try:
            self.reactor.spawnProcess(
                self,
                sys.executable,
                [sys.executable, "-I", "-S", "-c", _LAUNCHER, command],
                env={**inherited, **environment},
                path="/",
            )
        except (OSError, ValueError) as error:
            self._finish(f"cannot start the command: {error}", 127)
        return self.done

    def connectionMade(self) -> None:
        """Nothing is said to the command, and its time begins."""
        transport: Any = self.transport
        self._pid = transport.pid
        transport.closeStdin()
        self._calls.append(self.reactor.callLater(self.seconds, self._too_late))

    def childDataReceived(self, _descriptor: int, data: bytes) -> None:
        """Keep what it wrote, up to the limit."""
        room = MOST_OUTPUT - len(self._kept)
        self._kept += data[:room]
        self._dropped += max(len(data) - room, 0)

    def processExited(self, reason: Failure) -> None:
        """Take its status; children that it left behind may hold the pipes open."""
        self._cancel()
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
        """All is read."""
        self._cancel()
        text = ""
        if self._timed_out:
            text = f"ended after {self.seconds:g} seconds, the time limit of commands"
        self._finish(text, self._status or int(self._timed_out))

    def _too_late(self) -> None:
        self._timed_out = True
        self._end()

    def _end(self) -> None:
        """Ask the command and its children to end, and a little later do it."""
        self._cancel()
        self._signal(signal.SIGTERM)
        self._calls.append(self.reactor.callLater(GRACE, self._signal, signal.SIGKILL))

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

    def _finish(self, remark: str, status: int) -> None:
        output = self._kept.decode("utf-8", "replace")
        if self._dropped:
            output += f"\n[{self._dropped} more bytes of output left out]"
        if remark:
            output += ("\n" if output and not output.endswith("\n") else "") + remark
        if not self.done.called:
            self.done.callback(
                CommandResult(status=status, output=output, timed_out=self._timed_out)
            )
