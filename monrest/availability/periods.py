"""From when to when a report goes: named ranges of the calendar.

Rules: docs/spec/availability.md, "Span of a report".

Days, weeks, months and years are those of a time zone, so that a day may have 23 or 25 hours.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import date, datetime, timedelta, tzinfo
from typing import TypeAlias

from attrs import frozen

from monrest.logs.line import DAY

MONDAY, SUNDAY = 1, 0
"""First days of the week, as the option ``first_day_of_week`` says them."""

_FIRST_YEAR = 1970
_MONTHS = re.compile(r"last([0-9]{1,4})months?")


class UnknownPeriodError(ValueError):
    """A name that is no range; the message says what was expected."""


@frozen
class Span:
    """A report from ``start`` to ``end`` in Unix seconds; never backwards."""

    start: int
    end: int

    @property
    def seconds(self) -> int:
        return self.end - self.start


@frozen
class _Calendar:
    now: int
    zone: tzinfo
    first_weekday: int

    @property
    def today(self) -> date:
        return datetime.fromtimestamp(self.now, self.zone).date()

    @property
    def week(self) -> date:
        """The first day of the present week."""
        today = self.today
        return today - timedelta(days=(today.isoweekday() - self.first_weekday) % 7)

    def month(self, back: int) -> date:
        """The first of the month ``back`` months ago."""
        today = self.today
        year, month = divmod(today.year * 12 + today.month - 1 - back, 12)
        if year < _FIRST_YEAR:
            raise UnknownPeriodError(f"expected months since {_FIRST_YEAR}")
        return date(year, month + 1, 1)

    def until_now(self, day: date) -> Span:
        return Span(self.midnight(day), self.now)

    def days(self, first: date, after: date) -> Span:
        return Span(self.midnight(first), self.midnight(after))

    def midnight(self, day: date) -> int:
        return int(datetime(day.year, day.month, day.day, tzinfo=self.zone).timestamp())


_Range: TypeAlias = Callable[[_Calendar], Span]


def _last(seconds: int) -> _Range:
    return lambda calendar: Span(calendar.now - seconds, calendar.now)


NAMED: dict[str, _Range] = {
    "today": lambda day: day.until_now(day.today),
    "last24hours": _last(DAY),
    "yesterday": lambda day: day.days(day.today - timedelta(days=1), day.today),
    "thisweek": lambda day: day.until_now(day.week),
    "last7days": _last(7 * DAY),
    "lastweek": lambda day: day.days(day.week - timedelta(days=7), day.week),
    "thismonth": lambda day: day.until_now(day.month(0)),
    "last31days": _last(31 * DAY),
    "lastmonth": lambda day: day.days(day.month(1), day.month(0)),
    "thisyear": lambda day: day.until_now(day.today.replace(month=1, day=1)),
    "lastyear": lambda day: day.days(
        date(day.today.year - 1, 1, 1), day.today.replace(month=1, day=1)
    ),
}
"""Every fixed name; ``last<N>months`` besides."""

DEFAULT = "last24hours"
NAMES = (*NAMED, "last<N>months")


def named(name: str, now: int, zone: tzinfo, first_weekday: int = MONDAY) -> Span:
    """The range of a name, as seen at ``now``; raise UnknownPeriodError for any other text."""
    calendar = _Calendar(now, zone, first_weekday)
    period = NAMED.get(name)
    if period is not None:
        return period(calendar)
    match = _MONTHS.fullmatch(name)
    if match is None or int(match[1]) == 0:
        raise UnknownPeriodError(f"expected one of {', '.join(NAMES)}")
    return calendar.days(calendar.month(int(match[1])), calendar.month(0))
