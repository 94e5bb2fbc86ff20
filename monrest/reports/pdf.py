"""A report as PDF: A4 across, tables that continue over pages, charts as on the page (HTML)."""

from __future__ import annotations

import io
import re
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from html import escape
from itertools import groupby
from pathlib import Path
from typing import Any

import reportlab
from attrs import define, evolve, field, frozen
from reportlab.lib.colors import HexColor
from reportlab.lib.enums import TA_LEFT, TA_RIGHT
from reportlab.lib.pagesizes import A4, landscape
from reportlab.lib.styles import ParagraphStyle
from reportlab.pdfbase import pdfmetrics
from reportlab.pdfbase.cidfonts import UnicodeCIDFont
from reportlab.pdfbase.ttfonts import TTFError, TTFont
from reportlab.pdfgen.canvas import Canvas
from reportlab.platypus import CondPageBreak, Flowable, Paragraph, SimpleDocTemplate, Table

from monrest.base.errors import ClientLeftError
from monrest.reports.picture import (
    BAD,
    GRIDLINE,
    INK,
    PALE,
    WIDTH,
    Box,
    Label,
    Picture,
    Stroke,
)
from monrest.reports.sheet import Grid, Head, Heading, Note, Sheet

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


@frozen(eq=False)
class Font:
    """A registered font; sizes and widths are in points."""

    name: str
    widths: Mapping[int, float]

    def drawable(self, text: str) -> str:
        """``text`` with what the font can draw; line breaks and tabs are blanks."""
        widths = self.widths
        if all(ord(letter) in widths and letter >= " " for letter in text):
            return text
        return "".join(map(self._letter, text))

    def _letter(self, text: str) -> str:
        if text in "\n\r\t":
            return " "
        if text in _ZERO_WIDTH:
            return ""
        drawable = text >= " " and (ord(text) in self.widths or _SQUARE.fullmatch(text))
        return text if drawable else _INSTEAD

    def runs(self, text: str) -> Iterator[tuple[str, str]]:
        """A drawable text as pieces, each with the name of the font that has its letters."""
        if all(ord(letter) in self.widths for letter in text):
            yield self.name, text
            return
        square = next((name for name, letters in _SCRIPTS if letters.search(text)), _HAN)
        for own, letters in groupby(text, lambda letter: ord(letter) in self.widths):
            yield self.name if own else square, "".join(letters)

    def markup(self, text: str) -> str:
        """A drawable text for a paragraph."""
        return "".join(
            f'<font face="{name}">{escape(piece)}</font>' for name, piece in self.runs(text)
        )

    def draw(self, canvas: Canvas, x: float, y: float, text: str, size: float, color: str) -> None:
        """Draw a drawable text on one line."""
        canvas.setFillColor(HexColor(color))
        for name, piece in self.runs(text):
            canvas.setFont(name, size)
            canvas.drawString(x, y, piece)
            x += self.width(piece, size)

    def width(self, text: str, size: float) -> float:
        widths = self.widths
        return sum([widths.get(ord(letter), _EM) for letter in text]) * size / 1000

    def cut(self, text: str, size: float, width: float) -> str:
        """``text`` with an ellipsis in the end where it is wider than ``width``."""
        if self.width(text, size) <= width:
            return text
        left = (width - self.width("…", size)) * 1000 / size
        for at, letter in enumerate(text):
            left -= self.widths.get(ord(letter), _EM)
            if left < 0:
                return text[:at].rstrip() + self.drawable("…")
        return text


@lru_cache(maxsize=1)
def _registered() -> tuple[Font, Font]:
    problems: list[Exception] = []
    for folder, plain, bold in _FAMILIES:
        try:
            fonts = TTFont("Report", str(folder / plain)), TTFont("Report-Bold", str(folder / bold))
        except (TTFError, OSError) as error:
            problems.append(error)
            continue
        for name in (_HAN, *(name for name, _ in _SCRIPTS)):
            pdfmetrics.registerFont(UnicodeCIDFont(name))
        for font in fonts:
            pdfmetrics.registerFont(font)
        plain_font, other = (Font(font.fontName, dict(font.face.charWidths)) for font in fonts)
        return plain_font, other
    raise RuntimeError(f"no font for PDFs: {problems}")


def fonts() -> tuple[Font, Font]:
    """The font of texts and its bold form; in a thread, because files are read."""
    with _LOCK:
        return _registered()


_LEAST = 72.0
"""Points that a column of texts needs before it is moved to a table of its own."""
_LEAD = 0.4
"""Part of the width that the leading columns may take away from all others."""


