"""Object files as a core reads them: definitions that remember where they stood.

The grammar and the files are those of ``document``; here are only the definitions of them, and
of what is wrong only what a core refuses.
"""

from __future__ import annotations

from pathlib import Path

from attrs import define, field, frozen

from monrest.objectconfig.document import Block, ConfigFile, FileProblem
from monrest.objectconfig.files import find_in

__all__ = [
    "Definition",
    "Directive",
    "FileProblem",
    "ObjectConfigError",
    "ObjectFile",
    "core_text",
    "find_files",
    "parse",
    "read_file",
]


class ObjectConfigError(Exception):
    """Object files that a core would refuse; ``problems`` holds at least one."""

    def __init__(self, problems: list[FileProblem]) -> None:
        super().__init__("\n".join(map(str, problems)))
        self.problems = problems


@frozen
class Directive:
    """One ``name value ; comment`` line; ``value`` is the text as written, escapes included."""

    name: str
    value: str
    line: int
    comment: str = ""


@define(eq=False)
class Definition:
    """One ``define`` block of a file; what it holds is that of the block."""

    file: str
    block: Block

    @property
    def type(self) -> str:
        """The word after ``define``."""
        return self.block.type

    @property
    def line(self) -> int:
        """The line of ``define``."""
        return self.block.line

    @property
    def disabled(self) -> bool:
        """Whether it is commented out."""
        return self.block.disabled

    @property
    def comments(self) -> list[str]:
        """The comment lines in front of it and inside it."""
        return self.block.comments

    @property
    def directives(self) -> dict[str, Directive]:
        """Its lines by canonical attribute name (custom variables as written), in order."""
        block = self.block
        lines = block.places()
        comments = {name: text[1:].strip() for name, text in block.inline.items()}
        return {
            name: Directive(name, value, lines[name], comments.get(name, ""))
            for name, value in block.attributes.items()
        }

    def text(self, name: str) -> str | None:
        """The raw value of an attribute, None when it is not set."""
        return self.block.attributes.get(name)

    def line_of(self, name: str) -> int:
        """The line of an attribute, that of the definition when it is not set."""
        return self.block.places().get(name, self.line)


@define(eq=False)
class ObjectFile:
    """A parsed file: its definitions, the comments after the last one, and what was wrong."""

    path: str
    definitions: list[Definition] = field(factory=list)
    trailer: list[str] = field(factory=list)
    problems: list[FileProblem] = field(factory=list)


def core_text(value: str) -> str:
    r"""The value as the core keeps it: ``\;`` has become ``;``."""
    return value.replace("\\;", ";")


def unreadable(error: OSError) -> ObjectConfigError:
    """Say which file or folder could not be read."""
    return ObjectConfigError([FileProblem(str(error.filename), 0, error.strerror or str(error))])


def find_files(folder: Path) -> list[Path]:
    """All ``*.cfg`` files below a folder, sorted by path; a file stands for itself.

    Raises OSError for what is not there or cannot be read.
    """
    if folder.is_file():
        return [folder]
    return sorted(Path(path) for path, _ in find_in(str(folder)))


def read_file(path: Path) -> ObjectFile:
    """Parse a file. Bytes that are not UTF-8 are kept as surrogate escapes. Raises OSError."""
    return parse(path.read_bytes().decode("utf-8", "surrogateescape"), str(path))


def parse(text: str, path: str) -> ObjectFile:
    """Parse the text of an object file; ``path`` is used in problems only."""
    file = ConfigFile.parse_text(path, text)
    return ObjectFile(
        path,
        [Definition(path, block) for block in file.blocks],
        file.trailing_comments,
        [problem for problem in file.problems if problem.fatal],
    )
