"""Finding the definitions of a file: those of plain form at once, the others line by line.

Nearly all definitions of a large site are plain: nothing but comments in front of them, one
directive a line, no continuation. Regular expressions read those whole, ten times as fast as a
loop over their lines; anything else goes to the reader, whose grammar is the one that counts.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType

from attrs import define

from monrest.objectconfig.block import Block
from monrest.objectconfig.grammar import BLANKS, LineReader

_HEAD = re.compile(r"define[ \t]+([a-z]+)[ \t]*\{\Z")
_LINE = re.compile(r"[ \t]*([^ \t\n]+)[ \t]*(.*)")
_COMMENTED_LINE = re.compile(
    r"[ \t]*(?:([#;].*)|([^ \t\n;]+)[ \t]*([^;\n]*)(;.*)?)\n",
)
_TRAILING = re.compile(r"[ \t]+\n")
_COMMENTS = re.compile(r"(?:[ \t]*(?:[#;][^\n]*)?\n)*\Z")
_DISABLED = re.compile(r"[ \t]*[#;][ \t]*define[ \t]")
_TROUBLE = ("\\\n", "\r", "\0")
_ESCAPED = "\\;"
_STAND_IN = "\0"
_NO_COMMENTS: Mapping[str, str] = MappingProxyType({})

_Parts = tuple[dict[str, str], Mapping[str, str], Sequence[str]]
"""Attributes, inline comments and comments."""


@define(eq=False)
class Scanner:
    """Yields the blocks of a text; ``end`` is where the last of them ended."""

    reader: LineReader
    end: int = 0

    def blocks(self) -> Iterator[Block]:
        """All definitions in order."""
        reader, text = self.reader, self.reader.text
        while True:
            block = self._plain()
            if block is None:
                found = reader.next_definition()
                if found is None:
                    return
                before, own = text[self.end : found.start], text[found.start : found.end]
                block = Block.read(found, before, own)
            self.end = reader.position
            yield block

    def _plain(self) -> Block | None:
        """The next definition when it is plain; None: the reader has to look."""
        reader, text = self.reader, self.reader.text
        found = self._head()
        if found is None:
            return None
        start, eol = found
        before = text[reader.position : start]
        if before.strip() and ("\\" in before or not _COMMENTS.match(before)):
            return None
        head = _HEAD.match(text[start:eol].strip(BLANKS))
        close = text.find("}", eol)
        last = text.rfind("\n", eol, close) + 1
        while close >= 0 and text[last:close].strip(BLANKS):
            close = text.find("}", close + 1)
            last = text.rfind("\n", eol, close) + 1
        if head is None or close < 0:
            return None
        end = text.find("\n", close) + 1 or len(text)
        if text[close + 1 : end].strip("\n" + BLANKS):
            return None
        parts = self._parts(head[1], text[eol + 1 : last])
        if parts is None:
            return None
        line = reader.number + before.count("\n")
        reader.position, reader.number = end, line + text.count("\n", start, end)
        attributes, inline, comments = parts
        return Block(head[1], line, attributes, before, text[start:end], inline, comments)

    def _head(self) -> tuple[int, int] | None:
        """Start and end of the next line that begins with ``define``, when it looks plain."""
        text, position = self.reader.text, self.reader.position
        at = text.find("define", position)
        while at >= 0:
            start = text.rfind("\n", position, at) + 1 or position
            if not text[start:at].strip(BLANKS):
                eol = text.find("\n", at)
                return (start, eol) if eol >= 0 else None
            if _DISABLED.match(text, start):
                return None
            at = text.find("define", at + 6)
        return None

    def _parts(self, kind: str, body: str) -> _Parts | None:
        """What is in a plain body."""
        if "\r" in body:
            body = body.replace("\r\n", "\n")
        if kind == "timeperiod" or any(mark in body for mark in _TROUBLE):
            return None
        escaped = _ESCAPED in body
        if escaped:
            body = body.replace(_ESCAPED, _STAND_IN)
        if " \n" in body or "\t\n" in body:
            body = _TRAILING.sub("\n", body)
        try:
            names = self.reader.names(kind)
            parts = (_commented if ";" in body or "#" in body else _bare)(names, body)
        except KeyError:
            return None
        return _unescaped(parts) if escaped and parts is not None else parts


def _bare(names: Mapping[str, str], body: str) -> _Parts | None:
    """What is in a body without comments; None when an attribute is repeated."""
    pairs = _LINE.findall(body)
    attributes = {names[name]: value for name, value in pairs}
    return (attributes, _NO_COMMENTS, ()) if len(attributes) == len(pairs) else None


def _commented(names: Mapping[str, str], body: str) -> _Parts | None:
    """The same for a body with comments."""
    attributes: dict[str, str] = {}
    inline: dict[str, str] = {}
    comments: list[str] = []
    for whole, name, value, comment in _COMMENTED_LINE.findall(body):
        if whole:
            comments.append(whole)
            continue
        name = names[name]
        if name in attributes:
            return None
        if comment:
            inline[name] = comment
            value = value.rstrip(BLANKS)
        attributes[name] = value
    return attributes, inline, comments


def _unescaped(parts: _Parts) -> _Parts | None:
    """Parts with escaped semicolons again; None when a name has one."""
    attributes, inline, comments = parts
    if any(_STAND_IN in name for name in attributes):
        return None
    return (
        {name: text.replace(_STAND_IN, _ESCAPED) for name, text in attributes.items()},
        {name: text.replace(_STAND_IN, _ESCAPED) for name, text in inline.items()},
        [text.replace(_STAND_IN, _ESCAPED) for text in comments],
    )
