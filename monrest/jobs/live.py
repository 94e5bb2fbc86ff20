"""A job that this daemon works at, from its request to its end."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Protocol

from attrs import define, evolve, field, frozen
from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IReactorTime

from monrest.base.clock import WallClock
from monrest.base.values import Answer, Caller, Identity, Progress
from monrest.jobs.model import Job, percent_of, storable
from monrest.render.formats import RenderOptions

LONGEST_MESSAGE = 500
_ANSWERED = 90.0
"""Percent when the answer is there, and what is left is to store it."""
_PLAIN_JSON = RenderOptions()


class Told(Protocol):
    """What a client is told of a failure."""

    @property
    def code(self) -> int: ...  # noqa: D102  the name says it
    @property
    def message(self) -> str: ...  # noqa: D102  the name says it
    @property
    def description(self) -> str: ...  # noqa: D102  the name says it
    @property
    def headers(self) -> tuple[tuple[str, str], ...]: ...  # noqa: D102  the name says it
    @property
    def extra(self) -> Mapping[str, Any]: ...  # noqa: D102  the name says it
    @property
    def failed_sites(self) -> tuple[str, ...]: ...  # noqa: D102  the name says it


@frozen(kw_only=True)
class JobWork:
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
class RunningJob:
    """``turn`` fires when it may begin; ``doing`` is all that a cancellation ends.

    ``reason``: why it was canceled. ``unsaid``: its progress is not stored yet. ``storing``: its
    end is being stored, which nothing stops any more.
    """

    job: Job
    work: JobWork
    clock: IReactorTime
    wall: WallClock
    turn: Deferred[None]
    _begun: float = field(init=False)
    doing: Deferred[Any] | None = field(default=None, init=False)
    reason: str = field(default="", init=False)
    unsaid: bool = field(default=False, init=False)
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
        self.unsaid = True

    def storing_result(self, size: int) -> None:
        """Note that the answer is there and ``size`` bytes of it are stored."""
        done = max(self.job.percent, _ANSWERED)
        self.progress(done, message=f"storing the result: {size / 1048576:.0f} MB so far")

    def begin(self) -> None:
        """Note that the turn has come."""
        self.job = evolve(self.job, started=self.wall.now(), message="")
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

    def cancel_for(self, user: str) -> None:
        """End it as ``user`` wants."""
        self.cancel(f"canceled by {user}" if user else "canceled", user)
