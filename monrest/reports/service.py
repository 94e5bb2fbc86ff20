"""Making reports on request and when their time has come, and sending them.

What recurs is the duty of one daemon of the database. A time that has come becomes a row, which is
taken before a report is made, before its mail is tried, and once more when the mail server wants to
have the text: from then on no other daemon sends it.

Rules: docs/spec/reports.md, "Schedule and mail".
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine, Iterable, Sequence
from contextlib import suppress
from datetime import tzinfo
from functools import partial
from typing import Any, ClassVar

from attrs import define, field
from sqlalchemy import Connection
from twisted.application.service import Service
from twisted.internet.defer import CancelledError, Deferred, DeferredSemaphore
from twisted.internet.interfaces import IReactorTime
from twisted.logger import Logger

from monrest.api.recurring import Scheduler
from monrest.base.audit import audit
from monrest.base.clock import WallClock
from monrest.base.concurrency import Periodic, Shared, Threads
from monrest.base.errors import RestError, SitesFailed, Unavailable
from monrest.base.values import (
    Answer,
    Caller,
    Document,
    Identity,
    Progress,
    no_progress,
    part_of,
)
from monrest.config import MailConfig, ReportsConfig
from monrest.jobs.model import Job
from monrest.jobs.running_job import PATIENCE, JobWork, patiently
from monrest.jobs.service import Jobs
from monrest.reports import store as statements
from monrest.reports.files import File, rendered
from monrest.reports.mail import MAILS_AT_ONCE, Letter, MailDelivery, Mailer, letter
from monrest.reports.model import HANDING, MAILING, QUEUE, SCHEDULE, WAITING, Report, Run
from monrest.reports.own import templates_in
from monrest.reports.sheet import Sheet
from monrest.reports.templates import TEMPLATES, Templates
from monrest.store.database import Database
from monrest.store.duties import Duties, DutyLostError, Token

DUTY = "reports"
_LOOK = 5.0
_PATIENCE = 4.0
"""Seconds for which a daemon that stops waits for the answers of mail servers."""

_AUTHOR = "(reports)"
"""The user of the audit log."""

_REPORT_TRIES = 5
_REPORT_PAUSE = 60.0
"""Seconds until a report is made again for which a site or the database was missing."""

_JOB_WAIT = 30.0

_FIRST_MAIL_PAUSE, _LONGEST_MAIL_PAUSE = 10.0, 3600.0
_REFUSED = "refused: "
_LONGEST_ERROR = 4000

Prepare = Callable[[Identity, Report, float, Progress], Awaitable[Sheet]]
"""Makes the sheet of a report for a moment, of what a user sees."""

Owner = Callable[[Report], Awaitable[Identity]]
"""The identity with which a report reads data."""


@define(eq=False, kw_only=True)
class Reports(Service):
    """Makes reports and their mails; one that runs is shared by all that wait for it.

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
    _leaving: bool = field(init=False, default=False)
    _scheduler: Scheduler[Report] = field(init=False)
    _mails: DeferredSemaphore = field(init=False)
    _periodic: Periodic = field(init=False)

    def __attrs_post_init__(self) -> None:
        self._scheduler = Scheduler(
            log=self.log,
            word="report",
            duty=DUTY,
            records=statements.STORED,
            database=self.database,
            clock=self.clock,
            wall=self.wall,
            duties=self.duties,
            # The date of the next try is one of a clock that shows another one now.
            stepped=statements.try_again_now,
        )
        self._slots = DeferredSemaphore(self.config.concurrent)
        self._mails = DeferredSemaphore(MAILS_AT_ONCE)
        self._periodic = Periodic(self.clock, _LOOK, self.look, "making reports")

    async def being_made(self, report: Report) -> bool:
        """Whether a report is being made, by any daemon. Raises Unavailable."""
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
        """Make a report as a job; None when it must wait and is queued.

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

    async def now(self, report: Report, progress: Progress = no_progress) -> None:
        """Make a report and keep it, or wait for it where it is being made; raises what went wrong.

        A caller that stops waiting ends it only if it began it.
        """
        making = self._making.get(report.identity)
        if making is not None:
            await making.wait()
            return
        await self.alone(report, lambda: self._keep(report, self.wall.now(), progress))

    async def alone(
        self, report: Report, work: Callable[[], Coroutine[Deferred[Any], Any, None]]
    ) -> None:
        """Do the work of making a report while no other request here makes the same."""
        while (making := self._making.get(report.identity)) is not None:
            with suppress(RestError):
                await making.wait()
        shared: Shared[None] = Shared()
        doing: list[Deferred[None]] = []

        async def watched() -> None:
            doing.append(Deferred.fromCoroutine(work()))
            try:
                await doing[0]
            except CancelledError:
                raise Unavailable("the report was not made", "it was canceled") from None

        self._making[report.identity] = shared
        shared.run(watched(), lambda: self._making.pop(report.identity, None))
        try:
            await shared.wait()
        except CancelledError:
            doing[0].cancel()
            raise

    async def _keep(self, report: Report, at: float, progress: Progress) -> None:
        try:
            _, files = await self.make(report, at, progress)
        except CancelledError:
            raise
        except Exception as error:
            await self.database.change(statements.fail(report, reason_of(error)))
            raise
        progress(95, message="storing the result")
        now = self.wall.now()
        await self.database.change(statements.keep(report, files, now))

    async def make(self, report: Report, at: float, progress: Progress) -> tuple[Sheet, list[File]]:
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
        return sheet, files

    @property
    def goes_on(self) -> bool:
        """Whether the daemon has not begun to stop."""
        return bool(self.running) and not self._leaving

    async def look(self) -> None:
        """Find what has come, and begin with all that is not over."""
        token = self.duties.held(DUTY)
        if token is None or not self.goes_on:
            return
        try:
            for number in await self._scheduler.plan(token, self.zone):
                self.log.warn("report {number}: earlier times were missed", number=number)
            for run in await self.database.run(statements.unfinished(self.wall.now())):
                if self._scheduler.may_start(run.key) and await self._may_begin(run, token):
                    self._scheduler.start(
                        run.key, run.report.number, partial(self._begin, run, token)
                    )
        except (Unavailable, DutyLostError) as error:
            self.log.info("reports are not made now: {reason}", reason=str(error))

    async def _may_begin(self, run: Run, token: Token) -> bool:
        if run.phase != WAITING:
            return True
        if self.busy:
            return False
        if run.number in (0, token.number):
            return not await self.being_made(run.report)
        # The daemon that had the duty before cannot store what it makes, and that it is dead is
        # noticed later.
        return run.report.identity not in self._making

    def _begin(self, run: Run, token: Token) -> Deferred[float | None]:
        if run.phase == WAITING:
            return Deferred.fromCoroutine(self._make_run(run, token))
        if run.phase == HANDING:
            return Deferred.fromCoroutine(self._end_doubtful(run, token))
        return self._mails.run(lambda: Deferred.fromCoroutine(self._send(run, token)))

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
        for problem in problems:
            self.log.warn("report template {problem}", problem=problem)

    async def configure(self, config: ReportsConfig, mail: MailConfig, zone: tzinfo) -> None:
        """Continue with other settings and templates; what is being made now counts as before."""
        self._loaded(*await self.threads.run(lambda: self._read(config.templates)))
        if config.concurrent != self.config.concurrent:
            self._slots = DeferredSemaphore(config.concurrent)
        self.config, self.mail, self.zone = config, mail, zone

    def startService(self) -> None:
        super().startService()
        self._leaving = False
        self.duties.want(DUTY)
        self.mailer.startService()
        self._periodic.startService()

    def leave(self) -> None:
        self._leaving = True

    def stopService(self) -> Deferred[None]:
        """Fire when nothing runs any more; mails that are on their way get some seconds."""
        self.leave()
        super().stopService()

        async def stop() -> None:
            await self._periodic.stopService()
            await self._scheduler.stop(_PATIENCE)
            self.mailer.stopService()

        return Deferred.fromCoroutine(stop())

    async def _make_run(self, run: Run, token: Token) -> None:
        """Take a run and have a job do it; fires when that has ended."""
        if run.attempts >= _REPORT_TRIES:
            text = f"it was begun {run.attempts} times and never finished"
            await self._end(run, token, text)
            return
        if not await self.duties.change(token, statements.begin(run, token.number)):
            return
        ended = False

        async def call(progress: Progress) -> Answer:
            nonlocal ended
            await self.alone(run.report, lambda: self._make_due(run, token, progress))
            ended = True
            return Document(value={"message": "report finished", "id": run.report.number})

        try:
            identity = await self.owner(run.report)
        except Unavailable:
            raise
        except RestError as error:
            await self._end(run, token, f"its owner cannot have it made: {error}")
            return
        job: Job | None = await self.as_job(run.report, call, identity)
        while self.goes_on and job is not None and job.ended is None:
            job = await self.jobs.wait(job.id, _JOB_WAIT)
        if not ended and self.goes_on and job is not None and job.canceled_by is not None:
            await self._end(run, token, f"canceled by {job.canceled_by}")

    async def _make_due(self, run: Run, token: Token, progress: Progress) -> None:
        """Make it, and store it together with what follows."""
        try:
            sheet, files = await self.make(run.report, run.at, progress)
            letter = await self._letter(run, sheet, files)
        except CancelledError:
            raise
        except (SitesFailed, Unavailable) as error:
            reason = reason_of(error)
            if run.attempts + 1 >= _REPORT_TRIES:
                await self._end(run, token, reason)
            else:
                when = self.wall.now() + _REPORT_PAUSE
                again = statements.again(run, WAITING, when, (), reason)
                await self.duties.change(token, again)
            raise
        except Exception as error:
            await self._end(run, token, reason_of(error))
            raise
        progress(95, message="storing the result")
        now = self.wall.now()

        def work(connection: Connection) -> None:
            if not statements.keep(run.report, files, now)(connection):
                return
            if letter is None:
                statements.over(run, WAITING, None)(connection)
            else:
                statements.to_be_sent(run, letter)(connection)

        await self.duties.change(token, work)
        self._note_made(run, "ok")

    async def _letter(self, run: Run, sheet: Sheet, files: list[File]) -> Letter | None:
        """The mail that follows; None without recipients, or where all is well enough."""
        record = run.report.record
        if run.purpose == QUEUE or not (record["to"] or record["cc"]):
            return None
        settings = run.report.settings(self.templates)
        level, worst = settings.mail_max_level, sheet.worst
        if run.purpose == SCHEDULE and level >= 0 and worst is not None and worst >= level:
            return None
        parts = run.report, settings, sheet, files, self.mail
        now = self.wall.now()
        return await self.threads.run(lambda: letter(*parts, run.at, run.purpose, now))

    async def _end(self, run: Run, token: Token, error: str) -> None:
        await self.duties.change(token, statements.over(run, WAITING, error))
        self._note_made(run, error)

    def _note_made(self, run: Run, result: str) -> None:
        if result != "ok":
            self.log.warn(
                "report {number} was not made: {reason}", number=run.report.number, reason=result
            )
        audit(
            _AUTHOR, None, "report", target=str(run.report.number), result=result, at=run.at,
            purpose=run.purpose,
        )  # fmt: skip

    async def _send(self, run: Run, token: Token) -> None:
        """One try: take the run, talk to the mail server, store its answer."""
        if not await self.duties.change(token, statements.begin(run, token.number)):
            return
        data = await self.database.run(statements.message(run))
        if data is None:
            return

        async def before_text(_: tuple[str, ...]) -> None:
            if not await self.duties.change(token, statements.handing(run)):
                raise DutyLostError(token.duty)

        letter = Letter(recipients=run.recipients, message=data)
        delivery = await self.mailer.deliver(letter, self.mail, before_text)
        await self._store_delivery(run, delivery)

    async def _end_doubtful(self, run: Run, token: Token) -> None:
        """End a run whose daemon died, or lost the database, while a server took the mail."""
        lines = [*_refusals(run), _doubt(run.recipients, "the daemon that sent it was interrupted")]
        text = _text(lines)
        await self.duties.change(token, statements.over(run, MAILING, text, run.recipients))
        self._note_sent(run, text, 0)

    async def _store_delivery(self, run: Run, delivery: MailDelivery) -> None:
        """Store what the server answered, also without the duty by now: it has happened."""
        attempts = run.attempts + 1
        lines = _refusals(run)
        lines += [f"{_REFUSED}{address}: {why}" for address, why in delivery.refused.items()]
        left = list(delivery.later)
        more = [f"{address}: {why}" for address, why in delivery.later.items()]
        if delivery.doubtful:
            lines.append(_doubt(delivery.doubtful, delivery.problem))
        elif delivery.problem:
            left = list(run.recipients)
            more = [delivery.problem]
        hope = bool(left) and not delivery.final and attempts < self.mail.tries
        if hope:
            pause = min(_FIRST_MAIL_PAUSE * 2 ** (attempts - 1), _LONGEST_MAIL_PAUSE)
            when = self.wall.now() + pause
            how = f"not sent yet, tried {attempts} times"
            text = _text([*lines, *(f"{how}: {line}" for line in more)])
            work = statements.again(run, MAILING, when, left, text)
        else:
            text = _text([*lines, *(f"not sent: {line}" for line in more)])
            work = statements.over(run, MAILING, text or None, left)
        await patiently(lambda: self.database.change(work), self.clock, PATIENCE)
        self._note_sent(run, text, len(delivery.taken))

    def _note_sent(self, run: Run, problem: str, taken: int) -> None:
        if problem:
            self.log.warn("report {number}: {reason}", number=run.report.number, reason=problem)
        audit(
            _AUTHOR, None, "report mail", target=str(run.report.number), result=problem or "ok",
            at=run.at, purpose=run.purpose, taken=taken,
        )  # fmt: skip


def reason_of(error: BaseException) -> str:
    """The text of a failure for readers, the most important line first."""
    if isinstance(error, SitesFailed):
        return f"{error.message}\n{error.description}"
    if isinstance(error, RestError):
        return str(error)
    return "internal error, have a look at the log"


def _refusals(run: Run) -> list[str]:
    """The recipients that earlier tries were refused, with reasons."""
    return [line for line in (run.error or "").splitlines() if line.startswith(_REFUSED)]


def _doubt(recipients: Sequence[str], reason: str) -> str:
    return (
        f"it is unknown whether the mail arrived at {', '.join(recipients)}, "
        f"so it is not sent again: {reason}"
    )


def _text(lines: Sequence[str]) -> str:
    return "\n".join(line for line in lines if line)[:_LONGEST_ERROR]
