"""Which jobs may begin: so many jobs at once, users take turns, and only so many wait."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Generic, TypeVar

from attrs import define, field

from monrest.base.errors import TooManyRequests
from monrest.config import JobsConfig
from monrest.jobs.running_job import JobWork, RunningJob

T = TypeVar("T")


@define(eq=False)
class FairQueue(Generic[T]):
    """Items of several owners: each owner's in their order, one owner after the other."""

    _waiting: dict[str | None, deque[T]] = field(factory=dict, init=False)
    _count: int = field(default=0, init=False)

    def __len__(self) -> int:
        return self._count

    def add(self, owner: str | None, item: T) -> None:
        """Put ``item`` behind everything of its owner."""
        self._waiting.setdefault(owner, deque()).append(item)
        self._count += 1

    def take(self) -> T | None:
        """Take out the next item; its owner has their next turn after all others."""
        if not self._count:
            return None
        owner = next(iter(self._waiting))
        items = self._waiting.pop(owner)
        item = items.popleft()
        if items:
            self._waiting[owner] = items
        self._count -= 1
        return item

    def remove(self, owner: str | None, item: T) -> bool:
        """Take out an item wherever it is; False when it does not wait."""
        items = self._waiting.get(owner)
        if items is None or item not in items:
            return False
        items.remove(item)
        if not items:
            del self._waiting[owner]
        self._count -= 1
        return True

    def count(self, owner: str | None) -> int:
        return len(self._waiting.get(owner, ()))


MOST_BYTES = 67108864
"""Bytes that all requests together may hold in memory that run or wait."""

_RETRY_AFTER = 30.0


@define(eq=False)
class Slots:
    """All jobs of this daemon that have not ended; ``config`` may be replaced at any time."""

    config: JobsConfig
    _live: dict[int, RunningJob] = field(factory=dict, init=False)
    _queue: FairQueue[RunningJob] = field(factory=FairQueue, init=False)
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
        waiting = len(self._queue) + self._coming.total()
        mine = self._queue.count(owner) + self._coming[owner]
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
        self._queue.add(live.job.user, live)

    def next(self) -> None:
        """Let as many begin as may run at once."""
        while self._busy < self.config.concurrent:
            live = self._queue.take()
            if live is None:
                return
            self._busy += 1
            live.turn.callback(None)

    def leave(self, live: RunningJob) -> None:
        """Forget a job that has ended, and let the next one begin."""
        del self._live[live.job.id]
        self._held -= live.work.size
        if not self._queue.remove(live.job.user, live):
            self._busy -= 1
        self.next()
