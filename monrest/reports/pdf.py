"""A report as PDF: A4 across, tables that go on over pages, charts as on the page (HTML)."""

from __future__ import annotations

import io
import re
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import groupby
from pathlib import Path
from typing import Any

import reportlab
from attrs import define, evolve, field
from reportlab.lib.colors import Color, HexColor
from reportlab.lib.pagesizes import A4, landscape
from reportlab.pdfbase import pdfmetrics
from reportlab.pdfbase.cidfonts import UnicodeCIDFont
from reportlab.pdfbase.ttfonts import TTFError, TTFont
from reportlab.pdfgen.canvas import Canvas

from monrest.base.errors import ClientLeftError
from monrest.reports.picture import (
    BAD,
    GRIDLINE,
    INK,
    PALE,
    STATES,
    WIDTH,
    Box,
    Label,
    Picture,
    Stroke,
)
from monrest.reports.sheet import Grid, Heading, Note, Sheet

# The fonts of PDFs: how wide a text is, how it is broken, and what stands for missing letters.

_SYSTEM = Path("/usr/share/fonts")
_FAMILIES = (
    # The greatest stock of letters first; the last one comes with the library.
    (_SYSTEM / "truetype/dejavu", "DejaVuSans.ttf", "DejaVuSans-Bold.ttf"),
    (_SYSTEM / "dejavu-sans-fonts", "DejaVuSans.ttf", "DejaVuSans-Bold.ttf"),
    (_SYSTEM / "TTF", "DejaVuSans.ttf", "DejaVuSans-Bold.ttf"),
    (_SYSTEM / "truetype/liberation", "LiberationSans-Regular.ttf", "LiberationSans-Bold.ttf"),
    (Path(reportlab.__file__).parent / "fonts", "Vera.ttf", "VeraBd.ttf"),
)
_INSTEAD = "?"
_ZERO_WIDTH = frozenset("\u00ad\u200b\u200c\u200d\u200e\u200f\u2060\ufe0f\ufeff")
_SQUARE = re.compile("[\u1100-\u11ff\u2e80-\ua4cf\uac00-\ud7a3\uf900-\ufaff\uff00-\uffef]")
"""Letters of East Asia, each as wide as it is high, for which readers of PDFs have fonts."""
_HAN = "STSong-Light"
_SCRIPTS = (
    ("HeiseiKakuGo-W5", re.compile("[\u3040-\u30ff\uff66-\uff9f]")),
    ("HYGothic-Medium", re.compile("[\u1100-\u11ff\u3130-\u318f\uac00-\ud7a3]")),
)
_EM = 1000.0
_LOCK = threading.Lock()


