"""The fonts of PDFs: how wide a text is, how it is broken, and what stands for missing letters."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path

import reportlab
from attrs import define, field
from reportlab.pdfbase import pdfmetrics
from reportlab.pdfbase.ttfonts import TTFError, TTFont

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
_LOCK = threading.Lock()


@define(eq=False)
class Font:
    """One registered font; sizes and widths are in points."""

    name: str
    widths: Mapping[int, float]
    default: float
    _known: dict[str, str] = field(factory=dict, init=False)

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
        return one if one >= " " and ord(one) in self.widths else _INSTEAD

    def width(self, text: str, size: float) -> float:
        """How wide a drawable text is."""
        widths, default = self.widths, self.default
        return sum([widths.get(ord(one), default) for one in text]) * size / 1000

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
            left -= self.widths.get(ord(one), self.default)
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
    return Font(name, dict(font.face.charWidths), font.face.defaultWidth)


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
        return made[0], made[1]
    raise RuntimeError(f"no font for PDFs: {problems}")


def fonts() -> tuple[Font, Font]:
    """The font of texts and its bold form; in a thread, because files are read."""
    with _LOCK:
        return _found()
