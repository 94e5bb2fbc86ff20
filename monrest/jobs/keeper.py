"""Keeping the answer of a job: in pieces, and with patience while the database is away or full."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Iterator
from typing import TypeVar

from attrs import define, evolve, field, frozen
from twisted.internet.interfaces import IReactorTime

from monrest.base.concurrency import pause
from monrest.base.errors import Unavailable
from monrest.jobs import store as statements
from monrest.jobs.model import JobEnd, storable
from monrest.store.database import Database

LONGEST_STDOUT = 4096
PATIENCE = 60.0
_LONGEST_STDERR = 4000
_PIECE = 524288
_BUDGET = 0.008
_PAUSE = 2.0
_TEXT_TYPES = ("application/json", "text/")

T = TypeVar("T")

Keep = Callable[[int, bytes], Awaitable[object]]
"""Stores a piece of a result by its number; raises Unavailable when that cannot be done now."""


@frozen
class Kept:
    """What is left to be stored with the end of a job: its outcome and the last piece."""

    outcome: JobEnd
    last: tuple[int, bytes] | None = None


@define(eq=False, kw_only=True)
class Keeper:
    """Takes a result in pieces, so that it is never whole in memory.

    While pieces cannot be stored it waits, for a minute at most. ``told`` gets the bytes that are
    stored so far, ``timer`` measures the work that is done in one turn of the reactor.
    """

    clock: IReactorTime
    keep: Keep
    told: Callable[[int], object]
    timer: Callable[[], float] = time.perf_counter
    _parts: list[bytes] = field(factory=list, init=False)
    _held: int = field(default=0, init=False)
    _count: int = field(default=0, init=False)
    _size: int = field(default=0, init=False)
    _head: bytes = field(default=b"", init=False)

    async def take(self, pieces: Iterator[bytes], outcome: JobEnd) -> Kept:
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
            await patiently(lambda: self.keep(number, data), self.clock, PATIENCE)
            self.told(self._size)


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
    """Give the end of a job that has no answer, and why."""
    return Kept(JobEnd(stderr=storable(text, _LONGEST_STDERR), message=message))