def pieces(grid: Grid, needed: Sequence[float], room: float) -> list[tuple[int, ...]]:
    """The columns of a table as those of tables that fit, each with the leading ones."""
    least = [
        min(wide, _LEAST) if head.kind == "text" else min(wide, room)
        for head, wide in zip(grid.heads, needed, strict=True)
    ]
    if sum(least) <= room:
        return [tuple(range(len(least)))]
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
    return [(*lead, *group) for group in groups]


def column_widths(heads: Sequence[Head], needed: Sequence[float], room: float) -> list[float]:
    """Columns of a fixed length get what they need, the rest is shared by texts.

    Texts get what they need, and where that is too much each its share.
    """
    fixed = sum(wide for head, wide in zip(heads, needed, strict=True) if head.kind != "text")
    texts = [at for at, head in enumerate(heads) if head.kind == "text"]
    left, open_ = max(room - fixed, room / 4), list(texts)
    given: dict[int, float] = {}
    while open_:
        weight = sum(heads[at].weight for at in open_)
        small = [at for at in open_ if needed[at] <= left * heads[at].weight / weight]
        if not small:
            given |= {at: left * heads[at].weight / weight for at in open_}
            break
        for at in small:
            given[at] = needed[at]
            left -= needed[at]
        open_ = [at for at in open_ if at not in small]
    widths = [given.get(at, wide) for at, wide in enumerate(needed)]
    whole = sum(widths)
    if texts and whole < room:
        # The rest goes to the last text, which is the longest where there is one.
        widths[texts[-1]] += room - whole
        whole = room
    return [wide * room / whole for wide in widths] if whole > room else widths


_PAGE = landscape(A4)
_MARGIN, _FOOT = 36.0, 24.0
_FRAME = 6.0
"""The space that the library leaves free inside of the margins."""
_ROOM = _PAGE[0] - 2 * _MARGIN
_SCALE = _ROOM / WIDTH
_SIZE, _LEADING, _PAD = 8.0, 10.0, 4.0
_MOST_LINES, _LONG = 8, 20
"""Lines of a cell, and of any other text."""
_MEASURED = 300
"""Rows whose widths are looked at to share the room among columns."""
_TITLE = 90.0
_ROWS = 40
"""Rows of a table that are laid out at a time: more than a page has."""
_RIGHT = frozenset({"number", "percent", "duration"})
_BOLD = frozenset({"state", "percent"})
"""Kinds of cells that may be bold, which is wider."""
_STYLE = [
    ("FONT", (0, 0), (-1, -1), "Report", _SIZE, _LEADING),
    ("FONT", (0, 0), (-1, 0), "Report-Bold", _SIZE, _LEADING),
    ("TEXTCOLOR", (0, 0), (-1, -1), HexColor(INK)),
    ("VALIGN", (0, 0), (-1, -1), "TOP"),
    ("LEFTPADDING", (0, 0), (-1, -1), _PAD),
    ("RIGHTPADDING", (0, 0), (-1, -1), _PAD),
    ("TOPPADDING", (0, 0), (-1, -1), _PAD / 2),
    ("BOTTOMPADDING", (0, 0), (-1, -1), _PAD / 2),
    ("BACKGROUND", (0, 0), (-1, 0), HexColor("#e9edf0")),
    ("ROWBACKGROUNDS", (0, 1), (-1, -1), [None, HexColor("#f6f8f9")]),
    ("LINEBELOW", (0, 1), (-1, -1), 0.4, HexColor(GRIDLINE)),
]


def _paragraph(
    text: str,
    size: float,
    color: str = INK,
    *,
    bold: bool = False,
    right: bool = False,
    label: str | None = None,
    most: int = _LONG,
    **style: float,
) -> Paragraph:
    """A text that is broken into lines, ``most`` of them, with a label in front of its indent."""
    font = fonts()[bold]
    text = font.cut(font.drawable(text), size, _ROOM * most)
    return Paragraph(font.markup(text), _style(size, color, font.name, right, **style), label)


@lru_cache(maxsize=64)
def _style(size: float, color: str, font: str, right: bool, **more: float) -> ParagraphStyle:
    return ParagraphStyle(
        "",
        fontName=font,
        fontSize=size,
        leading=_LEADING * size / _SIZE,
        textColor=HexColor(color),
        alignment=TA_RIGHT if right else TA_LEFT,
        bulletFontName=font,
        bulletFontSize=size,
        bulletColor=HexColor(PALE),
        **more,
    )


