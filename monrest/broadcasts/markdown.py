"""From the text of a broadcast to what is shown: front matter, macros, Markdown.

Pure. What people wrote is shown to others, so the HTML keeps nothing that could run.

Rules: docs/spec/broadcasts.md, "Text".
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from html import escape

import frontmatter
import nh3
from frontmatter.default_handlers import BaseHandler
from markdown_it import MarkdownIt

LONGEST_TEXT = 10_000
"""Characters of a text, so that nobody waits for it to be rendered."""

_MACRO = re.compile(r"\{\{[ \t]*([^{}\r\n]{1,200}?)[ \t]*\}\}")
_SCHEMES = {"http", "https", "mailto"}
_markdown = MarkdownIt("commonmark", {"html": True})
_with_tables = MarkdownIt("commonmark", {"html": True}).enable("table")
_MOST_CELLS = 5000
"""Of all tables of a text; cells that are left out at the end of a line are made, too."""
_LONGEST_HTML = 20 * LONGEST_TEXT


class _Lines(BaseHandler):
    """Front matter that is a line for each key, with a colon."""

    FM_BOUNDARY = re.compile(r"^---[ \t]*\r?$", re.MULTILINE)
    START_DELIMITER = END_DELIMITER = "---"

    def load(self, fm: str) -> dict[str, object]:
        """Split each line at its first colon."""
        pairs = (line.partition(":") for line in fm.splitlines())
        return {key.strip(): value.strip() for key, colon, value in pairs if colon and key.strip()}


def parted(text: str) -> tuple[dict[str, str], str]:
    """The front matter of a text and the rest; without any all of the text as it is."""
    handler = _Lines()
    if not handler.detect(text.strip()):
        return {}, text
    found, rest = frontmatter.parse(text, handler=handler)
    if rest == text.strip():
        return {}, text
    return {key: str(value) for key, value in found.items()}, rest


def expanded(text: str, macros: Mapping[str, str]) -> str:
    """``text`` with every ``{{key}}`` replaced, in one go; unknown keys stay as they are.

    So do those whose values would make it longer by more than ``LONGEST_TEXT``.
    """
    folded = {key.lower(): value for key, value in macros.items()}
    left = LONGEST_TEXT

    def value(match: re.Match[str]) -> str:
        nonlocal left
        found = folded.get(match[1].lower())
        if found is None or len(found) > left:
            return match[0]
        left -= len(found)
        return found

    return _MACRO.sub(value, text)


@lru_cache(maxsize=256)
def html(text: str) -> str:
    """Markdown, with HTML in it or not, as HTML that may be shown in any page.

    What would become much longer than it is, such as one long link in many places, is shown as
    it was written; tables with thousands of cells are no tables.
    """
    lines = text.splitlines()
    cells = max((line.count("|") + 1 for line in lines), default=0) * len(lines)
    rendered = (_markdown if cells > _MOST_CELLS else _with_tables).render(text)
    if len(rendered) > _LONGEST_HTML:
        rendered = f"<pre>{escape(text)}</pre>"
    return nh3.clean(rendered, url_schemes=_SCHEMES)
