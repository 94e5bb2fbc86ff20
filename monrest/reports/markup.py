"""The few elements of HTML that operators' templates make, as the parts of a sheet. Pure.

``h2`` (or ``h1``, ``h3``): a title. ``p``: a sentence, of class ``bad`` one that must not be
overlooked. ``table`` with ``tr``, ``th`` and ``td``: a table, whose title is the ``caption`` or
the last title before it; the class of a ``th`` says what the column holds (text, number, percent,
time, duration, state), so that cells hold plain numbers and look right in all forms. ``part``:
what the built-in template has under the ``title``, such as a chart. Everything else is refused, so
that a mistake is seen.
"""

from __future__ import annotations

from collections.abc import Iterable
from html.parser import HTMLParser
from typing import Any, get_args

from attrs import define, field

from monrest.reports.picture import Picture
from monrest.reports.sheet import CellKind, Grid, Head, Heading, Note, Sheet, SheetPart

_KINDS: frozenset[str] = frozenset(get_args(CellKind))
_TITLES = frozenset({"h1", "h2", "h3"})
_TEXTS = _TITLES | {"p", "caption", "th", "td"}
_AROUND = frozenset({"table", "thead", "tbody", "tr", "b", "br", "div"})
_KNOWN = ", ".join(sorted(_TEXTS | _AROUND | {"part"}))
_NUMBERS: frozenset[str] = frozenset({"number", "percent", "time", "duration"})


def parts_of_markup(text: str, sheet: Sheet) -> list[SheetPart]:
    """The parts in their order; ValueError says what cannot be there."""
    reader = _Reader(sheet)
    reader.feed(text)
    reader.close()
    reader.flush()
    if reader.in_table:
        raise ValueError("expected </table> at the end")
    return reader.parts


@define
class _Table:
    title: str
    heads: list[Head] = field(factory=list)
    rows: list[list[str]] = field(factory=list)

    def grid(self, low: float) -> Grid:
        """The table when all of it was read."""
        wide = max([len(self.heads), *map(len, self.rows)], default=0)
        heads = [*self.heads, *(Head("") for _ in range(wide - len(self.heads)))]
        rows = [
            tuple(
                _value(head.kind, row[at] if at < len(row) else "") for at, head in enumerate(heads)
            )
            for row in self.rows
            if row
        ]
        return Grid(title=self.title, heads=tuple(heads), rows=rows, low=low)


def _value(kind: CellKind, text: str) -> Any:
    """What a cell holds: numbers where the column has numbers; nothing for None."""
    if kind not in _NUMBERS:
        return text
    if text in ("", "None"):
        return None
    try:
        value = float(text)
        return int(value) if value.is_integer() and kind != "percent" else value
    except (ValueError, OverflowError):
        raise ValueError(f"expected a number in a column of {kind}, got {text[:80]!r}") from None


class _Reader(HTMLParser):
    """``parts`` grow while it is fed."""

    def __init__(self, sheet: Sheet) -> None:
        super().__init__(convert_charrefs=True)
        self.sheet = sheet
        self.parts: list[SheetPart] = []
        self.low = _low(sheet.parts)
        self._inside = ""
        self._kind = ""
        self._text = ""
        self._title = ""
        self._table: _Table | None = None

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Begin an element."""
        given = dict(attrs)
        if tag == "part":
            self.flush()
            self._built_in(given.get("title") or "")
        elif tag == "br":
            self._text += " "
        elif tag == "table":
            self.flush()
            self._table = _Table(self._take_title())
        elif tag == "tr":
            self._row()
        elif tag in _TEXTS:
            self._begin(tag, (given.get("class") or "").strip())
        elif tag not in _AROUND:
            raise ValueError(f"expected one of {_KNOWN}, got <{tag[:40]}>")

    def handle_endtag(self, tag: str) -> None:
        """End an element."""
        if tag == self._inside:
            self._end()
        elif tag == "table" and self._table is not None:
            self._end()
            table, self._table = self._table, None
            if table.heads or any(table.rows):
                self.parts.append(table.grid(self.low))

    def handle_data(self, data: str) -> None:
        """Take a text, which has to be in an element."""
        if self._inside:
            self._text += data
        elif data.strip():
            raise ValueError(f"expected texts inside of elements, got {data.strip()[:80]!r}")

    def flush(self) -> None:
        """End what is open; a title without anything below it is a heading."""
        self._end()
        if self._title:
            self.parts.append(Heading(self._title))
            self._title = ""

    @property
    def in_table(self) -> bool:
        """Whether a table is open."""
        return self._table is not None

    # ---------------------------------------------------------------- elements

    def _begin(self, tag: str, kind: str) -> None:
        self._end()
        if tag in ("th", "td", "caption") and self._table is None:
            raise ValueError(f"expected <{tag}> inside of a table")
        if tag in _TITLES or tag == "p":
            self._leave_table(tag)
            self.flush()
        if tag == "th" and kind and kind not in _KINDS:
            raise ValueError(f"expected a class of {', '.join(sorted(_KINDS))}, got {kind[:40]!r}")
        self._inside, self._kind, self._text = tag, kind, ""

    def _leave_table(self, tag: str) -> None:
        if self._table is not None:
            raise ValueError(f"expected </table> in front of <{tag}>")

    def _end(self) -> None:
        tag, text = self._inside, " ".join(self._text.split())
        self._inside = self._text = ""
        if tag in _TITLES:
            self._title = text
        elif tag == "p" and text:
            self.parts.append(Note(text, bad=self._kind == "bad"))
        elif self._table is None:
            return
        elif tag == "caption":
            self._table.title = text
        elif tag == "th" and not self._table.rows[1:]:
            kind: Any = self._kind or "text"
            self._table.heads.append(Head(text, kind))
        elif tag in ("td", "th"):
            self._table.rows[-1].append(text)

    def _row(self) -> None:
        if self._table is None:
            raise ValueError("expected <tr> inside of a table")
        self._end()
        self._table.rows.append([])

    def _take_title(self) -> str:
        last = self.parts[-1] if self.parts else None
        if not isinstance(last, Heading):
            return ""
        self.parts.pop()
        return last.text

    def _built_in(self, title: str) -> None:
        """What the built-in template says under a title, in the language of the report."""
        wanted = self.sheet.spelling.say(title)
        if not title:
            raise ValueError("expected <part title=...>")
        self.parts += [
            one
            for one in self.sheet.parts
            if isinstance(one, (Grid, Picture)) and one.title.startswith(wanted)
        ]


def _low(parts: Iterable[SheetPart]) -> float:
    """Below which percentage the tables of the built-in template show what is bad."""
    return max((one.low for one in parts if isinstance(one, Grid)), default=0.0)
