"""Limits of node functions: numbers and percentages (docs/spec/bp.md, "Functions")."""

from __future__ import annotations

import re
from functools import lru_cache

_LIMIT = re.compile(r"(-?[0-9]{1,15}(?:\.[0-9]{1,15})?)(%?)\Z")


@lru_cache(maxsize=4096)
def number(text: str, total: int) -> float | None:
    """Give the number that a limit stands for; None when it is none.

    ``n%`` is the share of ``total``; zero and negative percentages are 0.
    """
    match = _LIMIT.match(text)
    if match is None:
        return None
    value = float(match[1])
    if not match[2]:
        return value
    return total * value / 100 if value > 0 else 0.0


@lru_cache(maxsize=4096)
def shown(value: float) -> str:
    """Give a limit as it is printed in performance data."""
    return f"{value:.6f}"
