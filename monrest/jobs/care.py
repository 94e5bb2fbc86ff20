"""What is done from time to time: the beat of this daemon, the death of others, old results."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import ClassVar

from attrs import define, field
from sqlalchemy import Connection
from twisted.internet.interfaces import IReactorTime
from twisted.logger import Logger

from monrest.base.audit import audit
from monrest.base.clock import WallClock
from monrest.base.errors import Unavailable
from monrest.base.processes import Lease
from monrest.jobs import store as statements
from monrest.jobs.keeper import discard
from monrest.jobs.model import Job
from monrest.jobs.node import DaemonNode
from monrest.jobs.slots import Slots
from monrest.store.beats import Beats, boot_time
from monrest.store.database import Database

WATCH = 5.0
"""Seconds between two looks at the beats of others."""

HELD = 25.0
"""Seconds after a beat in which others surely take this daemon for alive."""

GONE_AFTER = 30.0
"""Seconds for which the beat of a daemon that is alive and has jobs never stands still."""

_AT_ONCE = 20


@define(eq=False, kw_only=True)
class Care:
    """``starting`` are the ids of jobs that are being stored at this moment.

    ``doubtful``: a job may be stored that nobody works at, because the answer of the database
    was lost. ``lease`` is renewed with each beat, ``timer`` measures it.
    """

    log: ClassVar[Logger] = Logger()

    database: Database
    clock: IReactorTime
    wall: WallClock
    slots: Slots
    node: DaemonNode
    starting: set[int]
    lease: Lease
    timer: Callable[[], float] = boot_time
    doubtful: bool = field(default=False, init=False)
    _beats: Beats[int | None] = field(init=False, factory=lambda: Beats(2 * WATCH))

    def begins(self) -> float:
        """Say until when others surely take this daemon for alive once it has stored a job.

        Nobody looks at the beats of a daemon without jobs. Whoever did so before that ended counts
        at most what may pass between two looks.
        """
        if len(self.slots) or len(self.starting) > 1 or self.doubtful:
            return 0.0
        return self.timer() + HELD - 2 * WATCH

    async def beat(self) -> None:
        """Store that this daemon lives and how far its jobs are, and read what is to be ended."""
        if not len(self.slots) and not self.doubtful:
            return
        before = {live.job.id: live for live in self.slots}
        longest = self.slots.config.timeout
        for live in before.values():
            if live.age >= longest:
                live.cancel(f"it was not done after {longest:g} seconds (jobs.timeout)")
        unsaid = [live for live in before.values() if live.unsaid and not live.storing]
        for live in unsaid:
            live.unsaid = False
        work = statements.report(self.node.run, [live.job for live in unsaid])
        began = self.timer()
        try:
            unended = await self.database.change(work)
        except BaseException as error:
            for live in unsaid:
                live.unsaid = True
            if isinstance(error, Unavailable):
                return
            raise
        self.lease.renew(began + HELD)
        for number, live in before.items():
            if number not in unended:
                # The others took this daemon for dead, and their word is stored.
                live.cancel("other daemons gave the job up")
            elif (user := unended[number]) is not None:
                live.cancel_for(user)
        await self._settle(unended)

    async def _settle(self, unended: Mapping[int, str | None]) -> None:
        """End what is stored for this daemon and was never begun: a start that failed by half."""
        astray = [one for one in unended if one not in self.slots and one not in self.starting]
        if astray:
            now = self.wall.now()
            with suppress(Unavailable):
                await self.database.change(statements.lose(self.node.run, now, astray))
        elif not self.starting:
            self.doubtful = False

    async def watch(self) -> None:
        """End the jobs of daemons that are gone: former runs of this one, and silent others."""
        now = self.wall.now()
        try:
            await self._lose(statements.lose_former(self.node.id, self.node.run, now))
            began = self.clock.seconds()
            beats = await self.database.run(statements.beats)
            ended = self.clock.seconds()
            stands = self._beats.look(beats, began, ended)
            silent = (run for run, still in stands.items() if still >= GONE_AFTER)
            for run in [run for run in silent if run != self.node.run]:
                await self._lose(statements.lose(run, self.wall.now()))
        except Unavailable:
            self._beats.missed()

    async def _lose(self, work: Callable[[Connection], list[Job]]) -> None:
        for job in await self.database.change(work):
            self.log.warn(
                "job {id} of process {pid} on {host} has failed: {reason}",
                id=job.id,
                pid=job.pid,
                host=job.host_name,
                reason=job.outcome.stderr,
            )
            if not job.cmd.startswith("GET "):
                audit(
                    job.user or "",
                    None,
                    "job end",
                    target=str(job.id),
                    result=job.outcome.stderr,
                    cmd=job.cmd,
                )

    async def clean(self, keep: float) -> None:
        """Remove jobs that ended ``keep`` seconds ago, with their results."""
        before = self.wall.now() - keep
        try:
            while old := await self.database.run(statements.expired(before, _AT_ONCE)):
                for number in old:
                    await discard(self.database, number)
                    await self.database.change(statements.remove(number))
        except Unavailable:
            return
