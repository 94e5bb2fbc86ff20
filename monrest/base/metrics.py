"""Named figures about this daemon (docs/spec/http.md, "Metrics").

A part offers a source, which is asked whenever a client wants to see figures. No part has to know
another one.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping
from typing import Any, TypeAlias

from attrs import define, field, frozen
from twisted.internet.defer import Deferred

from monrest.base.concurrency import together

MetricSource: TypeAlias = Callable[[], Coroutine[Deferred[Any], Any, Mapping[str, float]]]
"""Returns figures by name, of ``FIGURES``. May raise RestError."""


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
"""Every figure that there can be; each is absent until a part has a value for it."""


@define(eq=False)
class Metrics:
    """The sources of figures."""

    _sources: list[MetricSource] = field(factory=list, init=False)

    def offer(self, source: MetricSource) -> None:
        self._sources.append(source)

    async def current(self) -> dict[str, float]:
        """Return all figures by name as they are now. Raises what a source raises."""
        figures: dict[str, float] = {}
        for offered in await together(source() for source in self._sources):
            figures |= offered
        return dict(sorted(figures.items()))
