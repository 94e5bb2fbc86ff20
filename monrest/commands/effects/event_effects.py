"""Effects of commands that make something happen: checks, results, notifications, log lines."""

from __future__ import annotations

import math
import re

from monrest.base.values import Row
from monrest.commands.effects.model import (
    HOST,
    KINDS,
    SERVICE,
    SERVICES_OF_HOST,
    CommandedRows,
    Effect,
    ReadEffect,
    RowSequence,
    SentCommand,
    alike,
    none_of,
    number,
    unseen,
)
from monrest.commands.effects.switches import Declared
from monrest.query.model import CoreFilter, Test, joined

_SKEW = 60
"""Seconds by which a core's clock may be behind ours."""

_DAY = 86400


def _checked(place: CommandedRows, *, forced: bool) -> ReadEffect:
    """Every object was checked since, or will be at the time that was asked for.

    Times of checks are whole seconds: a check in the second of the request counts.
    """

    def read(sent: SentCommand) -> Effect:
        start = int(sent.arguments["start_time"])
        now = math.floor(sent.now)
        latest = max(start, now) + 1

        def meant(rows: RowSequence) -> list[Row]:
            return [row for row in rows if forced or row[3] == 1]

        def seen(before: RowSequence, after: RowSequence) -> bool:
            known = {str(row[0]): number(row[1]) for row in before}
            rows = meant(after)
            return bool(rows) and all(
                number(row[1]) > known.get(str(row[0]), number(row[1]))
                or now <= number(row[1]) <= now + 1
                or start - 1 <= number(row[2]) <= latest
                for row in rows
            )

        def nothing(rows: RowSequence) -> str:
            if rows and not meant(rows):
                return f"active checks are switched off for {place.called(sent.target)}"
            return none_of(place, sent.target)(rows)

        return Effect(
            table=place.table,
            columns=(place.key, "last_check", "next_check", "active_checks_enabled"),
            filter=place.limit(sent.target),
            before=True,
            what=f"check of {place.called(sent.target)}",
            seen=seen,
            nothing=nothing,
        )

    return read


def _result(place: CommandedRows) -> ReadEffect:
    def read(sent: SentCommand) -> Effect:
        output = re.split(r"\||\\n", sent.arguments["plugin_output"], maxsplit=1)[0]
        state = int(sent.arguments["plugin_state"])
        since = math.floor(sent.now)

        def holds(row: Row) -> bool:
            # Cores that work with reachability have their own idea of a host's state.
            right = place is HOST or row[3] == state
            return (
                right
                and number(row[1]) >= since
                and (not output.strip() or _printed(row[2], output))
            )

        def nothing(rows: RowSequence) -> str:
            if rows and all(row[0] == 0 for row in rows):
                return f"{place.called(sent.target)} takes no passive check results"
            return none_of(place, sent.target)(rows)

        return Effect(
            table=place.table,
            columns=("accept_passive_checks", "last_check", "plugin_output", "state"),
            filter=place.limit(sent.target),
            what=f"check result of {place.called(sent.target)}",
            seen=lambda _before, rows: bool(rows) and all(holds(row) for row in rows),
            nothing=nothing,
        )

    return read


def _printed(found: object, output: str) -> bool:
    """Cores have colons for the semicolons of plugin output, and may cut it.

    Icinga 2 leaves the further lines of a host in it.
    """
    first = str(found).split("\\n", 1)[0]
    texts = [text.strip().replace(";", ":") for text in (first, output)]
    return alike(texts[0][:200], texts[1][:200])


def checks() -> Declared:
    """schedule_…_check…, process_…_check_result."""
    for word, forced in (("", False), ("forced_", True)):
        for kind, name, place in KINDS:
            yield kind, f"schedule_{word}{name}_check", _checked(place, forced=forced)
        reading = _checked(SERVICES_OF_HOST, forced=forced)
        yield "hosts", f"schedule_{word}host_svc_checks", reading
    yield "hosts", "process_host_check_result", _result(HOST)
    yield "services", "process_service_check_result", _result(SERVICE)


def _logged(
    sent: SentCommand, text: str, what: str, *tests: CoreFilter, inside: str = ""
) -> Effect:
    """One more line of the log that ends in ``text`` and has ``inside`` before it."""
    since = math.floor(sent.now) - _SKEW
    bounds: tuple[CoreFilter, ...] = (Test("time", ">=", str(since)), *tests)
    if sent.on_icinga2:
        # The last lower bound decides which files it reads at all.
        bounds += (Test("time", ">=", str(since - _DAY)),)

    def count(rows: RowSequence) -> int:
        return sum(inside in str(row[0]) and _ends_in(str(row[0]), text) for row in rows)

    return Effect(
        table="log",
        columns=("message",),
        filter=joined("and", bounds),
        before=True,
        what=what,
        seen=lambda before, after: count(after) > count(before),
    )


def _ends_in(message: str, text: str) -> bool:
    wanted, tail = text.strip(), message.strip()
    return alike(tail[max(0, len(tail) - len(wanted)) :], wanted)


def _custom_notification(place: CommandedRows) -> ReadEffect:
    """The line names contact, object, reason, command, output, author and comment.

    By its text only: one core has no host and service in the columns of its log.
    """

    def read(sent: SentCommand) -> Effect:
        owner = ";".join(filter(None, (sent.target.name, sent.target.service)))
        return _logged(
            sent,
            sent.arguments["comment_data"],
            f"notification about {place.called(sent.target)} in the log",
            Test("class", "=", "3"),
            inside=f";{owner};CUSTOM",
        )

    return read


def _note(prefix: str) -> ReadEffect:
    def read(sent: SentCommand) -> Effect:
        owner = ";".join(filter(None, (sent.target.name, sent.target.service)))
        start = f"{prefix}: {owner};" if prefix else ""
        return _logged(sent, f"{start}{sent.arguments['log']}", "the line in the log")

    return read


def logged() -> Declared:
    """log, note and send_custom_…_notification."""
    yield "sites", "log", _note("")
    yield "hosts", "note", _note("HOST NOTE")
    yield "services", "note", _note("SERVICE NOTE")
    for kind, word, place in KINDS:
        yield kind, f"send_custom_{word}_notification", _custom_notification(place)


def _restarted(_sent: SentCommand) -> Effect:
    return Effect(
        table="status",
        columns=("program_start", "nagios_pid"),
        filter=None,
        before=True,
        what="another start time or process id of the core",
        seen=lambda before, after: bool(before and after) and before[0] != after[0],
    )


def process() -> Declared:
    """Restart, shutdown, state files and the global event handlers."""
    for word in ("process", "program"):
        yield "sites", f"restart_{word}", _restarted
        yield "sites", f"shutdown_{word}", unseen("a core that has stopped cannot be asked")
    for verb in ("read", "save"):
        text = "no core shows when it read or wrote its state file"
        yield "sites", f"{verb}_state_information", unseen(text)
    for word in ("host", "svc"):
        text = "no core shows its global event handlers"
        yield "sites", f"change_global_{word}_event_handler", unseen(text)
