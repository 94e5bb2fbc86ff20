"""Reading object files: text to definitions that remember where they stood.

The grammar is object-config.md, section 3. Nothing is resolved or checked here beyond the form;
problems are collected and never end the reading, so that an editor can show a broken file.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from attrs import define, field, frozen

from monrest.objectconfig.attributes import IGNORED, OBJECT_TYPES, Attribute, ObjectType

_DEFINE = re.compile(r"([#;]?)\s*define\s+([^\s{]+)\s*(\{?)(.*)\Z", re.DOTALL)
_COMMENT = re.compile(r"(?<!\\);")
_RANGES = re.compile(r"(.*?)[ \t]+(\d{1,2}:\d\d-\d{1,2}:\d\d.*)\Z", re.DOTALL)


@frozen
class Problem:
    """Something wrong in a file; ``str()`` gives ``FILE:LINE: text``."""

    file: str
    line: int
    text: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.text}"


class ObjectConfigError(Exception):
    """Object files that a core would refuse; ``problems`` holds at least one."""

    def __init__(self, problems: list[Problem]) -> None:
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
    """One ``define`` block.

    ``directives`` are by canonical attribute name (custom variables as written, with their
    underscore) in the order of the file; of a repeated one the last, or all joined where the
    core joins them. ``comments`` are the comment lines in front of and inside the block.
    """

    type: str
    file: str
    line: int
    directives: dict[str, Directive] = field(factory=dict)
    comments: list[str] = field(factory=list)
    disabled: bool = False

    def text(self, name: str) -> str | None:
        """The raw value of an attribute, None when it is not set."""
        directive = self.directives.get(name)
        return None if directive is None else directive.value


@define(eq=False)
class ObjectFile:
    """A parsed file: its definitions, the comments after the last one, and what was wrong."""

    path: str
    definitions: list[Definition] = field(factory=list)
    trailer: list[str] = field(factory=list)
    problems: list[Problem] = field(factory=list)


def core_text(value: str) -> str:
    r"""The value as the core keeps it: ``\;`` has become ``;``."""
    return value.replace("\\;", ";")


def find_files(folder: Path) -> list[Path]:
    """All ``*.cfg`` files below a folder, sorted by path; a file stands for itself."""
    if folder.is_file():
        return [folder]
    return sorted(path for path in folder.rglob("*.cfg") if path.is_file())


def read_file(path: Path) -> ObjectFile:
    """Parse a file. Bytes that are not UTF-8 are kept as surrogate escapes. Raises OSError."""
    return parse(path.read_text(encoding="utf-8", errors="surrogateescape"), str(path))


def parse(text: str, path: str) -> ObjectFile:
    """Parse the text of an object file; ``path`` is used in problems only."""
    reader = _Reader(ObjectFile(path))
    for number, line in _logical_lines(text):
        reader.take(number, line)
    return reader.finish()


def _logical_lines(text: str) -> Iterator[tuple[int, str]]:
    r"""Stripped lines with the number of their first line; a single ``\`` at the end joins."""
    held, start = "", 0
    for number, line in enumerate(text.split("\n"), 1):
        line = line.strip()
        if not held:
            start = number
        elif line.startswith("#") and held.startswith(("#", ";")):
            line = line[1:].lstrip()
        if line.endswith("\\") and not line.endswith("\\\\"):
            held += line[:-1]
            continue
        yield start, held + line
        held = ""
    if held:
        yield start, held


@define(eq=False)
class _Reader:
    """The state between two lines: the open definition and the comments not yet attached."""

    file: ObjectFile
    current: Definition | None = None
    kind: ObjectType | None = None
    comments: list[str] = field(factory=list)
    skipping: bool = False

    def take(self, number: int, line: str) -> None:
        if not line:
            return
        head = _DEFINE.match(line)
        if head is not None and (not head[1] or head[3]):
            self._open(number, head)
        elif self.current is None and not self.skipping:
            if line[0] in "#;":
                self.comments.append(line)
            else:
                self._wrong(number, f"text outside a definition: {line[:60]}")
        else:
            self._inside(number, line)

    def finish(self) -> ObjectFile:
        if self.current is not None or self.skipping:
            line = self.current.line if self.current is not None else 0
            self._wrong(line, "definition is not closed before the end of the file")
        self.file.trailer = self.comments
        return self.file

    def _wrong(self, number: int, text: str) -> None:
        self.file.problems.append(Problem(self.file.path, number, text))

    def _open(self, number: int, head: re.Match[str]) -> None:
        mark, name, brace, rest = head.groups()
        if self.current is not None and not (mark and not self.current.disabled):
            self._wrong(number, "a definition begins inside another one")
        elif self.current is not None:
            self.comments.append(head.string)
            return
        if not brace:
            self._wrong(number, "the brace is missing on the define line")
        elif "}" in rest:
            self._wrong(number, "a definition needs more than one line")
            return
        self.kind = OBJECT_TYPES.get(name)
        if self.kind is None:
            self.skipping = True
            if not mark:
                self._wrong(number, f"unknown object type {name}")
            return
        self.current = Definition(name, self.file.path, number, disabled=bool(mark))

    def _inside(self, number: int, line: str) -> None:
        current = self.current
        if current is not None and current.disabled and line[0] in "#;":
            line = line[1:].strip()
            if not line:
                return
        body, comment = _split_comment(line)
        if body == "}":
            if current is not None:
                current.comments = self.comments
                self.file.definitions.append(current)
                self.comments = []
            self.current, self.kind, self.skipping = None, None, False
        elif line[0] in "#;":
            self.comments.append(line)
        elif current is not None:
            self._directive(number, current, body, comment)

    def _directive(self, number: int, current: Definition, body: str, comment: str) -> None:
        assert self.kind is not None
        name, value = (*body.split(None, 1), "")[:2]
        rule = _RANGES.match(body) if self.kind.name == "timeperiod" else None
        if rule is not None:
            # "sunday 1" is a date rule although "sunday" is an attribute.
            name, value = rule[1], rule[2]
        attribute = self.kind.spellings.get(name)
        if name.startswith("_"):
            if not self.kind.custom_variables or name == "_":
                self._wrong(number, f"{self.kind.name} cannot have the custom variable {name}")
                return
        elif attribute is not None:
            name = attribute.name
        elif self.kind.name == "timeperiod":
            if rule is None:
                self._wrong(number, f"unknown time definition {body}")
                return
        elif name in IGNORED and self.kind.name in ("host", "service"):
            return
        else:
            self._wrong(number, f"unknown attribute {name} of {self.kind.name}")
        current.directives[name] = self._joined(
            current, attribute, Directive(name, value, number, comment)
        )

    def _joined(
        self, current: Definition, attribute: Attribute | None, new: Directive
    ) -> Directive:
        """The directive that stands for a repeated line and those before it."""
        old = current.directives.get(new.name)
        if old is None or attribute is None or not attribute.repeatable or not old.value:
            return new
        return Directive(new.name, f"{old.value},{new.value}", old.line, old.comment or new.comment)


def _split_comment(line: str) -> tuple[str, str]:
    """Cut an inline comment, which starts at a semicolon without a backslash before it."""
    found = _COMMENT.search(line)
    if found is None or found.start() == 0:
        return line, ""
    return line[: found.start()].rstrip(), line[found.end() :].strip()
