"""The text of a definition: how it is read, line by line, and how it is written.

``LineReader`` walks over a text and finds one definition after the other with the offsets of its
text, so that the owner of the text can change one definition and leave the rest alone.

Rules: docs/spec/objectconfig.md, "Grammar".
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Mapping

from attrs import define, field, frozen

from monrest.objectconfig.attributes import (
    BARE_SEMICOLON,
    BLANKS,
    IGNORED,
    OBJECT_TYPES,
    ObjectType,
)

_HEAD = re.compile(r"([#;]?)[ \t]*define[ \t]+([^ \t{]+)[ \t]*(\{?)(.*)\Z", re.DOTALL)
_WORDS = re.compile(r"([^ \t]+)[ \t]*(.*)\Z", re.DOTALL)
_RANGES = re.compile(r"(.*?)[ \t]+(\d{1,2}:\d\d-\d{1,2}:\d\d.*)\Z", re.DOTALL)
_INCLUDE = re.compile(r"(include_file|include_dir)[ \t]*=[ \t]*(.+)\Z", re.DOTALL)

PLAIN_IN_TIMEPERIODS = frozenset({"use", "register", "name", "timeperiod_name", "alias", "exclude"})
"""Directives of a time period that are no date rules."""


@frozen
class Fault:
    """Something wrong in a line; ``fatal``: a core refuses it. ``whole_path`` is for the text."""

    line: int
    text: str
    fatal: bool = True
    whole_path: bool = False


@frozen
class Include:
    """A line that names more object files; ``kind`` is include_file or include_dir."""

    kind: str
    path: str
    line: int


class AttributeNames(dict[str, str]):
    """Canonical attribute names of a type by spelling; those of custom variables are themselves.

    Raises KeyError for names that the type does not know.
    """

    def __init__(self, kind: ObjectType) -> None:
        super().__init__({name: item.name for name, item in kind.spellings.items()})
        if kind.name in ("host", "service"):
            self.update((name, name) for name in IGNORED)
        self._custom = kind.custom_variables

    def __missing__(self, name: str) -> str:
        if not self._custom or name[0] != "_" or name == "_":
            raise KeyError(name)
        self[name] = name
        return name


@define(eq=False)
class FoundDefinition:
    """A definition as it was read; its text is ``text[start:end]``, line ends included.

    ``opening`` and ``closing`` are what follows the braces on their lines, ``comments`` the
    comment lines inside, ``lines`` the line of each attribute.
    """

    type: str
    line: int
    start: int
    disabled: bool
    names: AttributeNames
    opening: str = ""
    closing: str = ""
    end: int = 0
    attributes: dict[str, str] = field(factory=dict)
    inline: dict[str, str] = field(factory=dict)
    comments: list[str] = field(factory=list)
    faults: list[Fault] = field(factory=list)
    lines: dict[str, int] = field(factory=dict)
    braceless: bool = False

    def take(self, number: int, body: str, comment: str) -> None:
        """Read a directive and its inline comment."""
        name, value, wrong = self._named(body)
        if wrong:
            self.faults.append(Fault(number, wrong))
        old = self.attributes.get(name)
        if old is not None:
            attribute = OBJECT_TYPES[self.type].attributes.get(name)
            if attribute is not None and attribute.repeatable:
                value = f"{old},{value}" if old and value else old or value
            elif old != value:
                text = f"duplicate attribute {name} in '{body}'"
                self.faults.append(Fault(number, text, fatal=False))
        self.attributes[name] = value
        if comment:
            self.inline[name] = comment
        self.lines[name] = number

    def _named(self, body: str) -> tuple[str, str, str]:
        """The canonical name, the value, and what is wrong with them."""
        words = _WORDS.match(body)
        assert words is not None
        name, value = words.groups()
        if self.type == "timeperiod" and name not in PLAIN_IN_TIMEPERIODS:
            rule = _RANGES.match(body)
            if rule is None:
                return name, value, f"unknown time definition '{body}'"
            return rule[1], rule[2], ""
        try:
            return self.names[name], value, ""
        except KeyError:
            return name, value, f"unknown attribute: {name} for object type {self.type}"


def split_comment(line: str) -> tuple[str, str]:
    """A line without its inline comment, and the comment with its semicolon."""
    comment = BARE_SEMICOLON.search(line) if ";" in line else None
    if comment is None or comment.start() == 0:
        return line, ""
    return line[: comment.start()].rstrip(BLANKS), line[comment.start() :]


@define(eq=False)
class LineReader:
    """Walks over a text; ``position`` and ``number`` are those of the next line.

    ``faults`` are those outside of definitions and of definitions that never end.
    """

    text: str
    position: int = 0
    number: int = 1
    faults: list[Fault] = field(factory=list)
    includes: list[Include] = field(factory=list)
    _names: dict[str, AttributeNames] = field(factory=dict)
    _open: FoundDefinition | None = None
    _skipping: bool = False

    def names(self, kind: str) -> AttributeNames:
        """The attribute names of a type. Raises KeyError for a type that there is not."""
        names = self._names.get(kind)
        if names is None:
            names = self._names[kind] = AttributeNames(OBJECT_TYPES[kind])
        return names

    def next_definition(self) -> FoundDefinition | None:
        """Read on until a definition is complete; None at the end of the text."""
        while self.position < len(self.text):
            start, number = self.position, self.number
            line = self._logical_line()
            if line:
                definition = self._line(start, number, line)
                if definition is not None:
                    definition.end = self.position
                    return definition
        if self._skipping or (self._open is not None and not self._open.disabled):
            self._give_up()
            text = self.text
            last = self.number - (text.endswith("\n") or not text)
            self.faults.append(Fault(last, "expected end of object", whole_path=True))
        self._open, self._skipping = None, False
        return None

    def _logical_line(self) -> str:
        r"""The next line without spaces around it; one ``\`` at its end joins the following."""
        text, held = self.text, ""
        end = text.find("\n", self.position)
        if end > self.position and text[end - 1] not in "\\\r":
            line = text[self.position : end].strip(BLANKS)
            self.position, self.number = end + 1, self.number + 1
            return line
        while True:
            end = text.find("\n", self.position)
            after = end + 1 if end >= 0 else len(text)
            raw = text[self.position : end if end >= 0 else after]
            self.position = after
            self.number += end >= 0
            raw = raw.removesuffix("\r")
            if held:
                raw = raw.lstrip(BLANKS)
                if self._open is not None and self._open.disabled and raw[:1] in ("#", ";"):
                    raw = raw[1:].lstrip(BLANKS)
            held += raw
            if len(held) < 2 or held[-1] != "\\" or held[-2] == "\\" or end < 0:
                return held.strip(BLANKS)
            held = held[:-1]

    def _line(self, start: int, number: int, line: str) -> FoundDefinition | None:
        head = _HEAD.match(line) if "define" in line else None
        if head is not None and self._opens(start, number, line, head):
            return None
        if self._open is not None and self._open.disabled:
            if line[0] in "#;":
                return self._inside(number, line[1:].strip(BLANKS))
            # Not all of it is a comment, so none of it was a definition.
            self._open = None
        if self._open is not None or self._skipping:
            return self._inside(number, line)
        if line[0] not in "#;":
            self._outside(number, line)
        return None

    def _opens(self, start: int, number: int, line: str, head: re.Match[str]) -> bool:
        """Open the definition of a ``define`` line; False: it is an ordinary line."""
        mark, kind, brace, rest = head.groups()
        rest = rest.strip(BLANKS)
        if mark:
            ordinary = self._skipping or (self._open is not None and not self._open.disabled)
            if ordinary or not brace or kind not in OBJECT_TYPES or (rest and rest[0] != ";"):
                return False
            self._open = FoundDefinition(kind, number, start, True, self.names(kind), rest)
            return True
        wrong = ""
        if self._skipping or (self._open is not None and not self._open.disabled):
            self._give_up()
            wrong = "a definition begins inside another one"
        self._open, self._skipping = None, False
        if brace and "}" in split_comment(rest)[0]:
            self._invalid(number, line, "a definition needs more than one line")
            return True
        if kind not in OBJECT_TYPES:
            self._skipping = True
            self.faults.append(Fault(number, f"unknown object type '{kind}'"))
            return True
        self._open = FoundDefinition(kind, number, start, False, self.names(kind), rest)
        if not brace:
            self._open.braceless = True
            wrong = wrong or "the brace is missing on the define line"
        if wrong:
            self._open.faults.append(Fault(number, _invalid(line, wrong)))
        return True

    def _inside(self, number: int, line: str) -> FoundDefinition | None:
        definition = self._open
        body, comment = split_comment(line)
        if body == "}":
            self._open, self._skipping = None, False
            if definition is not None:
                definition.closing = comment
                if definition.disabled:
                    definition.faults.clear()
            return definition
        if definition is None or not line:
            return None
        if line[0] in "#;":
            definition.comments.append(line)
        elif line != "{" or not definition.braceless or definition.attributes:
            definition.take(number, body, comment)
        return None

    def _outside(self, number: int, line: str) -> None:
        include = _INCLUDE.match(line)
        if include is not None:
            self.includes.append(Include(include[1], include[2], number))
        elif split_comment(line)[0] == "}":
            self.faults.append(Fault(number, "unexpected end of object"))
        else:
            self._invalid(number, line)

    def _invalid(self, number: int, line: str, why: str = "") -> None:
        self.faults.append(Fault(number, _invalid(line, why)))

    def _give_up(self) -> None:
        """Keep what was wrong in a definition that does not end."""
        if self._open is not None:
            self.faults += self._open.faults


def _invalid(line: str, why: str = "") -> str:
    return f"syntax invalid: '{line}'" + (f" ({why})" if why else "")


NAME_WIDTH = 30
COMMENT_COLUMN = 68
LONG_COMMAND = 120

_FIRST = (
    "name", "service_description", "host_name", "timeperiod_name", "contact_name",
    "contactgroup_name", "hostgroup_name", "servicegroup_name", "command_name", "alias", "address",
    "parents", "use", "monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday",
    "module_name", "module_type", "path", "args",
)  # fmt: skip
_RANK = {name: rank for rank, name in enumerate(_FIRST)}
_CUSTOM_RANK = {"_TYPE": 0, "_TAGS": 1, "_APPS": 2}

_LINE_BREAKS = re.compile(r"[\r\n]+")
_QUOTED = r"""'[^']*(?:'|\Z)|"(?:[^"\\]|\\.)*(?:"|\Z)|\\."""
_CUT = r"(?<=[ \t])(?=--?[A-Za-z]|\|[ \t]|>>)"
_QUOTED_OR_CUT = re.compile(f"(?P<quoted>{_QUOTED})|{_CUT}")


def clean(kind: str, name: str, value: str) -> str:
    """A value as it can stand in a file: one line, no bare semicolon, lists without blanks."""
    value = BARE_SEMICOLON.sub(r"\\;", _LINE_BREAKS.sub(" ", value)).strip(" \t")
    attribute = OBJECT_TYPES[kind].attributes.get(name)
    if attribute is None or "," not in value:
        return value
    if attribute.kind in ("list", "options"):
        return ",".join(filter(None, (part.strip() for part in value.split(","))))
    if attribute.kind in ("pairs", "service_ref"):
        return ",".join(part.strip() for part in value.split(","))
    return value


def lines_of(
    kind: str,
    attributes: Mapping[str, str],
    inline: Mapping[str, str],
    comments: Iterable[str] = (),
    *,
    opening: str = "",
    closing: str = "",
    disabled: bool = False,
) -> list[str]:
    """The lines of a definition without line ends: comments from inside it, then itself.

    ``opening`` and ``closing`` follow the braces.
    """
    lines = [f"define {kind} {{" + (f" {opening}" if opening else "")]
    for name in ordered(kind, attributes):
        lines += _attribute(kind, name, attributes[name], inline.get(name, ""))
    lines.append("}" + (f" {closing}" if closing else ""))
    if disabled:
        lines = [f"#{line}" for line in lines]
    return [*comment_lines(comments), *lines]


def comment_lines(comments: Iterable[str]) -> list[str]:
    """Comment lines as they are written; none when all of them are blank."""
    written = [_comment(line) for line in comments]
    return written if any(line.strip("#;\t ") for line in written) else []


def _comment(line: str) -> str:
    if line.startswith("##"):
        return line
    text = line.lstrip("#;" if line[:1] == ";" else "#").strip()
    return f"# {text}" if text else "#"


def ordered(kind: str, names: Iterable[str]) -> list[str]:
    """Attribute names in the order of the file: known first ones, others, custom variables.

    Date rules of a time period stay in the order in which they come, because it decides.
    """
    attributes = OBJECT_TYPES[kind].attributes
    rules = kind == "timeperiod"

    def rank(name: str) -> tuple[int, int, bytes]:
        if name.startswith("_"):
            return 3, _CUSTOM_RANK.get(name, len(_CUSTOM_RANK)), _bytes(name)
        if name in _RANK:
            return 0, _RANK[name], b""
        if rules and name not in attributes:
            return 2, 0, b""
        return 1, 0, _bytes(name)

    return sorted(names, key=rank)


def _bytes(name: str) -> bytes:
    return name.encode("utf-8", "surrogatepass")


def _attribute(kind: str, name: str, value: str, comment: str) -> list[str]:
    if value.endswith("\\") and not comment:
        # The line would continue in the next one.
        comment = ";"
    pieces = [value]
    if kind == "command" and name == "command_line" and len(name) + len(value) > LONG_COMMAND:
        pieces = split_command(value)
    first = f"  {name:<{NAME_WIDTH}} {pieces[0]}" if value else f"  {name}"
    lines = [first, *(" " * (34 if item[0] == "|" else 36) + item for item in pieces[1:])]
    lines[:-1] = [f"{line}\\" for line in lines[:-1]]
    if comment:
        lines[-1] = f"{lines[-1]:<{COMMENT_COLUMN}} {comment}"
    return lines


def split_command(value: str) -> list[str]:
    """A command line cut in front of options, pipes and ``>>`` that no quotes enclose."""
    places = [match.start() for match in _QUOTED_OR_CUT.finditer(value) if match["quoted"] is None]
    cuts = [0, *places, len(value)]
    return [value[start:end] for start, end in itertools.pairwise(cuts)]
