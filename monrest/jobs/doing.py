"""Doing one job: its turn, its work, its answer, and its end in the database."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import ClassVar

from attrs import define, evolve, field
from twisted.internet.defer import CancelledError, Deferred
from twisted.internet.interfaces import IReactorTime
from twisted.logger import Logger
from twisted.python.failure import Failure

from monrest.base.audit import audit
from monrest.base.clock import WallClock
from monrest.base.concurrency import Threads
from monrest.base.errors import Forbidden, RestError, Unavailable
from monrest.base.log import REQUEST_ID
from monrest.base.values import READ_ONLY, Answer, Caller, Document, Identity, Rows
from monrest.jobs import store as statements
from monrest.jobs.keeper import PATIENCE, Keeper, Kept, discard, failure_of, patiently
from monrest.jobs.live import JobWork, RunningJob, Told
from monrest.jobs.model import Job, JobEnd, storable
from monrest.render.formats import Rendered, error_document, render
from monrest.store.database import Database

LAST_TRIES = 5.0
"""Seconds for which a daemon that stops tries to store an end."""

_FRESH = 1.0
"""Seconds for which nobody asks again whether the asker of a job may do it."""

_REFUSED = "it was not begun when its turn came"
_LONGEST_TOLD = 2000
_PERSONAL = frozenset({"set-cookie"})


@define(eq=False, kw_only=True)
class Doer:
    """Does jobs one by one; ``describe`` says what a client is told of a failure.

    ``who`` says who a caller is at present, and raises RestError when he is refused.
    ``stopping`` is set when the daemon stops: then nothing is tried for long.
    """

    log: ClassVar[Logger] = Logger()

    database: Database
    clock: IReactorTime
    wall: WallClock
    threads: Threads
    describe: Callable[[Failure, str], Told]
    who: Callable[[Caller], Awaitable[Identity]]
    stopping: bool = field(default=False, init=False)

    async def life(self, live: RunningJob) -> None:
        """Wait for its turn, do it and store its end; whatever happens, it ends."""
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
        await self._end(live, kept)

    async def _do(self, live: RunningJob) -> Kept:
        await live.turn
        work = live.work
        if live.age >= _FRESH:
            await self._require_rights(work)
        live.begin()
        with suppress(Unavailable):
            await self.database.change(statements.say([live.job]))
        keeper = Keeper(
            clock=self.clock,
            keep=lambda at, data: self.database.change(statements.keep(live.job.id, at, data)),
            told=live.storing_result,
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
            outcome = evolve(outcome, stderr=storable(text, _LONGEST_TOLD), message=told.message)
        live.storing_result(0)
        return await keeper.take(rendered.pieces, outcome)

    async def _require_rights(self, work: JobWork) -> None:
        """Raise Forbidden unless the asker of a job that waited still has the rights he had."""
        caller = work.caller
        if caller is None:
            return
        try:
            now = await patiently(lambda: self._confirmed(caller), self.clock, PATIENCE)
        except Unavailable:
            raise
        except RestError as error:
            raise Forbidden(_REFUSED, str(error)) from None
        then = work.identity
        lost = [role for role in then.roles if not now.may(role)]
        if now.user != then.user or lost or (now.may(READ_ONLY) and not then.may(READ_ONLY)):
            raise Forbidden(_REFUSED, "the rights of who asked for it have changed")

    async def _confirmed(self, caller: Caller) -> Identity:
        """Say who a caller is; Unavailable while that is not sure."""
        identity = await self.who(caller)
        if not identity.confirmed:
            raise Unavailable("cannot read", "it is not known whether who asked for it still may")
        return identity

    async def _rendered(self, answer: Answer, work: JobWork) -> tuple[Rendered, JobEnd]:
        assert isinstance(answer, (Rows, Document))
        status = answer.status if isinstance(answer, Document) else 200
        sites = tuple(problem.site for problem in answer.failed_sites)
        options = work.options
        if options.slow:
            rendered = await self.threads.stoppable(
                lambda given_up: render(answer, options, given_up)
            )
        else:
            rendered = render(answer, options)
        return rendered, _outcome(rendered, status, answer.headers, sites)

    async def _end(self, live: RunningJob, kept: Kept) -> None:
        """Store the end; what cannot be stored in time ends without its result."""
        seconds = LAST_TRIES if self.stopping else PATIENCE
        try:
            await self._store_end(live, kept, seconds)
        except Unavailable as error:
            lost = failure_of(f"the result could not be stored: {error.description}")
            while True:
                with suppress(Unavailable):
                    await self._store_end(live, lost, 0.0 if self.stopping else LAST_TRIES)
                    return
                if self.stopping:
                    self.log.warn("the end of job {id} is not stored", id=live.job.id)
                    return

    async def _store_end(self, live: RunningJob, kept: Kept, seconds: float) -> None:
        now = self.wall.now()
        job = evolve(live.job, ended=now, percent=100.0, outcome=kept.outcome)
        work = statements.end(job, kept.last)

        async def store() -> bool:
            if kept.outcome.status is None:
                await discard(self.database, job.id)
            return await self.database.change(work)

        stored = await patiently(store, self.clock, seconds)
        if not stored:
            self.log.warn("job {id} was given up by others before it ended", id=job.id)
        note(live, "job end", result=_result(job, stored=stored))


def note(live: RunningJob, action: str, result: str = "ok") -> None:
    """Write a line of the audit log about a job that may change something."""
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


def _outcome(
    rendered: Rendered,
    status: int,
    headers: tuple[tuple[str, str], ...],
    failed_sites: tuple[str, ...],
) -> JobEnd:
    """Describe an answer; the header of failed sites is spelled when it is sent."""
    return JobEnd(
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
