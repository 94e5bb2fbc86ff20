"""The fonts of PDFs: how wide a text is, how it is broken, and what stands for missing letters."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import groupby
from pathlib import Path

import reportlab
from attrs import define
from reportlab.pdfbase import pdfmetrics
from reportlab.pdfbase.cidfonts import UnicodeCIDFont
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
        """How wide a drawable text is."""
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
