"""Running the commands that a site's configuration names: checks, reloads, hooks around saving.

Each runs through a shell; its output is caught and bounded, its time limited
(docs/spec/objectconfig.md, "Commands of a site").
"""

from __future__ import annotations

import signal
from collections.abc import Mapping
from typing import Any

from attrs import frozen
from twisted.internet.defer import Deferred

from monrest.base import processes
from monrest.base.processes import Ended, shell

LONGEST = 3600.0
"""Seconds after which a command is ended for which no request and no job waits."""


_SIGNALLED = 128


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
    reactor: Any, command: str, environment: Mapping[str, str], seconds: float, *, hint: str = ""
) -> Deferred[CommandResult]:
    """Run ``command`` through ``/bin/sh``; fires when it has ended, and never fails.

    ``environment`` is added to the daemon's own. After ``seconds`` the command and everything
    that it started is ended, which the output tells with ``hint``. Cancelling does the same; what
    then fires is a ``CancelledError``.
    """

    def told(ended: Ended) -> CommandResult:
        output = (ended.out + ended.err).decode("utf-8", "replace")
        if ended.dropped:
            output += f"\n[{ended.dropped} more bytes of output left out]"
        if ended.timed_out:
            output += "\n" if output and not output.endswith("\n") else ""
            output += f"ended after {seconds:g} seconds, the time limit"
            output += f"; {hint}" if hint else ""
        elif 0 < ended.status - _SIGNALLED < signal.NSIG:
            output += "\n" if output and not output.endswith("\n") else ""
            output += f"ended by signal {ended.status - _SIGNALLED}"
        return CommandResult(status=ended.status, output=output, timed_out=ended.timed_out)

    joined = shell(f"exec 2>&1\n{command}")
    return processes.run(reactor, joined, environment, seconds).addCallback(told)
