"""From when to when a report goes: named ranges of the calendar.

Rules: docs/spec/availability.md, "Span of a report".

Days, weeks, months and years are those of a time zone, so that a day may have 23 or 25 hours.
"""

from __future__ import annotations

import re
from datetime import date, datetime, timedelta, tzinfo

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


_DAYS = {"last24hours": 1, "last7days": 7, "last31days": 31}
NAMED = (
    *("today", "last24hours", "yesterday", "thisweek", "last7days", "lastweek", "thismonth"),
    *("last31days", "lastmonth", "thisyear", "lastyear"),
)
"""Every fixed name; ``last<N>months`` besides."""

DEFAULT = "last24hours"
NAMES = (*NAMED, "last<N>months")


def named(name: str, now: int, zone: tzinfo, first_weekday: int = MONDAY) -> Span:
    """The range of a name, as seen at ``now``; raise UnknownPeriodError for any other text."""
    if name in _DAYS:
        return Span(now - _DAYS[name] * DAY, now)
    today = datetime.fromtimestamp(now, zone).date()
    week = today - timedelta(days=(today.isoweekday() - first_weekday) % 7)
    this_year = date(today.year, 1, 1)

    def month(back: int) -> date:
        year, number = divmod(today.year * 12 + today.month - 1 - back, 12)
        if year < _FIRST_YEAR:
            raise UnknownPeriodError(f"expected months since {_FIRST_YEAR}")
        return date(year, number + 1, 1)

    def midnight(day: date) -> int:
        return int(datetime(day.year, day.month, day.day, tzinfo=zone).timestamp())

    after: date | None = None
    match name:
        case "today":
            first = today
        case "thisweek":
            first = week
        case "thismonth":
            first = month(0)
        case "thisyear":
            first = this_year
        case "yesterday":
            first, after = today - timedelta(days=1), today
        case "lastweek":
            first, after = week - timedelta(days=7), week
        case "lastmonth":
            first, after = month(1), month(0)
        case "lastyear":
            first, after = date(today.year - 1, 1, 1), this_year
        case _:
            months = _MONTHS.fullmatch(name)
            if months is None or int(months[1]) == 0:
                raise UnknownPeriodError(f"expected one of {', '.join(NAMES)}")
            first, after = month(int(months[1])), month(0)
    return Span(midnight(first), now if after is None else midnight(after))
