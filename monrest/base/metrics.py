"""Named figures about this daemon that its parts fill (docs/spec/http.md, "Metrics").

A part offers a source, which is asked when a client wants to see figures and its last answer is too
old, or fills in a figure whenever it changes. No part has to know another one.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import TypeAlias

from attrs import define, field, frozen
from twisted.internet.defer import Deferred, DeferredList, succeed
from twisted.internet.interfaces import IReactorTime
from twisted.python.failure import Failure

from monrest.base.concurrency import Shared
from monrest.base.workers import Workers

LIFETIME = 30.0
"""Seconds for which the answer of a source is good."""

MetricSource: TypeAlias = Callable[[], Awaitable[Mapping[str, float]]]
"""Gives figures by name; cheap enough to be asked every 30 s. May raise RestError."""


@frozen
class Figure:
    """``unit`` is ``s``, ``time`` for Unix time, or empty for a number of things."""

    name: str
    help: str
    unit: str = ""


FIGURES = (
    Figure("business_process_duration_seconds", "duration of the last complete calculation", "s"),
    Figure("business_process_last_update", "end of the last complete calculation", "time"),
    Figure("business_process_total", "business processes that are no drafts"),
    Figure("business_process_worker_total", "business processes that are calculated at once"),
    Figure("sessions_active_5min_total", "sessions that were used in the last five minutes"),
    Figure("sessions_total", "sessions that began with a login and are not over"),
    Figure("sessions_uniq_user_5min_total", "users of the sessions of the last five minutes"),
    Figure("sessions_uniq_user_total", "users of all sessions"),
    Figure("users_locked_total", "users who are locked"),
    Figure("users_total", "users: contacts, those named for roles or with a password, profiles"),
)
"""Every figure that there can be; each is absent until a part filled it for the first time."""

_NAMES = frozenset(figure.name for figure in FIGURES)


@define(eq=False)
class _Offered:
    source: MetricSource
    until: float = 0.0
    state: bytes = b""
    asking: Shared[None] | None = None

    def asked(self) -> None:
        self.asking = None


@define(eq=False)
class Metrics:
    """The figures that are known, and the sources of more."""

    clock: IReactorTime
    workers: Workers = field(factory=Workers)
    _values: dict[str, float] = field(factory=dict, init=False)
    _offered: dict[str, _Offered] = field(factory=dict, init=False)

    def fill(self, values: Mapping[str, float]) -> None:
        """Take figures as they are now; ValueError for a name that is none of ``FIGURES``."""
        unknown = values.keys() - _NAMES
        if unknown:
            raise ValueError(f"no such figure: {', '.join(sorted(unknown))}")
        self._values.update(values)

    def offer(self, title: str, source: MetricSource) -> None:
        """Ask ``source`` from now on, instead of the one that had this title before."""
        self._offered[title] = _Offered(source)

    def expire(self, title: str) -> None:
        """Have a source asked again at the next look, here and in the other workers."""
        if title in self._offered:
            self.workers.changed("figures")

    async def current(self) -> dict[str, float]:
        """Give all figures by name, none older than 30 s. Raises what a source raises."""
        waiting = [self._wait(source) for source in self._offered.values()]
        for _, result in await DeferredList(waiting, consumeErrors=True):
            if isinstance(result, Failure):
                result.raiseException()
        return dict(sorted(self._values.items()))

    def _wait(self, offered: _Offered) -> Deferred[None]:
        """Wait until the answer of a source is new enough; several share an answer."""
        asking, state = offered.asking, self.workers.state("figures")
        if asking is None and self.clock.seconds() < offered.until and offered.state == state:
            return succeed(None)
        if asking is None:
            # Noted first: what changes from here on may be missing in the answer.
            offered.until, offered.state = self.clock.seconds() + LIFETIME, state
            asking = offered.asking = Shared()
            asking.run(self._ask(offered), offered.asked)
        return asking.wait()

    async def _ask(self, offered: _Offered) -> None:
        try:
            self.fill(await offered.source())
        except BaseException:
            offered.until = 0.0
            raise
