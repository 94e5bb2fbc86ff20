"""One definition of an object file, and what is wrong in files.

Rules: docs/spec/objectconfig.md, "Grammar".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import PurePosixPath
from types import MappingProxyType

from attrs import define, frozen

from monrest.objectconfig.grammar import BLANKS, Fault, FoundDefinition, LineReader
from monrest.objectconfig.layout import clean, text_of

_MARKS = ("#", ";")
_NOTHING: Mapping[str, str] = MappingProxyType({})


@frozen
class FileProblem:
    """Something wrong in a file; ``str()`` gives ``FILE:LINE: text``.

    ``fatal`` is false for what a core accepts; ``whole_path`` is how the message names the place.
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
        """The text as a precheck says it, with the place at its end."""
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
    """What was read, once it is changed."""

    @classmethod
    def read(cls, found: FoundDefinition, before: str, text: str) -> Block:
        """A definition that a reader found."""
        return cls(
            found.type, found.line, found.attributes, before, text, found.inline, found.comments,
            found.disabled, found.opening, found.closing, found.faults,
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
        found = LineReader(self.text, number=self.line).next_definition()
        return {} if found is None else found.lines

    def change(self, attributes: Mapping[str, str]) -> bool:
        """Set the complete new attributes; comments and inline comments of what stays are kept.

        False: nothing changed, and the text is what it was. Raises UnwritableError.
        """
        wanted = _cleaned(self.type, attributes)
        if self._says(wanted):
            return False
        if self.original is not None and self.original._says(wanted):
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

    def _says(self, wanted: Mapping[str, str]) -> bool:
        """Whether attributes are those it has; the order of date rules counts."""
        own = _cleaned(self.type, self.attributes)
        return own == wanted and (self.type != "timeperiod" or list(own) == list(wanted))

    def _write(self, wanted: dict[str, str], eol: str, end: str) -> None:
        draft = self.copy()
        draft.attributes = wanted
        text = eol.join(text_of(draft)) + end
        found = _read_back(text, self.type, wanted)
        self.text, self.attributes, self.inline = text, found.attributes, found.inline
        self.inner_comments = comments_of(text[: found.start])
        self.faults = [Fault(self.line, item.text, item.fatal) for item in found.faults]

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
    """Read a text just written; what does not read back as it was meant is not written."""
    reader = LineReader(text)
    found = reader.next_definition()
    if found is not None and reader.position == len(text) and not reader.faults:
        if found.type == kind and found.attributes == wanted:
            return found
        for name, value in wanted.items():
            if found.attributes.get(name) != value:
                raise UnwritableError(f"{name} cannot be written: {value!r:.100}")
    names = ", ".join(wanted)
    raise UnwritableError(f"{kind} cannot be written with these attributes: {names:.200}")
