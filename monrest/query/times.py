"""Times and durations as texts (query-engine.md, sections 4.5 and 6.3)."""

from __future__ import annotations

import re
from datetime import datetime, timedelta, tzinfo

UNITS = {"y": 365 * 86400, "w": 7 * 86400, "d": 86400, "h": 3600, "m": 60, "s": 1}
"""Seconds of every unit letter; a year has 365 days."""

_NUMBER = re.compile(r"[+-]?\d+(?:\.\d+)?\Z", re.ASCII)
_COMBINED = re.compile(r"([+-]?)((?:\d+[ywdhms])+)\Z", re.ASCII)
_PART = re.compile(r"(\d+)([ywdhms])", re.ASCII)
_DECIMAL_DURATION = re.compile(r"([+-]?)(\d+(?:\.\d+)?)(ms|[ywdhms])\Z", re.ASCII)
_DATE = re.compile(r"(\d{4})-(\d\d?)-(\d\d?)(?:[ T](\d\d?):(\d\d)(?::(\d\d))?)?\Z", re.ASCII)
_WORD = re.compile(r"[A-Za-z]+|\d+[ywdhms]?", re.ASCII)
_LONGEST = 200
_CENTURY = 100 * 365 * 86400


def parse_time(text: str, now: float, zone: tzinfo) -> float | None:
    """Seconds since the epoch for a value of a time column; None if it is no time.

    Accepts numbers, ``-10m`` (and combined, ``-1h30m``), calendar words and sums of them, and
    dates with an optional time of day in ``zone``.
    """
    text = text.strip()
    if not text or len(text) > _LONGEST:
        return None
    if _NUMBER.match(text):
        value = float(text)
        return int(value) if value == int(value) else value
    combined = _COMBINED.match(text)
    if combined:
        return now + _signed(combined)
    return _date(text, zone) if text[0].isdigit() and "-" in text else _sum(text, now, zone)


def _signed(match: re.Match[str]) -> int:
    total = sum(int(count) * UNITS[unit] for count, unit in _PART.findall(match[2]))
    total = min(total, 100 * _CENTURY)
    return -total if match[1] == "-" else total


def _date(text: str, zone: tzinfo) -> float | None:
    match = _DATE.match(text)
    if not match:
        return None
    try:
        numbers = [int(one or 0) for one in match.groups()]
        return int(datetime(*numbers, tzinfo=zone).timestamp())  # type: ignore[arg-type,misc]  # six numbers
    except (ValueError, OverflowError):
        return None


def _sum(text: str, now: float, zone: tzinfo) -> float | None:
    total: float | None = None
    at = 0
    sign = 1
    while True:
        while at < len(text) and text[at] == " ":
            at += 1
        match = _WORD.match(text, at)
        if not match:
            return None
        value = _term(match[0], now, zone)
        if value is None:
            return None
        total = value if total is None else total + sign * value
        at = match.end()
        while at < len(text) and text[at] == " ":
            at += 1
        if at == len(text):
            return total
        if text[at] not in "+-":
            return None
        sign = 1 if text[at] == "+" else -1
        at += 1


def _term(word: str, now: float, zone: tzinfo) -> float | None:
    if word[0].isdigit():
        return int(word[:-1]) * UNITS[word[-1]] if word[-1] in UNITS else int(word)
    lowered = word.lower()
    if lowered == "now":
        return now
    today = datetime.fromtimestamp(now, zone).replace(hour=0, minute=0, second=0, microsecond=0)
    days = {"today": 0, "yesterday": -1, "tomorrow": 1}
    if lowered in days:
        return int((today + timedelta(days=days[lowered])).timestamp())
    start = _period(word, today)
    return None if start is None else int(start.timestamp())


def _period(word: str, today: datetime) -> datetime | None:
    monday = today - timedelta(days=today.weekday())
    if word in ("thisweek", "lastmonday"):
        return monday
    if word in ("lastweek", "nextweek"):
        return monday + timedelta(days=7 if word == "nextweek" else -7)
    steps = {"this": 0, "last": -1, "next": 1}
    step = steps.get(word[:4])
    if step is None or word[4:] not in ("month", "year"):
        return None
    if word[4:] == "year":
        return today.replace(year=today.year + step, month=1, day=1)
    month = today.year * 12 + today.month - 1 + step
    return today.replace(year=month // 12, month=month % 12 + 1, day=1)


def parse_duration(text: str) -> float | None:
    """Seconds of ``1m``, ``-1h30m``, ``1.5h``, ``250ms`` or a plain number; None otherwise."""
    text = text.strip()
    if _NUMBER.match(text):
        value = float(text)
        return int(value) if value == int(value) else value
    combined = _COMBINED.match(text)
    if combined:
        return _signed(combined)
    decimal = _DECIMAL_DURATION.match(text)
    if not decimal:
        return None
    unit = 0.001 if decimal[3] == "ms" else UNITS[decimal[3]]
    value = float(decimal[2]) * unit
    return -value if decimal[1] == "-" else value


def format_duration(seconds: float) -> str:
    """The two largest units, for example ``1m 30s`` (table of section 6.3)."""
    if seconds != seconds or seconds in (float("inf"), float("-inf")):
        return ""
    sign = "-" if seconds < 0 else ""
    seconds = abs(seconds)
    if seconds < 1:
        milliseconds = int(seconds * 1000 + 1e-9)
        return f"{sign}{milliseconds}ms" if milliseconds else "0s"
    if seconds < 10 and seconds != int(seconds):
        return f"{sign}{seconds:.1f}s"
    rest = int(seconds)
    parts: list[str] = []
    for unit in "ydhms":
        count, rest = divmod(rest, UNITS[unit])
        if count:
            parts.append(f"{count}{unit}")
        if len(parts) == 2:
            break
    return sign + " ".join(parts)


def format_time(seconds: float, fmt: str | None, zone: tzinfo) -> str:
    """``seconds`` since the epoch in ``zone`` by a strftime format; ``%MILLI`` is milliseconds.

    Moments beyond the calendar come back as the number itself.
    """
    pattern = fmt if fmt is not None else "%Y-%m-%d %H:%M:%S %Z"
    try:
        moment = datetime.fromtimestamp(seconds, zone)
        milliseconds = f"{moment.microsecond // 1000:03d}"
        return moment.strftime(pattern.replace("%MILLI", milliseconds))
    except (ValueError, OverflowError, OSError):
        return str(seconds)