@define(eq=False)
class _Rows(Flowable):  # type: ignore[misc]  # the library has no types
    """Some columns of a table from a row on, with its head on every page.

    Each page gets a table of its own: to split one, the library copies all that is left of it,
    which takes minutes for tables of ten thousands of rows.
    """

    sheet: Sheet
    grid: Grid
    columns: Sequence[int]
    widths: Sequence[float]
    given_up: Callable[[], bool]
    at: int = 0
    table: Table = field(init=False)

    def __attrs_post_init__(self) -> None:
        Flowable.__init__(self)

    def wrap(self, width: float, height: float) -> tuple[float, float]:
        """Lay out the rows of a page; a table that has more is higher than any page."""
        if self.given_up():
            raise ClientLeftError
        self.table = self._table()
        wide, high = self.table.wrap(width, height)
        more = self.at + _ROWS < len(self.grid.rows)
        return wide, _PAGE[1] if more else high

    def split(self, width: float, height: float) -> list[Flowable]:
        first = self.table.split(width, height)[:1]
        if not first or first[0]._nrows < 2:
            return []
        return [*first, evolve(self, at=self.at + first[0]._nrows - 1)]

    def draw(self) -> None:
        self.table.drawOn(self.canv, 0, 0)

    def _table(self) -> Table:
        grid, heads = self.grid, [self.grid.heads[at] for at in self.columns]
        style: list[Any] = [*_STYLE]
        titles = []
        for x, (head, wide) in enumerate(zip(heads, self.widths, strict=True)):
            if head.kind in _RIGHT:
                style.append(("ALIGN", (x, 0), (x, -1), "RIGHT"))
            titles.append(_cell(head.title, head, wide, INK, bold=True))
        lines: list[list[Any]] = [titles]
        for y, row in enumerate(grid.rows[self.at : self.at + _ROWS], 1):
            cells = []
            for x, (at, head) in enumerate(zip(self.columns, heads, strict=True)):
                value, color = row[at], grid.color(head.kind, row[at])
                if color:
                    style.append(("TEXTCOLOR", (x, y), (x, y), HexColor(color)))
                    style.append(("FONTNAME", (x, y), (x, y), "Report-Bold"))
                text = self.sheet.spelling.cell(head.kind, value)
                cells.append(_cell(text, head, self.widths[x], color or INK, bold=bool(color)))
            lines.append(cells)
        return Table(lines, colWidths=self.widths, style=style, hAlign="LEFT")


def _cell(text: str, head: Head, wide: float, color: str, *, bold: bool) -> Any:
    """A text, as a paragraph where it needs more than one line or font."""
    font, room = fonts()[bold], wide - 2 * _PAD
    text = font.drawable(text)
    if font.width(text, _SIZE) <= room and all(ord(letter) in font.widths for letter in text):
        return text
    text = font.cut(text, _SIZE, room * _MOST_LINES)
    return _paragraph(text, _SIZE, color, bold=bold, right=head.kind in _RIGHT)


class _Chart(Flowable):  # type: ignore[misc]
    """A picture; its origin is the upper left corner, that of the paper the lower one."""

    def __init__(self, picture: Picture) -> None:
        super().__init__()
        self.picture = picture
        self.width, self.height = _ROOM, picture.height * _SCALE + 6

    def draw(self) -> None:
        canvas, height = self.canv, self.picture.height
        canvas.scale(_SCALE, _SCALE)
        for shape in self.picture.shapes:
            if isinstance(shape, Box):
                canvas.setFillColor(HexColor(shape.color))
                y = height - shape.y - shape.height
                canvas.rect(shape.x, y, shape.width, shape.height, stroke=0, fill=1)
            elif isinstance(shape, Stroke):
                canvas.setStrokeColor(HexColor(shape.color))
                canvas.setLineWidth(0.6)
                canvas.setDash(*([3, 3] if shape.dashed else []))
                canvas.line(shape.x1, height - shape.y1, shape.x2, height - shape.y2)
            else:
                self._label(shape)

    def _label(self, shape: Label) -> None:
        font = fonts()[shape.bold]
        text = font.drawable(shape.text)
        width = font.width(text, shape.size)
        x = shape.x - {"start": 0.0, "middle": width / 2, "end": width}[shape.anchor]
        font.draw(self.canv, x, self.picture.height - shape.y, text, shape.size, shape.color)


