"""Sending commands to many sites at the same time, with the outcome of each line.

Rules: docs/spec/livestatus.md, "Commands on the wire".
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

from attrs import define, field, frozen
from twisted.internet import defer
from twisted.internet.interfaces import IReactorTime

from monrest.base.clock import WallClock
from monrest.base.concurrency import shielded, together
from monrest.base.values import SiteProblem, always
from monrest.livestatus.command import CoreCommand
from monrest.livestatus.core_errors import (
    ConnectError,
    HangingError,
    LivestatusError,
    QueryTimeoutError,
    WithdrawnError,
)
from monrest.livestatus.external import decodes_backslashes, line
from monrest.sites.health import GRACE
from monrest.sites.site import Site

MOST_LINES = 100
"""Lines in one transmission."""


@frozen(kw_only=True)
class SentToSite:
    """The outcome of the commands for one site.

    ``lines`` were given to the core, each without its newline, in order: those in ``refused``
    were not executed, those in ``doubtful`` may have been or not, the others were accepted; both
    map an index of ``lines`` to the reason. ``unsent`` never left the daemon. ``problem`` is the
    failure of the site that left lines unsent and, unless the core itself has doubts, doubtful.
    """

    site: Site = field(repr=lambda site: site.id)
    lines: tuple[str, ...] = ()
    refused: Mapping[int, str] = field(factory=dict)
    doubtful: Mapping[int, str] = field(factory=dict)
    unsent: tuple[str, ...] = ()
    problem: SiteProblem | None = None

    @property
    def uncertain(self) -> bool:
        return bool(self.doubtful)


SiteCommands: TypeAlias = Sequence[tuple[Site, tuple[CoreCommand, ...]]]


async def send(
    orders: SiteCommands,
    clock: IReactorTime,
    wall: WallClock,
    allowed: Callable[[], bool] = always,
) -> tuple[SentToSite, ...]:
    """Send to all sites at once, to each in order; return the outcomes in the same order.

    Each site has the time-out of its configuration for all of its commands. Equal lines for a
    site are sent once, and nothing is sent twice. Raise BadRequest, before anything is sent, for
    a command that cannot be written down. Cancelling ends the wait and not the sending. ``allowed``
    is called right before lines are written to a core: if it is False, they stay unsent. ``wall``
    shows the date that the lines carry.
    """
    works = [_Sending(site, commands, clock, wall.now(), allowed) for site, commands in orders]
    for work in works:
        capabilities = work.site.capabilities
        # A core that was never reached gets the longer line.
        await work.write_down(capabilities is None or decodes_backslashes(capabilities))

    async def outcomes() -> tuple[SentToSite, ...]:
        return tuple(await together(work.run() for work in works))

    return await shielded(outcomes())


@define(eq=False)
class _Sending:
    """The commands for one site."""

    site: Site
    commands: tuple[CoreCommand, ...]
    clock: IReactorTime
    date: float
    allowed: Callable[[], bool]
    began: float = field(init=False)
    lines: tuple[str, ...] = field(init=False, default=())
    decodes: bool = field(init=False, default=False)
    refused: dict[int, str] = field(init=False, factory=dict)
    doubtful: dict[int, str] = field(init=False, factory=dict)
    written: int = field(init=False, default=0)
    missed: float | None = field(init=False, default=None)
    """Since when no connection can be made for the lines that are left."""

    def __attrs_post_init__(self) -> None:
        self.began = self.clock.seconds()

    async def write_down(self, decodes: bool) -> None:
        """Make the lines; raise BadRequest if a command cannot be written."""
        self.decodes = decodes
        commands, at = self.commands, int(self.date)

        def lines() -> tuple[str, ...]:
            texts = (line(command, at, decodes_backslashes=decodes) for command in commands)
            return tuple(dict.fromkeys(texts))

        many = len(commands) > MOST_LINES
        self.lines = await self.site.memory.threads.run(lines) if many else lines()

    async def run(self) -> SentToSite:
        problem: SiteProblem | None = None
        try:
            while self.written < len(self.lines):
                await self._reached()
                await self._transmit(self.lines[self.written : self.written + MOST_LINES])
        except LivestatusError as error:
            problem = self.site.problem(error)
        return SentToSite(
            site=self.site,
            lines=self.lines[: self.written],
            refused=self.refused,
            doubtful=self.doubtful,
            unsent=self.lines[self.written :],
            problem=problem,
        )

    async def _reached(self) -> None:
        """Wait for the site; raise LivestatusError when it is down or the time is over."""
        site = self.site
        try:
            await site.breaker.verdict().addTimeout(max(0.0, self._left()), self.clock)
        except defer.TimeoutError:
            raise site.too_late() from None
        assert site.capabilities is not None
        decodes = decodes_backslashes(site.capabilities)
        if decodes is not self.decodes and not self.written:
            await self.write_down(decodes)

    def _left(self) -> float:
        left = self.began + self.site.config.timeout - self.clock.seconds()
        return min(left, self.site.timeout)

    async def _transmit(self, lines: tuple[str, ...]) -> None:
        """Send lines in one transmission; LivestatusError unless the core answered each of them."""
        site, first = self.site, self.written
        assert site.capabilities is not None
        sent = self.clock.seconds()
        left = self._left()
        if left <= 0:
            raise site.too_late()
        waiting = site.in_flight.wait()
        outcome = await site.commands.transmit(lines, site.capabilities.kind, left, self.allowed)
        site.in_flight.over(waiting)
        site.shared.forget()
        self.written += outcome.written
        for at, verdict in enumerate(outcome.verdicts, first):
            if verdict.refusal:
                self.refused[at] = site.public_reason(verdict.refusal)
            elif verdict.doubt:
                self.doubtful[at] = site.public_reason(verdict.doubt)
        error = outcome.error
        if outcome.verdicts:
            site.breaker.hear()
        if error is None:
            return
        if isinstance(error, QueryTimeoutError):
            error = site.too_late()
        late = isinstance(error, QueryTimeoutError) and site.deadline is not None
        if not late and not isinstance(error, (WithdrawnError, HangingError)):
            site.breaker.failed(error, sent)
        doubtful = range(first + len(outcome.verdicts), self.written)
        if isinstance(error, ConnectError) and error.momentary and not doubtful:
            now = self.clock.seconds()
            if self.missed is None or outcome.written:
                self.missed = now
            if now - self.missed < GRACE:
                return  # nothing more was sent: the rest may be, when the core is back
        reason = f"{site.public_reason(error.reason)}: not known whether it was executed"
        for at in doubtful:
            self.doubtful[at] = reason
        raise error
