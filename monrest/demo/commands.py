"""External commands: reading a line as Naemon does, and finding the function that obeys it.

Success is silent; what is wrong with a command is answered as text
(docs/spec/livestatus.md, "Commands on the wire").
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from monrest.demo.command_model import Argument, CommandError, CommandSpec, Values
from monrest.demo.command_table import COMMANDS
from monrest.demo.core import Core
from monrest.demo.simulation import Simulation

_COMMAND = re.compile(r"\[(\d+)\] ([A-Z_]+)(?:;(.*))?\Z", re.DOTALL)
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)
_NUMBER = re.compile(r"(-?)(\d+)(.*)\Z", re.DOTALL)


def decode(text: str) -> str:
    r"""Undo the backslashes of an argument: ``\n`` is a newline, ``\X`` is X."""
    return _ESCAPE.sub(lambda match: "\n" if match[1] == "n" else match[1], text)


def run(core: Core, simulation: Simulation, line: str) -> str | None:
    """Execute ``[time] NAME;arguments``. Answers None, or why the core refuses it."""
    match = _COMMAND.match(decode(line))
    if match is None:
        return "Malformed command: '[TIMESTAMP] NAME;ARGUMENTS' expected"
    name, rest = match[2], match[3]
    core.last_command_check = core.now()
    spec = COMMANDS.get(name)
    if spec is None:
        return f"Unknown command '{name}'"
    if name == "LOG":
        parts: list[str] = [rest or ""]
    else:
        parts = _split(rest, spec)
    try:
        values = read_arguments(core, spec, parts)
    except CommandError as error:
        return str(error)
    if name != "LOG":
        # Newlines of arguments stay two characters in the log.
        text = name if rest is None else f"{name};{rest}"
        core.log.write(core.wall.now(), f"EXTERNAL COMMAND: {text}")
    spec.obey(core, simulation, values)
    core.tell("command")
    return None


def _split(rest: str | None, spec: CommandSpec) -> list[str]:
    """Fields of the arguments; a text at the end keeps its semicolons."""
    if rest is None:
        return []
    fields = sum(2 if item.type == "service" else 1 for item in spec.arguments)
    if fields and spec.arguments[-1].type == "str":
        return rest.split(";", fields - 1)
    return rest.split(";")


def read_arguments(core: Core, spec: CommandSpec, parts: list[str]) -> Values:
    """Check and convert the arguments. Raises CommandError."""
    values: Values = {}
    position = 0
    for number, argument in enumerate(spec.arguments):
        width = 2 if argument.type == "service" else 1
        taken = parts[position : position + width]
        position += width
        if len(taken) < width or not any(taken):
            if not argument.optional:
                raise CommandError(
                    f"No value for argument {argument.name} provided, and no default found"
                )
            values[argument.name] = "" if argument.type == "str" else None
            continue
        values[argument.name] = _convert(core, argument, number, taken)
    if spec.arguments and len(parts) > position:
        raise CommandError(f"Too many arguments to command - expected {len(spec.arguments)}")
    return values


def _convert(core: Core, argument: Argument, number: int, taken: list[str]) -> Any:
    kind, text = argument.type, taken[0]
    if kind == "str":
        return text
    if kind in ("id", "ulong", "timestamp", "int", "bool"):
        return _number(argument, number, text)
    inventory = core.inventory
    tables: Mapping[str, Mapping[Any, Any]] = {
        "host": inventory.hosts,
        "service": inventory.services,
        "hostgroup": inventory.hostgroups,
        "servicegroup": inventory.servicegroups,
        "contact": inventory.contacts,
        "contactgroup": inventory.contactgroups,
        "timeperiod": inventory.timeperiods,
    }
    found = tables[kind].get(tuple(taken) if kind == "service" else text)
    if found is None:
        raise CommandError(
            f"Failed validation of {argument.name} as type {kind} (argument {number})"
        )
    return found


def _number(argument: Argument, position: int, text: str) -> int:
    kind = "ulong" if argument.type in ("id", "timestamp") else argument.type
    shown = "ulong" if argument.type == "id" else argument.type
    where = f"Couldn't parse {shown} argument {argument.name} (argument {position})"
    match = _NUMBER.match(text.strip())
    if match is None:
        raise CommandError(f"{where}: No digits found in {kind} '{text}'")
    sign, digits, rest = match.groups()
    if rest or (sign and kind != "int"):
        raise CommandError(f"{where}: Invalid characters ({rest or sign}) in {kind} '{text}'")
    value = int(sign + digits)
    if kind == "bool" and value not in (0, 1):
        raise CommandError(f"{where}: 0 or 1 expected, not '{text}'")
    if argument.type == "id" and not value:
        raise CommandError(
            f"Failed validation of {argument.name} as type {kind} (argument {position})"
        )
    return value
