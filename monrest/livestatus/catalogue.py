"""All external commands, read from ``commands.json`` (docs/spec/commands.md, "Arguments").

The templates are those of the cores; braces are placeholders, and ``[|{x}]`` is left out when
``x`` is empty.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from importlib.resources import files
from typing import Literal, TypeAlias, get_args

from attrs import field, frozen

CommandKind: TypeAlias = Literal[
    "contactgroups", "contacts", "hostgroups", "hosts", "servicegroups", "services", "sites"
]
ArgumentType: TypeAlias = Literal[
    "boolean", "integer", "timestamp", "duration", "timeperiod", "hostgroup", "string"
]
Permission: TypeAlias = Literal[
    "host",
    "service",
    "hostgroup",
    "servicegroup",
    "contact",
    "contactgroup",
    "system",
    "all_hosts+all_services",
]

KINDS: tuple[CommandKind, ...] = get_args(CommandKind)
"""Every kind of object that commands are for; ``sites`` are whole cores."""

SINGULAR: Mapping[CommandKind, str] = {kind: kind.removesuffix("s") for kind in KINDS}
"""The kind as parameters of ``/cmd`` and error texts name it."""

_SPELLINGS: Mapping[str, CommandKind] = {
    **{kind: kind for kind in KINDS},
    **{singular: kind for kind, singular in SINGULAR.items()},
    "system": "sites",
    "core": "sites",
}

_ALIASES: Mapping[str, tuple[str, ...]] = {
    "comment_data": ("comment",),
    "comment_author": ("author",),
    "persistent_comment": ("persistent",),
    "send_notification": ("notify",),
    "sticky_ack": ("sticky",),
}
"""Further names that clients use, by the name in the catalogue."""

_ATTEMPTS = ("attempts", "interval")


@frozen(kw_only=True)
class Argument:
    """One argument; ``default`` may be symbolic: now, now + downtime_duration, current user.

    ``aliases`` are further names under which it is accepted.
    """

    name: str
    type: ArgumentType
    required: bool = False
    default: str | int | None = None
    aliases: tuple[str, ...] = ()


@frozen(kw_only=True)
class Command:
    """One command of one kind of object.

    ``number``: the type number of the command in Nagios, which older front ends configure with;
    several commands that send the same one share it. ``wants_comment``: a comment goes with it
    where the configuration requires one. ``lookup``: sent once for every comment or downtime found.
    ``frontend``: its name is none of the core's.
    """

    kind: CommandKind
    name: str
    number: int
    template: str
    arguments: tuple[Argument, ...]
    permission: Permission
    description: str = field(eq=False)
    wants_comment: bool = False
    lookup: bool = False
    frontend: bool = False

    @property
    def core_name(self) -> str:
        return self.template.partition(";")[0]

    def is_in(self, selection: Iterable[str]) -> bool:
        """Whether a selection of names, type numbers and ranges of them (``35-36``) has it.

        The name of a command of the core selects all that send it, as its number does.
        """
        for item in selection:
            if item.lower() in (self.name, self.core_name.lower()):
                return True
            first, _, last = item.partition("-")
            if first.isdecimal() and int(first) <= self.number <= int(last or first):
                return True
        return False

    def argument(self, name: str) -> Argument | None:
        return next((argument for argument in self.arguments if argument.name == name), None)


def singular(kind: str) -> str:
    """The kind as permission texts and parameters name it, for example ``host``."""
    return SINGULAR[_SPELLINGS[kind]]


def find(kind: str, name: str) -> Command | None:
    """The command by its name in any case; None for no such command or kind.

    The kind may be singular or plural, and ``system`` or ``core`` for ``sites``.
    """
    spelled = _SPELLINGS.get(kind)
    if spelled is None:
        return None
    commands = COMMANDS[spelled]
    return commands.get(name) or commands.get(name.lower())


def suggestion(kind: str, name: str) -> str:
    """The command that a wrong name for ``kind`` may mean; slow for every name."""
    name = name.lower()[:100]
    others = [SINGULAR[other] for other, commands in COMMANDS.items() if name in commands]
    if others:
        return f"{name} is a command for type {' and '.join(others)}"
    commands = COMMANDS[_SPELLINGS[kind]]
    close = get_close_matches(name, commands) or [other for other in commands if name in other][:3]
    if not close:
        return "docs/api/external-commands.md lists all commands"
    return f"similar commands: {', '.join(close)}"


def _read() -> Mapping[CommandKind, Mapping[str, Command]]:
    """Raises KeyError, TypeError and ValueError for a broken file."""
    raw = json.loads((files("monrest.livestatus") / "commands.json").read_text("utf-8"))
    commands: dict[CommandKind, dict[str, Command]] = {}
    for kind in KINDS:
        commands[kind] = {}
        for name, facts in raw[kind].items():
            arguments = []
            for entry in facts.pop("args"):
                aliases = _ALIASES.get(entry["name"], ())
                if re.fullmatch("change_max_.*_check_attempts", name):
                    aliases = tuple(other for other in _ATTEMPTS if other != entry["name"])
                arguments.append(Argument(**entry, aliases=aliases))
            commands[kind][name] = Command(
                kind=kind, name=name, arguments=tuple(arguments), **facts
            )
    return commands


COMMANDS: Mapping[CommandKind, Mapping[str, Command]] = _read()

ARGUMENT_NAMES: frozenset[str] = frozenset(
    name
    for commands in COMMANDS.values()
    for command in commands.values()
    for argument in command.arguments
    for name in (argument.name, *argument.aliases)
)
"""Names of arguments of all commands, aliases included."""

ALL: tuple[Command, ...] = tuple(
    command for commands in COMMANDS.values() for command in commands.values()
)
