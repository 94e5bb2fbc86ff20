"""What searches and groups have found: counts, flags and the text about them.

Rules: docs/spec/bp.md, "Functions".
"""

from __future__ import annotations

from attrs import define, field

from monrest.base.values import Row
from monrest.bp.live import ACKNOWLEDGED, DOWNTIME, OUTPUT, Counts, text
from monrest.bp.search import title_of
from monrest.bp.states import OK, WORDS

_SHOWN_PROBLEMS = 10
_LONGEST_OUTPUT = 50


@define
class Flags:
    """How many problems are acknowledged or in downtime, and how many objects are bad."""

    acknowledged: int = 0
    downtime: int = 0
    bad: int = 0

    def add(self, row: Row, *, problem: bool, bad: bool) -> None:
        """Count one object."""
        self.acknowledged += bool(problem and row[ACKNOWLEDGED])
        self.downtime += bool(problem and row[DOWNTIME])
        self.bad += bad

    def handled(self, count: int) -> bool:
        """Whether so many make up for all that is bad."""
        return count > 0 and self.bad <= count


@define
class Found:
    """What searches found."""

    counts: Counts = field(factory=Counts)
    host_flags: Flags = field(factory=Flags)
    flags: Flags = field(factory=Flags)
    present: set[int] = field(factory=set)
    highest: int = OK
    lines: list[str] = field(factory=list)
    more: int = 0

    def problem(self, row: Row, word: str, *, hosts: bool) -> None:
        """Note a problem; the first ones are told."""
        if len(self.lines) >= _SHOWN_PROBLEMS:
            self.more += 1
            return
        output = text(row[OUTPUT])[:_LONGEST_OUTPUT]
        self.lines.append(f"[{word}] {title_of(row, hosts=hosts)} - {output}")

    def listed(self) -> str:
        """Give the lines that follow the summary."""
        lines = [*self.lines, *([f"found {self.more} more issues..."] if self.more else [])]
        return "".join(f"\n{one}" for one in lines)


def summary(
    status: int,
    hosts: tuple[int, int] | None,
    services: tuple[int, int] | None,
    hosts_bad: int,
    services_bad: int,
) -> str:
    """Give the line with counts and performance data of the sides that were looked at."""
    words: list[str] = []
    numbers: list[str] = []
    if hosts is not None:
        words.append(f"{hosts[0]}/{hosts[1]} hosts up")
        numbers.append(f"hosts_up={hosts[0]} hosts_down={hosts_bad}")
    if services is not None:
        words.append(f"{services[0]}/{services[1]} services up")
        numbers.append(f"services_up={services[0]} services_down={services_bad}")
    return f"{WORDS[status]} - {', '.join(words)}|{' '.join(numbers)}"
