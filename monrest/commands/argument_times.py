"""Moments and spans in arguments of commands (docs/spec/commands.md, "Arguments").

Stricter than the times of filters: what may mean two things is refused, because a downtime that
lies in the wrong year is found out too late.
"""

from __future__ import annotations

import re
from datetime import tzinfo
from math import floor

from monrest.query.times import MOST_TIME, parse_duration, parse_moment

LATEST = 253402300799
"""The last second of the year 9999 in UTC; what is later are milliseconds by mistake."""

_RELATIVE = re.compile(r"([+-]?)([0-9]{1,8})")
_ABSOLUTE = re.compile(r"[0-9]{9,12}")
_SPACED_SPAN = re.compile(r" +[0-9]{1,8}[ywdhms][0-9ywdhms]* *")
_LONG_NUMBER = re.compile(r"(?<![0-9])[+-] *[0-9]{9,}(?![0-9])")
_EXPONENT = re.compile(r"[0-9.][eE]")
_WHOLE = 1e-6


def moment(text: str, now: float, zone: tzinfo) -> int | None:
    """The Unix time that ``text`` means in ``zone``, or None (docs/spec/query.md, "Times").

    Digits alone are a moment from nine on and seconds after ``now`` up to eight. A span needs a
    sign or a word. A space before a span was a plus sign before it was decoded.
    """
    if len(text) > MOST_TIME:
        return None
    if _SPACED_SPAN.fullmatch(text):
        text = f"+{text.strip(' ')}"
    text = text.strip(" ")
    found = _moment(text, now, zone)
    return found if found is not None and 0 <= found <= LATEST else None


def _moment(text: str, now: float, zone: tzinfo) -> int | None:
    if _ABSOLUTE.fullmatch(text):
        return int(text)
    if relative := _RELATIVE.fullmatch(text):
        return floor(now) + int(relative[1] + relative[2])
    return None if _LONG_NUMBER.search(text) else parse_moment(text, now, zone)


def duration(text: str) -> int | None:
    """Whole seconds of ``90``, ``-5m``, ``1.5h`` or ``1h30m``; None for all else, fractions too."""
    seconds = None if _EXPONENT.search(text) else parse_duration(text.strip(" "))
    if seconds is None or abs(seconds - round(seconds)) > _WHOLE:
        return None
    return round(seconds)


def spelled(seconds: int) -> str:
    """Days, hours, minutes and seconds, for example ``1d 2h 0m 0s``."""
    minutes, second = divmod(seconds, 60)
    hours, minute = divmod(minutes, 60)
    days, hour = divmod(hours, 24)
    return f"{days}d {hour}h {minute}m {second}s"
