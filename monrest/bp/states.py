"""States of nodes: their words, their order, and what many of them are together.

frontend-data.md, section 2.5, functions worst and best.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

OK, WARNING, CRITICAL, UNKNOWN, PENDING = range(5)
WORDS = ("OK", "WARNING", "CRITICAL", "UNKNOWN", "PENDING")
"""The words of the states, at their numbers."""

DEFAULT_ORDER = (
    "down",
    "unreachable",
    "unknown",
    "critical",
    "warning",
    "acknowledged_down",
    "acknowledged_unreachable",
    "acknowledged_unknown",
    "acknowledged_critical",
    "acknowledged_warning",
    "downtime_down",
    "downtime_unreachable",
    "downtime_unknown",
    "downtime_critical",
    "downtime_warning",
    "downtime_up",
    "downtime_ok",
    "up",
    "ok",
    "downtime_pending",
    "pending",
)
"""Groups of states, the worst first."""

_LONGEST_LABELS = 150


class Checked(Protocol):
    """Something with a state: a child of a node, or a service that a node is about."""

    @property
    def label(self) -> str:
        """What it is called."""

    @property
    def status(self) -> int:
        """0 to 4."""

    @property
    def status_text(self) -> str:
        """What it says, with performance data."""

    @property
    def acknowledged(self) -> int:
        """0 or 1."""

    @property
    def scheduled_downtime_depth(self) -> int:
        """0 when it is not in downtime."""


def good(one: Checked) -> bool:
    """Whether a child counts as available."""
    return one.status in (OK, PENDING)


def group_of(one: Checked) -> str:
    """Give the group of the state order to which a child belongs."""
    word = WORDS[one.status].lower()
    if one.acknowledged and one.status != OK:
        return f"acknowledged_{word}"
    return f"downtime_{word}" if one.scheduled_downtime_depth else word


def worst_group(
    children: Sequence[Checked], order: Sequence[str], *, best: bool = False
) -> list[Checked]:
    """Give the children of the first group that has any; with ``best`` from the other end."""
    groups: dict[str, list[Checked]] = {}
    for one in children:
        groups.setdefault(group_of(one), []).append(one)
    for name in reversed(order) if best else order:
        if name in groups:
            return groups[name]
    return []


def listed(labels: Sequence[str]) -> str:
    """Give ``a``, ``a and b`` or ``a, b and c``, cut when it is long."""
    first, last = ", ".join(labels[:-1]), "".join(labels[-1:])
    text = f"{first} and {last}" if first else last
    if len(text) > _LONGEST_LABELS:
        return text[: _LONGEST_LABELS - 3] + "..."
    return text


def first_line(text: str) -> str:
    """Give the first line of a status text without performance data."""
    return text.partition("\n")[0].partition("|")[0].strip()


def counts(children: Sequence[Checked]) -> list[int]:
    """How many children are in each state."""
    found = [0] * len(WORDS)
    for one in children:
        found[one.status] += 1
    return found
