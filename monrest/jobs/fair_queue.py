"""Which jobs may begin: so many jobs at once, users take turns, and only so many wait."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterator
from contextlib import contextmanager

from attrs import define, field

from monrest.base.errors import TooManyRequests
from monrest.config import JobsConfig
from monrest.jobs.running_job import JobWork, RunningJob

MOST_BYTES = 67108864
"""Bytes that all requests together may hold in memory that run or wait."""

_RETRY_AFTER = 30.0


@define(eq=False)
class Slots:
    """All jobs of this daemon that have not ended; ``config`` may be replaced at any time."""

    config: JobsConfig
    _live: dict[int, RunningJob] = field(factory=dict, init=False)
    _waiting: dict[str | None, deque[RunningJob]] = field(factory=dict, init=False)
    """Those of each user that wait, in their order; the user whose turn it is comes first."""
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
        """Let as many begin as may run at once."""
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
