"""Durations as texts: ``90s``, ``1h30m``, ``2 days``, ``1.5h`` (docs/spec/query.md, "Times")."""

from __future__ import annotations

import re

UNITS = {"y": 365 * 86400, "w": 7 * 86400, "d": 86400, "h": 3600, "m": 60, "s": 1}
"""Seconds of every unit letter; a year has 365 days and there is no month."""

# Twelve digits of years are far beyond every clock and still exact in sums.
_UNIT = r"(?:(?i:years?|weeks?|days?|hours?|minutes?|mins?|seconds?|secs?)|[ywdhms])"
SPAN = rf"[0-9]{{1,12}} *{_UNIT}(?: *[0-9]{{1,12}} *{_UNIT})*"
"""The pattern of a span of time in whole numbers."""
SIGNED_SPAN = re.compile(rf"([+-]?) *({SPAN})", re.ASCII)
_PART = re.compile(rf"([0-9]+) *({_UNIT})", re.ASCII)
_DECIMAL = re.compile(r"([+-]?[0-9]{1,12}(?:\.[0-9]{1,12})?)(ms|[ywdhms])")


def span_seconds(text: str) -> int:
    """The seconds of a text that matches ``SPAN``."""
    return sum(int(count) * UNITS[unit[0].lower()] for count, unit in _PART.findall(text))


def seconds_of(text: str) -> float | None:
    """The seconds of a duration with its units, negative with a sign; None for everything else."""
    span = SIGNED_SPAN.fullmatch(text)
    if span:
        return -span_seconds(span[2]) if span[1] == "-" else span_seconds(span[2])
    decimal = _DECIMAL.fullmatch(text)
    if decimal is None:
        return None
    return float(decimal[1]) * (0.001 if decimal[2] == "ms" else UNITS[decimal[2]])
