"""Moments and spans in arguments of commands (auth-and-commands.md, section 1.6, "Ours").

Stricter than the times of filters: what may mean two things is refused, because a downtime that
lies in the wrong year is found out too late.
"""

from __future__ import annotations

import re
from datetime import datetime, tzinfo
from math import floor

from monrest.query.times import UNITS, parse_time

LATEST = 253402300799
"""The last second of the year 9999 in UTC; what is later are milliseconds by mistake."""

_LONGEST = 200
_RELATIVE = re.compile(r"([+-]?)([0-9]{1,8})")
_ABSOLUTE = re.compile(r"[0-9]{9,12}")
_SPAN = r"[0-9]{1,8}[ywdhms]?"
_SPACED_SPAN = re.compile(r" +[0-9]{1,8}[ywdhms] *")
_CLOCK = r"[0-9]{1,2}:[0-9]{2}(?::[0-9]{2})?"
_WORDS = (
    "now|today|yesterday|tomorrow|lastmonday|thisweek|lastweek|nextweek"
    "|lastmonth|thismonth|nextmonth|lastyear|thisyear|nextyear"
)
_DATES = (
    rf"[0-9]{{4}}-[0-9]{{1,2}}-[0-9]{{1,2}}[ T]{_CLOCK}"
    r"|[0-9]{1,2}-[0-9]{1,2}-[0-9]{4} [0-9]{1,2}:[0-9]{2}:[0-9]{2}"
)
_SUM = re.compile(
    rf"(?P<base>(?:{_DATES})|(?:(?P<day>(?i:today|yesterday|tomorrow)) +)?(?P<clock>{_CLOCK})"
    rf"|(?i:{_WORDS})|[0-9]{{9,12}})?(?P<steps>(?: *[+-] *{_SPAN})*)",
    re.ASCII,
)
_STEP = re.compile(r"([+-]) *([0-9]+)([ywdhms]?)")
_AGO = re.compile(r"([0-9]{1,8}) *(?i:(second|minute|hour|day|week)s? +ago)", re.ASCII)
_DURATION = re.compile(r"(-?)([0-9]{1,10})(?:\.([0-9]{1,9}))?([ywdhms]?)")


def moment(text: str, now: float, zone: tzinfo) -> int | None:
    """The Unix time that ``text`` means in ``zone``, or None.

    Digits alone are a moment from nine on and seconds after ``now`` up to eight. Else it is
    ``+60m``, a calendar word, a date with a time, a time of day, each with any number of spans
    after it, or ``2 hours ago``. A blank before a span was a plus sign before it was decoded.
    """
    if len(text) > _LONGEST:
        return None
    if _SPACED_SPAN.fullmatch(text):
        text = f"+{text.strip(' ')}"
    text = text.strip(" ")
    found = _moment(text, floor(now), zone)
    return found if found is not None and 0 <= found <= LATEST else None


def _moment(text: str, now: int, zone: tzinfo) -> int | None:
    if _ABSOLUTE.fullmatch(text):
        return int(text)
    if relative := _RELATIVE.fullmatch(text):
        return now + int(relative[1] + relative[2])
    if ago := _AGO.fullmatch(text):
        seconds: int = UNITS[ago[2][0].lower()]
        return now - int(ago[1]) * seconds
    match = _SUM.fullmatch(text)
    if not text or match is None:
        return None
    base = _base(match, now, zone)
    if base is None:
        return None
    for sign, count, unit in _STEP.findall(match["steps"]):
        base += int(sign + count) * UNITS[unit or "s"]
    return base


def _base(match: re.Match[str], now: int, zone: tzinfo) -> int | None:
    text = match["base"]
    if text is None:
        return now
    if match["clock"]:
        day = parse_time((match["day"] or "today").lower(), now, zone)
        if day is None:
            return None
        text = f"{datetime.fromtimestamp(day, zone):%Y-%m-%d} {match['clock']}"
    elif text[0].isalpha():
        text = text.lower()
    found = parse_time(text, now, zone)
    return None if found is None else int(found)


def duration(text: str) -> int | None:
    """Whole seconds of ``90``, ``-5m`` or ``1.5h``; None for everything else, fractions too."""
    match = _DURATION.fullmatch(text.strip(" "))
    if match is None:
        return None
    sign, whole, fraction, unit = match.groups()
    digits = fraction or ""
    scale: int = 10 ** len(digits)
    seconds, rest = divmod(int(whole + digits) * UNITS[unit or "s"], scale)
    if rest:
        return None
    return -seconds if sign else seconds


def spelled(seconds: int) -> str:
    """Days, hours, minutes and seconds, for example ``1d 2h 0m 0s``."""
    minutes, second = divmod(seconds, 60)
    hours, minute = divmod(minutes, 60)
    days, hour = divmod(hours, 24)
    return f"{days}d {hour}h {minute}m {second}s"
