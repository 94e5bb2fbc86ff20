"""Answers for eyes: indented and coloured JSON, tables cut to the width of the terminal.

Rules: docs/spec/cli.md, "On a terminal".
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from monrest.cli.output import UsageError

WHEN = ("auto", "always", "never")

_NARROWEST_COLUMN = 8
_OTHERWISE = 80
_COLOURS = {"name": "34;1", "text": "32", "number": "36", "word": "35", "faint": "2", "bold": "1"}
_TELLING = {
    name: place
    for place, name in enumerate(
        (
            *("time", "name", "host_name", "description", "service_description"),
            *("state", "plugin_output", "alias", "address", "message", "author", "comment"),
        )
    )
}
"""Columns of a table without chosen ones, in their order."""
_FEWEST_TELLING = 2
_LARGE = 16 << 20
"""Bytes beyond which JSON is written as it came."""


class TerminalStyle(NamedTuple):
    """The form of answers.

    ``pretty``: indented and cut to ``width`` (0: not cut); else they are written as they came.
    ``full``: tables keep columns that were not chosen. ``table``: they are not as they came, even
    where all else is.
    """

    pretty: bool = False
    colour: bool = False
    width: int = 0
    full: bool = False
    table: bool = False

    def paint(self, kind: str, text: str) -> str:
        """``text`` in the colour of ``kind``."""
        return f"\x1b[{_COLOURS[kind]}m{text}\x1b[0m" if self.colour else text


def style(when: str, *, full: bool, environment: Mapping[str, str] = os.environ) -> TerminalStyle:
    """The style for standard output; ``when`` is the value of ``--color``, empty for none.

    ``full``: tables are not cut. Raises UsageError.
    """
    if when not in ("", *WHEN):
        raise UsageError(f"--color: expected {', '.join(WHEN)}, got {when!r}")
    terminal = sys.stdout.isatty()
    plain = bool(environment.get("NO_COLOR")) or environment.get("TERM") == "dumb"
    colour = when == "always" or (when != "never" and terminal and not plain)
    pretty = terminal or when == "always"
    width = 0 if full or not pretty else terminal_width(environment)
    return TerminalStyle(pretty, colour, width, full)


def terminal_width(environment: Mapping[str, str] = os.environ) -> int:
    """Cells of a line of the terminal; 0 where standard output is none and ``COLUMNS`` is unset."""
    columns = environment.get("COLUMNS", "")
    if columns.isascii() and columns.isdigit() and int(columns):
        return int(columns)
    try:
        return os.get_terminal_size(sys.stdout.fileno()).columns or _OTHERWISE
    except (OSError, ValueError):
        return 0


def written(body: bytes, kind: str, style: TerminalStyle) -> bytes:
    """An answer for eyes; ``kind`` is its media type. What cannot be read comes as it is."""
    if (style.pretty or style.table) and kind.startswith("text/plain") and body.startswith(b"+-"):
        return _table(body.decode("utf-8", "surrogateescape"), style).encode(
            "utf-8", "surrogateescape"
        )
    if not style.pretty or len(body) > _LARGE:
        return body
    if kind.startswith("application/json"):
        return _json(body, style)
    if kind.startswith("application/x-ndjson"):
        return b"".join(_json(line, style, wide=True) for line in body.splitlines())
    return body


def _json(body: bytes, style: TerminalStyle, *, wide: bool = False) -> bytes:
    try:
        data = json.loads(body)
    except (ValueError, RecursionError):
        return body
    width = 0 if wide else style.width or _OTHERWISE
    text = "".join(_pieces(data, style, "", width))
    return f"{text}\n".encode("utf-8", "surrogatepass")


def _pieces(value: Any, style: TerminalStyle, indent: str, width: int) -> Iterator[str]:
    """``value`` in pieces of text; what fits into a line stays in one, and ``width`` 0 is one."""
    if not isinstance(value, (dict, list)) or not value:
        yield _scalar(value, style)
        return
    opening, closing = ("{", "}") if isinstance(value, dict) else ("[", "]")
    if not width or _fits(value, width - len(indent)):
        yield opening
        yield from _inside(value, style, "", 0, ", ")
        yield closing
        return
    yield f"{opening}\n{indent}  "
    yield from _inside(value, style, f"{indent}  ", width, f",\n{indent}  ")
    yield f"\n{indent}{closing}"


def _inside(
    value: dict[str, Any] | list[Any], style: TerminalStyle, indent: str, width: int, between: str
) -> Iterator[str]:
    items = value.items() if isinstance(value, dict) else ((None, item) for item in value)
    for number, (name, item) in enumerate(items):
        if number:
            yield between
        if name is not None:
            yield style.paint("name", _text(name)) + ": "
        yield from _pieces(item, style, indent, width)


def _fits(value: dict[str, Any] | list[Any], room: int) -> bool:
    """Whether a list or object of plain values is short enough for one line."""
    if isinstance(value, dict) and room < _OTHERWISE:
        # Objects stay below each other, but for short ones.
        room = min(room, _OTHERWISE // 2)
    if isinstance(value, dict) and len(value) > 2:
        return False
    items: Sequence[Any] = list(value.values()) if isinstance(value, dict) else value
    if any(isinstance(item, (dict, list)) and item for item in items) or len(items) > room:
        return False
    return len(json.dumps(value, ensure_ascii=False)) <= room


def _scalar(value: Any, style: TerminalStyle) -> str:
    if isinstance(value, str):
        return style.paint("text", _text(value))
    if isinstance(value, (bool, type(None))):
        return style.paint("word", json.dumps(value))
    if isinstance(value, (int, float)):
        return style.paint("number", json.dumps(value))
    return _text(value)


def _text(value: Any) -> str:
    """JSON of a text, with what could steer the terminal as escape sequences of JSON."""
    text = json.dumps(value, ensure_ascii=False)
    if text.isprintable():
        return text
    return "".join(letter if letter.isprintable() else json.dumps(letter)[1:-1] for letter in text)


def _table(text: str, style: TerminalStyle) -> str:
    """The table of ``/text/`` with the most important columns, cut to the width."""
    border, *lines = text.splitlines()
    widths = [len(part) - 2 for part in border.strip("+").split("+")]
    order = list(range(len(widths)))
    if not style.full and (not style.width or len(cut_to(widths, style.width)) < len(widths)):
        order = telling([cell.rstrip() for cell in _cells(lines[0], widths)])
    limits = cut_to([widths[column] for column in order], style.width)
    table, header = [], True
    for line in (border, *lines):
        if line == border:
            bars = "+" + "+".join("-" * (limit + 2) for limit in limits) + "+"
            table.append(style.paint("faint", bars))
        elif not line.startswith("| "):
            table.append(line)  # sites that are missing
        else:
            texts = list(_cells(line, widths))
            cells = [
                _cut(texts[column], limit) for column, limit in zip(order, limits, strict=False)
            ]
            if header:
                cells = [style.paint("bold", cell) for cell in cells]
                header = False
            bar = style.paint("faint", "|")
            table.append(f"{bar} " + f" {bar} ".join(cells) + f" {bar}")
    if len(limits) < len(widths):
        table.append(f"{len(widths) - len(limits)} more columns: --full")
    return "\n".join(table) + "\n"


def telling(names: Sequence[str]) -> list[int]:
    """The columns that are shown of a table that is too wide, as indices of ``names``.

    Columns that were not chosen come sorted; then only the most important ones are shown.
    """
    candidates = sorted(
        (at for at, name in enumerate(names) if name in _TELLING),
        key=lambda at: _TELLING[names[at]],
    )
    chosen = list(names) != sorted(names) or len(candidates) < _FEWEST_TELLING
    return list(range(len(names))) if chosen else candidates


def cut_to(widths: Sequence[int], width: int) -> list[int]:
    """The widths of columns with which a table fits into ``width`` cells (0: any number).

    The widest are cut first, down to eight cells; where that is not enough, columns at the right
    are left out, but never the first one.
    """
    limits = list(widths)
    if not width:
        return limits
    while len(limits) > 1 and _needed([min(limit, _NARROWEST_COLUMN) for limit in limits]) > width:
        limits.pop()
    while _needed(limits) > width and max(limits) > _NARROWEST_COLUMN:
        widest = max(limits)
        # To the next narrower one, or by what is too much.
        narrower = max((limit for limit in limits if limit < widest), default=_NARROWEST_COLUMN)
        count = limits.count(widest)
        by = -(-(_needed(limits) - width) // count)
        least = max(narrower, widest - by, _NARROWEST_COLUMN)
        limits = [least if limit == widest else limit for limit in limits]
    return limits


def _needed(widths: Sequence[int]) -> int:
    return sum(width + 3 for width in widths) + 1


def _cells(line: str, widths: Sequence[int]) -> Iterator[str]:
    """The cells of a line, without the spaces behind them."""
    if line.isascii():
        start = 2
        for width in widths:
            yield line[start : start + width].rstrip()
            start += width + 3
        return
    rest = line[2:]
    for width in widths:
        end = _end(rest, width)
        yield rest[:end].rstrip()
        rest = rest[end + 3 :]


def _end(text: str, cells: int) -> int:
    """The number of characters that fill ``cells`` cells of a terminal."""
    if text[: cells + 1].isascii():
        # What follows could still belong to the last character.
        return cells
    from wcwidth import wcswidth

    low, high = 0, len(text)
    while low < high:
        middle = (low + high + 1) // 2
        if wcswidth(text[:middle]) <= cells:
            low = middle
        else:
            high = middle - 1
    return low


def _cut(cell: str, limit: int) -> str:
    """A cell of exactly ``limit`` cells."""
    if cell.isascii():
        return cell.ljust(limit) if len(cell) <= limit else f"{cell[: limit - 1]}…"
    from wcwidth import wcswidth

    if wcswidth(cell) > limit:
        cell = f"{cell[: _end(cell, limit - 1)]}…"
    return cell + " " * (limit - wcswidth(cell))
