"""All background jobs: starting, doing, following, canceling, cleaning (docs/spec/jobs.md).

The records are in the database, so that every daemon on it knows all jobs; each is done by the
daemon that was asked for it. Nothing is ever done twice: what a daemon left unfinished ends as
failed, by its own next start or, when its beat stands still, by the others.
"""

from __future__ import annotations

import secrets
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import suppress
from typing import ClassVar

from attrs import define, field
from twisted.application.service import Service
from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IReactorTime
from twisted.logger import Logger

from monrest.base.answer_file import AnswerFiles
from monrest.base.audit import audit
from monrest.base.clock import WallClock
from monrest.base.concurrency import Periodic, Threads, pause, shielded
from monrest.base.daemon_node import DaemonNode
from monrest.base.errors import Unavailable
from monrest.base.meters import Sample
from monrest.base.signals import Signal
from monrest.base.values import Caller, Identity
from monrest.base.workers import Workers
from monrest.config import JobsConfig
from monrest.jobs import store as statements
from monrest.jobs.model import Job, new_id, storable
from monrest.jobs.running_job import (
    LAST_TRIES,
    JobRunner,
    JobWork,
    RunningJob,
    Slots,
    discard,
    note,
)
from monrest.store.database import Database, Work
from monrest.store.duties import Heartbeats, boot_time
from monrest.store.space import give_back, is_loose

WATCH = 5.0
"""Seconds between two looks at the beats of others."""

HELD = 25.0
"""Seconds after a beat in which others surely take this daemon for alive."""

GONE_AFTER = 30.0
"""Seconds for which the beat of a daemon that is alive and has jobs never stands still."""

_AT_ONCE = 20


@define(eq=False, kw_only=True)
class JobHousekeeping:
    """``starting`` are the ids of jobs that are being stored at this moment.

    ``doubtful``: a job may be stored that no process works at, because the answer of the database
    was lost. ``alive_until`` is until when others surely take this daemon for alive, by ``timer``.
    """

    log: ClassVar[Logger] = Logger()

    database: Database
    clock: IReactorTime
    wall: WallClock
    slots: Slots
    node: DaemonNode
    starting: set[int]
    timer: Callable[[], float] = boot_time
    doubtful: bool = field(default=False, init=False)
    alive_until: float = field(default=0.0, init=False)
    _beats: Heartbeats[int | None] = field(init=False, factory=lambda: Heartbeats(2 * WATCH))

    def beaten(self, began: float) -> None:
        """Note that a beat is stored, which was begun then."""
        self.alive_until = max(self.alive_until, began + HELD)

    async def beat(self) -> None:
        """Store that this daemon lives and how far its jobs are, and read what is to be ended."""
        if not len(self.slots) and not self.doubtful:
            return
        before = {live.job.id: live for live in self.slots}
        longest = self.slots.config.timeout
        for live in before.values():
            if live.age >= longest:
                live.cancel(f"it was not done after {longest:g} seconds (jobs.timeout)")
        unreported = [live for live in before.values() if live.unreported and not live.storing]
        for live in unreported:
            live.unreported = False
        work = statements.report(self.node.run, [live.job for live in unreported])
        began = self.timer()
        try:
            unended = await self.database.change(work)
        except BaseException as error:
            for live in unreported:
                live.unreported = True
            if isinstance(error, Unavailable):
                return
            raise
        self.beaten(began)
        for number, live in before.items():
            if number not in unended:
                # The others took this daemon for dead, and their word is stored.
                live.cancel("other daemons gave the job up")
            elif (user := unended[number]) is not None:
                live.cancel_for(user)
        await self._settle(unended)

    async def _settle(self, unended: Mapping[int, str | None]) -> None:
        """End what is stored for this daemon and was never begun: a start that failed by half."""
        astray = [
            number for number in unended if number not in self.slots and number not in self.starting
        ]
        if astray:
            now = self.wall.now()
            with suppress(Unavailable):
                await self.database.change(statements.end_lost(self.node.run, now, astray))
        elif not self.starting:
            self.doubtful = False

    async def watch(self) -> None:
        """End the jobs of daemons that are gone: former runs of this one, and silent others."""
        now = self.wall.now()
        try:
            await self._lose(statements.end_lost_of_former_runs(self.node.id, self.node.run, now))
            began = self.clock.seconds()
            beats = await self.database.run(statements.beats)
            ended = self.clock.seconds()
            stands = self._beats.look(beats, began, ended)
            silent = (run for run, still in stands.items() if still >= GONE_AFTER)
            for run in [run for run in silent if run != self.node.run]:
                await self._lose(statements.end_lost(run, self.wall.now()))
        except Unavailable:
            self._beats.missed()

    async def _lose(self, work: Work[list[Job]]) -> None:
        for job in await self.database.change(work):
            self.log.warn(
                "job {id} of process {pid} on {host} has failed: {reason}",
                id=job.id,
                pid=job.pid,
                host=job.host_name,
                reason=job.stderr,
            )
            if not job.cmd.startswith("GET "):
                audit(
                    job.user or "",
                    None,
                    "job end",
                    target=str(job.id),
                    result=job.stderr,
                    cmd=job.cmd,
                )

    async def clean(self, keep: float) -> None:
        """Remove jobs that ended ``keep`` seconds ago, with their results and their room."""
        before = self.wall.now() - keep
        try:
            while old := await self.database.run(statements.expired(before, _AT_ONCE)):
                for number in old:
                    await discard(self.database, number)
                    await self.database.change(statements.remove(number))
            if await self.database.run(is_loose):
                while await self.database.change(give_back):
                    await pause(self.clock, _POLL)
        except Unavailable:
            return


