"""Reloading a core and waiting until it is back (docs/spec/objectconfig.md, "Check and reload").

The start time of the core tells: only a core that was started after the order has read the files.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from attrs import define, field, frozen
from twisted.internet import defer
from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IReactorTime

from monrest.base.clock import WallClock
from monrest.base.concurrency import pause
from monrest.livestatus.command import CoreCommand
from monrest.objectconfig.commands import CommandResult, run
from monrest.sites.commands import send
from monrest.sites.site import Site

LONGEST = 30.0
"""Seconds to wait for a core, at most."""

TIMED_OUT = "Warning: waiting for core reload failed."

REFUSED = "The core was not told: the check of its files failed, and force=1 skips it."

_OFTEN = 0.3
_OFTEN_FOR = 5.0
_RARELY = 1.0
_SAME_SECOND = 3.0
"""Seconds after which a core counts as back that was started in the second of the order."""


@frozen(kw_only=True)
class Commands:
    """The commands of a site around a reload, with their environment.

    ``check`` looks at the files first, empty: nobody does. ``reload`` tells the core; empty: the
    external command RESTART_PROCESS does. ``hint``: what to tell about one that took too long.
    """

    check: str = ""
    reload: str = ""
    environment: Mapping[str, str] = field(factory=dict)
    hint: str = ""


@frozen(kw_only=True)
class Reloaded:
    """What became of it; ``output`` is that of the commands and what went wrong."""

    failed: bool
    output: str


async def reload(
    site: Site, reactor: Any, wall: WallClock, commands: Commands, *, seconds: float
) -> Reloaded:
    """Tell a core to read its files again and wait until it is back.

    It is not told when the check of the files fails, since it could end. All of it takes
    ``seconds`` at most.
    """
    work = _Reload(site=site, clock=reactor, wall=wall, deadline=reactor.seconds() + seconds)
    output = ""
    if commands.check:
        checked = await work.run(commands.check, commands)
        output = _lines(checked.output)
        if checked.failed:
            return Reloaded(failed=True, output=f"{output}{REFUSED}")
    await work.look()
    last = site.health.program_start
    if last and last == int(wall.now()):
        # Else it could not be told whether the core was started before or after.
        await pause(reactor, 1.0)
    if commands.reload:
        result = await work.run(commands.reload, commands)
        output += result.output
        if result.failed:
            return Reloaded(failed=True, output=output)
    else:
        problem = await work.restart()
        if problem:
            return Reloaded(failed=True, output=f"{output}{problem}")
    if await work.is_back(last):
        return Reloaded(failed=False, output=output)
    why = site.breaker.error
    reason = "" if why is None else f" {site.name}: {site.problem(why).reason}"
    return Reloaded(failed=True, output=f"{_lines(output)}{TIMED_OUT}{reason}")


def _lines(text: str) -> str:
    """The text so that a line can follow."""
    return text if not text or text.endswith("\n") else f"{text}\n"


@define(eq=False, kw_only=True)
class _Reload:
    site: Site
    clock: IReactorTime
    wall: WallClock
    deadline: float
    began: float = field(init=False, default=0.0)
    date: int = field(init=False, default=0)

    async def look(self) -> bool:
        """Ask the core how it is; whether it answered."""
        left = max(self.deadline - self.clock.seconds(), 0.0)
        try:
            await self.site.breaker.probed().addTimeout(left, self.clock)
        except defer.TimeoutError:
            return False
        return self.site.connected

    def run(self, command: str, commands: Commands) -> Deferred[CommandResult]:
        """Run one of the commands for as long as there is time."""
        left = max(self.deadline - self.clock.seconds(), 0.0)
        return run(self.clock, command, commands.environment, left, hint=commands.hint)

    async def restart(self) -> str:
        """Send RESTART_PROCESS; what the core or the connection says against it."""
        orders = [(self.site, (CoreCommand("RESTART_PROCESS"),))]
        (sent,) = await send(orders, self.clock, self.wall)
        if sent.refused:
            return next(iter(sent.refused.values()))
        # A connection that is cut afterwards is what a restart looks like.
        if sent.problem is not None and not sent.uncertain:
            return sent.problem.reason
        return ""

    async def is_back(self, last: int) -> bool:
        """Wait for another start time than ``last``; False when that takes too long."""
        self.began, self.date = self.clock.seconds(), int(self.wall.now())
        end = min(self.deadline, self.began + LONGEST)
        while True:
            if await self.look() and self._is_new(last):
                return True
            waited = self.clock.seconds() - self.began
            step = _OFTEN if waited < _OFTEN_FOR else _RARELY
            if self.clock.seconds() + step > end:
                return False
            await pause(self.clock, step)

    def _is_new(self, last: int) -> bool:
        started = self.site.health.program_start
        if started != last:  # it is an earlier one when a clock was put back
            return True
        waited = self.clock.seconds() - self.began
        return started == self.date and waited >= _SAME_SECOND
