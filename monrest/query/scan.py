"""Text with quotes and brackets: which parts of it stand at the top level (query-engine.md, 6.1).

Quotes of all three kinds protect everything inside them, brackets included. A quote sign without
its partner is an ordinary character, because names may hold an apostrophe. All functions take
time linear in the text, which comes from clients.
"""

from __future__ import annotations

import re

HIDDEN = "\0"
"""Stands in an outline for every character that is quoted or inside brackets."""

UNPRINTABLE = re.compile(r"[\x00-\x1f\x7f\ud800-\udfff]")
"""Control characters, and halves of surrogate pairs, which no core and no output can take."""

MOST_TEXT = 65_536
"""Characters of one ``q`` or of all ``columns`` together (query-engine.md, section 20)."""

_SHOWN = 100
_SPECIAL = re.compile(r"""'[^']*'|"[^"]*"|`[^`]*`|[()]""")
_BACKTICKED = re.compile(r"`[^`]*`")


def outline(text: str) -> str:
    """``text`` with everything quoted or in brackets hidden; positions stay the same.

    Brackets of the outermost level stay visible. An opening bracket without a closing one hides
    the rest of the text.
    """
    parts: list[str] = []
    depth = at = 0
    for match in _SPECIAL.finditer(text):
        start, end = match.span()
        parts.append(HIDDEN * (start - at) if depth else text[at:start])
        at = end
        found = match[0]
        if found == "(":
            parts.append(HIDDEN if depth else found)
            depth += 1
        elif found == ")":
            depth = max(depth - 1, 0)
            parts.append(HIDDEN if depth else found)
        else:
            parts.append(HIDDEN * (end - start))
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


def without_backticked(text: str) -> str:
    """``text`` with backticked names hidden; positions stay the same."""
    return _BACKTICKED.sub(lambda match: HIDDEN * len(match[0]), text)


def quoted(text: str, signs: str) -> str | None:
    """What stands between quotes if the whole of ``text`` is quoted by one of ``signs``."""
    if len(text) > 1 and text[0] in signs and text.find(text[0], 1) == len(text) - 1:
        return text[1:-1]
    return None


def bare(name: str) -> str:
    """``name`` trimmed and without the backticks around the whole of it."""
    name = name.strip()
    found = quoted(name, "`")
    return name if found is None else found


def printable(text: str) -> str:
    """The beginning of a client's text, fit for an error description."""
    shown = UNPRINTABLE.sub("\ufffd", text[:_SHOWN])
    return shown if len(text) <= _SHOWN else f"{shown}…"
