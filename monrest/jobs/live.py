"""A job that this daemon works at, from its request to its stored result."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Iterator, Mapping
from typing import Any, Protocol

from attrs import define, evolve, field, frozen
from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IReactorTime

from monrest.concurrency import pause
from monrest.errors import Unavailable
from monrest.jobs.record import Job, Outcome, percent_of, storable
from monrest.render.formats import RenderOptions
from monrest.values import Answer, Caller, Identity, Progress

LONGEST_MESSAGE = 500
LONGEST_STDOUT = 4096
_LONGEST_STDERR = 4000
_PIECE = 524288
_BUDGET = 0.008
_PATIENCE = 60.0
_PAUSE = 2.0
_PLAIN_JSON = RenderOptions()
_TEXT_TYPES = ("application/json", "text/")

Keep = Callable[[int, bytes], Awaitable[object]]
"""Stores a piece of a result by its number; raises Unavailable when that cannot be done now."""


class Told(Protocol):
    """What a client is told of a failure."""

    @property
    def code(self) -> int: ...  # noqa: D102
    @property
    def message(self) -> str: ...  # noqa: D102
    @property
    def description(self) -> str: ...  # noqa: D102
    @property
    def headers(self) -> tuple[tuple[str, str], ...]: ...  # noqa: D102
    @property
    def extra(self) -> Mapping[str, Any]: ...  # noqa: D102
    @property
    def failed_sites(self) -> tuple[str, ...]: ...  # noqa: D102


@frozen(kw_only=True)
class Work:
    """What is to be done: ``call`` gives the answer that is kept as ``options`` say.

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
class Live:
    """``turn`` fires when it may begin; ``doing`` is all that a cancellation ends.

    ``reason``: why it was canceled. ``unsaid``: its progress is not stored yet. ``storing``: its
    end is being stored, which nothing stops any more.
    """

    job: Job
    work: Work
    clock: IReactorTime
    turn: Deferred[None]
    doing: Deferred[Any] | None = field(default=None, init=False)
    reason: str = field(default="", init=False)
    unsaid: bool = field(default=False, init=False)
    storing: bool = field(default=False, init=False)

    def progress(self, percent: float, remaining: float | None = None, message: str = "") -> None:
        """Take what the work reports of itself (``values.Progress``); from any thread."""
        if remaining is None and 0 < percent < 100:
            spent = self.clock.seconds() - self.job.begun()
            remaining = spent * (100 - percent) / percent
        self.job = evolve(
            self.job,
            percent=percent_of(percent),
            remaining=None if remaining is None else max(0.0, remaining),
            message=storable(message, LONGEST_MESSAGE),
        )
        self.unsaid = True

    def begin(self) -> None:
        """Note that the turn has come."""
        self.job = evolve(self.job, started=self.clock.seconds(), message="")
        self.unsaid = True

    def cancel(self, reason: str, user: str | None = None) -> None:
        """End it as soon as it can be; nothing happens when it has ended already."""
        if self.storing or self.reason:
            return
        self.reason = storable(reason, LONGEST_MESSAGE)
        if user is not None:
            self.job = evolve(self.job, canceled_by=user)
        if self.doing is not None:
            self.doing.cancel()


@frozen
class Kept:
    """What is left to be stored with the end of a job: its outcome and the last piece."""

    outcome: Outcome
    last: tuple[int, bytes] | None = None


@define(eq=False, kw_only=True)
class Keeper:
    """Takes a result in pieces, so that it is never whole in memory.

    While pieces cannot be stored it waits, for a minute at most. ``timer`` measures the work
    that is done in one turn of the reactor.
    """

    clock: IReactorTime
    keep: Keep
    timer: Callable[[], float] = time.perf_counter
    _parts: list[bytes] = field(factory=list, init=False)
    _held: int = field(default=0, init=False)
    _count: int = field(default=0, init=False)
    _size: int = field(default=0, init=False)
    _head: bytes = field(default=b"", init=False)

    async def take(self, pieces: Iterator[bytes], outcome: Outcome) -> Kept:
        """Store ``pieces``; ``outcome`` comes back with their size, beside what is left.

        Raises Unavailable when they cannot be stored, and what ``pieces`` raise.
        """
        end = self.timer() + _BUDGET
        try:
            for piece in pieces:
                await self._take(piece)
                if self.timer() >= end:
                    await pause(self.clock)
                    end = self.timer() + _BUDGET
        finally:
            close = getattr(pieces, "close", None)
            if close is not None:
                close()
        last = (self._count, b"".join(self._parts)) if self._parts else None
        text = ""
        if outcome.content_type.startswith(_TEXT_TYPES):
            text = storable(self._head.decode("utf-8", "replace"), LONGEST_STDOUT)
        return Kept(evolve(outcome, size=self._size, stdout=text), last)

    async def _take(self, piece: bytes) -> None:
        if not piece:
            return
        self._parts.append(piece)
        self._held += len(piece)
        self._size += len(piece)
        if len(self._head) < LONGEST_STDOUT:
            self._head += piece[: LONGEST_STDOUT - len(self._head)]
        if self._held >= _PIECE:
            data, number = b"".join(self._parts), self._count
            self._parts, self._held, self._count = [], 0, number + 1
            await patiently(lambda: self.keep(number, data), self.clock, _PATIENCE)


async def patiently(
    attempt: Callable[[], Awaitable[object]], clock: IReactorTime, seconds: float
) -> object:
    """Try again and again for ``seconds``, while the database is away or full."""
    end = clock.seconds() + seconds
    while True:
        try:
            return await attempt()
        except Unavailable:
            if clock.seconds() + _PAUSE > end:
                raise
        await pause(clock, _PAUSE)


def failure_of(text: str, message: str = "failed") -> Kept:
    """Give the end of a job that has no answer, and why."""
    return Kept(Outcome(stderr=storable(text, _LONGEST_STDERR), message=message))
