r"""Building command lines: the only place where something for a core to do is put together.

A newline inside a line would start a command of its own, a semicolon in any field but a last free
text would shift the fields behind it. Both are refused here once more, also when they were checked
before (docs/spec/commands.md, "What goes into a line").
"""

from __future__ import annotations

import re

from monrest.base.errors import BadRequest
from monrest.base.values import Capabilities
from monrest.livestatus.command import CoreCommand
from monrest.livestatus.lql import LONGEST_LINE

_NAME = re.compile(r"[A-Z][A-Z0-9_]*\Z")
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_NOT_NEWLINE = re.compile(r"\\(?!n)")

_FRAMED = b"\nResponseHeader: fixed16\nKeepAlive: on\n\n"
_WRAPPED = b"\nResponseHeader: fixed16\nOutputFormat: wrapped_json\n\n"
_BARRIER = (
    b"\n\nGET status\nResponseHeader: fixed16\nKeepAlive: on\nOutputFormat: json\n"
    b"Columns: program_start\nLimit: 1\n\n"
)


def line(command: CoreCommand, at: int, *, decodes_backslashes: bool) -> str:
    r"""``COMMAND [at] NAME;field;field`` without a newline; ``at`` is a unix time.

    With ``decodes_backslashes`` every backslash is doubled, except that ``\n`` of plugin output
    stays what it stands for. Raise BadRequest for a control character, a semicolon where it would
    shift fields, a line that is too long and text that is not Unicode; ValueError for a name that
    is none.
    """
    if not _NAME.match(command.name):
        raise ValueError(f"not a name of a command: {command.name!r}")
    fields = list(command.fields)
    for at_field, text in enumerate(fields):
        last = at_field == len(fields) - 1
        if _CONTROL.search(text):
            raise _refused(command, "control characters are not allowed")
        if ";" in text and not (last and command.last != "field"):
            raise _refused(command, "a semicolon is allowed only at the end, in a text")
        if decodes_backslashes and "\\" in text:
            if last and command.last == "output":
                fields[at_field] = _NOT_NEWLINE.sub(r"\\\\", text)
            else:
                fields[at_field] = text.replace("\\", "\\\\")
    done = f"COMMAND [{at:d}] {';'.join([command.name, *fields])}"
    try:
        length = len(done.encode())
    except UnicodeEncodeError:
        raise _refused(command, "a value is not valid Unicode") from None
    if length > LONGEST_LINE:
        raise _refused(command, f"its values are longer than {LONGEST_LINE} bytes together")
    return done


def _refused(command: CoreCommand, why: str) -> BadRequest:
    return BadRequest("sending command failed", f"{command.name}: {why}")


def decodes_backslashes(capabilities: Capabilities) -> bool:
    """Whether the core reads a backslash as the beginning of an escape.

    An LMD passes lines on as they are; the version of its first site shows what is behind it.
    """
    if capabilities.kind == "lmd":
        return "icinga" not in capabilities.livestatus_version
    return capabilities.kind == "naemon"


def pipelines(kind: str) -> bool:
    """Whether a core of this kind takes the next command before it answered the last one.

    A Shinken takes all that it has received for one request; an LMD reports the failures of
    several commands with the first of them.
    """
    return kind in ("naemon", "icinga2")


def keeps_connection(kind: str) -> bool:
    """Whether a core of this kind takes a further command on the same connection.

    An LMD collects commands until the end of what is sent. One that gave up waiting for its sites
    says nothing more, which would look like a slow one; without KeepAlive it closes the connection.
    """
    return kind != "lmd"


def request(text: str, kind: str, backend: str = "") -> bytes:
    """The bytes for one line, with what makes a core of this kind report what became of it.

    Naemon says nothing about success and takes lines below COMMAND for the next request, so a
    cheap query follows. Icinga 2 and LMD are asked for a header; an Icinga 2 2.13.6 then says 200
    with no body, or 452 with a reason and a stack trace, also when pipelined, and stays open.
    An LMD gives a command to all of its sites unless ``backend`` names one.
    """
    named = f"\nBackends: {backend}".encode() if backend else b""
    return text.encode() + named + {"icinga2": _FRAMED, "lmd": _WRAPPED}.get(kind, _BARRIER)
