"""Thresholds of ``-w`` and ``-c`` (docs/spec/cli.md, "Thresholds")."""

from __future__ import annotations

import re
from math import inf
from typing import Any, NamedTuple

from monrest.cli.lookup import MISSING, is_number, look_up
from monrest.client.client_problems import ClientError

_NUMBER = r"-?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)"
_PLAIN = re.compile(rf"{_NUMBER}\Z")
_RANGE = re.compile(rf"(?P<inside>@)?(?:(?P<start>~|{_NUMBER})?:)?(?P<end>{_NUMBER})?\Z")
_BRACED = re.compile(r"\{([^{}]+)\}(.*)\Z", re.DOTALL)

LEVELS = {"warning": 1, "critical": 2}


class ThresholdError(ClientError):
    """A threshold cannot be read, or its name is not in the answer; replaces all output."""


class Threshold(NamedTuple):
    """Alert outside ``start`` to ``end``, or inside when ``inside``.

    ``key`` is the name as it was given, ``text`` the threshold as it was given, ``level`` the
    state that it sets (1 or 2).
    """

    level: int
    key: str
    text: str
    start: float
    end: float
    inside: bool

    @property
    def label(self) -> str:
        """The name with ``::`` between its parts, as performance data spell it."""
        return self.key.replace(".", "::")

    def alerts(self, value: float) -> bool:
        """Whether ``value`` sets the state."""
        return (self.start <= value <= self.end) is self.inside


def threshold(option: str, text: str) -> Threshold:
    """Read ``key:T``, ``a.b:T`` or ``{a::b}T`` of ``option`` (warning or critical)."""
    match = _BRACED.match(text)
    key, limits = (match[1], match[2]) if match else text.partition(":")[::2]
    bounds = _bounds(limits)
    if not key or bounds is None:
        raise ThresholdError(
            f"unknown threshold format, syntax is --{option}={{key}}threshold, got: {text}"
        )
    start, end, inside = bounds
    return Threshold(LEVELS[option], key, limits, start, end, inside)


def _bounds(text: str) -> tuple[float, float, bool] | None:
    if _PLAIN.match(text):
        return 0.0, float(text), False
    match = _RANGE.match(text)
    if match is None or (match["end"] is None and ":" not in text):
        return None
    start = {"~": -inf, None: 0.0}.get(match["start"])
    if start is None:
        start = float(match["start"])
    end = inf if match["end"] is None else float(match["end"])
    return (start, end, match["inside"] is not None) if start <= end else None


def state(thresholds: tuple[Threshold, ...], data: Any) -> int:
    """The worst state of one result: 0, 1 or 2. Raises ThresholdError for an unknown name."""
    worst = 0
    for threshold in thresholds:
        value = look_up(data, threshold.key)
        if value is MISSING:
            option = next(name for name, level in LEVELS.items() if level == threshold.level)
            raise ThresholdError(
                f"unknown variable {threshold.key} in thresholds, syntax is --{option}=key:value"
            )
        if threshold.alerts(value if is_number(value) else 0):
            worst = max(worst, threshold.level)
    return worst
