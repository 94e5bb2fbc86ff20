"""The effects of commands in a core's tables (docs/spec/commands.md, "Effects").

Each predicate says where to look after a command and what has to be there: a value, a custom
variable, a new comment or downtime, nothing of what was there, a check, a line of the log, another
start of the core.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

from attrs import field, frozen

from monrest.base.values import Capabilities, Row
from monrest.livestatus.catalogue import Command
from monrest.livestatus.command import Target
from monrest.query.model import CoreFilter, Group, Test, joined

RowSequence: TypeAlias = Sequence[Row]

_SKEW = 60
"""Seconds by which a core's clock may be behind ours."""

_DAY = 86400


@frozen(kw_only=True)
class Effect:
    """A query that shows whether a command had its effect.

    ``table``, ``columns`` and ``filter`` are one query to the core, whose rows (normalised,
    in the order of ``columns``) decide. ``before``: the same query has to be made before the
    command is sent, too. ``what`` is its name. ``state``: it is a value that the next command
    for the same columns replaces. ``seen`` judges the rows from before (none unless ``before``)
    and after. ``nothing`` returns why the command has nothing to act on, empty if it has something,
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


@frozen
class CommandedRows:
    """The rows on which a command acts, which ``words`` name.

    ``key`` is the column that identifies them, ``prefix`` goes before the columns that are their
    own, ``single``: it is a single object.
    """

    table: str
    words: str
    limit: Callable[[Target], CoreFilter | None]
    key: str = field(default="name", kw_only=True)
    prefix: str = field(default="", kw_only=True)
    single: bool = field(default=False, kw_only=True)

    def called(self, target: Target) -> str:
        return self.words.format(name=target.name, service=target.service)


def _test(column: str, op: str = "=") -> Callable[[Target], CoreFilter]:
    return lambda target: Test(column, op, target.name)


HOST = CommandedRows("hosts", "host {name}", _test("name"), single=True)
SERVICE = CommandedRows(
    "services",
    "service {service} on host {name}",
    lambda target: Group(
        "and", (Test("host_name", "=", target.name), Test("description", "=", target.service))
    ),
    key="description",
    single=True,
)
SERVICES_OF_HOST = CommandedRows(
    "services", "services of host {name}", _test("host_name"), key="description"
)
WITH_CHILDREN = CommandedRows(
    "hosts",
    "host {name} and its children",
    lambda target: Group(
        "or", (Test("name", "=", target.name), Test("parents", ">=", target.name))
    ),
)
BEYOND = CommandedRows("hosts", "hosts behind {name}", _test("parents", ">="))
HOSTS_OF_HOSTGROUP = CommandedRows("hosts", "hosts of host group {name}", _test("groups", ">="))
SERVICES_OF_HOSTGROUP = CommandedRows(
    "services", "services of host group {name}", _test("host_groups", ">=")
)
HOSTS_OF_SERVICEGROUP = CommandedRows(
    "services", "hosts of service group {name}", _test("groups", ">="), prefix="host_"
)
SERVICES_OF_SERVICEGROUP = CommandedRows(
    "services", "services of service group {name}", _test("groups", ">=")
)
CONTACT = CommandedRows("contacts", "contact {name}", _test("name"), single=True)
CONTACTS = CommandedRows("contacts", "contacts of contact group {name}", _test("groups", ">="))
CORE = CommandedRows("status", "the core", lambda _target: None)


def _effect(
    sent: SentCommand,
    place: CommandedRows,
    *columns: str,
    what: str,
    seen: Callable[[RowSequence, RowSequence], bool],
    nothing: Callable[[RowSequence], str] = lambda _rows: "",
    **more: bool,
) -> Effect:
    """An effect on the rows of a place, of which there must be some."""
    called = place.called(sent.target)
    missing = f"there {'is' if place.single else 'are'} no {called}"
    return Effect(
        table=place.table,
        columns=columns,
        filter=place.limit(sent.target),
        what=f"{what} {called}",
        seen=seen,
        nothing=lambda rows: nothing(rows) or ("" if rows else missing),
        **more,
    )


def value(sent: SentCommand, place: CommandedRows, column: str, wanted: int | str) -> Effect:
    """Every row has this number, or the argument of this name, in a column."""
    column = place.prefix + column
    right = sent.arguments[wanted] if isinstance(wanted, str) else wanted
    if wanted != "timeperiod":
        right = int(right)

    def holds(text: object) -> bool:
        if isinstance(right, str):
            return alike(text, right)
        return isinstance(text, (int, float)) and text == right

    return _effect(
        *(sent, place, column),
        what=f"{column} = {right} for",
        seen=lambda _before, rows: bool(rows) and all(holds(row[0]) for row in rows),
        state=True,
    )


def variable(sent: SentCommand, place: CommandedRows) -> Effect:
    """A custom variable has a value; cores with upper-case names have no new ones at run time."""
    name, wanted = sent.arguments["name"].upper(), sent.arguments["value"]

    def read(row: Row) -> object:
        custom = variables(row[0])
        return next((text for key, text in custom.items() if key.upper() == name), None)

    def seen(_before: RowSequence, rows: RowSequence) -> bool:
        values = [read(row) for row in rows]
        return bool(values) and all(value is not None and alike(value, wanted) for value in values)

    def nothing(rows: RowSequence) -> str:
        missing = not sent.on_icinga2 and any(read(row) is None for row in rows)
        return f"{place.called(sent.target)} has no custom variable {name}" if missing else ""

    return _effect(
        *(sent, place, "custom_variables"),
        what=f"custom variable {name} for",
        seen=seen,
        nothing=nothing,
    )


def _fresh(sent: SentCommand, rows: RowSequence, at: int = 0) -> Callable[[Row], list[Info]]:
    """The comments or downtimes of a row as this command makes them that ``rows`` do not have."""
    ids = _ids(rows, at)
    author, text = sent.arguments["comment_author"], sent.arguments["comment_data"]
    return lambda row: [
        info
        for info in infos(row[at])
        if info[0] not in ids and alike(info[1], author) and alike(info[2], text)
    ]


def commented(sent: SentCommand, place: CommandedRows) -> Effect:
    def seen(before: RowSequence, after: RowSequence) -> bool:
        return any(map(_fresh(sent, before), after))

    return _effect(
        *(sent, place, "comments_with_info"),
        what=f"comment by {sent.arguments['comment_author']} on",
        seen=seen,
        before=True,
    )


def acknowledged(sent: SentCommand, place: CommandedRows) -> Effect:
    def seen(before: RowSequence, after: RowSequence) -> bool:
        fresh = _fresh(sent, before, 2)
        return any(row[1] == 1 and fresh(row) for row in after)

    def nothing(rows: RowSequence) -> str:
        fine = rows and all(row[0] == 0 for row in rows)
        return f"{place.called(sent.target)} has no problem to acknowledge" if fine else ""

    return _effect(
        *(sent, place, "state", "acknowledged", "comments_with_info"),
        what=f"acknowledgement by {sent.arguments['comment_author']} on",
        seen=seen,
        nothing=nothing,
        before=True,
    )


def unacknowledged(sent: SentCommand, place: CommandedRows) -> Effect:
    def gone(rows: RowSequence) -> bool:
        return bool(rows) and all(row[0] == 0 for row in rows)

    return _effect(
        *(sent, place, "acknowledged"),
        what="acknowledged = 0 for",
        seen=lambda _before, rows: gone(rows),
        nothing=lambda rows: (
            f"{place.called(sent.target)} is not acknowledged" if gone(rows) else ""
        ),
        before=True,
    )


def downtime(sent: SentCommand, place: CommandedRows) -> Effect:
    """Every row has a new downtime."""
    start, end = int(sent.arguments["start_time"]), int(sent.arguments["end_time"])
    # Some cores have only id, author and text, perhaps filled up with zeros.
    spans = ((start, end), (0, 0), ())

    def seen(before: RowSequence, after: RowSequence) -> bool:
        fresh = _fresh(sent, before)
        return bool(after) and all(
            any(tuple(info[4:6]) in spans for info in fresh(row)) for row in after
        )

    return _effect(
        *(sent, place, f"{place.prefix}downtimes_with_info"),
        what=f"downtime by {sent.arguments['comment_author']} for",
        seen=seen,
        nothing=lambda _rows: "the downtime is over already" if end <= sent.now else "",
        before=True,
    )


def no_comments(sent: SentCommand, place: CommandedRows) -> Effect:
    return _effect(
        *(sent, place, "comments_with_info"),
        what="no more of the comments of",
        seen=lambda before, after: bool(after) and _ids(before).isdisjoint(_ids(after)),
        nothing=lambda rows: "" if _ids(rows) else f"{place.called(sent.target)} has no comments",
        before=True,
    )


def found_ones_gone(sent: SentCommand, table: str) -> Effect | Unseen:
    """The entries that were found before the command are there no more."""
    if not sent.ids:
        return Unseen(f"there are no {table} to delete")
    return Effect(
        table=table,
        columns=("id",),
        filter=joined("or", tuple(Test("id", "=", str(number)) for number in sent.ids)),
        what=f"no more of the {table} {', '.join(map(str, sent.ids))}",
        seen=lambda _before, rows: not rows,
    )


def named_one_gone(sent: SentCommand, table: str, kind: str) -> Effect:
    """The entry whose id is the argument, of a ``kind`` of object, is there no more."""
    wanted = next(iter(sent.arguments.values()))
    what = f"{kind} {table.removesuffix('s')} {wanted}"
    of_kind = Test("is_service", "=", "1" if kind == "service" else "0")
    return Effect(
        table=table,
        columns=("id",),
        filter=Group("and", (Test("id", "=", wanted), of_kind)),
        before=True,
        what=f"no more {what}",
        seen=lambda _before, rows: not rows,
        nothing=lambda rows: "" if rows else f"there is no {what}",
    )


def matching_ones_gone(sent: SentCommand) -> Effect:
    """No downtime is left of those that fit the arguments."""
    arguments = sent.arguments
    tests: tuple[CoreFilter, ...] = tuple(
        Test(column, op, arguments[name])
        for name, column, op in (
            ("hostgroup_name", "host_groups", ">="),
            ("hostname", "host_name", "="),
            ("service_desc", "service_description", "="),
            ("start_time", "start_time", "="),
        )
        if arguments.get(name)
    )
    text = arguments["comment"]

    def matching(rows: RowSequence) -> set[float]:
        return {number(row[0]) for row in rows if not text or alike(row[1], text)}

    def nothing(rows: RowSequence) -> str:
        if not tests and not text:
            return "without any filter no downtime is deleted"
        return "" if matching(rows) else "no downtime matches"

    return Effect(
        table="downtimes",
        columns=("id", "comment"),
        filter=joined("and", tests),
        before=True,
        what="no more of the downtimes that match",
        seen=lambda before, after: matching(before).isdisjoint(number(row[0]) for row in after),
        nothing=nothing,
    )


def checked(sent: SentCommand, place: CommandedRows, *, forced: bool = False) -> Effect:
    """Every object was checked since, or will be at the time that was asked for.

    Times of checks are whole seconds: a check in the second of the request counts.
    """
    start, now = int(sent.arguments["start_time"]), math.floor(sent.now)
    latest = max(start, now) + 1

    def meant(rows: RowSequence) -> list[Row]:
        return [row for row in rows if forced or row[3] == 1]

    def seen(before: RowSequence, after: RowSequence) -> bool:
        checks = {str(row[0]): number(row[1]) for row in before}
        rows = meant(after)
        return bool(rows) and all(
            number(row[1]) > checks.get(str(row[0]), number(row[1]))
            or now <= number(row[1]) <= now + 1
            or start - 1 <= number(row[2]) <= latest
            for row in rows
        )

    def nothing(rows: RowSequence) -> str:
        off = rows and not meant(rows)
        return f"active checks are switched off for {place.called(sent.target)}" if off else ""

    return _effect(
        *(sent, place, place.key, "last_check", "next_check", "active_checks_enabled"),
        what="check of",
        seen=seen,
        nothing=nothing,
        before=True,
    )


def forced_check(sent: SentCommand, place: CommandedRows) -> Effect:
    return checked(sent, place, forced=True)


def result(sent: SentCommand, place: CommandedRows) -> Effect:
    """Every object has the check result that was sent."""
    output = re.split(r"\||\\n", sent.arguments["plugin_output"], maxsplit=1)[0]
    state, since = int(sent.arguments["plugin_state"]), math.floor(sent.now)

    def holds(row: Row) -> bool:
        # Cores that work with reachability have their own idea of a host's state.
        right = place is HOST or row[3] == state
        return (
            right and number(row[1]) >= since and (not output.strip() or _printed(row[2], output))
        )

    def nothing(rows: RowSequence) -> str:
        off = rows and all(row[0] == 0 for row in rows)
        return f"{place.called(sent.target)} takes no passive check results" if off else ""

    return _effect(
        *(sent, place, "accept_passive_checks", "last_check", "plugin_output", "state"),
        what="check result of",
        seen=lambda _before, rows: bool(rows) and all(holds(row) for row in rows),
        nothing=nothing,
    )


def _printed(value: object, output: str) -> bool:
    """Cores have colons for the semicolons of plugin output, and may cut it.

    Icinga 2 leaves the further lines of a host in it.
    """
    first = str(value).split("\\n", 1)[0]
    texts = [text.strip().replace(";", ":") for text in (first, output)]
    return alike(texts[0][:200], texts[1][:200])


def _logged(
    sent: SentCommand, text: str, what: str, *tests: CoreFilter, inside: str = ""
) -> Effect:
    """One more line of the log that ends in ``text`` and has ``inside`` before it."""
    since = math.floor(sent.now) - _SKEW
    bounds: tuple[CoreFilter, ...] = (Test("time", ">=", str(since)), *tests)
    if sent.on_icinga2:
        # The last lower bound decides which files it reads at all.
        bounds += (Test("time", ">=", str(since - _DAY)),)

    def ends(message: str) -> bool:
        wanted, tail = text.strip(), message.strip()
        return alike(tail[max(0, len(tail) - len(wanted)) :], wanted)

    def count(rows: RowSequence) -> int:
        return sum(inside in str(row[0]) and ends(str(row[0])) for row in rows)

    return Effect(
        table="log",
        columns=("message",),
        filter=joined("and", bounds),
        before=True,
        what=what,
        seen=lambda before, after: count(after) > count(before),
    )


def notified(sent: SentCommand, place: CommandedRows) -> Effect:
    """The line names contact, object, reason, command, output, author and comment.

    By its text only: one core has no host and service in the columns of its log.
    """
    return _logged(
        sent,
        sent.arguments["comment_data"],
        f"notification about {place.called(sent.target)} in the log",
        Test("class", "=", "3"),
        inside=f";{_owner(sent.target)};CUSTOM",
    )


def noted(sent: SentCommand, prefix: str) -> Effect:
    start = f"{prefix}: {_owner(sent.target)};" if prefix else ""
    return _logged(sent, f"{start}{sent.arguments['log']}", "the line in the log")


def _owner(target: Target) -> str:
    return ";".join(filter(None, (target.name, target.service)))


def restarted(_sent: SentCommand) -> Effect:
    return Effect(
        table="status",
        columns=("program_start", "nagios_pid"),
        filter=None,
        before=True,
        what="another start time or process id of the core",
        seen=lambda before, after: bool(before and after) and before[0] != after[0],
    )


def unseen(_sent: SentCommand, reason: str) -> Unseen:
    return Unseen(reason)


Info: TypeAlias = Sequence[Any]
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


def _ids(rows: RowSequence, at: int = 0) -> set[object]:
    return {info[0] for row in rows for info in infos(row[at])}


def number(value: object) -> float:
    """A number or flag of a row; 0 for what is none."""
    return value if isinstance(value, (int, float)) else 0


def variables(value: object) -> Mapping[str, object]:
    """Custom variables by name, which are pairs in Icinga 2."""
    if isinstance(value, dict):
        return value
    if not isinstance(value, list):
        return {}
    return {str(pair[0]): pair[1] for pair in value if isinstance(pair, list) and len(pair) > 1}


_BROKEN = re.compile("[\U00010000-\U0010ffff\u07c0-\u07ff\ufffd]")


def alike(value: object, other: str) -> bool:
    """Whether a core's text is the one that was sent, as far as cores return texts unchanged.

    Blanks at both ends may be lost, and one core breaks what lies beyond U+FFFF.
    """
    texts = [_BROKEN.sub("?", text).strip() for text in (str(value), other)]
    return texts[0] == texts[1]
