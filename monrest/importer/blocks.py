"""The syntax of the old configuration: keys with values, and blocks in blocks. Pure.

Rules: docs/spec/import.md, "Syntax".
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from attrs import define, field, frozen

_COMMENT = re.compile(r"(?:^|\s)#")
_DEEPEST = 20
_MOST_LINES = 200_000
_LONGEST_LINE = 65_536


@frozen
class OldSetting:
    """A key with its value as text; ``where`` is the file with the line."""

    key: str
    value: str = field(repr=False)
    where: str


@define(eq=False)
class SettingBlock:
    """The settings between ``<word name>`` and ``</word>``, or of a whole file."""

    word: str = ""
    name: str = ""
    where: str = ""
    settings: list[OldSetting] = field(factory=list)
    blocks: list[SettingBlock] = field(factory=list)

    def all(self, key: str) -> list[OldSetting]:
        return [setting for setting in self.settings if setting.key == key]

    def last(self, key: str) -> OldSetting | None:
        """The value of a plain key: of several the last one counts."""
        settings = self.all(key)
        return settings[-1] if settings else None

    def text(self, key: str) -> str:
        """The value of a plain key, empty for none."""
        setting = self.last(key)
        return setting.value if setting else ""

    def inner(self, word: str, name: str | None = None) -> list[SettingBlock]:
        """The blocks of a word, and of a name if one is given."""
        return [
            block
            for block in self.blocks
            if block.word == word and (name is None or block.name == name)
        ]

    def joined(self, word: str, name: str = "") -> SettingBlock:
        """All blocks of a word and name as one, in their order."""
        whole = SettingBlock(word, name)
        for block in self.inner(word, name):
            whole.where = whole.where or block.where
            whole.settings += block.settings
            whole.blocks += block.blocks
        return whole


def items(settings: Iterable[OldSetting], *, commas: bool = True) -> list[str]:
    """The values of a list key: all of them, those before the last empty one left out."""
    texts: list[str] = []
    for setting in settings:
        if not setting.value.strip():
            texts = []
        elif commas:
            texts += [part.strip() for part in setting.value.split(",") if part.strip()]
        else:
            texts.append(setting.value)
    return list(dict.fromkeys(texts))


@frozen
class SyntaxProblem:
    """A line that cannot be read, or is not taken for what it looks like."""

    where: str
    reason: str
    read: bool = False
    """Whether the line was read all the same."""


def parse(content: bytes, source: str) -> tuple[SettingBlock, list[SyntaxProblem]]:
    """Read one file; what cannot be read is left out, the rest counts.

    Problems never show what is in a line, which may be a password.
    """
    problems: list[SyntaxProblem] = []
    if b"\0" in content:
        return SettingBlock(), [SyntaxProblem(source, "expected text, this is binary")]
    top = SettingBlock(where=source)
    open_blocks = [top]
    for number, line in _lines(content, source, problems):
        where = f"{source}:{number}"
        if line.startswith("<"):
            _block(line, where, open_blocks, problems)
            continue
        pair = _pair(line)
        if pair is None:
            problems.append(SyntaxProblem(where, "expected a key and a value"))
            continue
        open_blocks[-1].settings.append(OldSetting(pair[0], pair[1], where))
    problems += [
        SyntaxProblem(open_block.where, f"expected </{open_block.word}>", read=True)
        for open_block in open_blocks[1:]
    ]
    return top, problems


def _block(
    line: str, where: str, open_blocks: list[SettingBlock], problems: list[SyntaxProblem]
) -> None:
    inner = line[1:-1].strip()
    if not inner or line[-1] != ">" or "<" in inner or ">" in inner:
        problems.append(SyntaxProblem(where, "expected <word>, <word name> or </word>"))
    elif not inner.startswith("/"):
        word, *name = inner.split(None, 1)
        block = SettingBlock(word, _unquoted(name[0]) if name else "", where)
        if len(open_blocks) > _DEEPEST:
            problems.append(SyntaxProblem(where, f"expected at most {_DEEPEST} blocks in blocks"))
        else:
            open_blocks[-1].blocks.append(block)
        open_blocks.append(block)
    elif len(open_blocks) > 1 and open_blocks[-1].word.lower() == inner[1:].strip().lower():
        open_blocks.pop()
    else:
        problems.append(SyntaxProblem(where, "expected no end of a block that is not open"))


def _lines(content: bytes, source: str, problems: list[SyntaxProblem]) -> Iterator[tuple[int, str]]:
    """Each line with content, with its number: comments cut, continuations joined."""
    began, kept = 0, ""
    for number, raw in enumerate(content.removeprefix(b"\xef\xbb\xbf").split(b"\n"), 1):
        if number > _MOST_LINES:
            problems.append(
                SyntaxProblem(f"{source}:{number}", f"expected at most {_MOST_LINES} lines")
            )
            break
        try:
            text = raw.decode("utf-8")
        except UnicodeDecodeError:
            problems.append(SyntaxProblem(f"{source}:{number}", "expected UTF-8"))
            text = ""
        if len(text) + len(kept) > _LONGEST_LINE:
            reason = f"expected at most {_LONGEST_LINE} characters"
            problems.append(SyntaxProblem(f"{source}:{number}", reason))
            text = ""
        comment = _COMMENT.search(text)
        line = (text[: comment.start()] if comment else text).strip().replace("\\#", "#")
        if kept:
            line = f"{kept}{line}" if line else kept
            ended = not line.endswith("\\") or line == kept
        else:
            began = number
            ended = not line.endswith("\\")
        if not ended:
            kept = line[:-1]
            continue
        kept = ""
        if line.strip():
            yield began, line.strip()
    if kept.strip():
        yield began, kept.strip()


def _pair(line: str) -> tuple[str, str] | None:
    first, *more = line.split(None, 1)
    rest = more[0] if more else ""
    if "=" in first:
        key, _, begin = first.rpartition("=")
        # Only blanks that stood in the value are part of it.
        value = f"{begin}{line[len(first) :]}" if begin else rest
    elif rest.startswith("="):
        key, value = first, rest[1:]
    else:
        key, value = first, rest
        if not rest:
            return None
    return (key, _unquoted(value.strip())) if key else None


def _unquoted(text: str) -> str:
    if len(text) > 1 and text[0] in "\"'" and text[-1] == text[0]:
        return text[1:-1]
    return text
