"""How the effect of a command shows in a core's tables, as values."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

from attrs import field, frozen

from monrest.base.values import Capabilities, Row
from monrest.livestatus.catalogue import Command, CommandKind
from monrest.livestatus.command import Target
from monrest.query.model import CoreFilter, Group, Test

RowSequence: TypeAlias = Sequence[Row]


@frozen(kw_only=True)
class Effect:
    """Where to look whether a command had its effect.

    ``table``, ``columns`` and ``filter`` are one query to the core, whose rows (normalised,
    in the order of ``columns``) decide. ``before``: the same query has to be made before the
    command is sent, too. ``what`` is its name. ``state``: it is a value that the next command
    for the same columns replaces. ``seen`` judges the rows from before (none unless ``before``)
    and after. ``nothing`` gives the reason why the command has nothing to act on, empty if it has,
    by the rows from before if ``before``, else by any.
    """

    table: str
    columns: tuple[str, ...]
    filter: CoreFilter | None
    what: str
    before: bool = False
    state: bool = False
    seen: Callable[[RowSequence, RowSequence], bool] = field(eq=False, repr=False)
    nothing: Callable[[RowSequence], str] = field(eq=False, repr=False, default=lambda _rows: "")


@frozen
class Unseen:
    """No core, or not this one, shows the effect."""

    reason: str


@frozen(kw_only=True)
class SentCommand:
    """A command with everything that decides about its effect.

    ``now`` is the time of the request in Unix time. ``ids`` are the comments or downtimes that
    were found for a command that is resolved by lookup. ``core`` None stands for Naemon.
    """

    command: Command
    target: Target
    arguments: Mapping[str, str]
    now: float
    core: Capabilities | None = None
    ids: tuple[int, ...] = ()

    @property
    def on_icinga2(self) -> bool:
        return self.core is not None and self.core.icinga2


ReadEffect: TypeAlias = Callable[[SentCommand], Effect | Unseen]


@frozen(kw_only=True)
class CommandedRows:
    """The rows on which a command acts: ``prefix`` goes before the columns that are its own.

    ``one``: it is a single object.
    """

    table: str
    limit: Callable[[Target], CoreFilter | None]
    called: Callable[[Target], str]
    key: str = "name"
    prefix: str = ""
    one: bool = False


def _test(column: str, op: str = "=") -> Callable[[Target], CoreFilter]:
    return lambda target: Test(column, op, target.name)


HOST = CommandedRows(
    table="hosts", limit=_test("name"), called=lambda one: f"host {one.name}", one=True
)
SERVICE = CommandedRows(
    table="services",
    limit=lambda one: Group(
        "and", (Test("host_name", "=", one.name), Test("description", "=", one.service))
    ),
    called=lambda one: f"service {one.service} on host {one.name}",
    key="description",
    one=True,
)
SERVICES_OF_HOST = CommandedRows(
    table="services",
    limit=_test("host_name"),
    called=lambda one: f"services of host {one.name}",
    key="description",
)
WITH_CHILDREN = CommandedRows(
    table="hosts",
    limit=lambda one: Group("or", (Test("name", "=", one.name), Test("parents", ">=", one.name))),
    called=lambda one: f"host {one.name} and its children",
)
BEYOND = CommandedRows(
    table="hosts", limit=_test("parents", ">="), called=lambda one: f"hosts behind {one.name}"
)
HOSTS_OF_HOSTGROUP = CommandedRows(
    table="hosts",
    limit=_test("groups", ">="),
    called=lambda one: f"hosts of host group {one.name}",
)
SERVICES_OF_HOSTGROUP = CommandedRows(
    table="services",
    limit=_test("host_groups", ">="),
    called=lambda one: f"services of host group {one.name}",
)
HOSTS_OF_SERVICEGROUP = CommandedRows(
    table="services",
    limit=_test("groups", ">="),
    called=lambda one: f"hosts of service group {one.name}",
    prefix="host_",
)
SERVICES_OF_SERVICEGROUP = CommandedRows(
    table="services",
    limit=_test("groups", ">="),
    called=lambda one: f"services of service group {one.name}",
)
CONTACT = CommandedRows(
    table="contacts", limit=_test("name"), called=lambda one: f"contact {one.name}", one=True
)
CONTACTS_OF_GROUP = CommandedRows(
    table="contacts",
    limit=_test("groups", ">="),
    called=lambda one: f"contacts of contact group {one.name}",
)
CORE = CommandedRows(table="status", limit=lambda _target: None, called=lambda _target: "the core")

KINDS: tuple[tuple[CommandKind, str, CommandedRows], ...] = (
    ("hosts", "host", HOST),
    ("services", "svc", SERVICE),
)
"""Kind of a command, the word for it in names of commands, the place that is commanded."""


def none_of(place: CommandedRows, target: Target) -> Callable[[RowSequence], str]:
    text = f"there {'is' if place.one else 'are'} no {place.called(target)}"
    return lambda rows: "" if rows else text


def states(
    place: CommandedRows, column: str, holds: Callable[[object], bool], text: str
) -> ReadEffect:
    """Every row of a place has the right value in one column; ``text`` says which."""

    def read(sent: SentCommand) -> Effect:
        name = place.prefix + column
        return Effect(
            table=place.table,
            columns=(name,),
            filter=place.limit(sent.target),
            what=f"{name} {text} for {place.called(sent.target)}",
            state=True,
            seen=lambda _before, rows: bool(rows) and all(holds(row[0]) for row in rows),
            nothing=none_of(place, sent.target),
        )

    return read


def unseen(reason: str) -> ReadEffect:
    return lambda _sent: Unseen(reason)


Info: TypeAlias = Sequence[object]
"""A comment or downtime inside a row: id, author, text, and on most cores more."""


def infos(value: object) -> list[Info]:
    """The elements of a ``…_with_info`` column; what is none of that is left out."""
    if not isinstance(value, list):
        return []
    return [
        info
        for info in value
        if isinstance(info, list) and len(info) > 2 and isinstance(info[0], int)
    ]


def number(value: object) -> float:
    """A number or flag of a row; 0 for what is none."""
    return value if isinstance(value, (int, float)) else 0


def variables(value: object) -> Mapping[str, object]:
    """Custom variables by name, which Icinga 2 gives as pairs."""
    if isinstance(value, dict):
        return value
    if not isinstance(value, list):
        return {}
    return {str(pair[0]): pair[1] for pair in value if isinstance(pair, list) and len(pair) > 1}


_BROKEN = re.compile("[\U00010000-\U0010ffff\u07c0-\u07ff\ufffd]")


def alike(one: object, other: str) -> bool:
    """Whether a core's text is what was sent, as far as cores give texts back.

    Blanks at both ends may be lost, and one core breaks what lies beyond U+FFFF.
    """
    return _comparable(str(one)) == _comparable(other)


def _comparable(text: str) -> str:
    return _BROKEN.sub("?", text).strip()
