"""All background jobs: starting, doing, following, canceling, cleaning (section 9).

The records are in the database, so that every daemon on it knows all jobs; each is done by the
daemon that was asked for it. Nothing is ever done twice: what a daemon left unfinished ends as
failed, by its own next start or, when its beat stands still, by the others.
"""

from __future__ import annotations

import secrets
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import ClassVar

from attrs import define, evolve, field
from sqlalchemy import Connection
from twisted.application.service import Service
from twisted.internet.defer import CancelledError, Deferred
from twisted.internet.interfaces import IReactorTime
from twisted.logger import Logger
from twisted.python.failure import Failure

from monrest.audit import audit
from monrest.concurrency import Periodic, Threads, pause, shielded
from monrest.config import JobsConfig
from monrest.errors import RestError, TooManyRequests, Unavailable
from monrest.jobs import statements
from monrest.jobs.line import Line
from monrest.jobs.live import Keeper, Kept, Live, Told, Work, failure_of, patiently
from monrest.jobs.node import Node
from monrest.jobs.record import Job, Outcome, new_id, storable
from monrest.jobs.watch import Watch
from monrest.log import REQUEST_ID
from monrest.render.formats import Rendered, error_document, render
from monrest.store.database import Database
from monrest.values import Answer, Document, Rows

_BEAT = 2.0
_WATCH = 5.0
_CLEAN = 60.0
_AT_ONCE = 20
_LOOK_AGAIN = 1.0
_CANCEL_SECONDS = 10.0
_LAST_TRIES = 5.0
_PATIENCE = 60.0
_MOST_BYTES = 67108864
_LONGEST_CMD = 2000
_ID_CHANCES = 1000
_RETRY_AFTER = 30.0
_PERSONAL = frozenset({"set-cookie"})
_TURN = 0.05
_STOPPED = "the daemon was stopped"


