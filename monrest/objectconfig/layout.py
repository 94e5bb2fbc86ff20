"""The text of a definition that was changed or created (docs/spec/objectconfig.md, "Layout")."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from monrest.objectconfig.attributes import OBJECT_TYPES

if TYPE_CHECKING:
    from monrest.objectconfig.document import Block

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

_BARE_SEMICOLON = re.compile(r"(?<!\\);")
_LINE_BREAKS = re.compile(r"[\r\n]+")
_QUOTED = r"""'[^']*(?:'|\Z)|"(?:[^"\\]|\\.)*(?:"|\Z)|\\."""
_CUT = r"(?<=[ \t])(?=--?[A-Za-z]|\|[ \t]|>>)"
_QUOTED_OR_CUT = re.compile(f"(?P<quoted>{_QUOTED})|{_CUT}")


def clean(kind: str, name: str, value: str) -> str:
    """A value as it can stand in a file: one line, no bare semicolon, lists without blanks."""
    value = _BARE_SEMICOLON.sub(r"\\;", _LINE_BREAKS.sub(" ", value)).strip(" \t")
    attribute = OBJECT_TYPES[kind].attributes.get(name)
    if attribute is None or "," not in value:
        return value
    if attribute.kind in ("list", "options"):
        return ",".join(filter(None, (part.strip() for part in value.split(","))))
    if attribute.kind in ("pairs", "service_ref"):
        return ",".join(part.strip() for part in value.split(","))
    return value


def text_of(block: Block) -> list[str]:
    """The lines of a definition without line ends: comments from inside it, then itself."""
    return lines_of(
        block.type,
        block.attributes,
        block.inline,
        block.inner_comments,
        opening=block.opening,
        closing=block.closing,
        disabled=block.disabled,
    )


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
    """The same from its parts; ``opening`` and ``closing`` follow the braces."""
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
    known = OBJECT_TYPES[kind].attributes
    rules = kind == "timeperiod"

    def rank(name: str) -> tuple[int, int, bytes]:
        if name.startswith("_"):
            return 3, _CUSTOM_RANK.get(name, len(_CUSTOM_RANK)), _bytes(name)
        if name in _RANK:
            return 0, _RANK[name], b""
        if rules and name not in known:
            return 2, 0, b""
        return 1, 0, _bytes(name)

    return sorted(names, key=rank)


def _bytes(name: str) -> bytes:
    return name.encode("utf-8", "surrogatepass")


def _attribute(kind: str, name: str, value: str, comment: str) -> list[str]:
    if value.endswith("\\") and not comment:
        # The line would go on with the next one.
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
    found = [match.start() for match in _QUOTED_OR_CUT.finditer(value) if match["quoted"] is None]
    cuts = [0, *found, len(value)]
    return [value[start:end] for start, end in itertools.pairwise(cuts)]
