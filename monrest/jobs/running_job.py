"""The jobs that this daemon works at: their turn, their work, their answer, their end.

So many run at once, users take turns, and only so many wait. An answer is kept in pieces, and with
patience while the database is away or full.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any, ClassVar, TypeVar

from attrs import define, evolve, field, frozen
from twisted.internet.defer import CancelledError, Deferred
from twisted.internet.interfaces import IReactorTime
from twisted.logger import Logger
from twisted.python.failure import Failure

from monrest.api.error_answers import rest_error
from monrest.base.answer_file import AnswerFile, AnswerFiles
from monrest.base.audit import audit
from monrest.base.clock import WallClock
from monrest.base.concurrency import Threads, pause
from monrest.base.errors import Forbidden, RestError, TooManyRequests, Unavailable
from monrest.base.log import REQUEST_ID
from monrest.base.values import (
    READ_ONLY,
    Answer,
    Caller,
    Document,
    Identity,
    Progress,
    Rows,
    nothing,
)
from monrest.config import JobsConfig
from monrest.jobs import store as statements
from monrest.jobs.model import Job, JobEnd, percent_of, storable
from monrest.render.formats import Rendered, RenderOptions, error_document, render
from monrest.store.database import Database

LONGEST_MESSAGE = 500
_ANSWERED = 90.0
"""Percent when the answer is there, and what is left is to store it."""
_PLAIN_JSON = RenderOptions()


@frozen(kw_only=True)
class JobWork:
    """The work of a job: ``call`` returns the answer, which is stored as ``options`` define.

    ``cmd`` says in words what that is; ``size`` is about how much memory it holds until it ends
    (bytes). ``changes``: it may change something, so that it is audited.
    """

    call: Callable[[Progress], Awaitable[Answer]]
    cmd: str
    options: RenderOptions = _PLAIN_JSON
    identity: Identity
    caller: Caller | None = None
    request_id: str = ""
    size: int = 0
    changes: bool = False


@define(eq=False)
class RunningJob:
    """``turn`` fires when it may begin; ``doing`` is all that a cancellation ends.

    ``reason``: why it was canceled. ``unreported``: its progress is not stored yet. ``storing``:
    its end is being stored, which nothing stops any more.
    """

    job: Job
    work: JobWork
    clock: IReactorTime
    wall: WallClock
    turn: Deferred[None]
    _begun: float = field(init=False)
    doing: Deferred[Any] | None = field(default=None, init=False)
    reason: str = field(default="", init=False)
    unreported: bool = field(default=False, init=False)
    storing: bool = field(default=False, init=False)

    def __attrs_post_init__(self) -> None:
        self._begun = self.clock.seconds()

    @property
    def age(self) -> float:
        """Seconds since it was asked for."""
        return self.clock.seconds() - self._begun

    def progress(self, percent: float, remaining: float | None = None, message: str = "") -> None:
        """Take what the work reports of itself (``values.Progress``); from any thread."""
        self.job = evolve(
            self.job,
            percent=percent_of(percent),
            remaining=None if remaining is None else max(0.0, remaining),
            message=storable(message, LONGEST_MESSAGE),
        )
        self.unreported = True

    def storing_result(self, size: int) -> None:
        """Note that the answer is there and ``size`` bytes of it are stored."""
        done = max(self.job.percent, _ANSWERED)
        self.progress(done, message=f"storing the result: {size / 1048576:.0f} MB so far")

    def begin(self) -> None:
        self.job = evolve(self.job, started=self.wall.now(), message="")
        self.unreported = True

    def cancel(self, reason: str, user: str | None = None) -> None:
        """End it as soon as it can be; nothing happens when it has ended already."""
        if self.storing or self.reason:
            return
        self.reason = storable(reason, LONGEST_MESSAGE)
        if user is not None:
            self.job = evolve(self.job, canceled_by=user)
        if self.doing is not None:
            self.doing.cancel()

    def cancel_for(self, user: str) -> None:
        self.cancel(f"canceled by {user}" if user else "canceled", user)


MOST_BYTES = 67108864
"""Bytes that all requests together may hold in memory that run or wait."""

_RETRY_AFTER = 30.0


@define(eq=False)
class Slots:
    """All jobs of this daemon that have not ended; ``config`` may be replaced at any time."""

    config: JobsConfig
    _live: dict[int, RunningJob] = field(factory=dict, init=False)
    _waiting: dict[str | None, deque[RunningJob]] = field(factory=dict, init=False)
    """The waiting jobs of each user, in their order; the next user comes first."""
    _busy: int = field(default=0, init=False)
    _coming: Counter[str | None] = field(factory=Counter, init=False)
    _held: int = field(default=0, init=False)

    def __len__(self) -> int:
        return len(self._live)

    def __iter__(self) -> Iterator[RunningJob]:
        """All as they are now; later changes do not show."""
        return iter(tuple(self._live.values()))

    def __contains__(self, number: int) -> bool:
        return number in self._live

    def get(self, number: int) -> RunningJob | None:
        """None when it is not one of this daemon's or has ended."""
        return self._live.get(number)

    @contextmanager
    def room(self, work: JobWork) -> Iterator[None]:
        """Hold room for a job while it is stored; TooManyRequests when there is none."""
        self._check(work)
        owner = work.identity.user
        self._coming[owner] += 1
        self._held += work.size
        try:
            yield
        finally:
            self._held -= work.size
            self._coming[owner] -= 1
            if not self._coming[owner]:
                del self._coming[owner]

    def _check(self, work: JobWork) -> None:
        owner = work.identity.user
        count = len(self._live) + self._coming.total()
        waiting = sum(map(len, self._waiting.values())) + self._coming.total()
        mine = len(self._waiting.get(owner, ())) + self._coming[owner]
        most = self.config.concurrent + self.config.queue
        if count >= most or self._held + work.size > MOST_BYTES:
            reason = f"{waiting} wait already"
        elif mine >= max(1, self.config.queue // 2):
            reason = f"{mine} of yours wait already"
        else:
            return
        raise TooManyRequests(
            "too many background jobs", f"{reason}; try again later", _RETRY_AFTER
        )

    def add(self, live: RunningJob) -> None:
        self._live[live.job.id] = live
        self._held += live.work.size
        self._waiting.setdefault(live.job.user, deque()).append(live)

    def next(self) -> None:
        """Start as many jobs as may run at once."""
        while self._waiting and self._busy < self.config.concurrent:
            user = next(iter(self._waiting))
            jobs = self._waiting.pop(user)
            live = jobs.popleft()
            if jobs:
                self._waiting[user] = jobs  # behind all others
            self._busy += 1
            live.turn.callback(None)

    def leave(self, live: RunningJob) -> None:
        """Forget a job that has ended, and let the next one begin."""
        del self._live[live.job.id]
        self._held -= live.work.size
        user = live.job.user
        waiting = self._waiting.get(user, deque())
        if live in waiting:
            waiting.remove(live)
            if not waiting:
                del self._waiting[user]
        else:
            self._busy -= 1
        self.next()


LONGEST_STDOUT = 4096
PATIENCE = 60.0
_LONGEST_STDERR = 4000
_PIECE = 524288
_PAUSE = 2.0
_TEXT_TYPES = ("application/json", "text/")

T = TypeVar("T")


@frozen
class Kept:
    """The part of a result that is stored with the end of a job: outcome and last piece."""

    outcome: JobEnd
    last: tuple[int, bytes] | None = None


async def patiently(attempt: Callable[[], Awaitable[T]], clock: IReactorTime, seconds: float) -> T:
    """Try again and again for ``seconds``, while the database is away or full."""
    end = clock.seconds() + seconds
    while True:
        try:
            return await attempt()
        except Unavailable:
            if clock.seconds() + _PAUSE > end:
                raise
        await pause(clock, _PAUSE)


async def discard(database: Database, number: int) -> None:
    """Delete all that is kept of a result, bit by bit; raises Unavailable."""
    while await database.change(statements.discard(number)):
        continue


def failure_of(text: str, message: str = "failed") -> Kept:
    """Return the end of a job that has no answer, and why."""
    return Kept(JobEnd(stderr=storable(text, _LONGEST_STDERR), message=message))


LAST_TRIES = 5.0
"""Seconds for which a daemon that stops tries to store an end."""

_FRESH = 1.0
"""Seconds for which it is not asked again whether the owner of a job may do it."""

_REFUSED = "it was not begun when its turn came"
_LONGEST_TOLD = 2000
_PERSONAL = frozenset({"set-cookie"})


@define(eq=False, kw_only=True)
class JobRunner:
    """Does jobs one by one.

    ``who`` says who a caller is at present, and raises RestError when they are refused. ``limits``
    bound what is kept of results. ``stopping`` is set when the daemon stops: then nothing is tried
    for long.
    """

    log: ClassVar[Logger] = Logger()

    database: Database
    clock: IReactorTime
    wall: WallClock
    threads: Threads
    files: AnswerFiles
    who: Callable[[Caller], Awaitable[Identity]]
    limits: Callable[[], JobsConfig]
    stopping: bool = field(default=False, init=False)

    async def life(self, live: RunningJob) -> None:
        """Wait for its turn, do it and store its end; it ends in any case."""
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
        except Exception:  # noqa: BLE001  the job has failed, the daemon continues
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
            await self.database.change(statements.store_progress([live.job]))
        try:
            answer = await work.call(live.progress)
            result, outcome = await self._rendered(answer, work)
        except CancelledError:
            raise
        except Exception:  # noqa: BLE001  the answer is an error document
            error = rest_error(Failure(), work.request_id)
            rendered = error_document(
                error.code, error.message, error.description, work.options, error.extra
            )
            sites = tuple(problem.site for problem in error.problems)
            outcome = _outcome(rendered, error.code, error.headers, sites)
            outcome = evolve(
                outcome, stderr=storable(str(error), _LONGEST_TOLD), message=error.message
            )
            result = await self.threads.run(lambda: self.files.made_of(rendered.pieces))
        live.storing_result(0)
        try:
            return await self._stored(live, result, outcome)
        finally:
            result.close()

    async def _stored(self, live: RunningJob, result: AnswerFile, outcome: JobEnd) -> Kept:
        """Store ``result`` in pieces, so that it is never whole in memory, but for the last one.

        While pieces cannot be stored it waits, for a minute at most; raises Unavailable then.
        """
        size, stored, number = result.size, 0, 0
        data = head = result.read(0, _PIECE)
        while stored + len(data) < size:
            keep = statements.add_piece(live.job, number, data, self.limits())
            await patiently(partial(self.database.change, keep), self.clock, PATIENCE)
            stored, number = stored + len(data), number + 1
            live.storing_result(stored)
            data = result.read(stored, _PIECE)
        text = ""
        if outcome.content_type.startswith(_TEXT_TYPES):
            text = storable(head[:LONGEST_STDOUT].decode("utf-8", "replace"), LONGEST_STDOUT)
        last = (number, data) if data else None
        return Kept(evolve(outcome, size=size, stdout=text), last)

    async def _require_rights(self, work: JobWork) -> None:
        """Raise Forbidden unless the owner of a job that waited still has the rights they had."""
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
        """The identity of a caller; Unavailable while it is not sure."""
        identity = await self.who(caller)
        if not identity.confirmed:
            raise Unavailable("cannot read", "it is not known whether who asked for it still may")
        return identity

    async def _rendered(self, answer: Answer, work: JobWork) -> tuple[AnswerFile, JobEnd]:
        assert isinstance(answer, (Rows, Document))
        status = answer.status if isinstance(answer, Document) else 200
        sites = tuple(problem.site for problem in answer.failed_sites)
        rendered = render(answer, work.options)
        file = await self.threads.stoppable(
            lambda left: self.files.made_of(render(answer, work.options, left).pieces, left),
            answer.gone if isinstance(answer, Rows) else nothing,
        )
        return file, _outcome(rendered, status, answer.headers, sites)

    async def _end(self, live: RunningJob, kept: Kept) -> None:
        """Store the end; what cannot be stored in time ends without its result."""
        seconds = LAST_TRIES if self.stopping else PATIENCE
        try:
            await self._store_end(live, kept, seconds)
        except RestError as error:
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
        job = evolve(live.job.with_end(kept.outcome, now), percent=100.0)
        work = statements.end(job, kept.last, self.limits())

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
    return job.stderr or ("ok" if job.rc == 0 else f"status {job.status}")
