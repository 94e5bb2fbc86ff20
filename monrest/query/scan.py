"""Text with quotes and brackets: which parts of it stand at the top level.

Quotes of all three kinds protect everything inside them, brackets included. A quote sign without
its partner is an ordinary character, because names may hold an apostrophe. All functions take
time linear in the text, which comes from clients.

Rules: docs/spec/query.md, "Columns".
"""

from __future__ import annotations

import re

from attrs import Factory, define

HIDDEN = "\0"
"""Stands in an outline for every character that is quoted or inside brackets."""

UNPRINTABLE = re.compile(r"[\x00-\x1f\x7f\ud800-\udfff]")
"""Control characters, and halves of surrogate pairs, which no core and no output can take."""

_SHOWN = 100
_SPECIAL = re.compile(r"""'[^']*'|"[^"]*"|`[^`]*`|[()]""")
_STRUCTURE = re.compile(r"""'[^']*'|"[^"]*"|`[^`]*`|[(),]""")


def outline(text: str) -> str:
    """``text`` with everything quoted or in brackets hidden; positions stay the same.

    Brackets of the outermost level stay visible. An opening bracket without a closing one hides
    the rest of the text.
    """
    parts: list[str] = []
    depth = at = 0
    for match in _SPECIAL.finditer(text):
        sign = match[0]
        if sign == "(":
            depth += 1
            if depth == 1:
                parts.append(text[at : match.end()])
                at = match.end()
        elif sign == ")":
            if depth == 1:
                parts.append(HIDDEN * (match.start() - at))
                at = match.start()
            depth = max(depth - 1, 0)
        elif not depth:
            parts += (text[at : match.start()], HIDDEN * len(sign))
            at = match.end()
    parts.append(HIDDEN * (len(text) - at) if depth else text[at:])
    return "".join(parts)


def split(text: str) -> list[str]:
    """The trimmed parts of ``text`` between its top-level commas, empty ones included."""
    parts: list[str] = []
    at = 0
    for part in outline(text).split(","):
        parts.append(text[at : at + len(part)].strip())
        at += len(part) + 1
    return parts


@define
class Bracket:
    """An opening bracket: the commas of its own level and the position of its end.

    ``end`` is -1 for a bracket that is never closed.
    """

    commas: list[int] = Factory(list)
    end: int = -1


def brackets(text: str) -> dict[int, Bracket]:
    """All brackets outside quotes by their position, found in one pass."""
    pairs: dict[int, Bracket] = {}
    opened: list[Bracket] = []
    for match in _STRUCTURE.finditer(text):
        sign = match[0]
        if sign == "(":
            pairs[match.start()] = bracket = Bracket()
            opened.append(bracket)
        elif opened and sign == ")":
            opened.pop().end = match.start()
        elif opened and sign == ",":
            opened[-1].commas.append(match.start())
    return pairs


def quoted(text: str, signs: str) -> str | None:
    """The text between quotes if all of ``text`` is quoted by one of ``signs``."""
    if len(text) > 1 and text[0] in signs and text.find(text[0], 1) == len(text) - 1:
        return text[1:-1]
    return None


def bare(name: str) -> str:
    """``name`` trimmed and without the backticks around the whole of it."""
    name = name.strip()
    inner = quoted(name, "`")
    return name if inner is None else inner


def printable(text: str) -> str:
    """The beginning of a client's text, fit for an error description."""
    start = UNPRINTABLE.sub("\ufffd", text[:_SHOWN])
    return start if len(text) <= _SHOWN else f"{start}…"
