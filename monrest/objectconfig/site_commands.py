"""The commands that a site's configuration names: checks, reloads, hooks around saving.

Each runs through a shell; its output is caught and bounded, its time limited. A Naemon or Nagios
that reads files which do not load ends. So where a site has an ``obj_check_cmd``, it runs before
everything that makes the core read its files. Whether a core is back after a reload follows from
its start time: only a core that was started after the order has read the files.

Rules: docs/spec/objectconfig.md, "Commands of a site" and "Check and reload".
"""

from __future__ import annotations

import shlex
import signal
from collections.abc import Mapping, Sequence
from typing import Any

from attrs import define, field, frozen
from twisted.internet import defer
from twisted.internet.defer import Deferred

from monrest.api.endpoint import Context
from monrest.api.fields import Flag
from monrest.base import processes
from monrest.base.clock import WallClock
from monrest.base.concurrency import pause
from monrest.base.processes import Ended, shell
from monrest.base.values import RestRequest, no_progress
from monrest.livestatus.command import CoreCommand
from monrest.sites.commands import send
from monrest.sites.site import Site

LONGEST_COMMAND = 3600.0
"""Seconds after which a command is ended for which no request and no job waits."""


_SIGNALLED = 128


@frozen(kw_only=True)
class CommandResult:
    """The end of a command.

    ``output`` is what it wrote to standard output and standard error, in that order of arrival,
    with a last line about what went wrong with the running of it. ``status`` is the exit status,
    128 and the number of the signal when one ended it.
    """

    status: int
    output: str
    timed_out: bool = False

    @property
    def failed(self) -> bool:
        return self.status != 0


def run(
    reactor: Any, command: str, environment: Mapping[str, str], seconds: float, *, hint: str = ""
) -> Deferred[CommandResult]:
    """Run ``command`` through ``/bin/sh``; fires when it has ended, and never fails.

    ``environment`` is added to the daemon's own. After ``seconds`` the command and everything
    that it started is ended; the output ends in ``hint`` then. Cancelling does the same; what
    then fires is a ``CancelledError``.
    """

    def result(ended: Ended) -> CommandResult:
        output = (ended.out + ended.err).decode("utf-8", "replace")
        if ended.dropped:
            output += f"\n[{ended.dropped} more bytes of output left out]"
        if ended.timed_out:
            output = f"{_lines(output)}ended after {seconds:g} seconds, the time limit"
            output += f"; {hint}" if hint else ""
        elif 0 < ended.status - _SIGNALLED < signal.NSIG:
            output = f"{_lines(output)}ended by signal {ended.status - _SIGNALLED}"
        return CommandResult(status=ended.status, output=output, timed_out=ended.timed_out)

    joined = shell(f"exec 2>&1\n{command}")
    return processes.run(reactor, joined, environment, seconds).addCallback(result)


def _lines(text: str) -> str:
    return text if not text or text.endswith("\n") else f"{text}\n"


FORCE = Flag(
    "force", "1: a core reads its files again without a check of them by obj_check_cmd before"
)


async def environment_of(context: Context, request: RestRequest, site: Site) -> dict[str, str]:
    contact = await context.contacts.of(request.identity.user)
    return environment(
        site=site.id,
        name=site.name,
        user=request.identity.user,
        groups=sorted(contact.groups),
        alias=contact.alias or "",
        email=contact.email or "",
        url=request.path,
    )


def check_command(context: Context, site: Site) -> str:
    """The command that checks the files of a site; empty without one."""
    tool = context.config.tool_of(site.config)
    return "" if tool is None else tool.obj_check_cmd


async def check(
    context: Context, request: RestRequest, site: Site, given: Mapping[str, str]
) -> CommandResult:
    """Check the files of a site, for as long as the request or the job may take."""
    seconds = context.config.server.longest_wait
    command = check_command(context, site)
    return await run(context.reactor, command, given, seconds, hint=hint(request))


def hint(request: RestRequest) -> str:
    """The advice in the output of a command that was too slow."""
    return "background=1 gives it more" if request.progress is no_progress else ""


@frozen(kw_only=True)
class Hooks:
    """``before`` and ``after`` are shell commands, empty for none; ``seconds`` limits each.

    ``hint``: advice about a command that took too long.
    """

    before: str = ""
    after: str = ""
    seconds: float = LONGEST_COMMAND
    hint: str = ""
    environment: Mapping[str, str] = field(factory=dict)

    async def run(self, reactor: Any, when: str, root: str) -> CommandResult:
        """Run the hook of ``pre`` or ``post`` for the object root; without one all is well."""
        command = self.before if when == "pre" else self.after
        if not command:
            return CommandResult(status=0, output="")
        line = f"{command} {when} {shlex.quote(root)} 2>&1"
        return await run(reactor, line, self.environment, self.seconds, hint=self.hint)


