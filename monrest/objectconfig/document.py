"""An object file that loses nothing: read, changed in places, written (object-config.md, 3 and 10).

Every byte of a file is kept: comments, blank lines, text that is no definition, line ends. A
change touches the text of its own definition only.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from pathlib import PurePosixPath

from attrs import define, field, frozen

from monrest.objectconfig.grammar import BLANKS, Fault, Found, Include, Reader
from monrest.objectconfig.layout import clean, lines_of

_BOM = "\ufeff"
_MARKS = ("#", ";")
_CLEAN_HEAD = re.compile(r"define[ \t]+([a-z]+)[ \t]*\{[ \t]*\Z")
_CLEAN_LINE = re.compile(r"[ \t]*([^ \t\n]+)[ \t]*(.*)")
_TRAILING = re.compile(r"[ \t]+\n")
_COMMENTS = re.compile(r"(?:[ \t]*(?:[#;][^\n]*)?\n)*\Z")
_DISABLED = re.compile(r"[ \t]*[#;][ \t]*define[ \t]")
_BLANK_FIRST = re.compile(r"[ \t\r]*\n")
_BLANK_LAST = re.compile(r"(?:\A|\n)[ \t\r]*\n\Z")


@frozen
class Problem:
    """Something wrong in a file; ``str()`` gives ``FILE:LINE: text``.

    ``fatal`` is false for what a core accepts.
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
        """The text as a precheck says it, with the place at its end (section 13)."""
        return f"{self.text} in {place(self.file, self.line, whole_path=self.whole_path)}"


