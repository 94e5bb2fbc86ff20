"""An object file that loses nothing: read, changed in places, written.

Every byte of a file is kept: comments, blank lines, text that is no definition, line ends. A
change touches the text of its own definition only.

Rules: docs/spec/objectconfig.md, "Grammar".
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping

from attrs import define, evolve, field

from monrest.objectconfig.block import (
    Block,
    FileProblem,
    UnwritableError,
    comments_of,
    place,
    without_comments,
)
from monrest.objectconfig.grammar import BLANKS, Fault, Include, LineReader
from monrest.objectconfig.scanner import Scanner

__all__ = ["Block", "ConfigFile", "FileProblem", "Include", "UnwritableError", "place"]

_BOM = "\ufeff"
_ICINGA2 = re.compile(
    r"^[ \t]*(?:(?:object|apply|template)[ \t]+[A-Z]\w+|const[ \t]+\w+[ \t]*="
    r"|include(?:_recursive)?[ \t]+[\"<]|library[ \t]+\")[^\n]*",
    re.MULTILINE,
)
_BLANK_FIRST = re.compile(r"[ \t\r]*\n")
_BLANK_LAST = re.compile(r"(?:\A|\n)[ \t\r]*\n\Z")


@define(eq=False)
class ConfigFile:
    """An object file; ``blocks`` are its definitions in order, disabled ones too.

    ``encoding`` is that of the bytes (utf-8, or else latin-1); ``trailer`` the text after the
    last definition; ``includes`` the lines that name more object files.
    """

    path: str
    encoding: str = "utf-8"
    bom: bool = False
    blocks: list[Block] = field(factory=list)
    trailer: str = ""
    includes: tuple[Include, ...] = ()
    faults: tuple[Fault, ...] = ()
    foreign: bool = False
    """Whether it is written in Icinga 2's language: nothing in it can be read."""
    _added: dict[Block, tuple[str, str]] = field(factory=dict)
    _shared: dict[Block, int] = field(factory=dict)

    @classmethod
    def parse(cls, path: str, data: bytes) -> ConfigFile:
        """Read the bytes of a file. Nothing is ever refused; see ``problems``."""
        try:
            return cls.parse_text(path, data.decode("utf-8"))
        except UnicodeDecodeError:
            return cls.parse_text(path, data.decode("latin-1"), "latin-1")

    @classmethod
    def parse_text(cls, path: str, text: str, encoding: str = "utf-8") -> ConfigFile:
        """The same for a text."""
        bom = text.startswith(_BOM)
        scanner = Scanner(LineReader(text[1:] if bom else text))
        blocks = list(scanner.blocks())
        reader = scanner.reader
        faults = reader.faults
        if bom:
            line = text.partition("\n")[0].rstrip(BLANKS)
            faults.insert(0, Fault(1, f"syntax invalid: '{line}' (byte order mark)"))
        trailer = reader.text[scanner.end :]
        foreign = _ICINGA2.search(trailer) if faults and not blocks else None
        if foreign is not None:
            number = trailer.count("\n", 0, foreign.start()) + 1
            why = "the configuration language of Icinga 2 is not supported"
            faults = [Fault(number, f"syntax invalid: '{foreign[0].strip()}' ({why})")]
        return cls(
            path, encoding, bom, blocks, trailer, tuple(reader.includes), tuple(faults),
            foreign=foreign is not None,
        )  # fmt: skip

    @property
    def text(self) -> str:
        """The text of the file without a byte order mark."""
        pieces = [piece for block in self.blocks for piece in (block.before, block.text)]
        return "".join(pieces) + self.trailer

    def data(self) -> bytes:
        """The bytes of the file. Raises UnicodeEncodeError for texts that are not encodable."""
        return (_BOM * self.bom + self.text).encode(self.encoding)

    def encodable(self, text: str) -> bool:
        """Whether the encoding of the file can express a text."""
        try:
            text.encode(self.encoding)
        except UnicodeEncodeError:
            return False
        return True

    @property
    def problems(self) -> tuple[FileProblem, ...]:
        """What is wrong with the form, by line."""
        faults = [*self.faults, *(fault for block in self.blocks for fault in block.faults)]
        return tuple(
            FileProblem(self.path, fault.line, fault.text, fault.fatal, fault.whole_path)
            for fault in sorted(faults, key=lambda fault: fault.line)
        )

    @property
    def trailing_comments(self) -> list[str]:
        """The comment lines after the last definition."""
        return comments_of(self.trailer)

    @property
    def empty(self) -> bool:
        """Whether nothing but comments is left: no definition, include or unreadable line."""
        return not self.blocks and not self.includes and not self.faults

    def copy(self) -> ConfigFile:
        """A copy whose blocks can be changed alone; they are in the same order."""
        copies = [block.copy() for block in self.blocks]
        added = {
            copy: self._added[block]
            for block, copy in zip(self.blocks if self._added else (), copies, strict=False)
            if block in self._added
        }
        return ConfigFile(
            self.path, self.encoding, self.bom, copies, self.trailer, self.includes, self.faults,
            self.foreign, added,
        )  # fmt: skip

    def share(self) -> ConfigFile:
        """A copy of the same blocks, at once: ask ``own`` for each before it is changed."""
        shared = {block: index for index, block in enumerate(self.blocks)}
        return evolve(self, blocks=list(self.blocks), added=dict(self._added), shared=shared)

    def own(self, block: Block) -> Block:
        """The block itself, or the copy that takes the place of a shared one."""
        index = self._shared.pop(block, None)
        if index is None:
            return block
        copy = self.blocks[index] = block.copy()
        if block in self._added:
            self._added[copy] = self._added.pop(block)
        return copy

    def add(self, kind: str, attributes: Mapping[str, str]) -> Block:
        """A new definition at the end. Raises UnwritableError; KeyError for an unknown type."""
        end = (self.blocks[-1].text if self.blocks else "") + self.trailer
        start = self.blocks[0].before + self.blocks[0].text if self.blocks else end
        eol = "\r\n" if start.partition("\n")[0].endswith("\r") else "\n"
        # A file of our layout ends with an empty line; the style of any other is kept.
        if not end or _BLANK_LAST.search(end):
            lead, after = "", eol
        else:
            lead, after = (eol if end.endswith("\n") else eol + eol), ""
        block = Block.new(kind, attributes, self.trailer + lead, eol)
        self.blocks.append(block)
        self.trailer = after
        self._added[block] = lead, after
        return block

    def remove(self, block: Block) -> None:
        """Remove a definition and the comments directly in front of it."""
        if block is self.blocks[-1] and block in self._added:
            lead, after = self._added[block]
            if self.trailer == after:
                # Taken back as it was added, however the file ended before.
                self.trailer = block.before.removesuffix(lead)
                del self.blocks[-1], self._added[block]
                return
        self.remove_all((block,))

    def remove_all(self, blocks: Collection[Block]) -> None:
        """Remove many definitions in one go."""
        unwanted = set(blocks)
        kept: list[Block] = []
        held: str | None = None
        for block in self.blocks:
            before = block.before
            if held is not None:
                before = _joined(held, before, first=not kept, last=False)
                held = None
            if block in unwanted:
                held = without_comments(before)
                self._added.pop(block, None)
            else:
                if before is not block.before:
                    block = self.own(block)
                    block.before = before
                kept.append(block)
        if held is not None:
            self.trailer = _joined(held, self.trailer, first=not kept, last=True)
        self.blocks = kept
        if self._shared:
            self._shared = {block: i for i, block in enumerate(kept) if block in self._shared}


def _joined(left: str, right: str, *, first: bool, last: bool) -> str:
    """The text where a definition stood between two texts: one empty line of its own less."""
    blank = _BLANK_FIRST.match(right)
    apart = (first and not left) or _BLANK_LAST.search(left) is not None
    if blank is not None and apart:
        return left + right[blank.end() :]
    if last and not right and apart:
        return left[: left.rfind("\n", 0, -1) + 1]
    return left + right
