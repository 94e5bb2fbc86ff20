"""All background jobs: starting, doing, following, canceling, cleaning (docs/spec/jobs.md).

The records are in the database, so that every daemon on it knows all jobs; each is done by the
daemon that was asked for it. Nothing is ever done twice: what a daemon left unfinished ends as
failed, by its own next start or, when its beat stands still, by the others.
"""

from __future__ import annotations

import secrets
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import ClassVar

from attrs import define, field
from twisted.application.service import Service
from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IReactorTime
from twisted.logger import Logger
from twisted.python.failure import Failure

from monrest.base.clock import WallClock
from monrest.base.concurrency import Periodic, Threads, pause, shielded
from monrest.base.errors import Unavailable
from monrest.base.processes import Lease
from monrest.base.values import Caller, Identity
from monrest.config import JobsConfig
from monrest.jobs import store as statements
from monrest.jobs.care import WATCH, Care
from monrest.jobs.doing import LAST_TRIES, Doer, note
from monrest.jobs.keeper import discard
from monrest.jobs.live import JobWork, RunningJob, Told
from monrest.jobs.model import Job, new_id, storable
from monrest.jobs.node import DaemonNode
from monrest.jobs.slots import Slots
from monrest.store.database import Database

_BEAT = 2.0
_CLEAN = 5.0
_LOOK_AGAIN = 1.0
_CANCEL_SECONDS = 10.0
_LONGEST_CMD = 2000
_ID_CHANCES = 1000
_TURN = 0.05
_STOPPED = "the daemon was stopped"


