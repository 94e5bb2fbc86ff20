"""An object file that loses nothing: read, changed in places, written.

Every byte of a file is kept: comments, blank lines, text that is no definition, line ends. A
change touches the text of its own definition only.

Nearly all definitions of a large site are plain: nothing but comments in front of them, one
directive a line, no continuation. Regular expressions read those whole, ten times as fast as a
loop over their lines; anything else goes to the reader, whose grammar is the one that counts.

Rules: docs/spec/objectconfig.md, "Grammar".
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import PurePosixPath
from types import MappingProxyType

from attrs import define, evolve, field, frozen

from monrest.objectconfig.attributes import BLANKS
from monrest.objectconfig.grammar import (
    Fault,
    FoundDefinition,
    Include,
    LineReader,
    clean,
    lines_of,
)

_MARKS = ("#", ";")
_NOTHING: Mapping[str, str] = MappingProxyType({})
_ICINGA2 = re.compile(
    r"^[ \t]*(?:(?:object|apply|template)[ \t]+[A-Z]\w+|const[ \t]+\w+[ \t]*="
    r"|include(?:_recursive)?[ \t]+[\"<]|library[ \t]+\")[^\n]*",
    re.MULTILINE,
)


@frozen
class FileProblem:
    """Something wrong in a file; ``str()`` returns ``FILE:LINE: text``.

    ``fatal`` is false if a core accepts it; ``whole_path`` is how the message names the place.
    """

    file: str
    line: int
    text: str
    fatal: bool = True
    whole_path: bool = False

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.text}"

    @property
    def message(self) -> str:
        """The text of a precheck, with the place at its end."""
        return f"{self.text} in {place(self.file, self.line, whole_path=self.whole_path)}"


def place(path: str, line: int, *, whole_path: bool = False) -> str:
    """``<file name>:<line>``; the file name alone for line 0."""
    name = path if whole_path else PurePosixPath(path).name
    return f"{name}:{line}" if line else name


class UnwritableError(ValueError):
    """Attributes that no text can express; the message names the first of them."""


@define(eq=False)
class Block:
    """One definition of a file.

    ``line`` is the 1-based number of its ``define`` line when it was read, 0 for a new one.
    ``attributes`` maps canonical names to texts as written (escapes kept, repeated lines joined
    where the core joins them, otherwise the last); ``inline`` maps names to inline comments with
    their semicolon. Neither is ever changed in place, nor may be: use ``change``.
    """

    type: str
    line: int
    attributes: dict[str, str]
    before: str
    """The text between the definition in front of this one and this one."""
    text: str
    """The text of the definition itself, line ends included."""
    inline: Mapping[str, str] = _NOTHING
    inner_comments: Sequence[str] = ()
    disabled: bool = False
    opening: str = ""
    closing: str = ""
    faults: Sequence[Fault] = ()
    original: Block | None = None
    """The definition as it was read, once it is changed."""

    @classmethod
    def read(cls, definition: FoundDefinition, before: str, text: str) -> Block:
        return cls(
            definition.type, definition.line, definition.attributes, before, text,
            definition.inline, definition.comments,
            definition.disabled, definition.opening, definition.closing, definition.faults,
        )  # fmt: skip

    @classmethod
    def new(cls, kind: str, attributes: Mapping[str, str], before: str, eol: str) -> Block:
        """A definition that no file has yet. Raises UnwritableError; KeyError: unknown type."""
        block = cls(kind, 0, {}, before, "")
        block._write(_cleaned(kind, attributes), eol, eol)
        return block

    @property
    def comments(self) -> list[str]:
        """The comment lines in front of it, since the definition before, and inside it."""
        return [*comments_of(self.before), *self.inner_comments]

    def places(self) -> dict[str, int]:
        """The line of each attribute, of a definition that was not changed."""
        definition = LineReader(self.text, number=self.line).next_definition()
        return {} if definition is None else definition.lines

    def lines(self) -> list[str]:
        """Its lines as they are written, without line ends: inner comments, then itself."""
        return lines_of(
            self.type,
            self.attributes,
            self.inline,
            self.inner_comments,
            opening=self.opening,
            closing=self.closing,
            disabled=self.disabled,
        )

    def change(self, attributes: Mapping[str, str]) -> bool:
        """Set the complete new attributes; comments and inline comments of what stays are kept.

        False: nothing changed, and the text is what it was. Raises UnwritableError.
        """
        wanted = _cleaned(self.type, attributes)
        if self._reads_as(wanted):
            return False
        if self.original is not None and self.original._reads_as(wanted):
            self._restore(self.original)
            return True
        original = self.original or self.copy()
        eol = "\r\n" if "\r\n" in self.text else "\n"
        self._write(wanted, eol, eol if self.text.endswith("\n") else "")
        self.original = original
        return True

    def copy(self) -> Block:
        """A copy that can be changed alone."""
        return Block(
            self.type, self.line, self.attributes, self.before, self.text, self.inline,
            self.inner_comments, self.disabled, self.opening, self.closing, self.faults,
            self.original,
        )  # fmt: skip

    def _reads_as(self, wanted: Mapping[str, str]) -> bool:
        """Whether attributes are those it has; the order of date rules counts."""
        own = _cleaned(self.type, self.attributes)
        return own == wanted and (self.type != "timeperiod" or list(own) == list(wanted))

    def _write(self, wanted: dict[str, str], eol: str, end: str) -> None:
        draft = self.copy()
        draft.attributes = wanted
        text = eol.join(draft.lines()) + end
        block = _read_back(text, self.type, wanted)
        self.text, self.attributes, self.inline = text, block.attributes, block.inline
        self.inner_comments = comments_of(text[: block.start])
        self.faults = [Fault(self.line, item.text, item.fatal) for item in block.faults]

    def _restore(self, other: Block) -> None:
        self.text, self.attributes, self.inline = other.text, other.attributes, other.inline
        self.inner_comments, self.faults = other.inner_comments, other.faults
        self.original = None


def comments_of(text: str) -> list[str]:
    """The comment lines of a text, trimmed."""
    lines = (line.strip(BLANKS) for line in text.split("\n"))
    return [line for line in lines if line[:1] in _MARKS]


def without_comments(text: str) -> str:
    """A text between definitions without the comment lines at its end."""
    lines = text.split("\n")
    while len(lines) > 1 and lines[-2].lstrip(BLANKS)[:1] in _MARKS:
        del lines[-2]
    return "\n".join(lines)


def _cleaned(kind: str, attributes: Mapping[str, str]) -> dict[str, str]:
    return {name: clean(kind, name, text) for name, text in attributes.items()}


def _read_back(text: str, kind: str, wanted: Mapping[str, str]) -> FoundDefinition:
    """Read a new text back; one with another meaning is not written."""
    reader = LineReader(text)
    definition = reader.next_definition()
    if definition is not None and reader.position == len(text) and not reader.faults:
        if definition.type == kind and definition.attributes == wanted:
            return definition
        for name, value in wanted.items():
            if definition.attributes.get(name) != value:
                raise UnwritableError(f"{name} cannot be written: {value!r:.100}")
    names = ", ".join(wanted)
    raise UnwritableError(f"{kind} cannot be written with these attributes: {names:.200}")


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

_PlainBody = tuple[dict[str, str], Mapping[str, str], Sequence[str]]
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
                definition = reader.next_definition()
                if definition is None:
                    return
                before, own = (
                    text[self.end : definition.start],
                    text[definition.start : definition.end],
                )
                block = Block.read(definition, before, own)
            self.end = reader.position
            yield block

    def _plain(self) -> Block | None:
        """The next definition when it is plain; None: the reader must read it."""
        reader, text = self.reader, self.reader.text
        place = self._head()
        if place is None:
            return None
        start, eol = place
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

    def _parts(self, kind: str, body: str) -> _PlainBody | None:
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


def _bare(names: Mapping[str, str], body: str) -> _PlainBody | None:
    """The attributes of a body without comments; None when one is repeated."""
    pairs = _LINE.findall(body)
    attributes = {names[name]: value for name, value in pairs}
    return (attributes, _NO_COMMENTS, ()) if len(attributes) == len(pairs) else None


def _commented(names: Mapping[str, str], body: str) -> _PlainBody | None:
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


def _unescaped(parts: _PlainBody) -> _PlainBody | None:
    """Parts with escaped semicolons again; None when a name has one."""
    attributes, inline, comments = parts
    if any(_STAND_IN in name for name in attributes):
        return None
    return (
        {name: text.replace(_STAND_IN, _ESCAPED) for name, text in attributes.items()},
        {name: text.replace(_STAND_IN, _ESCAPED) for name, text in inline.items()},
        [text.replace(_STAND_IN, _ESCAPED) for text in comments],
    )


_BOM = "\ufeff"
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
        """Errors of syntax, by line."""
        faults = [*self.faults, *(fault for block in self.blocks for fault in block.faults)]
        return tuple(
            FileProblem(self.path, fault.line, fault.text, fault.fatal, fault.whole_path)
            for fault in sorted(faults, key=lambda fault: fault.line)
        )

    @property
    def empty(self) -> bool:
        """Whether there are only comments: no definition, include or unreadable line."""
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
                # As the file was before the definition was added.
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
    """Two texts joined where a definition was removed, without the empty line that it had."""
    blank = _BLANK_FIRST.match(right)
    apart = (first and not left) or _BLANK_LAST.search(left) is not None
    if blank is not None and apart:
        return left + right[blank.end() :]
    if last and not right and apart:
        return left[: left.rfind("\n", 0, -1) + 1]
    return left + right
