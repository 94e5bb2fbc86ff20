"""How available an object was, by what counts as unavailable. Pure.

Rules: docs/spec/reports.md, "Availability of an object".
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from attrs import frozen

from monrest.availability.account import NODATA, NOTRUNNING, OUTSIDE, Times, words_of
from monrest.availability.outages import Outage
from monrest.logs.state_events import ObjectKey


@frozen(kw_only=True)
class Figures:
    """Seconds; ``percent`` is None where there is neither available nor unavailable time."""

    available: int
    unavailable: int
    downtime: int
    unknown: int

    @property
    def percent(self) -> float | None:
        """Available of all time of which a state is known."""
        known = self.available + self.unavailable
        return 100 * self.available / known if known else None


@frozen(kw_only=True)
class Measured:
    """An object over the whole report and over each part of it; ``name`` as the report says it.

    ``parts`` are percentages as ``Figures.percent``, one for each part.
    """

    key: ObjectKey
    host: str
    service: str
    whole: Figures
    parts: Sequence[float | None]
    outages: Sequence[Outage]

    @property
    def name(self) -> str:
        """Host and service."""
        return f"{self.host} · {self.service}" if self.key[1] else self.host

    @property
    def level(self) -> float:
        """Its percentage where levels are compared: nothing known counts as 100."""
        percent = self.whole.percent
        return 100.0 if percent is None else percent


def figures(key: ObjectKey, times: Times, unavailable: Collection[str]) -> Figures:
    """Sum up the times of an object; time in downtimes is judged by ``<state>_downtime``."""
    good = bad = downtime = 0
    for state, word in enumerate(words_of(key)):
        planned = times.scheduled[state]
        normal = times.seconds[state] - planned
        downtime += planned
        if word in unavailable:
            bad += normal
        else:
            good += normal
        if f"{word}_downtime" in unavailable:
            bad += planned
        else:
            good += planned
    unknown = sum(times.seconds[state] for state in (NODATA, NOTRUNNING, OUTSIDE))
    return Figures(available=good, unavailable=bad, downtime=downtime, unknown=unknown)


def average(values: Iterable[float | None]) -> float | None:
    """The mean of the percentages that are known."""
    known = [one for one in values if one is not None]
    return sum(known) / len(known) if known else None
