"""What texts of commands may hold, which is what keeps injected commands out.

A line below a command is a request of its own to a core, and a semicolon ends a field.

Rules: docs/spec/commands.md, "What goes into a line".
"""

from __future__ import annotations

import re

from monrest.base.errors import BadRequest

BLANKED = frozenset({"comment_data", "plugin_output", "log"})
"""Arguments in which line ends and tabs become spaces; in plugin output the two characters."""

_LINE_END = re.compile(r"\r\n|\n|\r")
_FORBIDDEN = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")


def cleaned(name: str, text: str) -> str:
    r"""The text of argument ``name`` as a core may get it.

    Line ends and tabs become spaces in ``BLANKED``; in ``plugin_output`` line ends become the two
    characters backslash and n, by which cores know further lines. Raise BadRequest for every
    other control character.
    """
    if name in BLANKED:
        text = _LINE_END.sub(r"\\n" if name == "plugin_output" else " ", text).replace("\t", " ")
    check(name, text)
    return text


def check(name: str, text: str) -> None:
    """Raise BadRequest unless ``text`` is free of control characters and of half characters."""
    forbidden = _FORBIDDEN.search(text)
    if forbidden is not None:
        raise BadRequest(
            f"invalid value for {name}",
            f"{name}: expected text without control characters, got U+{ord(forbidden[0]):04X}",
        )


def check_field(name: str, text: str) -> None:
    """Raise BadRequest also for a semicolon, which would shift the fields that follow."""
    check(name, text)
    if ";" in text:
        raise BadRequest(f"invalid value for {name}", f"{name}: expected text without semicolons")
