"""Sending the mail of a report: again while there is hope, and never twice."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

from attrs import define
from twisted.logger import Logger

from monrest.base.audit import audit
from monrest.jobs.running_job import PATIENCE, patiently
from monrest.reports import store as statements
from monrest.reports.letter import Letter
from monrest.reports.runs import AUTHOR
from monrest.reports.smtp import MailDelivery
from monrest.reports.store import MAILING, Run
from monrest.store.duties import DutyLostError, Token

if TYPE_CHECKING:
    from monrest.reports.service import Reports

_FIRST, _LONGEST_PAUSE = 10.0, 3600.0
_REFUSED = "refused: "
_LONGEST_ERROR = 4000


@define(eq=False)
class Post:
    """``reports`` has all that is needed."""

    log: ClassVar[Logger] = Logger()

    reports: Reports

    async def send(self, run: Run, token: Token) -> None:
        """One try: take the run, talk to the mail server, write down what it said."""
        reports = self.reports
        if not await reports.duties.change(token, statements.begin(run, token.number)):
            return
        data = await reports.database.run(statements.message(run))
        if data is None:
            return

        async def before_text(_: tuple[str, ...]) -> None:
            if not await reports.duties.change(token, statements.handing(run)):
                raise DutyLostError(token.duty)

        letter = Letter(recipients=run.recipients, message=data)
        delivery = await reports.mailer.deliver(letter, reports.mail, before_text)
        await self._note(run, delivery)

    async def doubtful(self, run: Run, token: Token) -> None:
        """End a run whose daemon died, or lost the database, while a server took the mail."""
        lines = [*_refusals(run), _doubt(run.recipients, "the daemon that sent it was interrupted")]
        text = _text(lines)
        await self.reports.duties.change(token, statements.over(run, MAILING, text, run.recipients))
        self._told(run, text, 0)

    async def _note(self, run: Run, delivery: MailDelivery) -> None:
        """What was said is stored whoever has the duty by now, because it has happened."""
        attempts = run.attempts + 1
        lines = _refusals(run)
        lines += [f"{_REFUSED}{one}: {why}" for one, why in delivery.refused.items()]
        left = list(delivery.later)
        more = [f"{one}: {why}" for one, why in delivery.later.items()]
        if delivery.doubtful:
            lines.append(_doubt(delivery.doubtful, delivery.problem))
        elif delivery.problem:
            left = list(run.recipients)
            more = [delivery.problem]
        hope = bool(left) and not delivery.final and attempts < self.reports.mail.tries
        if hope:
            pause = min(_FIRST * 2 ** (attempts - 1), _LONGEST_PAUSE)
            when = self.reports.wall.now() + pause
            how = f"not sent yet, tried {attempts} times"
            text = _text([*lines, *(f"{how}: {one}" for one in more)])
            work = statements.again(run, MAILING, when, left, text)
        else:
            text = _text([*lines, *(f"not sent: {one}" for one in more)])
            work = statements.over(run, MAILING, text or None, left)
        await patiently(lambda: self.reports.database.change(work), self.reports.clock, PATIENCE)
        self._told(run, text, len(delivery.taken))

    def _told(self, run: Run, problem: str, taken: int) -> None:
        if problem:
            self.log.warn("report {number}: {reason}", number=run.report.number, reason=problem)
        audit(
            AUTHOR, None, "report mail", target=str(run.report.number), result=problem or "ok",
            at=run.at, purpose=run.purpose, taken=taken,
        )  # fmt: skip


def _refusals(run: Run) -> list[str]:
    """Who was refused by earlier tries."""
    return [line for line in (run.error or "").splitlines() if line.startswith(_REFUSED)]


def _doubt(recipients: Sequence[str], reason: str) -> str:
    return (
        f"nobody knows whether the mail arrived at {', '.join(recipients)}, "
        f"it is not sent again: {reason}"
    )


def _text(lines: Sequence[str]) -> str:
    return "\n".join(line for line in lines if line)[:_LONGEST_ERROR]
