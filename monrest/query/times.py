"""Times and durations as texts (docs/spec/query.md, "Times"): the one reader of both.

Moments are Unix times in seconds, durations are seconds. Calendar words and dates are meant in
the time zone that the caller passes; sums are plain seconds without regard to summer time.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta, timezone, tzinfo
from functools import lru_cache
from math import floor, isfinite
from typing import Literal

from attrs import frozen

from monrest.base.durations import SIGNED_SPAN, SPAN, UNITS, seconds_of, span_seconds
from monrest.query.scalars import number_of, text_of

DEFAULT_FORMAT = "%Y-%m-%d %H:%M:%S %Z"

_WORDED_SPAN = re.compile(rf"(?i:in) +({SPAN})|({SPAN}) +(?i:ago)", re.ASCII)
_END = "(?![0-9A-Za-z:.])"
_CLOCK = r"[0-9]{1,2}:[0-9]{2}(?::[0-9]{2}(?:[.,][0-9]{1,9})?)?"
# An offset without a colon could be seconds to add, unless a T says that all of it is one date.
_OFFSET = r"[Zz]| ?[+-][0-9]{2}:[0-9]{2}| [0-9]{2}:[0-9]{2}|(?<=[0-9])[+-](?:0[0-9]|1[0-4])[0-9]{2}"
_DATE = r"[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}"
_WEEKDAY = r"(?i:mon|tues?|wed(?:nes)?|thu(?:rs)?|fri|sat(?:ur)?|sun)(?i:day)?"
_TERM = re.compile(
    rf"(?P<hour>{_DATE}T{_CLOCK}[+-][0-9]{{2}}){_END}"
    rf"|(?P<iso>{_DATE}(?:[T ]{_CLOCK}(?:{_OFFSET})?)?){_END}"
    rf"|(?P<mdy>[0-9]{{1,2}}-[0-9]{{1,2}}-[0-9]{{4}} [0-9]{{1,2}}:[0-9]{{2}}:[0-9]{{2}}){_END}"
    rf"|(?P<clock>{_CLOCK}){_END}"
    rf"|(?P<span>{SPAN})(?![0-9A-Za-z])"
    r"|(?P<seconds>[0-9]{1,15})(?![0-9A-Za-z])"
    rf"|(?P<day>(?i:today|yesterday|tomorrow)|(?i:next|last) +{_WEEKDAY}(?![A-Za-z]))"
    rf"(?: +(?P<at>{_CLOCK}){_END})?"
    r"|(?P<word>(?:(?i:this|last|next) +)?[A-Za-z]+)",
    re.ASCII,
)
_ISO = re.compile(
    rf"({_DATE})(?:[T ]([0-9]{{1,2}}):([0-9]{{2}})(?::([0-9]{{2}})[.,0-9]*)?(.*))?", re.ASCII
)
_SIGN = re.compile(r" *([+-]) *")
MOST_TIME = 100
"""Characters of a time or a duration."""

_ABSOLUTE_DIGITS = 9


def parse_time(text: str, now: float, zone: tzinfo) -> float | None:
    """The moment that the operand of a time column means, or None (docs/spec/query.md, "Times").

    A number is itself; a span without a sign is counted from ``now``, as one with plus is.
    Fractions of the present second are cut off, because cores keep whole seconds.
    """
    text = text.strip()
    if not text or len(text) > MOST_TIME:
        return None
    number = number_of(text)
    if number is not None:
        return number
    span = SIGNED_SPAN.fullmatch(text)
    if span and not span[1]:
        return floor(now) + span_seconds(span[2])
    return parse_moment(text, now, zone)


def parse_moment(text: str, now: float, zone: tzinfo) -> int | None:
    """The moment that a text which is no number means in ``zone``, or None.

    Dates, times of day, words of the calendar, and sums of these and of spans; spans alone need
    a sign or a word, such as ``+1h30m``, ``in 2 hours`` or ``2 hours ago``.
    """
    text = text.strip(" ")
    if not text or len(text) > MOST_TIME:
        return None
    now = floor(now)
    worded = _WORDED_SPAN.fullmatch(text)
    if worded:
        return now + span_seconds(worded[1]) if worded[1] else now - span_seconds(worded[2])
    at, total, sign, anchored = 0, 0, 1, False
    leading = _SIGN.match(text)
    if leading and leading.start(1) == 0:
        # A sign in front counts from now.
        at, total, sign, anchored = leading.end(), now, 1 if leading[1] == "+" else -1, True
        if not SIGNED_SPAN.match(text):
            return None
    while True:
        match = _TERM.match(text, at)
        if match is None:
            return None
        try:
            value = _term(match, now, zone)
        except (ValueError, OverflowError, OSError):
            # A day that does not exist, or one beyond the calendar.
            return None
        if value is None:
            return None
        digits = match["seconds"]
        is_span = len(digits) < _ABSOLUTE_DIGITS if digits else match["span"] is not None
        anchored = anchored or not is_span
        total += sign * value
        at = match.end()
        if at == len(text):
            # Spans alone are a duration and no moment.
            return total if anchored else None
        operator = _SIGN.match(text, at)
        if operator is None:
            return None
        sign = 1 if operator[1] == "+" else -1
        at = operator.end()


def _term(match: re.Match[str], now: int, zone: tzinfo) -> int | None:
    parts = match.groupdict()
    if parts["span"]:
        return span_seconds(parts["span"])
    if parts["seconds"]:
        return int(parts["seconds"])
    if parts["iso"] or parts["hour"]:
        return _iso(parts["iso"] or parts["hour"], zone)
    if parts["mdy"]:
        day, clock = parts["mdy"].split(" ")
        month, number, year = [int(part) for part in day.split("-")]
        return _on(date(year, month, number), clock, zone)
    today = datetime.fromtimestamp(now, zone).date()
    if parts["clock"]:
        return _on(today, parts["clock"], zone)
    if parts["day"]:
        return _on(_day(parts["day"].lower(), today), parts["at"] or "0:00", zone)
    word = parts["word"].lower().replace(" ", "")
    if word == "now":
        return now
    day_of = _PERIODS.get(word)
    return None if day_of is None else _on(day_of(today), "0:00", zone)


def _iso(text: str, zone: tzinfo) -> int:
    """A date of ISO 8601, with or without a time of day, a fraction and an offset."""
    match = _ISO.fullmatch(text)
    assert match is not None
    year, month, day = [int(part) for part in match[1].split("-")]
    hour, minute, second = [int(part or 0) for part in match.group(2, 3, 4)]
    offset = (match[5] or "").strip()
    if offset in ("Z", "z"):
        zone = UTC
    elif offset:
        # A plus sign that was not encoded in a URL has become a blank.
        digits = offset.lstrip("+-").replace(":", "").ljust(4, "0")
        hours, minutes = int(digits[:2]), int(digits[2:])
        if hours > _MOST_HOURS or minutes > _MOST_MINUTES:
            raise ValueError(text)
        sign = -1 if offset[0] == "-" else 1
        zone = timezone(sign * timedelta(hours=hours, minutes=minutes))
    return int(datetime(year, month, day, hour, minute, second, tzinfo=zone).timestamp())


_MOST_HOURS, _MOST_MINUTES = 14, 59


def _on(day: date, clock: str, zone: tzinfo) -> int:
    """The time of day on a day; one that the clocks skip is meant as before they were changed."""
    hour, minute, *second = clock.split(":")
    seconds = int(float(second[0].replace(",", "."))) if second else 0
    at = datetime(day.year, day.month, day.day, int(hour), int(minute), seconds, tzinfo=zone)
    return int(at.timestamp())


def _day(words: str, today: date) -> date:
    """The day that ``today``, ``next friday`` … mean; never today with ``next`` and ``last``."""
    if words in _DAYS:
        return _DAYS[words](today)
    which, name = words.split()
    ahead = (_WEEKDAYS.index(name[:2]) - today.weekday()) % _WEEK or _WEEK
    return today + timedelta(days=ahead if which == "next" else (ahead - _WEEK) or -_WEEK)


_WEEK = 7
_WEEKDAYS = ("mo", "tu", "we", "th", "fr", "sa", "su")


def _days_on(days: int) -> Callable[[date], date]:
    return lambda today: today + timedelta(days=days)


def _monday(weeks: int) -> Callable[[date], date]:
    return lambda today: today + timedelta(days=7 * weeks - today.weekday())


def _month(months: int) -> Callable[[date], date]:
    def first(today: date) -> date:
        year, month = divmod(today.year * 12 + today.month - 1 + months, 12)
        return date(year, month + 1, 1)

    return first


def _year(years: int) -> Callable[[date], date]:
    return lambda today: date(today.year + years, 1, 1)


_DAYS = {"today": _days_on(0), "yesterday": _days_on(-1), "tomorrow": _days_on(1)}
"""Words that a time of day may follow."""

_PERIODS = {
    "thisweek": _monday(0), "lastweek": _monday(-1), "nextweek": _monday(1),
    "lastmonday": _monday(0),
    "thismonth": _month(0), "lastmonth": _month(-1), "nextmonth": _month(1),
    "thisyear": _year(0), "lastyear": _year(-1), "nextyear": _year(1),
}  # fmt: skip


def parse_duration(text: str) -> float | None:
    """Seconds of ``90``, ``1m``, ``-1h30m``, ``1.5h`` or ``250ms``; None for everything else."""
    text = text.strip()
    if len(text) > MOST_TIME:
        return None
    number = number_of(text)
    return seconds_of(text) if number is None else number


def format_duration(seconds: float) -> str:
    """The two largest units, for example ``1m 30s``.

    Milliseconds show only below one second and one decimal only below ten.
    """
    if not isfinite(seconds):
        return text_of(seconds)
    sign = "-" if seconds < 0 else ""
    seconds = abs(seconds)
    if seconds < 1:
        milliseconds = int(seconds * 1000)
        return f"{sign}{milliseconds}ms" if milliseconds else "0s"
    rest = int(seconds)
    if seconds < 10 and seconds != rest:
        return f"{sign}{seconds:.1f}s"
    parts: list[str] = []
    for unit, length in UNITS.items():
        if unit != "w" and rest >= length:
            count, rest = divmod(rest, length)
            parts.append(f"{count}{unit}")
    return sign + " ".join(parts[:2])


_DIRECTIVE = re.compile(r"%(MILLI|[-_0^#]?[aAbBcCdDeFgGhHIjklmMnpPrRsStTuUVwWxXyYzZ%])")
_CONSTANT = {"%": "%", "n": "\n", "t": "\t"}
_BETWEEN = "\1"


@frozen
class _Format:
    """A format cut at its directives: ``literals`` stand before, between and after them."""

    literals: tuple[str, ...]
    directives: str
    own: tuple[tuple[int, Literal["milliseconds", "seconds"]], ...]

    def text(self, moment: datetime, seconds: float) -> str:
        parts = moment.strftime(self.directives).split(_BETWEEN)
        for at, kind in self.own:
            parts[at] = (
                f"{moment.microsecond // 1000:03d}"
                if kind == "milliseconds"
                else str(floor(seconds))
            )
        pieces = [self.literals[0]]
        for part, literal in zip(parts, self.literals[1:], strict=False):
            pieces += (part, literal)
        return "".join(pieces)


@lru_cache(maxsize=256)
def _format(fmt: str) -> _Format:
    """Only known directives reach the C library: it would take a width of gigabytes."""
    literals = [""]
    directives: list[str] = []
    own: list[tuple[int, Literal["milliseconds", "seconds"]]] = []
    end = 0
    for match in _DIRECTIVE.finditer(fmt):
        literals[-1] += fmt[end : match.start()]
        end = match.end()
        letter = match[1]
        if letter in _CONSTANT:
            literals[-1] += _CONSTANT[letter]
            continue
        if letter == "MILLI":
            own.append((len(directives), "milliseconds"))
        elif letter[-1] == "s":
            own.append((len(directives), "seconds"))
        directives.append("" if letter == "MILLI" or letter[-1] == "s" else match[0])
        literals.append("")
    literals[-1] += fmt[end:]
    return _Format(tuple(literals), _BETWEEN.join(directives), tuple(own))


def format_time(seconds: float, fmt: str | None, zone: tzinfo) -> str:
    """``seconds`` as a date in ``zone`` by a strftime format.

    ``%MILLI`` is three digits of milliseconds; unknown directives stay as they are. A moment
    beyond the calendar is the number itself.
    """
    try:
        moment = datetime.fromtimestamp(seconds, zone)
    except (ValueError, OverflowError, OSError):
        return text_of(seconds)
    return _format(DEFAULT_FORMAT if fmt is None else fmt).text(moment, seconds)
