"""From the text of a broadcast to what is shown: front matter, macros, Markdown.

Pure. What people wrote is shown to others, so the HTML keeps nothing that could run.

Rules: docs/spec/broadcasts.md, "Text".
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from html import escape
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from markdown_it import MarkdownIt

LONGEST_TEXT = 10_000
"""Characters of a text, so that rendering is short."""

_MACRO = re.compile(r"\{\{[ \t]*([^{}\r\n]{1,200}?)[ \t]*\}\}")
_SCHEMES = {"http", "https", "mailto"}
_OWN_PATH = re.compile(r"/?[\w.~%-][\w.~%/?&=+,@-]*", re.ASCII)
"""A path below this server: browsers read two slashes and backslashes as another server."""
_FENCE = re.compile(r"^---[ \t]*\r?$", re.MULTILINE)
"""The lines around front matter, which is a line for each key, with a colon."""
_MOST_CELLS = 5000
"""Of all tables of a text; cells that are left out at the end of a line are made, too."""
_MARK = re.compile(r"[\[*_`<!]|^[ \t>]*(?:[-+]|[0-9]+[.)])[ \t]", re.MULTILINE)
_MOST_MARKS = 1000
"""Brackets, stars, items of lists: each of them costs more than a line of words."""
_LONGEST_HTML = 20 * LONGEST_TEXT


def parted(text: str) -> tuple[dict[str, str], str]:
    """The front matter of a text and the rest; without any all of the text as it is."""
    before, *fenced = _FENCE.split(text.strip(), 2)
    if before or len(fenced) < 2:
        return {}, text
    front, rest = fenced
    pairs = (line.partition(":") for line in front.splitlines())
    values = {key.strip(): value.strip() for key, colon, value in pairs if colon and key.strip()}
    return values, rest.strip()


def expanded(text: str, macros: Mapping[str, str]) -> str:
    """``text`` with every ``{{key}}`` replaced, in one go; unknown keys stay as they are.

    So do those whose values would make it longer by more than ``LONGEST_TEXT``.
    """
    folded = {key.lower(): value for key, value in macros.items()}
    left = LONGEST_TEXT

    def value(match: re.Match[str]) -> str:
        nonlocal left
        value = folded.get(match[1].lower())
        if value is None or len(value) > left:
            return match[0]
        left -= len(value)
        return value

    return _MACRO.sub(value, text)


@lru_cache(maxsize=256)
def html(text: str) -> str:
    """Markdown, with HTML in it or not, as HTML that may be shown in any page.

    What would become much longer than it is, such as one long link in many places, or has more
    marks than a message needs is shown as it was written; tables with thousands of cells are no
    tables.
    """
    import nh3

    if len(_MARK.findall(text)) > _MOST_MARKS:
        return f"<pre>{escape(text)}</pre>"

    lines = text.splitlines()
    cells = max((line.count("|") + 1 for line in lines), default=0) * len(lines)
    rendered = _parser(tables=cells <= _MOST_CELLS).render(text)
    if len(rendered) > _LONGEST_HTML:
        rendered = f"<pre>{escape(text)}</pre>"
    return nh3.clean(rendered, url_schemes=_SCHEMES, attribute_filter=_attribute)


def _attribute(tag: str, name: str, value: str) -> str | None:
    """Keep an attribute, but for pictures from elsewhere: those tell who reads the text."""
    return None if tag == "img" and name == "src" and not _OWN_PATH.fullmatch(value) else value


@lru_cache(maxsize=2)
def _parser(*, tables: bool) -> MarkdownIt:
    # It is imported by the first text that is shown: most daemons show none.
    from markdown_it import MarkdownIt

    parser = MarkdownIt("commonmark", {"html": True})
    return parser.enable("table") if tables else parser