def place(path: str, line: int, *, whole_path: bool = False) -> str:
    """``<file name>:<line>``; the file name alone for line 0 (section 13)."""
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
    disabled: bool = False
    inline: dict[str, str] = field(factory=dict)
    inner_comments: list[str] = field(factory=list)
    opening: str = ""
    closing: str = ""
    faults: list[Fault] = field(factory=list)
    original: Block | None = None
    """What was read, once it is changed."""

    @property
    def comments(self) -> list[str]:
        """The comment lines in front of it, since the definition before, and inside it."""
        return [*_comments_of(self.before), *self.inner_comments]

    def places(self) -> dict[str, int]:
        """The line of each attribute, of a definition that was not changed."""
        found = Reader(self.text, number=self.line).next_definition()
        return {} if found is None else found.lines

    def change(self, attributes: Mapping[str, str]) -> bool:
        """Set the complete new attributes; comments and inline comments of what stays are kept.

        False: nothing changed, and the text is what it was. Raises UnwritableError.
        """
        wanted = {name: clean(self.type, name, text) for name, text in attributes.items()}
        if _same(wanted, self.attributes, self.type) or _same(
            wanted, {n: clean(self.type, n, t) for n, t in self.attributes.items()}, self.type
        ):
            return False
        if self.original is None:
            self.original = self.copy()
        elif _same(wanted, self.original.attributes, self.type):
            self._restore(self.original)
            return True
        eol = "\r\n" if "\r\n" in self.text else "\n"
        last = "" if not self.text.endswith("\n") else eol
        inline = {name: text for name, text in self.inline.items() if name in wanted}
        lines = lines_of(
            self.type,
            wanted,
            inline,
            self.inner_comments,
            opening=self.opening,
            closing=self.closing,
            disabled=self.disabled,
        )
        text = eol.join(lines) + last
        self._take(_read_back(text, self.type, wanted), text)
        return True

    def copy(self) -> Block:
        """A copy that can be changed alone."""
        return Block(
            self.type, self.line, self.attributes, self.before, self.text, self.disabled,
            self.inline, self.inner_comments, self.opening, self.closing, self.faults,
            self.original,
        )  # fmt: skip

    def _take(self, found: Found, text: str) -> None:
        self.text, self.attributes, self.inline = text, found.attributes, found.inline
        self.inner_comments = _comments_of(text[: found.start])
        self.faults = [Fault(self.line, item.text, item.fatal) for item in found.faults]

    def _restore(self, other: Block) -> None:
        self.text, self.attributes, self.inline = other.text, other.attributes, other.inline
        self.inner_comments, self.faults = other.inner_comments, other.faults
        self.original = None


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
    _added: dict[Block, tuple[str, str]] = field(factory=dict)

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
        file = cls(path, encoding, bom)
        scanner = _Scanner(Reader(text[1:] if bom else text))
        file.blocks = list(scanner.blocks())
        reader = scanner.reader
        file.trailer = reader.text[scanner.end :]
        file.includes, faults = tuple(reader.includes), reader.faults
        if bom:
            line = text.partition("\n")[0].rstrip(BLANKS)
            faults.insert(0, Fault(1, f"syntax invalid: '{line}' (byte order mark)"))
        file.faults = tuple(faults)
        return file

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
    def problems(self) -> tuple[Problem, ...]:
        """What is wrong with the form, by line (section 13, syntax)."""
        faults = [*self.faults, *(fault for block in self.blocks for fault in block.faults)]
        return tuple(
            Problem(self.path, fault.line, fault.text, fault.fatal, fault.whole_path)
            for fault in sorted(faults, key=lambda fault: fault.line)
        )

    @property
    def trailing_comments(self) -> list[str]:
        """The comment lines after the last definition."""
        return _comments_of(self.trailer)

    @property
    def empty(self) -> bool:
        """Whether nothing but comments is left: no definition, include or unreadable line."""
        return not self.blocks and not self.includes and not self.faults

    def copy(self) -> ConfigFile:
        """A copy whose blocks can be changed alone; they are in the same order."""
        copies = [block.copy() for block in self.blocks]
        file = ConfigFile(self.path, self.encoding, self.bom, copies, self.trailer, self.includes)
        file.faults = self.faults
        if self._added:
            file._added = {
                copy: self._added[block]
                for block, copy in zip(self.blocks, copies, strict=True)
                if block in self._added
            }
        return file

    def add(self, kind: str, attributes: Mapping[str, str]) -> Block:
        """A new definition at the end. Raises UnwritableError; KeyError for an unknown type."""
        wanted = {name: clean(kind, name, text) for name, text in attributes.items()}
        end = (self.blocks[-1].text if self.blocks else "") + self.trailer
        start = self.blocks[0].before + self.blocks[0].text if self.blocks else end
        eol = "\r\n" if start.partition("\n")[0].endswith("\r") else "\n"
        text = eol.join(lines_of(kind, wanted, {})) + eol
        found = _read_back(text, kind, wanted)
        # A file of our layout ends with an empty line; the style of any other is kept.
        if not end or _BLANK_LAST.search(end):
            lead, after = "", eol
        else:
            lead, after = (eol if end.endswith("\n") else eol + eol), ""
        block = Block(kind, 0, found.attributes, self.trailer + lead, text)
        block.faults = [Fault(0, item.text, item.fatal) for item in found.faults]
        self.blocks.append(block)
        self.trailer = after
        self._added[block] = lead, after
        return block

    def remove(self, block: Block) -> None:
        """Remove a definition and the comments directly in front of it."""
        index = self.blocks.index(block)
        if index == len(self.blocks) - 1 and self._added.get(block, ("",))[1:] == (self.trailer,):
            # Taken back as it was added, whatever the end of the file looked like.
            lead = self._added.pop(block)[0]
            self.trailer = block.before.removesuffix(lead)
            del self.blocks[index]
            return
        self.remove_all([block])

    def remove_all(self, blocks: Collection[Block]) -> None:
        """The same for many at once."""
        unwanted = set(blocks)
        kept: list[Block] = []
        held: str | None = None
        for block in self.blocks:
            before = block.before
            if held is not None:
                before = _joined(held, before, first=not kept, last=False)
            if block in unwanted:
                held = _without_comments(before)
                self._added.pop(block, None)
                continue
            block.before = before
            kept.append(block)
            held = None
        if held is not None:
            self.trailer = _joined(held, self.trailer, first=not kept, last=True)
        self.blocks = kept


def _same(wanted: Mapping[str, str], other: Mapping[str, str], kind: str) -> bool:
    """Whether two sets of attributes say the same; the order of date rules counts."""
    return wanted == other and (kind != "timeperiod" or list(wanted) == list(other))


