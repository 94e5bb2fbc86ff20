"""From a command with its arguments to the orders of a core.

Rules: docs/spec/commands.md, "Commands resolved by look-up".
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Literal, TypeAlias

from attrs import frozen

from monrest.base.errors import BadRequest
from monrest.commands.arguments import may_hold_semicolons, require_field
from monrest.livestatus.catalogue import Command, find, singular
from monrest.livestatus.command import CoreCommand, Last, Target

LONGEST_ARGUMENTS = 30_000
"""Bytes of all fields together: a core reads lines of 65,536, and backslashes may be doubled."""

_OPTIONAL = re.compile(r"\[(\|)\{(\w+)\}\]")
_PLACEHOLDER = re.compile(r"\{(\w+)\}")


def orders(
    command: Command, target: Target, arguments: Mapping[str, str]
) -> tuple[CoreCommand, ...]:
    """The orders of every site: the command, and the comment that goes with it if there is one.

    ``arguments`` are those of ``parse``. A command that is resolved by look-up has none:
    its orders are those of ``removal``. Raise BadRequest for a name that must not be in a line.
    """
    check_target(target)
    if command.lookup:
        return ()
    first = _filled(command, target, arguments)
    if command.wants_comment and arguments.get("comment_data"):
        return _checked((first, _comment(command, target, arguments)))
    return _checked((first,))


def check_target(target: Target) -> None:
    """Raise BadRequest for an empty name, or one that must not be in a line."""
    for word, text in _names(target).items():
        if not text:
            raise BadRequest(f"missing argument: {word}", f"{word} is a required argument")
        require_field(word, text)


_NAMED: Mapping[str, str] = {"timeperiod": "timeperiods", "hostgroup": "hostgroups"}
"""Types of arguments, each with the kind of object that it names."""

_ENTRIES: Mapping[str, str] = {
    "del_host_comment": "host_comments",
    "del_svc_comment": "service_comments",
    "del_host_downtime": "host_downtimes",
    "del_svc_downtime": "service_downtimes",
}
"""Commands whose only argument is the id of an entry, with the kind of the entry."""


def named(command: Command, arguments: Mapping[str, str]) -> Mapping[str, Target]:
    """The objects and entries that arguments name, by argument; a core must have them."""
    if (kind := _ENTRIES.get(command.name)) is not None:
        return {
            argument.name: Target(kind, arguments[argument.name]) for argument in command.arguments
        }
    return {
        argument.name: Target(_NAMED[argument.type], arguments[argument.name])
        for argument in command.arguments
        if argument.type in _NAMED and argument.name in arguments
    }


def _filled(command: Command, target: Target, arguments: Mapping[str, str]) -> CoreCommand:
    name, *fields = command.template.split(";")
    values = {**_names(target), **arguments}
    return CoreCommand(
        name, tuple(_field(template, values) for template in fields), _last(command, fields)
    )


def _names(target: Target) -> Mapping[str, str]:
    if target.kind == "sites":
        return {}
    if target.kind == "services":
        return {"host": target.name, "service": target.service}
    return {singular(target.kind): target.name}


def _field(template: str, values: Mapping[str, str]) -> str:
    template = _OPTIONAL.sub(
        lambda match: f"{match[1]}{{{match[2]}}}" if values[match[2]] else "", template
    )
    return _PLACEHOLDER.sub(lambda match: values[match[1]], template)


def _last(command: Command, fields: list[str]) -> Last:
    names = _PLACEHOLDER.findall(fields[-1]) if fields else []
    if "plugin_output" in names:
        return "output"
    return "text" if any(may_hold_semicolons(command, name) for name in names) else "field"


def _comment(command: Command, target: Target, arguments: Mapping[str, str]) -> CoreCommand:
    name = "ADD_SVC_COMMENT" if target.kind == "services" else "ADD_HOST_COMMENT"
    owner = tuple(_names(target).values())
    text = f"{command.core_name}: {arguments['comment_data']}"
    return CoreCommand(name, (*owner, "1", arguments["comment_author"], text), "text")


def _checked(commands: tuple[CoreCommand, ...]) -> tuple[CoreCommand, ...]:
    for order in commands:
        if sum(len(text.encode()) for text in order.fields) > LONGEST_ARGUMENTS:
            raise BadRequest(
                "command too long",
                f"{order.name}: expected at most {LONGEST_ARGUMENTS} bytes of arguments",
            )
    return commands


EntryTable: TypeAlias = Literal["comments", "downtimes"]


@frozen(kw_only=True)
class Removal:
    """Comments or downtimes of one host or service that are to be deleted, by id on each site.

    ``id``: only this one. ``started_by``: only those that start at or before this Unix time.
    ``about``: only comments that were made with this command.
    """

    table: EntryTable
    target: Target
    id: int | None = None
    started_by: float | None = None
    about: str = ""

    def matches(self, number: int, text: str, start: float) -> bool:
        """Whether an entry of the target is meant; ``start`` counts for downtimes only."""
        return (
            (self.id is None or number == self.id)
            and (self.started_by is None or start <= self.started_by)
            and (not self.about or text == self.about or text.startswith(f"{self.about}:"))
        )

    def order(self, number: int) -> CoreCommand:
        """The order that deletes the entry with this id."""
        kind = "SVC" if self.target.kind == "services" else "HOST"
        word = "DOWNTIME" if self.table == "downtimes" else "COMMENT"
        return CoreCommand(f"DEL_{kind}_{word}", (str(number),))

    def orders(self, numbers: Iterable[int]) -> tuple[CoreCommand, ...]:
        return tuple(self.order(number) for number in numbers)


def removal(
    command: Command, target: Target, arguments: Mapping[str, str], now: float
) -> Removal | None:
    """The entries that the command deletes by look-up, instead of or beside its own line."""
    if not command.lookup:
        opposite = find(command.kind, re.sub("^enable_", "disable_", command.name))
        if opposite is None or opposite is command or not opposite.wants_comment:
            return None
        # The comments that were made with the opposite command.
        return Removal(table="comments", target=target, about=opposite.core_name)
    table: EntryTable = "downtimes" if command.core_name.endswith("_DOWNTIME") else "comments"
    name = next((name for name in ("comment_id", "downtime_id") if name in arguments), None)
    if name is None:
        return Removal(table=table, target=target, started_by=now)
    return Removal(table=table, target=target, id=int(arguments[name]))