@define(eq=False)
class Font:
    """One registered font; sizes and widths are in points."""

    name: str
    widths: Mapping[int, float]

    def drawable(self, text: str) -> str:
        """``text`` with what the font can draw; line breaks and tabs are blanks."""
        widths = self.widths
        if all(ord(one) in widths and one >= " " for one in text):
            return text
        return "".join(map(self._letter, text))

    def _letter(self, one: str) -> str:
        if one in "\n\r\t":
            return " "
        if one in _ZERO_WIDTH:
            return ""
        known = one >= " " and (ord(one) in self.widths or _SQUARE.fullmatch(one))
        return one if known else _INSTEAD

    def runs(self, text: str) -> Iterator[tuple[str, str]]:
        """A drawable text as pieces, each with the name of the font that has its letters."""
        if all(ord(one) in self.widths for one in text):
            yield self.name, text
            return
        square = next((name for name, letters in _SCRIPTS if letters.search(text)), _HAN)
        for own, letters in groupby(text, lambda one: ord(one) in self.widths):
            yield self.name if own else square, "".join(letters)

    def width(self, text: str, size: float) -> float:
        widths = self.widths
        return sum([widths.get(ord(one), _EM) for one in text]) * size / 1000

    def cut(self, text: str, size: float, width: float) -> str:
        """``text`` with an ellipsis in the end where it is wider than ``width``."""
        if self.width(text, size) <= width:
            return text
        dots = "…" if ord("…") in self.widths else "..."
        room = width - self.width(dots, size)
        return text[: self._fitting(text, size, room)].rstrip() + dots

    def _fitting(self, text: str, size: float, width: float) -> int:
        """How many letters fit, one at least."""
        left = width * 1000 / size
        for at, one in enumerate(text):
            left -= self.widths.get(ord(one), _EM)
            if left < 0:
                return max(1, at)
        return len(text)

    def lines(self, text: str, size: float, width: float, most: int) -> list[str]:
        """``text`` in lines of at most ``width``, ``most`` of them; words too long are broken."""
        if self.width(text, size) <= width:
            return [text]
        found: list[str] = []
        line = ""
        for word in text.split():
            longer = f"{line} {word}" if line else word
            if self.width(longer, size) <= width:
                line = longer
                continue
            if line:
                found.append(line)
            line = word
            while self.width(line, size) > width and len(found) < most:
                at = self._break(line, size, width)
                found.append(line[:at])
                line = line[at:]
            if len(found) > most:
                break
        if line:
            found.append(line)
        if len(found) > most:
            found = found[:most]
            found[-1] = self.cut(f"{found[-1]}{' ' * 200}.", size, width)
        return found

    def _break(self, word: str, size: float, width: float) -> int:
        """Where a word is broken: after what separates its parts, if that is far enough."""
        fits = self._fitting(word, size, width)
        for at in range(fits, fits // 2, -1):
            if word[at - 1] in "-_./:@,;=\\" and at > 1:
                return at
        return fits


def _registered(name: str, file: Path) -> Font:
    font = TTFont(name, str(file))
    pdfmetrics.registerFont(font)
    return Font(name, dict(font.face.charWidths))


@lru_cache(maxsize=1)
def _found() -> tuple[Font, Font]:
    problems: list[Exception] = []
    for folder, plain, bold in _FAMILIES:
        if not (folder / plain).is_file() or not (folder / bold).is_file():
            continue
        try:
            made: Sequence[Font] = [
                _registered("Report", folder / plain), _registered("Report-Bold", folder / bold)
            ]  # fmt: skip
        except (TTFError, OSError) as error:
            problems.append(error)
            continue
        for name in (_HAN, *(name for name, _ in _SCRIPTS)):
            pdfmetrics.registerFont(UnicodeCIDFont(name))
        return made[0], made[1]
    raise RuntimeError(f"no font for PDFs: {problems}")


def fonts() -> tuple[Font, Font]:
    """The font of texts and its bold form; in a thread, because files are read."""
    with _LOCK:
        return _found()


# How wide the columns of a table are on paper, and which of them stand together.

_LEAST = 72.0
"""Points that a column of texts needs before it is moved to a table of its own."""
_LEAD = 0.4
"""Part of the width that the leading columns may take away from all others."""


def pieces(
    grid: Grid, needed: Sequence[float], room: float
) -> Iterator[tuple[Grid, tuple[int, ...]]]:
    """The table as tables that fit, each with the leading columns; and which columns they have."""
    least = [
        min(wide, _LEAST) if head.kind == "text" else min(wide, room)
        for head, wide in zip(grid.heads, needed, strict=True)
    ]
    if sum(least) <= room:
        yield grid, tuple(range(len(least)))
        return
    lead = tuple(range(min(grid.lead, len(least))))
    free = room - min(sum(needed[at] for at in lead), room * _LEAD)
    groups: list[list[int]] = [[]]
    used = 0.0
    for at in range(len(lead), len(least)):
        if groups[-1] and used + least[at] > free:
            groups.append([])
            used = 0.0
        groups[-1].append(at)
        used += least[at]
    for number, group in enumerate(groups, 1):
        columns = (*lead, *group)
        yield (
            evolve(
                grid,
                title=f"{grid.title} ({number}/{len(groups)})",
                heads=tuple(grid.heads[at] for at in columns),
                rows=[tuple(row[at] for at in columns) for row in grid.rows],
            ),
            columns,
        )


def column_widths(grid: Grid, needed: Sequence[float], room: float) -> list[float]:
    """What has a fixed length gets what it needs, the rest is shared by texts.

    Texts get what they need, and where that is too much each its share.
    """
    fixed = sum(wide for head, wide in zip(grid.heads, needed, strict=True) if head.kind != "text")
    texts = [at for at, head in enumerate(grid.heads) if head.kind == "text"]
    left, open_ = max(room - fixed, room / 4), list(texts)
    given: dict[int, float] = {}
    while open_:
        weight = sum(grid.heads[at].weight for at in open_)
        small = [at for at in open_ if needed[at] <= left * grid.heads[at].weight / weight]
        if not small:
            given |= {at: left * grid.heads[at].weight / weight for at in open_}
            break
        for at in small:
            given[at] = needed[at]
            left -= needed[at]
        open_ = [at for at in open_ if at not in small]
    found = [given.get(at, wide) for at, wide in enumerate(needed)]
    whole = sum(found)
    if texts and whole < room:
        # The rest goes to the last text, which is the longest where there is one.
        found[texts[-1]] += room - whole
        whole = room
    return [wide * room / whole for wide in found] if whole > room else found


_PAGE = landscape(A4)
_MARGIN = 36.0
_TOP, _BOTTOM = _PAGE[1] - 40.0, 44.0
_ROOM = _PAGE[0] - 2 * _MARGIN
_SCALE = _ROOM / WIDTH
_SIZE, _LEADING, _PAD = 8.0, 10.0, 4.0
_MOST_LINES = 8
_MEASURED = 300
"""Rows whose widths are looked at to share the room among columns."""
_TITLE = 90.0
_EVERY = 50
_HEAD_FILL, _STRIPE = "#e9edf0", "#f6f8f9"
_RIGHT = frozenset({"number", "percent", "duration"})
_BOLD = frozenset({"state", "percent"})
"""Kinds of cells that may be bold, which is wider."""


@define(eq=False)
class _Writer:
    """Draws from the top of a page downwards; ``y`` is where the next thing begins."""

    canvas: Canvas
    sheet: Sheet
    font: Font
    bold: Font
    given_up: Callable[[], bool]
    y: float = _TOP
    page: int = 1
    _colors: dict[str, Color] = field(factory=dict, init=False)

    def room(self, height: float) -> bool:
        """Begin a new page unless there is room for ``height``; whether one was begun."""
        if self.y - height >= _BOTTOM or self.y == _TOP:
            return False
        self.canvas.showPage()
        self.page += 1
        self.y = _TOP
        return True

    def fill(self, color: str) -> None:
        known = self._colors.get(color)
        if known is None:
            known = self._colors[color] = HexColor(color)
        self.canvas.setFillColor(known)

    def line(self, color: str) -> None:
        self.canvas.setStrokeColor(HexColor(color))

    def text(
        self, x: float, y: float, text: str, size: float, *, bold: bool = False, right: bool = False
    ) -> None:
        """Write a drawable text that begins, or ends, at ``x``."""
        font = self.bold if bold else self.font
        if right:
            x -= font.width(text, size)
        for name, piece in font.runs(text):
            self.canvas.setFont(name, size)
            self.canvas.drawString(x, y, piece)
            x += font.width(piece, size)

    def top(self) -> None:
        """The title and what the report is about."""
        self.fill(INK)
        title = self.bold.drawable(self.sheet.title)
        for one in self.bold.lines(title, 18, _ROOM, 3):
            self.y -= 18
            self.text(_MARGIN, self.y, one, 18, bold=True)
            self.y -= 5
        self.y -= 6
        wide = max(
            (self.font.width(self.font.drawable(label), 9) for label, _ in self.sheet.facts),
            default=0.0,
        )
        for label, value in self.sheet.facts:
            lines = [
                line
                for paragraph in value.splitlines() or [""]
                for line in self.font.lines(self.font.drawable(paragraph), 9, _ROOM - wide - 14, 20)
            ]
            for at, one in enumerate(lines):
                self.room(12)
                self.y -= 12
                if at == 0:
                    self.fill(PALE)
                    self.text(_MARGIN, self.y, self.font.drawable(label), 9)
                self.fill(INK)
                self.text(_MARGIN + wide + 14, self.y, one, 9)
        self.y -= 8

    def heading(self, text: str, follows: float = 60.0) -> None:
        """A title that stays with the beginning of what follows."""
        self.room(26 + follows)
        self.y -= 22
        self.fill(INK)
        drawn = self.bold.cut(self.bold.drawable(text), 12, _ROOM)
        self.text(_MARGIN, self.y, drawn, 12, bold=True)
        self.y -= 6

    def note(self, note: Note) -> None:
        self.y -= 4
        for one in self.font.lines(self.font.drawable(note.text), 9, _ROOM, 20):
            self.room(13)
            self.y -= 12
            self.fill(BAD if note.bad else PALE)
            self.text(_MARGIN, self.y, one, 9, bold=note.bad)

    def picture(self, picture: Picture) -> None:
        """A chart below its title."""
        height = picture.height * _SCALE
        self.heading(picture.title, height + 6)
        top = self.y - 6
        for shape in picture.shapes:
            if isinstance(shape, Box):
                self.fill(shape.color)
                self.canvas.rect(
                    _MARGIN + shape.x * _SCALE,
                    top - (shape.y + shape.height) * _SCALE,
                    shape.width * _SCALE,
                    shape.height * _SCALE,
                    stroke=0,
                    fill=1,
                )
            elif isinstance(shape, Stroke):
                self.line(shape.color)
                self.canvas.setLineWidth(0.6)
                self.canvas.setDash(*([3, 3] if shape.dashed else []))
                self.canvas.line(
                    _MARGIN + shape.x1 * _SCALE,
                    top - shape.y1 * _SCALE,
                    _MARGIN + shape.x2 * _SCALE,
                    top - shape.y2 * _SCALE,
                )
                self.canvas.setDash()
            else:
                self._label(shape, top)
        self.y = top - height

    def _label(self, shape: Label, top: float) -> None:
        font = self.bold if shape.bold else self.font
        size = shape.size * _SCALE
        text = font.drawable(shape.text)
        x = _MARGIN + shape.x * _SCALE
        if shape.anchor != "start":
            x -= font.width(text, size) / (2 if shape.anchor == "middle" else 1)
        self.fill(shape.color)
        self.text(x, top - shape.y * _SCALE, text, size, bold=shape.bold)

    def grid(self, grid: Grid) -> None:
        """A table, or several of them where it has more columns than a page is wide."""
        if not grid.rows:
            self.heading(grid.title, 46)
            self.note(Note(grid.empty))
            return
        needed = self._needed(grid)
        for piece, columns in pieces(grid, needed, _ROOM):
            self._table(piece, [needed[at] for at in columns])

    def _table(self, grid: Grid, needed: list[float]) -> None:
        """A table; its head stands on every page."""
        self.heading(grid.title, 46)
        widths = column_widths(grid, needed, _ROOM)
        self._head(grid, widths)
        striped = False
        for number, row in enumerate(grid.rows):
            if number % _EVERY == 0 and self.given_up():
                raise ClientLeftError
            cells = self._cells(grid, row, widths)
            height = max(len(lines) for lines in cells) * _LEADING + _PAD
            if self.room(height):
                self._head(grid, widths)
                striped = False
            self._row(grid, row, cells, widths, height, striped=striped)
            striped = not striped

    def _needed(self, grid: Grid) -> list[float]:
        """How wide each column would be if there were room for everything."""
        spelling, font = self.sheet.spelling, self.font
        sample = grid.rows[:: max(1, len(grid.rows) // _MEASURED)]
        needed = []
        for at, head in enumerate(grid.heads):
            widest = self.bold.width(self.bold.drawable(head.title), _SIZE)
            if head.kind == "text":
                # Titles of texts are broken like the texts.
                widest = min(widest, _TITLE)
            texts = [font.drawable(spelling.cell(head.kind, row[at])) for row in sample]
            drawn = self.bold if head.kind in _BOLD else font
            widest = max([widest, *(drawn.width(text, _SIZE) for text in texts)])
            needed.append(widest + 2 * _PAD + 2)
        return needed

    def _head(self, grid: Grid, widths: Sequence[float]) -> None:
        lines = [
            self.bold.lines(self.bold.drawable(head.title), _SIZE, wide - 2 * _PAD, 3)
            for head, wide in zip(grid.heads, widths, strict=True)
        ]
        height = max(map(len, lines)) * _LEADING + _PAD
        self.fill(_HEAD_FILL)
        self.canvas.rect(_MARGIN, self.y - height, sum(widths), height, stroke=0, fill=1)
        self.fill(INK)
        x = _MARGIN
        for head, wide, texts in zip(grid.heads, widths, lines, strict=True):
            self._cell(x, wide, texts, right=head.kind in _RIGHT, bold=True)
            x += wide
        self.y -= height

    def _cells(self, grid: Grid, row: Sequence[Any], widths: Sequence[float]) -> list[list[str]]:
        spelling, font = self.sheet.spelling, self.font
        return [
            font.lines(
                font.drawable(spelling.cell(head.kind, value)), _SIZE, wide - 2 * _PAD, _MOST_LINES
            )
            for head, value, wide in zip(grid.heads, row, widths, strict=True)
        ]

    def _row(
        self,
        grid: Grid,
        row: Sequence[Any],
        cells: Sequence[list[str]],
        widths: Sequence[float],
        height: float,
        *,
        striped: bool,
    ) -> None:
        if striped:
            self.fill(_STRIPE)
            self.canvas.rect(_MARGIN, self.y - height, sum(widths), height, stroke=0, fill=1)
        x = _MARGIN
        for head, value, wide, texts in zip(grid.heads, row, widths, cells, strict=True):
            color = INK
            if head.kind == "state":
                color = STATES.get(str(value).lower(), INK)
            elif head.kind == "percent" and value is not None and value < grid.low:
                color = BAD
            self.fill(color)
            self._cell(x, wide, texts, right=head.kind in _RIGHT, bold=color != INK)
            x += wide
        self.y -= height
        self.line(GRIDLINE)
        self.canvas.setLineWidth(0.4)
        self.canvas.line(_MARGIN, self.y, _MARGIN + sum(widths), self.y)

    def _cell(
        self, x: float, wide: float, texts: Sequence[str], *, right: bool, bold: bool
    ) -> None:
        y = self.y - _LEADING + 0.5
        for text in texts:
            where = x + wide - _PAD if right else x + _PAD
            self.text(where, y, text, _SIZE, bold=bold, right=right)
            y -= _LEADING


class _Numbered(Canvas):  # type: ignore[misc]  # the library has no types
    """Writes the foot of every page when it is known how many there are."""

    foot: Callable[[Canvas, int, int], None]

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._pages: list[dict[str, Any]] = []

    def showPage(self) -> None:
        """Keep the page for the end."""
        self._pages.append(dict(self.__dict__))
        self._startPage()

    def save(self) -> None:
        """Write the feet and the file."""
        self._pages.append(dict(self.__dict__))
        pages = self._pages
        for number, page in enumerate(pages, 1):
            self.__dict__.update(page)
            self.foot(self, number, len(pages))
            super().showPage()
        super().save()


def pdf(sheet: Sheet, given_up: Callable[[], bool] = bool) -> bytes:
    """The file; takes seconds for thousands of rows, and raises ClientLeftError when given up."""
    font, bold = fonts()
    target = io.BytesIO()
    canvas = _Numbered(target, pagesize=_PAGE, pageCompression=1)
    canvas.setTitle(sheet.title)
    canvas.setCreator("monrest")
    say = sheet.spelling.say
    title = font.cut(font.drawable(sheet.title), 8, _ROOM / 2)

    def foot(page: Canvas, number: int, count: int) -> None:
        page.setFillColor(HexColor(PALE))
        writer.text(_MARGIN, 24, title, 8)
        numbers = font.drawable(f"{say('Page')} {number} {say('of')} {count}")
        writer.text(_PAGE[0] - _MARGIN, 24, numbers, 8, right=True)

    canvas.foot = foot
    writer = _Writer(canvas, sheet, font, bold, given_up)
    writer.top()
    for part in sheet.parts:
        if isinstance(part, Grid):
            writer.grid(part)
        elif isinstance(part, Picture):
            writer.picture(part)
        elif isinstance(part, Heading):
            writer.heading(part.text)
        else:
            writer.note(part)
    canvas.save()
    return target.getvalue()