@define(eq=False, kw_only=True)
class Jobs(Service):
    """``folder`` is the one of the daemon's state.

    ``describe`` says what a client is told of a failure, whose request has this id; ``who`` says
    who a caller is at present, or raises RestError. ``duty`` says whether it is this daemon that
    removes what is old.
    """

    log: ClassVar[Logger] = Logger()

    database: Database
    clock: IReactorTime
    wall: WallClock
    threads: Threads
    config: JobsConfig
    folder: Path
    describe: Callable[[Failure, str], Told]
    who: Callable[[Caller], Awaitable[Identity]]
    duty: Callable[[], bool] = lambda: True
    node: DaemonNode = field(init=False)
    _slots: Slots = field(init=False)
    _doer: Doer = field(init=False)
    _care: Care = field(init=False)
    lease: Lease = field(factory=Lease, init=False)
    _starting: set[int] = field(factory=set, init=False)
    _waiters: dict[Deferred[None], RunningJob | None] = field(factory=dict, init=False)
    _periodic: tuple[Periodic, ...] = field(default=(), init=False)

    def __attrs_post_init__(self) -> None:
        self._slots = Slots(self.config)
        self._doer = Doer(
            database=self.database,
            clock=self.clock,
            wall=self.wall,
            threads=self.threads,
            describe=self.describe,
            who=self.who,
        )

    # ---------------------------------------------------------------- asking

    def as_it_is(self, job: Job) -> Job:
        """Add what is not stored yet: progress, and the death of this daemon's former self."""
        if job.ended is not None:
            return job
        live = self._slots.get(job.id)
        if live is not None:
            return live.job
        if job.host_id == self.node.id and job.run != self.node.run:
            return job.lost(self.wall.now())
        return job

    async def several(self, user: str | None = None) -> list[Job]:
        """Give all jobs by id as they are stored; for a ``user`` his own and those of nobody.

        There may be many: ``as_it_is`` adds the rest to one. Raises Unavailable.
        """
        return await self.database.run(statements.several(user))

    async def get(self, number: int) -> Job | None:
        """Give one job, whosever it is. Raises Unavailable."""
        job = await self.database.run(statements.one(number))
        return None if job is None else self.as_it_is(job)

    async def ending(self, number: int) -> str | None:
        """Say why a job failed, empty if it did not; None while it has not ended."""
        job = await self.get(number)
        if job is None:
            return "the job was removed"
        if job.ended is None:
            return None
        return (job.outcome.stderr or job.outcome.message or "failed") if job.rc else ""

    async def wait(self, number: int, seconds: float) -> Job | None:
        """Give one job when it has ended, or as it is after ``seconds`` or when the daemon stops.

        None when it does not exist (any more).
        """
        end = self.clock.seconds() + seconds
        while True:
            job = await self.get(number)
            left = end - self.clock.seconds()
            if job is None or job.ended is not None or left <= 0 or self._doer.stopping:
                return job
            live = self._slots.get(number)
            await self._woken(live, left if live is not None else min(left, _LOOK_AGAIN))

    async def _woken(self, live: RunningJob | None, seconds: float) -> None:
        """Wait for the end of a job, for ``seconds`` at most."""
        waiter: Deferred[None] = Deferred()
        timer = self.clock.callLater(seconds, waiter.callback, None)
        self._waiters[waiter] = live
        try:
            await waiter
        finally:
            del self._waiters[waiter]
            if timer.active():
                timer.cancel()

    def _wake(self, live: RunningJob | None = None) -> None:
        """Wake those who wait for a job, or everybody."""
        for waiter, awaited in tuple(self._waiters.items()):
            if (live is None or awaited is live) and not waiter.called:
                waiter.callback(None)

    async def output(self, job: Job) -> AsyncIterator[bytes]:
        """Give the kept answer of an ended job in pieces; Unavailable when it was removed."""
        at = size = 0
        while size < job.outcome.size:
            data = await self.database.run(statements.piece(job.id, at))
            if data is None:
                raise Unavailable("cannot read the result", "the job was removed meanwhile")
            at, size = at + 1, size + len(data)
            yield data

    # ---------------------------------------------------------------- starting

    async def start(self, work: JobWork) -> Job:
        """Store a job and do it as soon as it is its turn, also if nobody waits any more.

        Raises TooManyRequests when too many wait, Unavailable when it cannot be stored.
        """
        if self._doer.stopping:
            raise Unavailable("cannot start a job", "the daemon stops")
        return await shielded(self._start(work))

    async def _start(self, work: JobWork) -> Job:
        with self._slots.room(work):
            live = RunningJob(await self._stored(work), work, self.clock, self.wall, Deferred())
            self._slots.add(live)
        note(live, "job start")
        # The answer goes first.
        self.clock.callLater(0, self._begin, live)
        return live.job

    async def _stored(self, work: JobWork) -> Job:
        stored = False
        while not stored:
            now = self.wall.now()
            number = new_id(now, secrets.randbelow(_ID_CHANCES))
            job = Job(
                id=number,
                user=work.identity.user,
                roles=tuple(sorted(work.identity.roles)),
                run=self.node.run,
                host_id=self.node.id,
                host_name=storable(self.node.host, _LONGEST_CMD),
                pid=self.node.pid,
                cmd=storable(work.cmd, _LONGEST_CMD),
                created=now,
                message="waits for its turn",
            )
            if number in self._starting:
                continue
            self._starting.add(number)
            try:
                began = self._care.begins()
                stored = await self.database.change(statements.add(job))
                self.lease.renew(began)
            except Unavailable:
                self._care.doubtful = True
                raise
            finally:
                self._starting.discard(number)
        return job

    def _begin(self, live: RunningJob) -> None:
        life = Deferred.fromCoroutine(self._doer.life(live))
        life.addErrback(lambda failure: self.log.failure("a job was given up", failure))
        life.addCallback(lambda _: self._ended(live))
        self._slots.next()

    def _ended(self, live: RunningJob) -> None:
        self._slots.leave(live)
        self._wake(live)

    # ---------------------------------------------------------------- ending

    async def cancel(self, job: Job, user: str) -> Job | None:
        """End a job that has not ended; as it is when that is done, or after 10 seconds.

        None when it does not exist any more. Raises Unavailable.
        """
        live = self._slots.get(job.id)
        if live is None:
            await self.database.change(statements.cancel(job.id, user))
        else:
            live.cancel_for(user)
        return await self.wait(job.id, _CANCEL_SECONDS)

    async def remove(self, number: int) -> bool:
        """Delete an ended job with its result; False when there is none. Raises Unavailable."""
        job = await self.database.run(statements.one(number))
        if job is None or job.ended is None:
            return False
        await discard(self.database, number)
        return await self.database.change(statements.remove(number))

    async def _clean(self) -> None:
        if self.duty():
            await self._care.clean(self.config.keep)

    # ---------------------------------------------------------------- service

    def configure(self, config: JobsConfig) -> None:
        """Go on with other limits."""
        self.config = self._slots.config = config
        self._slots.next()

    def startService(self) -> None:
        """Find out who this is, which may block shortly; OSError when that cannot be."""
        super().startService()
        self.node = DaemonNode.open(self.folder)
        self._care = Care(
            database=self.database,
            clock=self.clock,
            wall=self.wall,
            slots=self._slots,
            node=self.node,
            starting=self._starting,
            lease=self.lease,
        )
        self._periodic = (
            Periodic(self.clock, _BEAT, self._care.beat, "reporting on jobs", now=False),
            Periodic(self.clock, WATCH, self._care.watch, "looking after jobs of others"),
            Periodic(self.clock, _CLEAN, self._clean, "removing old jobs", now=False),
        )

    def look_after(self) -> None:
        """Begin with what is done from time to time, once the daemon has started for good.

        A start that fails must not have asked the database, whose threads would stay.
        """
        for one in self._periodic:
            one.startService()

    async def drain(self, seconds: float) -> None:
        """Take no more jobs, end those that have not begun, let the others run for ``seconds``.

        What has not ended by then is canceled. Every record says that the daemon was stopped.
        """
        self._doer.stopping = True
        self._wake()
        for live in self._slots:
            if live.job.started is None:
                live.cancel(f"{_STOPPED} before the job began")
        await self._emptied(seconds)
        for live in self._slots:
            live.cancel(_STOPPED)
        await self._emptied(2 * LAST_TRIES)

    async def ended(self, seconds: float) -> None:
        """Wait for ``seconds`` at most until no job runs or waits here; more may still come."""
        await self._emptied(seconds)

    async def _emptied(self, seconds: float) -> None:
        end = self.clock.seconds() + seconds
        while len(self._slots) and self.clock.seconds() < end:
            await pause(self.clock, _TURN)

    def stopService(self) -> Deferred[None]:
        """Fire when nothing is left; ``drain`` comes first, and the database stops after it."""
        super().stopService()
        return Deferred.fromCoroutine(self._stop())

    async def _stop(self) -> None:
        await self.drain(0.0)
        for one in self._periodic:
            await one.stopService()
        try:
            await self.database.change(statements.leave(self.node.run))
        except Unavailable:
            self.log.info("the database is away while jobs stop")
        self.node.close()