@define(eq=False, kw_only=True)
class Jobs(Service):
    """``config`` may be replaced while it runs; ``folder`` is the one of the daemon's state.

    ``describe`` says what a client is told of a failure, whose request has this id.
    """

    log: ClassVar[Logger] = Logger()

    database: Database
    clock: IReactorTime
    threads: Threads
    config: JobsConfig
    folder: Path
    describe: Callable[[Failure, str], Told]
    node: Node = field(init=False)
    _live: dict[int, Live] = field(factory=dict, init=False)
    _line: Line[Live] = field(factory=Line, init=False)
    _busy: int = field(default=0, init=False)
    _starting: set[int] = field(factory=set, init=False)
    _doubtful: bool = field(default=False, init=False)
    _stopping: bool = field(default=False, init=False)
    _waiters: dict[Deferred[None], Live | None] = field(factory=dict, init=False)
    _watch: Watch = field(init=False)
    _periodic: tuple[Periodic, ...] = field(init=False)

    def __attrs_post_init__(self) -> None:
        self._periodic = (
            Periodic(self.clock, _BEAT, self.beat, "reporting on jobs", now=False),
            Periodic(self.clock, _WATCH, self.watch, "looking after jobs of others"),
            Periodic(self.clock, _CLEAN, self.clean, "removing old jobs", now=False),
        )

    # ---------------------------------------------------------------- asking

    def _as_it_is(self, job: Job) -> Job:
        """Add what is not stored yet: progress, and the death of this daemon's former self."""
        if job.ended is not None:
            return job
        live = self._live.get(job.id)
        if live is not None:
            return live.job
        if job.host_id == self.node.id and job.run != self.node.run:
            return job.lost(self.clock.seconds())
        return job

    async def several(self, user: str | None = None) -> list[Job]:
        """Give all jobs by id; for a ``user`` his own and those of nobody. Raises Unavailable."""
        found = await self.database.run(statements.several(user))
        return [self._as_it_is(job) for job in found]

    async def get(self, number: int) -> Job | None:
        """Give one job, whosever it is. Raises Unavailable."""
        job = await self.database.run(statements.one(number))
        return None if job is None else self._as_it_is(job)

    async def wait(self, number: int, seconds: float) -> Job | None:
        """Give one job when it has ended, or as it is after ``seconds`` or when the daemon stops.

        None when it does not exist (any more).
        """
        end = self.clock.seconds() + seconds
        while True:
            job = await self.get(number)
            left = end - self.clock.seconds()
            if job is None or job.ended is not None or left <= 0 or self._stopping:
                return job
            live = self._live.get(number)
            await self._woken(live, left if live is not None else min(left, _LOOK_AGAIN))

    async def _woken(self, live: Live | None, seconds: float) -> None:
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

    def _wake(self, live: Live | None = None) -> None:
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

    async def start(self, work: Work) -> Job:
        """Store a job and do it as soon as it is its turn, also if nobody waits any more.

        Raises TooManyRequests when too many wait, Unavailable when it cannot be stored.
        """
        if self._stopping:
            raise Unavailable("cannot start a job", "the daemon stops")
        self._check_room(work)
        return await shielded(self._start(work))

    def _check_room(self, work: Work) -> None:
        owner = work.identity.user
        most = self.config.concurrent + self.config.queue
        count = len(self._live) + len(self._starting)
        mine = self._line.count(owner) + len(self._starting)
        held = sum(live.work.size for live in self._live.values())
        if count >= most or held + work.size > _MOST_BYTES:
            reason = f"{len(self._line)} wait already"
        elif mine >= max(1, self.config.queue // 2):
            reason = f"{mine} of yours wait already"
        else:
            return
        raise TooManyRequests(
            "too many background jobs", f"{reason}; try again later", _RETRY_AFTER
        )

    async def _start(self, work: Work) -> Job:
        stored = False
        while not stored:
            now = self.clock.seconds()
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
                stored = await self.database.change(statements.add(job))
            except Unavailable:
                self._doubtful = True
                raise
            finally:
                self._starting.discard(number)
        live = Live(job, work, self.clock, Deferred())
        self._live[job.id] = live
        self._line.add(job.user, live)
        self._audit(live, "job start")
        # The answer goes first.
        self.clock.callLater(0, self._begin, live)
        return job

    def _begin(self, live: Live) -> None:
        Deferred.fromCoroutine(self._life(live)).addErrback(
            lambda failure: self.log.failure("a job was given up", failure)
        )
        self._next()

    def _next(self) -> None:
        while self._busy < self.config.concurrent:
            live = self._line.take()
            if live is None:
                return
            self._busy += 1
            live.turn.callback(None)

    # ---------------------------------------------------------------- doing

    async def _life(self, live: Live) -> None:
        REQUEST_ID.set(live.work.request_id)
        live.doing = Deferred.fromCoroutine(self._do(live))
        if live.reason:
            live.doing.cancel()
        try:
            kept = await live.doing
        except CancelledError:
            kept = failure_of(live.reason or "canceled", "canceled")
        except RestError as error:
            kept = failure_of(str(error))
        except Exception:  # noqa: BLE001  the job has failed, the daemon goes on
            self.log.failure("job {id} failed", id=live.job.id)
            kept = failure_of(
                f"internal error, have a look at the log for request {live.work.request_id}"
            )
        live.storing = True
        try:
            await self._end(live, kept)
        finally:
            del self._live[live.job.id]
            if not self._line.remove(live.job.user, live):
                self._busy -= 1
            self._wake(live)
            self._next()

    async def _do(self, live: Live) -> Kept:
        await live.turn
        live.begin()
        work = live.work
        with suppress(Unavailable):
            await self.database.change(statements.say([live.job]))
        keeper = Keeper(
            clock=self.clock,
            keep=lambda at, data: self.database.change(statements.keep(live.job.id, at, data)),
        )
        try:
            answer = await work.call(live.progress)
            rendered, outcome = await self._rendered(answer, work)
        except CancelledError:
            raise
        except Exception:  # noqa: BLE001  the answer is an error document
            told = self.describe(Failure(), work.request_id)
            rendered = error_document(
                told.code, told.message, told.description, work.options, told.extra
            )
            outcome = _outcome(rendered, told.code, told.headers, told.failed_sites)
            text = f"{told.message}: {told.description}" if told.description else told.message
            outcome = evolve(outcome, stderr=storable(text, _LONGEST_CMD), message=told.message)
        live.progress(live.job.percent, message="storing the result")
        return await keeper.take(rendered.pieces, outcome)

    async def _rendered(self, answer: Answer, work: Work) -> tuple[Rendered, Outcome]:
        assert isinstance(answer, (Rows, Document))
        status = answer.status if isinstance(answer, Document) else 200
        sites = tuple(problem.site for problem in answer.failed_sites)
        options = work.options
        if options.slow:
            rendered = await self.threads.run(lambda: render(answer, options))
        else:
            rendered = render(answer, options)
        return rendered, _outcome(rendered, status, answer.headers, sites)

    async def _end(self, live: Live, kept: Kept) -> None:
        """Store the end; what cannot be stored in time ends without its result."""
        seconds = _LAST_TRIES if self._stopping else _PATIENCE
        try:
            await self._store_end(live, kept, seconds)
        except Unavailable as error:
            lost = failure_of(f"the result could not be stored: {error.description}")
            while True:
                with suppress(Unavailable):
                    await self._store_end(live, lost, _LAST_TRIES)
                    return
                if self._stopping:
                    self.log.warn("the end of job {id} is not stored", id=live.job.id)
                    return

    async def _store_end(self, live: Live, kept: Kept, seconds: float) -> None:
        now = self.clock.seconds()
        job = evolve(live.job, ended=now, percent=100.0, outcome=kept.outcome)
        work = statements.end(job, kept.last)
        stored = await patiently(lambda: self.database.change(work), self.clock, seconds)
        if not stored:
            self.log.warn("job {id} was given up by others before it ended", id=job.id)
        self._audit(live, "job end", result=_result(job, stored=bool(stored)))

    def _audit(self, live: Live, action: str, result: str = "ok") -> None:
        work = live.work
        if work.changes:
            audit(
                work.identity,
                work.caller,
                action,
                target=str(live.job.id),
                result=result,
                cmd=live.job.cmd,
            )

    # ---------------------------------------------------------------- ending

    async def cancel(self, job: Job, user: str) -> Job | None:
        """End a job that has not ended; as it is when that is done, or after 10 seconds.

        None when it does not exist any more. Raises Unavailable.
        """
        live = self._live.get(job.id)
        if live is None:
            await self.database.change(statements.cancel(job.id, user))
        else:
            live.cancel(_canceled(user), user)
        return await self.wait(job.id, _CANCEL_SECONDS)

    async def remove(self, number: int) -> bool:
        """Delete an ended job with its result; False when there is none. Raises Unavailable."""
        return await self.database.change(statements.remove(number))

    async def beat(self) -> None:
        """Store that this daemon lives and how far its jobs are, and read what is to be ended."""
        if not self._live and not self._doubtful:
            return
        before = dict(self._live)
        unsaid = [live for live in before.values() if live.unsaid and not live.storing]
        for live in unsaid:
            live.unsaid = False
        work = statements.report(self.node.run, [live.job for live in unsaid])
        try:
            unended = await self.database.change(work)
        except BaseException as error:
            for live in unsaid:
                live.unsaid = True
            if isinstance(error, Unavailable):
                return
            raise
        for number, live in before.items():
            if number not in unended:
                # The others took this daemon for dead, and their word is stored.
                live.cancel("other daemons gave the job up")
            elif (user := unended[number]) is not None:
                live.cancel(_canceled(user), user)
        await self._settle(unended)

    async def _settle(self, unended: Mapping[int, str | None]) -> None:
        """End what is stored for this daemon and was never begun: a start that failed by half."""
        astray = [one for one in unended if one not in self._live and one not in self._starting]
        if astray:
            now = self.clock.seconds()
            with suppress(Unavailable):
                await self.database.change(statements.lose(self.node.run, now, astray))
        elif not self._starting:
            self._doubtful = False

    async def watch(self) -> None:
        """End the jobs of daemons that are gone: former runs of this one, and silent others."""
        now = self.clock.seconds()
        try:
            await self._lose(statements.lose_former(self.node.id, self.node.run, now))
            beats = await self.database.run(statements.beats)
            for run in self._watch.look(beats, self.clock.seconds()):
                await self._lose(statements.lose(run, self.clock.seconds()))
        except Unavailable:
            self._watch.missed()

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

    async def clean(self) -> None:
        """Remove jobs that ended ``config.keep`` seconds ago, with their results."""
        before = self.clock.seconds() - self.config.keep
        try:
            while old := await self.database.run(statements.expired(before, _AT_ONCE)):
                for number in old:
                    await self.remove(number)
        except Unavailable:
            return

    # ---------------------------------------------------------------- service

    def startService(self) -> None:
        """Find out who this is, which may block shortly; OSError when that cannot be."""
        super().startService()
        self.node = Node.open(self.folder)
        self._watch = Watch(self.node.run)

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
        self._stopping = True
        self._wake()
        for live in tuple(self._live.values()):
            if live.job.started is None:
                live.cancel(f"{_STOPPED} before the job began")
        await self._emptied(seconds)
        for live in tuple(self._live.values()):
            live.cancel(_STOPPED)
        await self._emptied(2 * _LAST_TRIES)

    async def _emptied(self, seconds: float) -> None:
        end = self.clock.seconds() + seconds
        while self._live and self.clock.seconds() < end:
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


def _canceled(user: str) -> str:
    return f"canceled by {user}" if user else "canceled"


def _outcome(
    rendered: Rendered,
    status: int,
    headers: tuple[tuple[str, str], ...],
    failed_sites: tuple[str, ...],
) -> Outcome:
    """Describe an answer; the header of failed sites is spelled when it is sent."""
    return Outcome(
        status=status,
        content_type=rendered.content_type,
        disposition=rendered.disposition,
        headers=tuple(pair for pair in headers if pair[0].lower() not in _PERSONAL),
        failed_sites=failed_sites,
    )


def _result(job: Job, *, stored: bool) -> str:
    if not stored:
        return "given up by other daemons"
    return job.outcome.stderr or ("ok" if job.rc == 0 else f"status {job.outcome.status}")