def _flowables(sheet: Sheet, given_up: Callable[[], bool]) -> Iterator[Flowable]:
    """The parts of a report as what the library lays out."""
    yield _paragraph(sheet.title, 18, bold=True, most=3, spaceAfter=12)
    plain, _ = fonts()
    labels = [plain.drawable(label) for label, _ in sheet.facts]
    wide = max((plain.width(label, 9) for label in labels), default=0.0) + 14
    for label, (_, value) in zip(labels, sheet.facts, strict=True):
        first, *more = value.splitlines() or [""]
        yield _paragraph(first, 9, label=label, leftIndent=wide)
        for line in more:
            yield _paragraph(line, 9, leftIndent=wide)
    for part in sheet.parts:
        if isinstance(part, Picture):
            yield from _heading(part.title, part.height * _SCALE + 6)
            yield _Chart(part)
        elif isinstance(part, Heading):
            yield from _heading(part.text)
        elif isinstance(part, Note):
            yield _note(part.text, bad=part.bad)
        elif not part.rows:
            yield from _heading(part.title)
            yield _note(part.empty)
        else:
            needed = _needed(sheet, part)
            tables = pieces(part, needed, _ROOM)
            for number, columns in enumerate(tables, 1):
                more_of_it = f" ({number}/{len(tables)})" if len(tables) > 1 else ""
                yield from _heading(part.title + more_of_it)
                heads = [part.heads[at] for at in columns]
                widths = column_widths(heads, [needed[at] for at in columns], _ROOM)
                yield _Rows(sheet, part, columns, widths, given_up)


def _heading(text: str, follows: float = 46.0) -> Iterator[Flowable]:
    """A title that stays with the beginning of what follows."""
    yield CondPageBreak(26 + follows)
    yield _paragraph(text, 12, bold=True, most=1, spaceBefore=10, spaceAfter=6)


def _note(text: str, *, bad: bool = False) -> Flowable:
    return _paragraph(text, 9, BAD if bad else PALE, bold=bad, spaceBefore=4)


def _needed(sheet: Sheet, grid: Grid) -> list[float]:
    """The width of each column if there were room for everything."""
    plain, bold = fonts()
    sample = grid.rows[:: max(1, len(grid.rows) // _MEASURED)]
    needed = []
    for at, head in enumerate(grid.heads):
        widest = bold.width(bold.drawable(head.title), _SIZE)
        if head.kind == "text":
            # Titles of texts are broken like the texts.
            widest = min(widest, _TITLE)
        font = bold if head.kind in _BOLD else plain
        for row in sample:
            text = font.drawable(sheet.spelling.cell(head.kind, row[at]))
            widest = max(widest, font.width(text, _SIZE))
        needed.append(widest + 2 * _PAD + 2)
    return needed


class _Numbered(Canvas):  # type: ignore[misc]
    """A canvas whose pages show how many there are, which is known when the file is written."""

    def save(self) -> None:
        self.beginForm("pages")
        fonts()[0].draw(self, 0, 0, str(self.getPageNumber() - 1), _SIZE, PALE)
        self.endForm()
        super().save()


def pdf(sheet: Sheet, given_up: Callable[[], bool] = bool) -> bytes:
    """The file; takes seconds for thousands of rows, and raises ClientLeftError when given up."""
    say, (font, _) = sheet.spelling.say, fonts()
    title = font.cut(font.drawable(sheet.title), _SIZE, _ROOM / 2)

    def foot(canvas: Canvas, _: SimpleDocTemplate) -> None:
        number = font.drawable(f"{say('Page')} {canvas.getPageNumber()} {say('of')} ")
        count = _PAGE[0] - _MARGIN - 20
        font.draw(canvas, _MARGIN, _FOOT, title, _SIZE, PALE)
        font.draw(canvas, count - font.width(number, _SIZE), _FOOT, number, _SIZE, PALE)
        canvas.saveState()
        canvas.translate(count, _FOOT)
        canvas.doForm("pages")
        canvas.restoreState()

    target = io.BytesIO()
    document = SimpleDocTemplate(
        target,
        pagesize=_PAGE,
        leftMargin=_MARGIN - _FRAME,
        rightMargin=_MARGIN - _FRAME,
        topMargin=40 - _FRAME,
        bottomMargin=44 - _FRAME,
        title=sheet.title,
        creator="monrest",
        pageCompression=1,
    )
    flowables = list(_flowables(sheet, given_up))
    document.build(flowables, onFirstPage=foot, onLaterPages=foot, canvasmaker=_Numbered)
    return target.getvalue()
