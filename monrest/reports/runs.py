"""Making a report whose time has come: a job, its result, and the mail that follows."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from attrs import define
from sqlalchemy import Connection
from twisted.internet.defer import CancelledError
from twisted.logger import Logger

from monrest.base.audit import audit
from monrest.base.errors import RestError, SitesFailed, Unavailable
from monrest.base.values import Answer, Document, Progress
from monrest.jobs.model import Job
from monrest.reports import store as statements
from monrest.reports.letter import Letter, letter
from monrest.reports.store import QUEUE, SCHEDULE, WAITING, Run
from monrest.store.duties import Token

if TYPE_CHECKING:
    from monrest.reports.service import MadeReport, Reports

AUTHOR = "(reports)"
"""Who it is in the audit log."""

_TRIES = 5
_PAUSE = 60.0
"""Seconds until a report is made again for which a site or the database was missing."""

_WAIT = 30.0


@define(eq=False)
class Runs:
    """``reports`` has all that is needed."""

    log: ClassVar[Logger] = Logger()

    reports: Reports

    async def make(self, run: Run, token: Token) -> None:
        """Take a run and have a job do it; fires when that has ended."""
        reports = self.reports
        if run.attempts >= _TRIES:
            text = f"it was begun {run.attempts} times and never finished"
            await self._over(run, token, text)
            return
        if not await reports.duties.change(token, statements.begin(run, token.number)):
            return
        ended = False

        async def call(progress: Progress) -> Answer:
            nonlocal ended
            await reports.alone(run.report, lambda: self._made(run, token, progress))
            ended = True
            return Document(value={"message": "report finished", "id": run.report.number})

        try:
            identity = await reports.owner(run.report)
        except Unavailable:
            raise
        except RestError as error:
            await self._over(run, token, f"its owner cannot have it made: {error}")
            return
        job = await self._watched(await reports.as_job(run.report, call, identity))
        if not ended and reports.goes_on and job is not None and job.canceled_by is not None:
            await self._over(run, token, f"canceled by {job.canceled_by}")

    async def _watched(self, job: Job) -> Job | None:
        """The job when it has ended, or when the daemon stops."""
        found: Job | None = job
        while self.reports.goes_on and found is not None and found.ended is None:
            found = await self.reports.jobs.wait(job.id, _WAIT)
        return found

    async def _made(self, run: Run, token: Token, progress: Progress) -> None:
        """Make it, and store it together with what follows."""
        reports = self.reports
        try:
            made = await reports.make(run.report, run.at, progress)
            found = await reports.threads.run(lambda: self._letter(run, made))
        except CancelledError:
            raise
        except (SitesFailed, Unavailable) as error:
            await self._later(run, token, error)
            raise
        except Exception as error:
            await self._over(run, token, reason_of(error))
            raise
        progress(95, message="storing the result")
        now = reports.wall.now()

        def work(connection: Connection) -> None:
            if not statements.keep(run.report, made.files, now)(connection):
                return
            if found is None:
                statements.over(run, WAITING, None)(connection)
            else:
                statements.to_be_sent(run, found)(connection)

        await reports.duties.change(token, work)
        self._note(run, "ok")

    def _letter(self, run: Run, made: MadeReport) -> Letter | None:
        """The mail that follows; None where there is nobody to get it, or nothing to be told."""
        record = run.report.record
        if run.purpose == QUEUE or not (record["to"] or record["cc"]):
            return None
        settings = run.report.settings(self.reports.templates)
        level, worst = settings.mail_max_level, made.sheet.worst
        if run.purpose == SCHEDULE and level >= 0 and worst is not None and worst >= level:
            return None
        now = self.reports.wall.now()
        mail = self.reports.mail
        return letter(run.report, settings, made.sheet, made.files, mail, run.at, run.purpose, now)

    async def _later(self, run: Run, token: Token, error: RestError) -> None:
        if run.attempts + 1 >= _TRIES:
            await self._over(run, token, reason_of(error))
            return
        when = self.reports.wall.now() + _PAUSE
        work = statements.again(run, WAITING, when, (), reason_of(error))
        await self.reports.duties.change(token, work)

    async def _over(self, run: Run, token: Token, error: str) -> None:
        await self.reports.duties.change(token, statements.over(run, WAITING, error))
        self._note(run, error)

    def _note(self, run: Run, result: str) -> None:
        if result != "ok":
            self.log.warn(
                "report {number} was not made: {reason}", number=run.report.number, reason=result
            )
        audit(
            AUTHOR, None, "report", target=str(run.report.number), result=result, at=run.at,
            purpose=run.purpose,
        )  # fmt: skip


def reason_of(error: BaseException) -> str:
    """What a reader is told of a failure, the most important line first."""
    if isinstance(error, SitesFailed):
        return f"{error.message}\n{error.description}"
    if isinstance(error, RestError):
        return str(error)
    return "internal error, have a look at the log"
