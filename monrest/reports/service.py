"""Making reports: when somebody asks for one, when its time has come, and sending them.

What recurs is the duty of one daemon of the database. A time that has come becomes a row, which is
taken before a report is made, before its mail is tried, and once more when the mail server wants to
have the text: from then on nobody else sends it. Rules: docs/spec/reports.md, "Schedule and mail".
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine, Iterable
from contextlib import suppress
from datetime import tzinfo
from typing import Any, ClassVar

from attrs import define, field, frozen
from twisted.application.service import Service
from twisted.internet.defer import CancelledError, Deferred, DeferredSemaphore
from twisted.internet.interfaces import IReactorTime
from twisted.logger import Logger
from twisted.python.failure import Failure

from monrest.base.clock import ClockSteps, WallClock
from monrest.base.concurrency import Periodic, Shared, Threads, ended
from monrest.base.errors import RestError, Unavailable
from monrest.base.values import (
    Answer,
    Caller,
    Document,
    Identity,
    Progress,
    nobody_follows,
    part_of,
)
from monrest.config import MailConfig, ReportsConfig
from monrest.jobs.model import Job
from monrest.jobs.running_job import JobWork
from monrest.jobs.service import Jobs
from monrest.reports import store as statements
from monrest.reports.files import File, rendered
from monrest.reports.model import Report
from monrest.reports.own import templates_in
from monrest.reports.post import Post
from monrest.reports.runs import Runs, reason_of
from monrest.reports.sheet import Sheet
from monrest.reports.smtp import Mailer
from monrest.reports.store import HANDING, QUEUE, WAITING, Run
from monrest.reports.templates import TEMPLATES, Templates
from monrest.store.database import Database
from monrest.store.duties import Duties, DutyLostError, Token

DUTY = "reports"
_LOOK = 5.0
_PAUSE = 10.0
_MAILS_AT_ONCE = 4
_PATIENCE = 4.0
"""Seconds for which a daemon that stops waits for the answers of mail servers."""

Prepare = Callable[[Identity, Report, float, Progress], Awaitable[Sheet]]
"""Asks logs and cores for what a report says at a moment, as somebody sees it."""

Owner = Callable[[Report], Awaitable[Identity]]
"""Says as whom a report asks."""


@frozen(kw_only=True)
class MadeReport:
    """A report that is ready."""

    sheet: Sheet
    files: list[File]


@define(eq=False, kw_only=True)
class Reports(Service):
    """``prepare`` makes what a report says, ``owner`` says who has it made.

    ``leave`` comes before the jobs are ended, so that what they leave is not taken for canceled.
    """

    log: ClassVar[Logger] = Logger()

    database: Database
    clock: IReactorTime
    wall: WallClock
    threads: Threads
    duties: Duties
    jobs: Jobs
    mailer: Mailer
    config: ReportsConfig
    mail: MailConfig
    zone: tzinfo
    prepare: Prepare
    owner: Owner
    templates: Templates = field(init=False, factory=lambda: TEMPLATES)
    _slots: DeferredSemaphore = field(init=False)
    _making: dict[tuple[int, int], Shared[None]] = field(init=False, factory=dict)
    _starting: set[tuple[int, int]] = field(init=False, factory=set)
    _working: dict[tuple[int, int, str], Deferred[None]] = field(init=False, factory=dict)
    _again: dict[tuple[int, int, str], float] = field(init=False, factory=dict)
    _leaving: bool = field(init=False, default=False)
    _planned: tuple[Token, tzinfo, int] | None = field(init=False, default=None)
    _steps: ClockSteps = field(init=False)
    _mails: DeferredSemaphore = field(init=False)
    _runs: Runs = field(init=False)
    _post: Post = field(init=False)
    _periodic: Periodic = field(init=False)

    def __attrs_post_init__(self) -> None:
        self._steps = ClockSteps(self.wall, self.clock)
        self._slots = DeferredSemaphore(self.config.concurrent)
        self._mails = DeferredSemaphore(_MAILS_AT_ONCE)
        self._runs, self._post = Runs(self), Post(self)
        self._periodic = Periodic(self.clock, _LOOK, self.look, "making reports")

    async def being_made(self, report: Report) -> bool:
        """Whether a report is being made, by whatever daemon. Raises Unavailable."""
        if report.identity in self._making or report.identity in self._starting:
            return True
        if report.job is None:
            return False
        job = await self.jobs.get(report.job)
        return job is not None and job.ended is None

    @property
    def busy(self) -> bool:
        """Whether as many are being made as may be at once."""
        return len(self._making.keys() | self._starting) >= self.config.concurrent

    async def start(
        self, report: Report, identity: Identity, caller: Caller | None, request_id: str
    ) -> Job | None:
        """Have a report made by a job; None when it has to wait and is queued.

        Raises TooManyRequests and Unavailable.
        """
        if self.busy or await self.being_made(report):
            now = int(self.wall.now())
            await self.database.change(statements.queue(report, now, QUEUE))
            return None
        number = report.number

        async def call(progress: Progress) -> Answer:
            await self.now(report, progress)
            return Document(value={"message": "report finished", "id": number})

        return await self.as_job(report, call, identity, caller, request_id)

    async def as_job(
        self,
        report: Report,
        call: Callable[[Progress], Awaitable[Answer]],
        identity: Identity,
        caller: Caller | None = None,
        request_id: str = "",
    ) -> Job:
        """Start a job for a report, and note that it does."""
        self._starting.add(report.identity)
        try:
            job = await self.jobs.start(
                JobWork(
                    call=call,
                    cmd=f'mon report "{report.number}"',
                    identity=identity,
                    caller=caller,
                    request_id=request_id,
                    changes=True,
                )
            )
            await self.database.change(statements.begun(report, job.id))
        finally:
            self._starting.discard(report.identity)
        return job

    async def now(self, report: Report, progress: Progress = nobody_follows) -> None:
        """Make a report and keep it, or wait for who does already; raises what went wrong.

        Who gives up waiting ends it only if it is their own.
        """
        known = self._making.get(report.identity)
        if known is not None:
            await known.wait()
            return
        await self.alone(report, lambda: self._keep(report, self.wall.now(), progress))

    async def alone(
        self, report: Report, work: Callable[[], Coroutine[Deferred[Any], Any, None]]
    ) -> None:
        """Do the work of making a report while nobody else here makes the same."""
        while (known := self._making.get(report.identity)) is not None:
            with suppress(RestError):
                await known.wait()
        shared: Shared[None] = Shared()
        doing: list[Deferred[None]] = []

        async def watched() -> None:
            doing.append(Deferred.fromCoroutine(work()))
            try:
                await doing[0]
            except CancelledError:
                raise Unavailable("the report was not made", "somebody canceled it") from None

        self._making[report.identity] = shared
        shared.run(watched(), lambda: self._making.pop(report.identity, None))
        try:
            await shared.wait()
        except CancelledError:
            doing[0].cancel()
            raise

    async def _keep(self, report: Report, at: float, progress: Progress) -> None:
        try:
            made = await self.make(report, at, progress)
        except CancelledError:
            raise
        except Exception as error:
            await self.database.change(statements.fail(report, reason_of(error)))
            raise
        progress(95, message="storing the result")
        now = self.wall.now()
        await self.database.change(statements.keep(report, made.files, now))

    async def make(self, report: Report, at: float, progress: Progress) -> MadeReport:
        """Make a report for the moment ``at`` as soon as there is room; raises what went wrong."""
        await self._slots.acquire()
        try:
            progress(1, message="starting")
            identity = await self.owner(report)
            sheet = await self.prepare(identity, report, at, part_of(progress, 5, 80))
            progress(80, message="rendering")
            files = await self.threads.stoppable(lambda given_up: rendered(sheet, given_up))
        finally:
            self._slots.release()
        return MadeReport(sheet=sheet, files=files)

    @property
    def goes_on(self) -> bool:
        """Whether the daemon has not begun to stop."""
        return bool(self.running) and not self._leaving

    async def look(self) -> None:
        """Find what has come, and begin with all that is not over."""
        token = self.duties.held(DUTY)
        if token is None or not self.goes_on:
            return
        now = self.wall.now()
        try:
            planned = (token, self.zone, self._steps.look())
            if self._planned != planned:
                known = self._planned
                stepped = known is not None and known[2] != planned[2]
                since = self._steps.since() if stepped else now
                await self.duties.change(token, statements.plan_again(since, self.zone))
                if stepped:
                    # The date of the next try was one of a clock that shows another one now.
                    await self.duties.change(token, statements.try_again_now)
                self._planned = planned
            if await self.database.run(statements.is_due(now)):
                missed = await self.duties.change(token, statements.plan(now, self.zone))
                for number in missed:
                    self.log.warn("report {number}: earlier times were missed", number=number)
            for run in await self.database.run(statements.unfinished(now)):
                await self._begin(run, token)
        except (Unavailable, DutyLostError) as error:
            self.log.info("reports are not made now: {reason}", reason=str(error))

    async def _begin(self, run: Run, token: Token) -> None:
        if run.key in self._working or self.clock.seconds() < self._again.get(run.key, 0.0):
            return
        if run.phase == WAITING:
            if self.busy or await self._in_the_way(run, token):
                return
            work = Deferred.fromCoroutine(self._runs.make(run, token))
        elif run.phase == HANDING:
            work = Deferred.fromCoroutine(self._post.doubtful(run, token))
        else:
            work = self._mails.run(lambda: Deferred.fromCoroutine(self._post.send(run, token)))
        self._working[run.key] = work
        work.addErrback(self._broken, run)
        work.addCallback(self._ended, run)

    async def _in_the_way(self, run: Run, token: Token) -> bool:
        """Whether the report of a run is being made, except by who had the duty before.

        What that one makes cannot be stored, and that it is dead is noticed later.
        """
        if run.number not in (0, token.number):
            return run.report.identity in self._making
        return await self.being_made(run.report)

    def _ended(self, _: None, run: Run) -> None:
        self._working.pop(run.key, None)

    def _broken(self, failure: Failure, run: Run) -> None:
        """Try again later; whatever it is, the row is still there."""
        if failure.check(CancelledError):
            return
        self._again[run.key] = self.clock.seconds() + _PAUSE
        if failure.check(RestError, DutyLostError):
            self.log.warn(
                "report {number}: {reason}", number=run.report.number, reason=str(failure.value)
            )
        else:
            self.log.failure("report {number} failed", failure, number=run.report.number)

    def load(self) -> None:
        """Read the operator's templates; blocks."""
        self._loaded(*self._read(self.config.templates))

    def _read(self, folder: str) -> tuple[Templates, list[str]]:
        """Read the templates; those of before stay while the folder cannot be read."""
        try:
            return templates_in(folder)
        except OSError as error:
            return self.templates, [f"folder {folder} cannot be read: {error.strerror}"]

    def _loaded(self, templates: Templates, problems: Iterable[str]) -> None:
        self.templates = templates
        for one in problems:
            self.log.warn("report template {problem}", problem=one)

    async def configure(self, config: ReportsConfig, mail: MailConfig, zone: tzinfo) -> None:
        """Go on with other settings and templates; what is being made now counts as before."""
        self._loaded(*await self.threads.run(lambda: self._read(config.templates)))
        if config.concurrent != self.config.concurrent:
            self._slots = DeferredSemaphore(config.concurrent)
        self.config, self.mail, self.zone = config, mail, zone

    def startService(self) -> None:
        """Take part; the database, the duties and the jobs must run."""
        super().startService()
        self._leaving = False
        self.duties.want(DUTY)
        self._periodic.startService()

    def leave(self) -> None:
        """Begin with nothing more."""
        self._leaving = True

    def stopService(self) -> Deferred[None]:
        """Fire when nothing runs any more; mails that are on their way get some seconds."""
        self.leave()
        super().stopService()
        return Deferred.fromCoroutine(self._stop())

    async def _stop(self) -> None:
        await self._periodic.stopService()
        await ended(self._working.values(), self.clock, _PATIENCE)
