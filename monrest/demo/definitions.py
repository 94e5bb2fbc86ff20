"""Definitions as a core reads them: where they stood, with their templates, by typed values.

The grammar and the files are those of ``document``; here are only the definitions of them, and
of what is wrong only what a core refuses.

Rules: docs/spec/objectconfig.md, "Templates".
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from attrs import define, field

from monrest.objectconfig.attributes import (
    OBJECT_TYPES,
    Attribute,
    core_text,
    elements,
    is_null,
    is_registered,
    number_of,
)
from monrest.objectconfig.document import Block, ConfigFile, FileProblem
from monrest.objectconfig.inheritance import Resolver, uses
from monrest.objectconfig.site_files import find_in


class ObjectConfigError(Exception):
    """Object files that a core would refuse; ``problems`` holds at least one."""

    def __init__(self, problems: list[FileProblem]) -> None:
        super().__init__("\n".join(map(str, problems)))
        self.problems = problems


@define(eq=False)
class ObjectDefinition:
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
    def attributes(self) -> Mapping[str, str]:
        """Its own attributes as the file writes them."""
        return self.block.attributes

    @property
    def disabled(self) -> bool:
        return self.block.disabled

    def line_of(self, name: str) -> int:
        """The line of an attribute, that of the definition when it is not set."""
        return self.block.places().get(name, self.line)

    def problem(self, text: str, attribute: str = "") -> FileProblem:
        """A problem at the line of an attribute, or of the definition."""
        return FileProblem(self.file, self.line_of(attribute), text)


@define(eq=False)
class ObjectFile:
    """A parsed file: its definitions, disabled ones too, and what a core would refuse in it."""

    path: str
    definitions: list[ObjectDefinition]
    problems: list[FileProblem]


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
        [ObjectDefinition(path, block) for block in file.blocks],
        [problem for problem in file.problems if problem.fatal],
    )


@define(eq=False)
class Resolved:
    """A definition with everything its templates give.

    ``values`` holds the core's texts by canonical name; None stands for ``null``: set, and
    empty. ``custom`` holds custom variables by upper-case name without the underscore.
    """

    definition: ObjectDefinition
    values: dict[str, str | None]
    custom: dict[str, str] = field(factory=dict)

    @property
    def registered(self) -> bool:
        """Whether the definition is an object and not a template only."""
        return is_registered(self.values)

    @property
    def type(self) -> str:
        return self.definition.type

    def problem(self, text: str, attribute: str = "") -> FileProblem:
        """A problem at the line of an attribute, or of the definition."""
        return self.definition.problem(text, attribute)


def resolve(definitions: Iterable[ObjectDefinition]) -> tuple[list[Resolved], list[FileProblem]]:
    """Resolve all templates; disabled definitions are left out. Order is kept."""
    enabled = [item for item in definitions if not item.disabled]
    problems: list[FileProblem] = []
    templates: dict[tuple[str, str], ObjectDefinition] = {}
    for item in enabled:
        # Without a name of its own no core finds a template.
        name = core_text(item.attributes.get("name", ""))
        if name and templates.setdefault((item.type, name), item) is not item:
            problems.append(item.problem(f"duplicate template name {name}", "name"))
    for item in enabled:
        for name in uses(item.attributes):
            if (item.type, name) not in templates:
                text = f"template {name} of type {item.type} not found"
                problems.append(item.problem(text, "use"))
    resolver = Resolver(lambda kind, name: templates.get((kind, name)), most=len(enabled) + 1)
    return [_resolved(item, resolver.values(item)) for item in enabled], problems


def _resolved(definition: ObjectDefinition, texts: Mapping[str, str]) -> Resolved:
    values: dict[str, str | None] = {}
    custom: dict[str, str] = {}
    for name, written in texts.items():
        text = core_text(written)
        if name.startswith("_"):
            custom[name[1:].upper()] = text
        elif is_null(definition.type, name, text):
            values[name] = None
        else:
            values[name] = text
    return Resolved(definition, values, custom)


ReportProblem = Callable[[FileProblem], None]
"""Where problems go; reading continues with a harmless value."""


@define(eq=False)
class ObjectRecord:
    """A registered object by name; ``name`` of a service is its description."""

    name: str
    source: Resolved
    report: ReportProblem

    @property
    def type(self) -> str:
        return self.source.type

    @property
    def custom(self) -> Mapping[str, str]:
        """Custom variables by upper-case name without the underscore."""
        return self.source.custom

    def is_set(self, attribute: str) -> bool:
        """Whether the object or a template sets the attribute, be it to ``null``."""
        return attribute in self.source.values

    def text(self, attribute: str) -> str:
        """The text, or the default, or empty. ``=x`` defaults copy attribute x."""
        value = self.source.values.get(attribute)
        if value is not None:
            return value
        if attribute in self.source.values:
            return ""
        default = self._declared(attribute).default
        return self.text(default[1:]) if default.startswith("=") else default

    def number(self, attribute: str) -> float:
        """The number; what is no number reads as 0."""
        return number_of(self.text(attribute))

    def flag(self, attribute: str) -> int:
        """0 or 1; only the first character counts and must be one of them."""
        text = self.text(attribute)
        if text[:1] not in ("0", "1"):
            self.wrong(f"{attribute}: 0 or 1 expected, not {text!r}", attribute)
            return 0
        return int(text[0])

    def names(self, attribute: str) -> tuple[str, ...]:
        """The elements of a list."""
        return tuple(elements(self.text(attribute)))

    def options(self, attribute: str) -> frozenset[str]:
        """The letters of an option list; ``a`` stands for all of them, ``n`` for none."""
        letters = self._declared(attribute).letters
        words = {word: letter for letter, word in letters.items()} | {"none": "n", "all": "a"}
        found: set[str] = set()
        for item in self.names(attribute):
            letter = words.get(item, item)
            if letter == "a":
                found.update(letters)
            elif letter in letters:
                found.add(letter)
            elif letter != "n":
                expected = ", ".join([*letters, "n", "a"])
                self.wrong(f"{attribute}: one of {expected} expected, not {item!r}", attribute)
        return frozenset(found)

    def wrong(self, text: str, attribute: str = "") -> None:
        """Report a problem at the attribute's line."""
        self.report(self.source.problem(text, attribute))

    def _declared(self, attribute: str) -> Attribute:
        return OBJECT_TYPES[self.type].attributes[attribute]