_BEAT = 2.0
_CLEAN = 5.0
_LOOK_AGAIN = 1.0
_CANCEL_SECONDS = 10.0
_LONGEST_CMD = 2000
_ID_CHANCES = 1000
_POLL = 0.05
_STOPPED = "the daemon was stopped"


@define(eq=False, kw_only=True)
class Jobs(Service):
    """``node`` is known before it starts.

    ``who`` returns the present identity of a caller, or raises RestError. ``job_ended`` is called
    for each job that ends. ``duty``: whether this daemon removes old jobs.
    """

    log: ClassVar[Logger] = Logger()

    database: Database
    clock: IReactorTime
    wall: WallClock
    threads: Threads
    files: AnswerFiles
    config: JobsConfig
    who: Callable[[Caller], Awaitable[Identity]]
    duty: Callable[[], bool] = lambda: True
    job_ended: Signal[[int]] = field(factory=Signal)
    workers: Workers = field(factory=Workers)
    node: DaemonNode = field(init=False)
    _slots: Slots = field(init=False)
    _runner: JobRunner = field(init=False)
    _housekeeping: JobHousekeeping = field(init=False)
    _starting: set[int] = field(factory=set, init=False)
    _waiters: dict[Deferred[None], RunningJob | None] = field(factory=dict, init=False)
    _periodic: tuple[Periodic, ...] = field(default=(), init=False)

    def __attrs_post_init__(self) -> None:
        self._slots = Slots(self.config)
        self._runner = JobRunner(
            database=self.database,
            clock=self.clock,
            wall=self.wall,
            threads=self.threads,
            files=self.files,
            who=self.who,
            limits=lambda: self.config,
        )
        self.workers.hear("job ended", lambda _number: self._wake())
        self.workers.hear("job canceled", self._cancel_here)

    def current(self, job: Job) -> Job:
        """Add what is not stored yet: progress, and the end of jobs of this daemon's former run."""
        if job.ended is not None:
            return job
        live = self._slots.get(job.id)
        if live is not None:
            return live.job
        if job.host_id == self.node.id and job.run != self.node.run:
            return job.lost(self.wall.now())
        return job

    def surely_alive(self) -> bool:
        """Whether no other daemon can have given up the jobs of this one, as far as it knows."""
        return self._housekeeping.timer() < self._housekeeping.alive_until

    def here(self) -> list[Job]:
        """The jobs that run in this process, or wait for it."""
        return [slot.job for slot in self._slots]

    def measured(self) -> Iterator[Sample]:
        running = sum(1 for slot in self._slots if slot.turn.called)
        yield "jobs", ("running",), running
        yield "jobs", ("waiting",), len(self._slots) - running

    async def several(self, user: str | None = None) -> list[Job]:
        """All jobs by id as they are stored; for a ``user`` only theirs and those without a user.

        There may be many: ``current`` adds the rest to one. Raises Unavailable.
        """
        return await self.database.run(statements.several(user))

    async def get(self, number: int) -> Job | None:
        """A job of any user. Raises Unavailable."""
        job = await self.database.run(statements.read_job(number))
        return None if job is None else self.current(job)

    async def failure(self, number: int) -> str | None:
        """Why a job failed, empty if it did not; None while it has not ended."""
        job = await self.get(number)
        if job is None:
            return "the job was removed"
        if job.ended is None:
            return None
        return (job.stderr or job.message or "failed") if job.rc else ""

    async def wait(self, number: int, seconds: float) -> Job | None:
        """One job when it has ended, or as it is after ``seconds`` or when the daemon stops.

        None when it does not exist (any more).
        """
        end = self.clock.seconds() + seconds
        while True:
            job = await self.get(number)
            left = end - self.clock.seconds()
            if job is None or job.ended is not None or left <= 0 or self._runner.stopping:
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
        """Wake the requests that wait for a job; None: all of them."""
        for waiter, awaited in tuple(self._waiters.items()):
            if (live is None or awaited is live) and not waiter.called:
                waiter.callback(None)

    async def output(self, job: Job) -> AsyncIterator[bytes]:
        """The kept answer of an ended job in pieces; Unavailable when it was removed."""
        at = size = 0
        while size < job.size:
            data = await self.database.run(statements.piece(job.id, at))
            if data is None:
                raise Unavailable("cannot read the result", "the job was removed meanwhile")
            at, size = at + 1, size + len(data)
            yield data

    async def start(self, work: JobWork) -> Job:
        """Store a job and run it as soon as it is its turn, also if the client has left.

        Raises TooManyRequests when too many wait, Unavailable when it cannot be stored.
        """
        if self._runner.stopping:
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
                began = self._housekeeping.timer()
                stored = await self.database.change(statements.add(job))
                self._housekeeping.beaten(began)
            except Unavailable:
                self._housekeeping.doubtful = True
                raise
            finally:
                self._starting.discard(number)
        return job

    def _begin(self, live: RunningJob) -> None:
        life = Deferred.fromCoroutine(self._runner.life(live))
        life.addErrback(lambda failure: self.log.failure("a job was given up", failure))
        life.addCallback(lambda _: self._ended(live))
        self._slots.next()

    def _ended(self, live: RunningJob) -> None:
        self._slots.leave(live)
        self._wake(live)
        self.workers.tell("job ended", live.job.id)
        self.job_ended(live.job.id)

    async def cancel(self, job: Job, user: str) -> Job | None:
        """End a job that has not ended; as it is when that is done, or after 10 seconds.

        None when it does not exist any more. Raises Unavailable.
        """
        live = self._slots.get(job.id)
        if live is None:
            await self.database.change(statements.cancel(job.id, user))
            self.workers.tell("job canceled", job.id, user)
        else:
            live.cancel_for(user)
        return await self.wait(job.id, _CANCEL_SECONDS)

    def _cancel_here(self, number: int, user: str) -> None:
        """End a job that was asked to end through another worker."""
        live = self._slots.get(number)
        if live is not None:
            live.cancel_for(user)

    async def remove(self, number: int) -> bool:
        """Delete an ended job with its result; False when there is none. Raises Unavailable."""
        job = await self.database.run(statements.read_job(number))
        if job is None or job.ended is None:
            return False
        await discard(self.database, number)
        return await self.database.change(statements.remove(number))

    async def _clean(self) -> None:
        if self.duty():
            await self._housekeeping.clean(self.config.keep)

    def configure(self, config: JobsConfig) -> None:
        self.config = self._slots.config = config
        self._slots.next()

    def identify(self, node: DaemonNode) -> None:
        self.node = node

    def startService(self) -> None:
        """``node`` is known by now."""
        super().startService()
        self._housekeeping = JobHousekeeping(
            database=self.database,
            clock=self.clock,
            wall=self.wall,
            slots=self._slots,
            node=self.node,
            starting=self._starting,
        )
        self._periodic = (
            Periodic(self.clock, _BEAT, self._housekeeping.beat, "reporting on jobs", now=False),
            Periodic(self.clock, WATCH, self._housekeeping.watch, "looking after jobs of others"),
            Periodic(self.clock, _CLEAN, self._clean, "removing old jobs", now=False),
        )
        for task in self._periodic:
            task.startService()

    async def drain(self, seconds: float) -> None:
        """Take no more jobs, end those that have not begun, let the others run for ``seconds``.

        What has not ended by then is canceled. Every record says that the daemon was stopped.
        """
        self._runner.stopping = True
        self._wake()
        for live in self._slots:
            if live.job.started is None:
                live.cancel(f"{_STOPPED} before the job began")
        await self.ended(seconds)
        for live in self._slots:
            live.cancel(_STOPPED)
        await self.ended(2 * LAST_TRIES)

    async def ended(self, seconds: float) -> None:
        """Wait for ``seconds`` at most until no job runs or waits here; more may still come."""
        end = self.clock.seconds() + seconds
        while len(self._slots) and self.clock.seconds() < end:
            await pause(self.clock, _POLL)

    def stopService(self) -> Deferred[None]:
        """Fire when nothing is left; ``drain`` comes first, and the database stops after it."""
        super().stopService()
        return Deferred.fromCoroutine(self._stop())

    async def _stop(self) -> None:
        await self.drain(0.0)
        for task in self._periodic:
            await task.stopService()
        try:
            await self.database.change(statements.leave(self.node.run))
        except Unavailable:
            self.log.info("the database is away while jobs stop")
        self.node.close()