def _comments_of(text: str) -> list[str]:
    lines = (line.strip(BLANKS) for line in text.split("\n"))
    return [line for line in lines if line[:1] in _MARKS]


def _without_comments(text: str) -> str:
    """A text between definitions without the comment lines at its end."""
    lines = text.split("\n")
    while len(lines) > 1 and lines[-2].lstrip(BLANKS)[:1] in _MARKS:
        del lines[-2]
    return "\n".join(lines)


def _joined(left: str, right: str, *, first: bool, last: bool) -> str:
    """What stands where a definition stood between two texts: one empty line of its own less."""
    blank = _BLANK_FIRST.match(right)
    apart = _BLANK_LAST.search(left) is not None or (first and not left)
    if blank is not None and (apart or (last and not right.strip())):
        return left + right[blank.end() :]
    if last and not right and apart and left:
        return left[: left.rfind("\n", 0, -1) + 1]
    return left + right


def _read_back(text: str, kind: str, wanted: Mapping[str, str]) -> Found:
    """Read a text just written; what does not read back as it was meant is not written."""
    reader = Reader(text)
    found = reader.next_definition()
    if found is not None and reader.position == len(text) and not reader.faults:
        if found.type == kind and found.attributes == wanted:
            return found
        for name, value in wanted.items():
            if found.attributes.get(name) != value:
                raise UnwritableError(f"{name} cannot be written: {value!r:.100}")
    names = ", ".join(wanted)
    raise UnwritableError(f"{kind} cannot be written with these attributes: {names:.200}")


@define(eq=False)
class _Scanner:
    """Finds the definitions: those of plain form at once, others line by line."""

    reader: Reader
    end: int = 0

    def blocks(self) -> Iterator[Block]:
        reader, text = self.reader, self.reader.text
        while True:
            block = self._plain()
            if block is None:
                found = reader.next_definition()
                if found is None:
                    return
                block = Block(
                    found.type, found.line, found.attributes, text[self.end : found.start],
                    text[found.start : found.end], found.disabled, found.inline, found.comments,
                    found.opening, found.closing, found.faults,
                )  # fmt: skip
            self.end = reader.position
            yield block

    def _plain(self) -> Block | None:
        """The next definition if nothing but comments stands before it and nothing special in it.

        None: the reader has to look, from where it stands.
        """
        reader, text = self.reader, self.reader.text
        start = at = text.find("define", reader.position)
        while at >= 0:
            start = text.rfind("\n", reader.position, at) + 1 or reader.position
            if not text[start:at].strip(BLANKS):
                break
            if _DISABLED.match(text, start):
                return None
            at = text.find("define", at + 6)
        eol = text.find("\n", at)
        if at < 0 or eol < 0:
            return None
        before = text[reader.position : start]
        if before and (not _COMMENTS.match(before) or "\\" in before):
            return None
        head = _CLEAN_HEAD.match(text[at:eol].rstrip(BLANKS))
        close = text.find("}", eol)
        while close >= 0 and text[text.rfind("\n", eol, close) + 1 : close].strip(BLANKS):
            close = text.find("}", close + 1)
        if head is None or close < 0:
            return None
        end = text.find("\n", close)
        end = end + 1 if end >= 0 else len(text)
        body = text[eol + 1 : close]
        if text[close + 1 : end].strip("\n" + BLANKS):
            return None
        attributes = self._attributes(head[1], body)
        if attributes is None:
            return None
        line = reader.number + before.count("\n")
        reader.position, reader.number = end, line + text.count("\n", start, end)
        return Block(head[1], line, attributes, before, text[start:end])

    def _attributes(self, kind: str, body: str) -> dict[str, str] | None:
        if kind == "timeperiod" or any(mark in body for mark in ("\\", ";", "#", "define")):
            return None
        if "\r" in body:
            body = body.replace("\r\n", "\n")
            if "\r" in body:
                return None
        if " \n" in body or "\t\n" in body:
            body = _TRAILING.sub("\n", body)
        pairs = _CLEAN_LINE.findall(body)
        try:
            names = self.reader.names(kind)
            attributes = {names[name]: value for name, value in pairs}
        except KeyError:
            return None
        return attributes if len(attributes) == len(pairs) else None