def environment(
    *,
    site: str,
    name: str,
    user: str,
    groups: Sequence[str] = (),
    alias: str = "",
    email: str = "",
    url: str = "",
) -> dict[str, str]:
    variables = {
        "MON_BACKEND_ID": site,
        "MON_BACKEND_NAME": name,
        "MON_SUMMARY_MESSAGE": "",
        "MON_SUMMARY_DETAILS": "",
        "MON_REQ_URL": url,
        "REMOTE_USER": user,
        "REMOTE_USER_GROUPS": ";".join(groups),
        "REMOTE_USER_ALIAS": alias,
        "REMOTE_USER_EMAIL": email,
    }
    return {key: text.replace("\0", "") for key, text in variables.items()}


LONGEST_RELOAD = 30.0
"""Seconds to wait for a core, at most."""

TIMED_OUT = "Warning: waiting for core reload failed."

REFUSED = "The core was not reloaded: the check of its files failed, and force=1 skips it."

_OFTEN = 0.3
_OFTEN_FOR = 5.0
_RARELY = 1.0
_SAME_SECOND = 3.0
"""Seconds after which a core counts as back that was started in the second of the order."""


@frozen(kw_only=True)
class Reloaded:
    """The result of a reload; ``output`` is that of the commands, with errors."""

    failed: bool
    output: str


@define(eq=False, kw_only=True)
class Reload:
    """Reloads a core, in ``seconds`` at most, with the commands of its site.

    ``check`` looks at the files first, if it is not empty. ``command`` makes the core read them;
    empty: the external command RESTART_PROCESS does. ``hint``: advice about one that took too
    long.
    """

    site: Site
    clock: Any
    wall: WallClock
    seconds: float
    check: str = ""
    command: str = ""
    environment: Mapping[str, str] = field(factory=dict)
    hint: str = ""
    deadline: float = field(init=False)

    async def run(self) -> Reloaded:
        """Wait until the core is back. It gets no order when the check of the files fails."""
        self.deadline = self.clock.seconds() + self.seconds
        output = ""
        if self.check:
            checked = await self._shell(self.check)
            output = _lines(checked.output)
            if checked.failed:
                return Reloaded(failed=True, output=f"{output}{REFUSED}")
        await self._look()
        last = self.site.health.program_start
        if last and last == int(self.wall.now()):
            # Else a start before the order could not be distinguished from one after it.
            await pause(self.clock, 1.0)
        if self.command:
            result = await self._shell(self.command)
            output += result.output
            if result.failed:
                return Reloaded(failed=True, output=output)
        elif problem := await self._restart():
            return Reloaded(failed=True, output=f"{output}{problem}")
        if await self._is_back(last):
            return Reloaded(failed=False, output=output)
        why = self.site.breaker.error
        reason = "" if why is None else f" {self.site.name}: {self.site.problem(why).reason}"
        return Reloaded(failed=True, output=f"{_lines(output)}{TIMED_OUT}{reason}")

    async def _look(self) -> bool:
        """Ask the core how it is; whether it answered."""
        left = max(self.deadline - self.clock.seconds(), 0.0)
        try:
            await self.site.breaker.probed().addTimeout(left, self.clock)
        except defer.TimeoutError:
            return False
        return self.site.connected

    def _shell(self, command: str) -> Deferred[CommandResult]:
        """Run one of the commands for as long as there is time."""
        left = max(self.deadline - self.clock.seconds(), 0.0)
        return run(self.clock, command, self.environment, left, hint=self.hint)

    async def _restart(self) -> str:
        """Send RESTART_PROCESS; returns why it was refused or could not be sent, or nothing."""
        orders = [(self.site, (CoreCommand("RESTART_PROCESS"),))]
        (sent,) = await send(orders, self.clock, self.wall)
        if sent.refused:
            return next(iter(sent.refused.values()))
        # A connection that is cut afterwards is what a restart looks like.
        if sent.problem is not None and not sent.uncertain:
            return sent.problem.reason
        return ""

    async def _is_back(self, last: int) -> bool:
        """Wait for another start time than ``last``; False when that takes too long."""
        began, second = self.clock.seconds(), int(self.wall.now())
        end = min(self.deadline, began + LONGEST_RELOAD)
        while True:
            answered = await self._look()
            waited = self.clock.seconds() - began
            started = self.site.health.program_start
            # Another start time, which is an earlier one when a clock was put back.
            restarted = started != last
            same_second = started == second and waited >= _SAME_SECOND
            if answered and (restarted or same_second):
                return True
            step = _OFTEN if waited < _OFTEN_FOR else _RARELY
            if self.clock.seconds() + step > end:
                return False
            await pause(self.clock, step)
