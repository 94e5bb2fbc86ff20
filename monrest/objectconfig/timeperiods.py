"""Time periods: date rules and the question whether a moment lies inside.

Rules: docs/spec/objectconfig.md, "Time periods".
"""

from __future__ import annotations

import calendar
import re
from collections.abc import Callable, Iterable, Mapping
from datetime import date, datetime, tzinfo

from attrs import frozen

from monrest.objectconfig.attributes import WEEKDAYS

MONTHS = (
    "january", "february", "march", "april", "may", "june",
    "july", "august", "september", "october", "november", "december",
)  # fmt: skip

TimeRanges = tuple[tuple[int, int], ...]
"""Pairs of seconds of the day, end exclusive."""

_RANGE = re.compile(r"(\d{1,2}):(\d\d)-(\d{1,2}):(\d\d)\Z")
_SKIP = re.compile(r"(.*?)\s*/\s*(\d+)\Z")
_DAY = 86400


class TimeperiodError(ValueError):
    """A text that is no time range or date rule; the message has what was expected."""


def parse_ranges(text: str) -> TimeRanges:
    """``HH:MM-HH:MM,...`` to seconds of the day. Raises TimeperiodError."""
    ranges = []
    for part in text.split(","):
        match = _RANGE.match(part)
        if match is None:
            raise TimeperiodError(f"time range HH:MM-HH:MM expected, not {part!r}")
        start, end = (int(match[i]) * 3600 + int(match[i + 1]) * 60 for i in (1, 3))
        if start > _DAY or end > _DAY:
            raise TimeperiodError(f"time range {part} ends after 24:00")
        ranges.append((start, end))
    return tuple(ranges)


@frozen
class Anchor:
    """One end of a date rule.

    ``year`` 0 and ``month`` 0 mean those of the asked day. ``weekday`` (0 = Sunday) makes ``day``
    count weekdays of the month; otherwise it is a day of the month. Negative counts from the end.
    """

    year: int = 0
    month: int = 0
    day: int = 0
    weekday: int | None = None

    def on(self, year: int, month: int, *, last: bool) -> date | None:
        """The date in a year and month; a missing day is None, or the last one for an end."""
        year, month = self.year or year, self.month or month
        length = calendar.monthrange(year, month)[1]
        if self.weekday is None:
            day = self.day if self.day > 0 else length + 1 + self.day
        else:
            first = (self.weekday - date(year, month, 1).isoweekday()) % 7 + 1
            days = range(first, length + 1, 7)
            index = self.day - 1 if self.day > 0 else len(days) + self.day
            day = days[index] if 0 <= index < len(days) else 0
        if 1 <= day <= length:
            return date(year, month, day)
        return date(year, month, length) if last else None


@frozen
class DateRule:
    """A date rule of ``kind`` 1 to 5, which is the order of priority.

    It covers every ``skip``-th day from ``start`` to ``end``; ``end`` None is no end.
    """

    text: str
    kind: int
    start: Anchor
    end: Anchor | None
    skip: int
    ranges: TimeRanges

    def covers(self, day: date) -> bool:
        return any(
            first <= day and (last is None or day <= last) and (day - first).days % self.skip == 0
            for first, last in self._spans(day)
        )

    def _spans(self, day: date) -> list[tuple[date, date | None]]:
        first = self.start.on(day.year, day.month, last=False)
        if first is None:
            return []
        if self.end is None:
            return [(first, None)]
        last = self.end.on(day.year, day.month, last=True)
        assert last is not None
        if self.kind == 1 or first <= last:
            return [(first, last)]
        if self.start.month:
            earlier = self.start.on(day.year - 1, day.month, last=False)
            return [(first, date(day.year, 12, 31)), *([(earlier, last)] if earlier else [])]
        length = calendar.monthrange(day.year, day.month)[1]
        return [(first, day.replace(day=length)), (day.replace(day=1), last)]


def parse_date_rule(text: str, value: str) -> DateRule:
    """A date rule from the attribute name in the file and its ranges. Raises TimeperiodError."""
    ranges = parse_ranges(value)
    body, skip = text, 1
    match = _SKIP.match(text)
    if match is not None:
        body, skip = match[1], max(int(match[2]), 1)
    left, dash, right = (part.strip() for part in body.partition(" - "))
    kind, start = _anchor(left, None)
    if dash:
        end: Anchor | None = _anchor(right, start)[1]
    else:
        end = None if kind == 1 and skip > 1 else start
    return DateRule(text, kind, start, end, skip, ranges)


def _anchor(text: str, before: Anchor | None) -> tuple[int, Anchor]:
    words = text.split()
    try:
        return _read_anchor(words, before)
    except (ValueError, IndexError):
        raise TimeperiodError(f"unknown date {text!r} in a time period") from None


def _read_anchor(words: list[str], before: Anchor | None) -> tuple[int, Anchor]:
    if len(words) == 1 and words[0].count("-") == 2:
        moment = date.fromisoformat(words[0])
        return 1, Anchor(moment.year, moment.month, moment.day)
    if len(words) == 1 and before is not None:
        number = int(words[0])
        return 0, Anchor(0, before.month, number, before.weekday)
    if len(words) == 2 and words[0] in MONTHS:
        return 2, Anchor(0, MONTHS.index(words[0]) + 1, _count(words[1]))
    if len(words) == 2 and words[0] == "day":
        return 3, Anchor(0, 0, _count(words[1]))
    weekday = WEEKDAYS.index(words[0])
    if len(words) == 3:
        return 4, Anchor(0, MONTHS.index(words[2]) + 1, _count(words[1]), weekday)
    if len(words) != 2:
        raise ValueError(words)
    return 5, Anchor(0, 0, _count(words[1]), weekday)


def _count(word: str) -> int:
    number = int(word)
    if number == 0:
        raise ValueError(word)
    return number


@frozen
class Timeperiod:
    """A time period; ``days`` are the plain weekday ranges, Sunday first."""

    name: str
    alias: str
    days: tuple[TimeRanges, ...] = ((),) * 7
    rules: tuple[DateRule, ...] = ()
    exclude: tuple[str, ...] = ()

    def holds(self, moment: float, zone: tzinfo, find: Callable[[str], Timeperiod | None]) -> bool:
        """Whether a unix time lies inside; ``find`` returns the excluded periods by name."""
        for name in self.exclude:
            other = find(name)
            if other is not None and other.holds(moment, zone, find):
                return False
        local = datetime.fromtimestamp(moment, zone)
        second = local.hour * 3600 + local.minute * 60 + local.second
        return any(start <= second < end for start, end in self.ranges_on(local.date()))

    def ranges_on(self, day: date) -> TimeRanges:
        """The ranges that count on a day: of the first rule that covers it, else its weekday."""
        for rule in self.rules:
            if rule.covers(day):
                return rule.ranges
        return self.days[day.isoweekday() % 7]


def timeperiod(
    name: str, alias: str, values: Mapping[str, str | None], rules: Iterable[tuple[str, str]]
) -> Timeperiod:
    """Build a period from its weekday attributes and date rules. Raises TimeperiodError."""
    parsed = sorted((parse_date_rule(*rule) for rule in rules), key=lambda rule: rule.kind)
    return Timeperiod(
        name=name,
        alias=alias,
        days=tuple(parse_ranges(values[day] or "") if values.get(day) else () for day in WEEKDAYS),
        rules=tuple(parsed),
        exclude=tuple(part.strip() for part in (values.get("exclude") or "").split(",") if part),
    )
