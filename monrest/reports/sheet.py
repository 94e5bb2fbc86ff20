"""What a report says, before anybody knows how it will look. Pure.

The same sheet becomes a page, a PDF, a workbook and lines of CSV.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, tzinfo
from decimal import ROUND_FLOOR, ROUND_HALF_UP, Decimal
from typing import Any, Literal, TypeAlias

from attrs import field, frozen

from monrest.reports.picture import Picture
from monrest.reports.words import Say, speaker

CellKind: TypeAlias = Literal["text", "number", "percent", "time", "duration", "state"]

_DAY, _HOUR, _MINUTE = 86400, 3600, 60


@frozen
class Head:
    """A column: its title, what its values are, and its share of the room for texts."""

    title: str
    kind: CellKind = "text"
    weight: float = 1.0


@frozen(kw_only=True)
class Grid:
    """A table. A value is a text, a number, Unix seconds, seconds or None as its column says.

    ``low``: percentages below it are shown as bad. ``empty`` is said where there are no rows. The
    first ``lead`` columns say what a row is about, wherever the others are on paper.
    """

    title: str
    heads: tuple[Head, ...]
    rows: Sequence[tuple[Any, ...]] = field(eq=False)
    low: float = 0.0
    empty: str = ""
    lead: int = 1


@frozen
class Note:
    """A sentence; ``bad``: one that must not be overlooked."""

    text: str
    bad: bool = False


@frozen
class Heading:
    """A title of what follows."""

    text: str


SheetPart: TypeAlias = Grid | Picture | Note | Heading


@frozen(kw_only=True)
class Spelling:
    """How values are written: the language, the zone, formats of strftime, decimals, rounding."""

    zone: tzinfo
    language: str = "en"
    date: str = "%Y-%m-%d"
    moment: str = "%Y-%m-%d %H:%M:%S"
    decimals: int = 2
    rounding: Literal["round", "floor"] = "round"
    say: Say = field(init=False, eq=False)

    @say.default
    def _words(self) -> Say:
        return speaker(self.language)

    def rounded(self, value: float) -> Decimal:
        """A percentage with its decimals."""
        how = ROUND_FLOOR if self.rounding == "floor" else ROUND_HALF_UP
        return Decimal(repr(float(value))).quantize(Decimal(1).scaleb(-self.decimals), how)

    def percent(self, value: float | None) -> str:
        """A percentage as a text."""
        return self.say("n/a") if value is None else f"{self.rounded(value)} %"

    def time(self, value: float) -> str:
        """Date and time of Unix seconds."""
        return self._dated(value, self.moment)

    def day(self, value: float) -> str:
        """The date of Unix seconds."""
        return self._dated(value, self.date)

    def _dated(self, value: float, form: str) -> str:
        try:
            return datetime.fromtimestamp(value, self.zone).strftime(form)
        except (ValueError, OverflowError, OSError):
            return str(int(value))

    def cell(self, kind: CellKind, value: Any) -> str:
        """A value of a table as a text."""
        return "" if value is None and kind != "percent" else _CELLS[kind](self, value)


def duration(seconds: float) -> str:
    """Seconds as ``3d 04h 05m 06s``, from the greatest unit on that is there."""
    left = max(0, int(seconds))
    days, left = divmod(left, _DAY)
    hours, left = divmod(left, _HOUR)
    minutes, left = divmod(left, _MINUTE)
    if days:
        return f"{days}d {hours:02}h {minutes:02}m {left:02}s"
    if hours:
        return f"{hours}h {minutes:02}m {left:02}s"
    return f"{minutes}m {left:02}s" if minutes else f"{left}s"


_CELLS: dict[CellKind, Callable[[Spelling, Any], str]] = {
    "text": lambda _, value: str(value),
    "number": lambda _, value: str(value),
    "state": lambda _, value: str(value),
    "percent": lambda how, value: how.say("n/a") if value is None else str(how.rounded(value)),
    "time": lambda how, value: how.time(value),
    "duration": lambda _, value: duration(value),
}


@frozen(kw_only=True)
class Sheet:
    """A whole report. ``facts`` are what stands at its top; ``data`` is for programs (JSON).

    ``worst`` is the least availability of an object, None where that is not what it is about.
    ``kept`` are forms of it that are there already, by name.
    """

    title: str
    kind: str
    facts: tuple[tuple[str, str], ...]
    parts: tuple[SheetPart, ...]
    spelling: Spelling
    worst: float | None = None
    data: Any = None
    kept: Mapping[str, bytes] = field(factory=dict, eq=False, repr=False)

    @property
    def grids(self) -> list[Grid]:
        """Its tables."""
        return [one for one in self.parts if isinstance(one, Grid)]
