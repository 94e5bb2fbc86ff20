"""Charts as rectangles, lines and texts, which pages (SVG) and PDFs draw alike. Pure.

A picture is WIDTH wide; its origin is the upper left corner.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, TypeAlias

from attrs import frozen

WIDTH = 760.0

GOOD, BAD, WARN, OTHER, GREY = "#2e9e5b", "#d1373f", "#e3a008", "#8a4fbf", "#9aa3ad"
INK, PALE, GRIDLINE = "#2b3440", "#66717d", "#dfe4e8"
STATES = {
    "up": GOOD, "down": BAD, "unreachable": OTHER, "ok": GOOD, "warning": WARN, "critical": BAD,
    "unknown": OTHER, "pending": GREY,
}  # fmt: skip

_LEAST = 6.0
"""The least width of a part of a bar."""
_NARROW, _WIDE = frozenset("iljtfrI.,:;'|!()[]{}/\\ -\"*·"), frozenset("mwMW@%…")


@frozen
class Box:
    """A filled rectangle, with a text that a mouse pointer shows."""

    x: float
    y: float
    width: float
    height: float
    color: str
    hint: str = ""


@frozen
class Stroke:
    """A line."""

    x1: float
    y1: float
    x2: float
    y2: float
    color: str
    dashed: bool = False


@frozen
class Label:
    """A text whose baseline is at ``y``."""

    x: float
    y: float
    text: str
    size: float = 10.0
    anchor: Literal["start", "middle", "end"] = "start"
    color: str = INK
    bold: bool = False


Shape: TypeAlias = Box | Stroke | Label


@frozen
class Picture:
    """Shapes and how high they are together; ``title`` says what it shows."""

    title: str
    height: float
    shapes: tuple[Shape, ...]


def _wide(text: str) -> float:
    """About the width of one letter, rather more than less."""
    if text in _NARROW:
        return 0.42
    if text in _WIDE or ord(text) > 0x1100:
        return 1.02
    return 0.75 if text.isupper() else 0.64


def _width(text: str, size: float) -> float:
    return sum(map(_wide, text)) * size


def shortened(text: str, width: float, size: float) -> str:
    """``text`` cut to about a width; the beginning and the end say most of a name."""
    room = width / size
    if _width(text, size) <= width:
        return text
    room -= _wide("…")
    begin, end = _count(text, room * 2 / 3), _count(text[::-1], room / 3)
    return f"{text[:begin]}…{text[len(text) - end :]}"


def _count(text: str, room: float) -> int:
    """The number of letters from the beginning that fit."""
    for at, letter in enumerate(text):
        room -= _wide(letter)
        if room < 0:
            return at
    return len(text)


def _part(percent: float, low: float) -> float:
    """The position of a percentage between ``low`` and 100."""
    return (percent - low) / (100 - low)


def _level(percent: float, sla: float) -> str:
    return GOOD if percent >= sla else BAD


def columns(
    title: str, points: Sequence[tuple[str, float | None, str]], sla: float, low: float
) -> Picture:
    """One column for each part of a time: label, percentage (None: nothing known), hint."""
    left, top, bottom, height = 48.0, 16.0, 26.0, 220.0
    low = min(low, 99.0)
    room, floor = height - top - bottom, height - bottom
    shapes: list[Shape] = []
    for tick in (low + (100 - low) * at / 4 for at in range(5)):
        y = floor - room * _part(tick, low)
        shapes.append(Stroke(left, y, WIDTH, y, GRIDLINE))
        number = f"{tick:.2f}".rstrip("0").rstrip(".")
        shapes.append(Label(left - 6, y + 3.5, f"{number} %", 9, "end", PALE))
    step = (WIDTH - left) / max(1, len(points))
    widest = max((_width(label, 9) for label, _, _ in points), default=0.0) + 10
    every = max(1, -(-int(widest) // max(1, int(step))))
    taken = 0.0
    for at, (label, value, hint) in enumerate(points):
        x = left + step * at
        wide = min(step * 0.72, 60.0)
        middle = x + step / 2
        if value is not None:
            tall = max(2.0, room * _part(value, low))
            x = middle - wide / 2
            shapes.append(Box(x, floor - tall, wide, tall, _level(value, sla), hint))
        if at % every == 0:
            half = _width(label, 9) / 2
            middle = max(half, min(middle, WIDTH - half))
            if middle - half >= taken:
                shapes.append(Label(middle, floor + 15, label, 9, "middle", PALE))
                taken = middle + half + 4
    if low <= sla <= 100:
        y = floor - room * _part(sla, low)
        shapes.append(Stroke(left, y, WIDTH, y, INK, dashed=True))
    shapes.append(Stroke(left, floor, WIDTH, floor, PALE))
    return Picture(title, height, tuple(shapes))


def bars(title: str, rows: Sequence[tuple[str, float, str]], sla: float, low: float) -> Picture:
    """One bar for each object: label, percentage, the same as a text."""
    left, top, line = 290.0, 6.0, 20.0
    right = 70.0
    low = min(low, 99.0)
    room = WIDTH - left - right
    height = top * 2 + line * max(1, len(rows))
    shapes: list[Shape] = []
    for at, (label, value, text) in enumerate(rows):
        y = top + line * at
        long = max(2.0, room * _part(value, low))
        shapes.append(Label(left - 8, y + 14, shortened(label, left - 12, 10), 10, "end"))
        shapes.append(Box(left, y + 4, room, line - 8, "#eef1f3"))
        shapes.append(Box(left, y + 4, long, line - 8, _level(value, sla), label))
        shapes.append(Label(WIDTH, y + 14, text, 10, "end", INK, bold=True))
    if low <= sla <= 100:
        x = left + room * _part(sla, low)
        shapes.append(Stroke(x, top, x, height - top, INK, dashed=True))
    return Picture(title, height, tuple(shapes))


def shares(title: str, counts: Sequence[tuple[str, int]]) -> Picture:
    """One bar of all objects by state, with what each color is and how many there are."""
    parts = [(word, count) for word, count in counts if count]
    total = sum(count for _, count in parts)
    # What is there can be seen, however little it is.
    room = WIDTH - _LEAST * len(parts)
    shapes: list[Shape] = [Box(0, 0, WIDTH, 26, "#eef1f3")]
    x = 0.0
    for word, count in parts:
        wide = _LEAST + room * count / total
        shapes.append(Box(x, 0, wide, 26, STATES[word], f"{word}: {count}"))
        x += wide
    x = 0.0
    for word, count in counts:
        text = f"{word} {count}"
        shapes.append(Box(x, 36, 10, 10, STATES[word]))
        shapes.append(Label(x + 15, 45, text, 10))
        x += 15 + _width(text, 10) + 22
    return Picture(title, 54, tuple(shapes))
