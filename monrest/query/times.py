"""Times and durations as texts (query-engine.md, sections 4.5 and 6.3).

Moments are Unix times in seconds, durations are seconds. Calendar words and dates are meant in
the time zone that the caller passes; sums are plain seconds without regard to summer time.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import date, datetime, timedelta, tzinfo
from functools import lru_cache
from math import floor, isfinite
from typing import Literal

from attrs import frozen

from monrest.query.scalars import number_of, text_of

UNITS = {"y": 365 * 86400, "w": 7 * 86400, "d": 86400, "h": 3600, "m": 60, "s": 1}
"""Seconds of every unit letter; a year has 365 days and there is no month."""

DEFAULT_FORMAT = "%Y-%m-%d %H:%M:%S %Z"

# Twelve digits of years are far beyond every clock and still exact in sums.
_SPAN = r"(?:[0-9]{1,12}[ywdhms])+"
_PART = re.compile(r"([0-9]+)([ywdhms])")
_SIGNED_SPAN = re.compile(rf"([+-]?)({_SPAN})")
_DECIMAL_SPAN = re.compile(r"([+-]?[0-9]{1,12}(?:\.[0-9]{1,12})?)(ms|[ywdhms])")
_MORE = "[0-9A-Za-z]"
_CLOCK = r"[0-9]{1,2}:[0-9]{2}"
_TERM = re.compile(
    rf"(?P<ymd>[0-9]{{4}}-[0-9]{{1,2}}-[0-9]{{1,2}}(?:[ T]{_CLOCK}(?::[0-9]{{2}})?)?)(?!{_MORE}|:)"
    rf"|(?P<mdy>[0-9]{{1,2}}-[0-9]{{1,2}}-[0-9]{{4}} {_CLOCK}:[0-9]{{2}})(?!{_MORE}|:)"
    rf"|(?P<span>{_SPAN})(?!{_MORE})"
    rf"|(?P<seconds>[0-9]{{1,15}})(?!{_MORE})"
    r"|(?P<word>[A-Za-z]+)"
)
_DATE_SIGNS = re.compile(r"[- T:]")
_SIGN = re.compile(r" *([+-]) *")
_LONGEST = 200
_ABSOLUTE_DIGITS = 9


def parse_time(text: str, now: float, zone: tzinfo) -> float | None:
    """The moment that the operand of a time column means (section 4.5 with "Ours"), or None.

    Accepted are a number (itself), ``[+-]1h30m`` counted from ``now``, dates
    ``YYYY-MM-DD[ HH:MM[:SS]]`` and ``MM-DD-YYYY HH:MM:SS``, and sums of calendar words, dates
    and spans such as ``lastweek - 1d``. Fractions of the present second are cut off, because
    cores keep whole seconds.
    """
    text = text.strip()
    if not text or len(text) > _LONGEST:
        return None
    number = number_of(text)
    if number is not None:
        return number
    now = floor(now)
    span = _SIGNED_SPAN.fullmatch(text)
    if span:
        seconds = _span(span[2])
        return now - seconds if span[1] == "-" else now + seconds
    return _sum(text, now, zone)


def _span(text: str) -> int:
    return sum(int(count) * UNITS[unit] for count, unit in _PART.findall(text))


def _sum(text: str, now: int, zone: tzinfo) -> float | None:
    total = at = 0
    sign = 1
    anchored = False
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
        anchored = anchored or not _is_span(match)
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


def _is_span(match: re.Match[str]) -> bool:
    if match.lastgroup == "seconds":
        return len(match[0]) < _ABSOLUTE_DIGITS
    return match.lastgroup == "span"


def _term(match: re.Match[str], now: int, zone: tzinfo) -> int | None:
    kind = match.lastgroup
    if kind == "span":
        return _span(match[0])
    if kind == "seconds":
        return int(match[0])
    if kind == "word":
        return _word(match[0], now, zone)
    numbers = [int(one) for one in _DATE_SIGNS.split(match[0])]
    (year, month, day), clock = numbers[:3], numbers[3:]
    if kind == "mdy":
        month, day, year = year, month, day
    hour, minute, second = [*clock, 0, 0, 0][:3]
    return int(datetime(year, month, day, hour, minute, second, tzinfo=zone).timestamp())


def _word(word: str, now: int, zone: tzinfo) -> int | None:
    folded = word.lower()
    if folded == "now":
        return now
    today = datetime.fromtimestamp(now, zone).date()
    day = _DAYS[folded](today) if folded in _DAYS else None
    if day is None and word in _PERIODS:
        day = _PERIODS[word](today)
    if day is None:
        return None
    return int(datetime(day.year, day.month, day.day, tzinfo=zone).timestamp())


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
"""Words accepted in any case; the others are lower case."""

_PERIODS = {
    "thisweek": _monday(0), "lastweek": _monday(-1), "nextweek": _monday(1),
    "lastmonday": _monday(0),
    "thismonth": _month(0), "lastmonth": _month(-1), "nextmonth": _month(1),
    "thisyear": _year(0), "lastyear": _year(-1), "nextyear": _year(1),
}  # fmt: skip


def parse_duration(text: str) -> float | None:
    """Seconds of ``90``, ``1m``, ``-1h30m``, ``1.5h`` or ``250ms``; None for everything else."""
    text = text.strip()
    if len(text) > _LONGEST:
        return None
    number = number_of(text)
    if number is not None:
        return number
    span = _SIGNED_SPAN.fullmatch(text)
    if span:
        return -_span(span[2]) if span[1] == "-" else _span(span[2])
    decimal = _DECIMAL_SPAN.fullmatch(text)
    if decimal is None:
        return None
    return float(decimal[1]) * (0.001 if decimal[2] == "ms" else UNITS[decimal[2]])


def format_duration(seconds: float) -> str:
    """The two largest units, for example ``1m 30s`` (table of section 6.3).

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


# -------------------------------------------------------------------- strftime

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
    """``seconds`` as a date in ``zone`` by a strftime format (section 6.3, ``utc``, ``date``).

    ``%MILLI`` gives three digits of milliseconds; unknown directives stay as they are. A moment
    beyond the calendar is the number itself.
    """
    try:
        moment = datetime.fromtimestamp(seconds, zone)
    except (ValueError, OverflowError, OSError):
        return text_of(seconds)
    return _format(DEFAULT_FORMAT if fmt is None else fmt).text(moment, seconds)
