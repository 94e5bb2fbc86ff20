"""Expanding a check command to its command line (docs/spec/objectconfig.md, "Command lines"); pure.

Only values in rows of a host, a service and the list of commands are used; a macro without one
stays as it is and is reported.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Mapping, Sequence
from datetime import datetime, tzinfo
from typing import Any, Literal

from attrs import frozen

from monrest.base.errors import BadRequest
from monrest.base.hidden import HIDDEN
from monrest.config.patterns import MacroNames, Replacement
from monrest.query.regex import compile_pattern
from monrest.query.scalars import number_of, text_of

_MACRO = re.compile(r"\$([A-Za-z0-9_:-]+)\$")
_ARGUMENT = re.compile(r"ARG([0-9]+)\Z")
_NOT_ESCAPED = re.compile(r"(?<!\\)!")
NOT_EXPANDED = "could not expand all macros!"
NO_COMMAND = "no command defined"

_STATES = {
    "HOST": ("UP", "DOWN", "UNREACHABLE"),
    "SERVICE": ("OK", "WARNING", "CRITICAL", "UNKNOWN"),
}
_OF_BOTH = {
    "LATENCY": "latency", "OUTPUT": "plugin_output", "PERFDATA": "perf_data",
    "ATTEMPT": "current_attempt", "DOWNTIME": "scheduled_downtime_depth",
    "CHECKCOMMAND": "check_command", "NOTESURL": "notes_url_expanded",
}  # fmt: skip
_COLUMNS = {
    "HOST": {
        **_OF_BOTH, "ADDRESS": "address", "NAME": "name", "ALIAS": "alias",
        "NOTES": "notes_expanded",
    },
    "SERVICE": {**_OF_BOTH, "DESC": "description"},
}  # fmt: skip
"""Macros that are the value of a column, without the kind of object in front."""

_FURTHER = ("state", "state_type", "last_state_change", "max_check_attempts", "custom_variables")
HOST_FIELDS = (*_COLUMNS["HOST"].values(), *_FURTHER)
SERVICE_FIELDS = (*_COLUMNS["SERVICE"].values(), *_FURTHER, *(f"host_{n}" for n in HOST_FIELDS))
"""The columns that the macros of an object are made of."""

_PATTERN_VARIABLES = ("OBFUSCATE_REGEXP", "OBFUSCATE_REGEX", "OBFUSCATE_ME")
_TEXT_VARIABLES = ("OBFUSCATE_STRING", "OBFUSCATE_STR")


@frozen
class CommandLine:
    """``check_command``, ``command_line`` and ``error`` of the resource."""

    check_command: str
    command_line: str
    error: str = ""


def expand(
    check_command: str, commands: Mapping[str, str], macros: Mapping[str, str]
) -> CommandLine:
    """The line of a check: ``commands`` maps names to lines, ``macros`` names to values."""
    if not check_command:
        return CommandLine(NO_COMMAND, "")
    name, *arguments = _NOT_ESCAPED.split(check_command)
    line = commands.get(name)
    if line is None:
        return CommandLine("", "")
    missing: list[str] = []

    def plain(match: re.Match[str]) -> str:
        value = macros.get(match[1])
        if value is None:
            if not _ARGUMENT.match(match[1]):
                missing.append(match[1])
            return match[0]
        return value

    expanded = [_MACRO.sub(plain, argument) for argument in arguments]

    def whole(match: re.Match[str]) -> str:
        argument = _ARGUMENT.match(match[1])
        if argument:
            at = int(argument[1]) - 1
            return expanded[at] if 0 <= at < len(expanded) else ""
        return plain(match)

    text = _MACRO.sub(whole, line)
    text = text.replace("$$", "$").replace("\\;", ";").replace("\\!", "!")
    return CommandLine(check_command, text, NOT_EXPANDED if missing else "")


def object_macros(
    kind: Literal["HOST", "SERVICE"],
    row: Mapping[str, Any],
    prefix: str,
    site: Mapping[str, str],
    now: float,
) -> dict[str, str]:
    """Macros of an object; ``prefix`` is that of its columns (``host_`` in rows of services)."""
    state = int(number_of(row.get(f"{prefix}state")) or 0)
    changed = number_of(row.get(f"{prefix}last_state_change")) or now
    words = _STATES[kind]
    macros = {
        **{kind + name: _text(row.get(prefix + of)) for name, of in _COLUMNS[kind].items()},
        f"MAX{kind}ATTEMPTS": _text(row.get(f"{prefix}max_check_attempts")),
        f"{kind}STATEID": str(state),
        f"{kind}STATE": words[state] if 0 <= state < len(words) else "",
        f"{kind}STATETYPE": "HARD" if row.get(f"{prefix}state_type") else "SOFT",
        f"{kind}DURATION": str(int(now - changed)),
        **{kind + name: text for name, text in site.items()},
    }
    for name, text in variables(row, prefix).items():
        macros[f"_{kind}{name.upper()}"] = text
    return macros


def variables(row: Mapping[str, Any], prefix: str) -> Mapping[str, str]:
    """Custom variables as texts; a site that sends something else has sent none."""
    sent = row.get(f"{prefix}custom_variables")
    return {name: text_of(value) for name, value in sent.items()} if isinstance(sent, dict) else {}


def command_of(row: Mapping[str, Any], source: str) -> str:
    """The command of an object: what ``source`` holds, else its check command.

    ``source`` is an attribute, or a custom variable with its underscore
    (``display.show_full_commandline_source``).
    """
    if source.startswith("_"):
        wanted = source[1:].upper()
        own = variables(row, "")
        text = next((value for name, value in own.items() if name.upper() == wanted), "")
    else:
        text = text_of(row.get(source))
    return text or text_of(row.get("check_command"))


def time_macros(now: float, zone: tzinfo) -> dict[str, str]:
    moment = datetime.fromtimestamp(now, zone)
    return {
        "SHORTDATETIME": moment.strftime("%Y-%m-%d %H:%M:%S"),
        "LONGDATETIME": moment.strftime("%a %b %d %H:%M:%S %Z %Y"),
        "DATE": moment.strftime("%Y-%m-%d"),
        "TIME": moment.strftime("%H:%M:%S"),
        "TIMET": str(int(now)),
    }


def hide(
    line: CommandLine, replacements: Sequence[Replacement], *variables: Mapping[str, str]
) -> CommandLine:
    """Replace what the configuration and the object's own variables ask to hide, in both texts."""
    command, text = line.check_command, line.command_line
    for replacement in replacements:
        command, text = replacement.apply(command), replacement.apply(text)
    for variable in variables:
        for name, value in variable.items():
            wanted = _decoded(value)
            if not wanted:
                continue
            if name.upper() in _TEXT_VARIABLES:
                command, text = command.replace(wanted, HIDDEN), text.replace(wanted, HIDDEN)
            elif name.upper() in _PATTERN_VARIABLES:
                try:
                    pattern = compile_pattern(wanted, ignore_case=False, parameter=name)
                except BadRequest:
                    # A pattern that cannot be applied must not show what it should hide.
                    command = text = HIDDEN
                    continue
                command, text = pattern.sub(HIDDEN, command), pattern.sub(HIDDEN, text)
    return CommandLine(command, text, line.error)


def _decoded(value: str) -> str:
    for mark in ("b64:", "base64:"):
        if value.startswith(mark):
            try:
                return base64.b64decode(value[len(mark) :], validate=True).decode()
            except (binascii.Error, UnicodeDecodeError):
                return value
    return value


def _text(value: Any) -> str:
    return "" if value is None else str(value)


def user_macros(text: str, wanted: MacroNames) -> dict[str, str]:
    """``$USERn$`` macros of a resource file, as far as they are ``wanted``."""
    macros = {}
    for line in text.splitlines():
        name, equal, value = line.strip().partition("=")
        match = _MACRO.fullmatch(name.strip())
        if equal and match and wanted.has(match[1]):
            macros[match[1]] = value.strip()
    return macros
