"""The table of an import: the outcome of each record and setting. Pure.

Nothing in a line is a secret: values of keys, passwords and commands are not written down here.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from enum import StrEnum

from attrs import define, evolve, field, frozen

_LONGEST_CELL = 300


class Outcome(StrEnum):
    """The outcome of a record or setting."""

    NEW = "new"
    """It is written, or would be."""
    SAME = "is there"
    """It was written before, or something of that name is there, which stays as it is."""
    CHANGED = "changed"
    """It is not quite what it was; the note says how."""
    HINT = "to do"
    """The operator must do something about it by hand, or know it."""
    LEFT = "left out"
    """There is nothing here that it could become."""
    REFUSED = "refused"
    """It cannot be read, or is not what it should be."""


@frozen
class ImportLine:
    """One thing: ``kind`` as the table groups it, ``source`` file and line or key."""

    kind: str
    source: str
    outcome: Outcome
    target: str = ""
    note: str = ""

    def cells(self) -> tuple[str, str, str, str, str]:
        """The line as the table has it: no control characters, no long text."""
        return (self.kind, _plain(self.source), str(self.outcome), _plain(self.target),
                _plain(self.note))  # fmt: skip

    def document(self) -> dict[str, str]:
        return dict(zip(("kind", "from", "fate", "becomes", "note"), self.cells(), strict=True))


TITLES = ("KIND", "FROM", "FATE", "BECOMES", "NOTE")


def _plain(text: str) -> str:
    line = "".join(letter if letter.isprintable() else " " for letter in text)
    return line if len(line) <= _LONGEST_CELL else f"{line[:_LONGEST_CELL]}…"


@define(eq=False)
class ImportLines:
    """The lines in the order in which they are found; ``most`` of one kind and outcome."""

    most: int = 5000
    lines: list[ImportLine] = field(init=False, factory=list)
    counts: Counter[Outcome] = field(init=False, factory=Counter)
    _of_kind: Counter[tuple[str, Outcome]] = field(init=False, factory=Counter)

    def add(
        self, kind: str, source: str, outcome: Outcome, target: str = "", note: str = ""
    ) -> None:
        self.counts[outcome] += 1
        self._of_kind[kind, outcome] += 1
        if self._of_kind[kind, outcome] <= self.most:
            self.lines.append(ImportLine(kind, source, outcome, target, note))

    def keep(self, kinds: Sequence[str], is_there: Callable[[ImportLine], bool]) -> None:
        for place, line in enumerate(self.lines):
            if line.kind in kinds and line.outcome in (Outcome.NEW, Outcome.CHANGED):
                outcome, note = Outcome.SAME, line.note
                if not is_there(line):
                    outcome, note = Outcome.LEFT, "not so in the configuration that is there"
                self.counts[line.outcome] -= 1
                self.counts[outcome] += 1
                self.lines[place] = evolve(line, outcome=outcome, note=note)

    @property
    def refused(self) -> bool:
        return self.counts[Outcome.REFUSED] > 0

    def ordered(self, kinds: Sequence[str]) -> list[ImportLine]:
        """The lines by kind, in the order of ``kinds``, otherwise as they were found."""
        places = {kind: place for place, kind in enumerate(kinds)}
        return sorted(self.lines, key=lambda line: places.get(line.kind, len(places)))
