"""Effects of commands on comments, acknowledgements and downtimes."""

from __future__ import annotations

from monrest.commands.effects.model import (
    HOST,
    HOSTS_OF_HOSTGROUP,
    HOSTS_OF_SERVICEGROUP,
    KINDS,
    SERVICE,
    SERVICES_OF_HOST,
    SERVICES_OF_HOSTGROUP,
    SERVICES_OF_SERVICEGROUP,
    WITH_CHILDREN,
    CommandedRows,
    Effect,
    Info,
    ReadEffect,
    RowSequence,
    SentCommand,
    Unseen,
    alike,
    infos,
    none_of,
    number,
)
from monrest.commands.effects.switches import Declared
from monrest.livestatus.catalogue import CommandKind
from monrest.query.model import CoreFilter, Group, Test, joined


def _ids(rows: RowSequence, at: int = 0) -> set[object]:
    return {info[0] for row in rows for info in infos(row[at])}


def _signed(info: Info, sent: SentCommand) -> bool:
    """Whether an element of a ``…_with_info`` column is the comment or downtime that was sent."""
    return alike(info[1], sent.arguments["comment_author"]) and alike(
        info[2], sent.arguments["comment_data"]
    )


def _comment(place: CommandedRows) -> ReadEffect:
    def read(sent: SentCommand) -> Effect:
        def seen(before: RowSequence, after: RowSequence) -> bool:
            known = _ids(before)
            return any(
                info[0] not in known and _signed(info, sent)
                for row in after
                for info in infos(row[0])
            )

        return Effect(
            table=place.table,
            columns=("comments_with_info",),
            filter=place.limit(sent.target),
            before=True,
            what=f"comment by {sent.arguments['comment_author']} on {place.called(sent.target)}",
            seen=seen,
            nothing=none_of(place, sent.target),
        )

    return read


def _acknowledged(place: CommandedRows) -> ReadEffect:
    def read(sent: SentCommand) -> Effect:
        def seen(before: RowSequence, after: RowSequence) -> bool:
            known = _ids(before, 2)
            return any(
                row[1] == 1
                and any(info[0] not in known and _signed(info, sent) for info in infos(row[2]))
                for row in after
            )

        def nothing(rows: RowSequence) -> str:
            if rows and all(row[0] == 0 for row in rows):
                return f"{place.called(sent.target)} has no problem to acknowledge"
            return none_of(place, sent.target)(rows)

        return Effect(
            table=place.table,
            columns=("state", "acknowledged", "comments_with_info"),
            filter=place.limit(sent.target),
            before=True,
            what=f"acknowledgement by {sent.arguments['comment_author']} "
            f"on {place.called(sent.target)}",
            seen=seen,
            nothing=nothing,
        )

    return read


def _unacknowledged(place: CommandedRows) -> ReadEffect:
    def read(sent: SentCommand) -> Effect:
        def nothing(rows: RowSequence) -> str:
            if rows and all(row[0] == 0 for row in rows):
                return f"{place.called(sent.target)} is not acknowledged"
            return none_of(place, sent.target)(rows)

        return Effect(
            table=place.table,
            columns=("acknowledged",),
            filter=place.limit(sent.target),
            before=True,
            what=f"acknowledged = 0 for {place.called(sent.target)}",
            seen=lambda _before, rows: bool(rows) and all(row[0] == 0 for row in rows),
            nothing=nothing,
        )

    return read


def _no_comments(place: CommandedRows) -> ReadEffect:
    def read(sent: SentCommand) -> Effect:
        def seen(before: RowSequence, after: RowSequence) -> bool:
            gone = _ids(before)
            return bool(after) and gone.isdisjoint(_ids(after))

        def nothing(rows: RowSequence) -> str:
            return "" if _ids(rows) else f"{place.called(sent.target)} has no comments"

        return Effect(
            table=place.table,
            columns=("comments_with_info",),
            filter=place.limit(sent.target),
            before=True,
            what=f"no more of the comments of {place.called(sent.target)}",
            seen=seen,
            nothing=nothing,
        )

    return read


def comments() -> Declared:
    """add_…_comment, del_…_comment…, acknowledge_… and remove_…_acknowledgement."""
    for kind, word, place in KINDS:
        yield kind, f"add_{word}_comment", _comment(place)
        yield kind, f"del_all_{word}_comments", _no_comments(place)
        yield kind, f"acknowledge_{word}_problem", _acknowledged(place)
        yield kind, f"acknowledge_{word}_problem_expire", _acknowledged(place)
        yield kind, f"remove_{word}_acknowledgement", _unacknowledged(place)
        yield kind, "del_comment", _gone("comments")
        yield "sites", f"del_{word}_comment", _deleted("comments", service=kind == "services")


def _downtime(place: CommandedRows) -> ReadEffect:
    """Every object of the place has a new downtime."""

    def read(sent: SentCommand) -> Effect:
        start, end = int(sent.arguments["start_time"]), int(sent.arguments["end_time"])

        def meant(info: Info) -> bool:
            # Some cores have only id, author and text, perhaps filled up with zeros.
            span = tuple(info[4:6])
            return _signed(info, sent) and span in ((start, end), (0, 0), ())

        def seen(before: RowSequence, after: RowSequence) -> bool:
            known = _ids(before)
            return bool(after) and all(
                any(info[0] not in known and meant(info) for info in infos(row[0])) for row in after
            )

        def nothing(rows: RowSequence) -> str:
            if end <= sent.now:
                return "the downtime is over already"
            return none_of(place, sent.target)(rows)

        return Effect(
            table=place.table,
            columns=(f"{place.prefix}downtimes_with_info",),
            filter=place.limit(sent.target),
            before=True,
            what=f"downtime by {sent.arguments['comment_author']} for {place.called(sent.target)}",
            seen=seen,
            nothing=nothing,
        )

    return read


def _gone(table: str) -> ReadEffect:
    """The entries that were found before are there no more."""

    def read(sent: SentCommand) -> Effect | Unseen:
        if not sent.ids:
            return Unseen(f"there are no {table} to delete")
        tests = tuple(Test("id", "=", str(one)) for one in sent.ids)
        return Effect(
            table=table,
            columns=("id",),
            filter=joined("or", tests),
            what=f"no more of the {table} {', '.join(map(str, sent.ids))}",
            seen=lambda _before, rows: not rows,
        )

    return read


def _deleted(table: str, *, service: bool) -> ReadEffect:
    def read(sent: SentCommand) -> Effect:
        wanted = next(iter(sent.arguments.values()))
        what = f"{'service' if service else 'host'} {table.removesuffix('s')} {wanted}"
        tests = (Test("id", "=", wanted), Test("is_service", "=", "1" if service else "0"))
        return Effect(
            table=table,
            columns=("id",),
            filter=Group("and", tests),
            before=True,
            what=f"no more {what}",
            seen=lambda _before, rows: not rows,
            nothing=lambda rows: "" if rows else f"there is no {what}",
        )

    return read


_FILTERS = (
    ("hostgroup_name", "host_groups", ">="),
    ("hostname", "host_name", "="),
    ("service_desc", "service_description", "="),
    ("start_time", "start_time", "="),
)


def _matching(sent: SentCommand) -> Effect:
    """No downtime is left of those that fit the filters."""
    arguments = sent.arguments
    tests: tuple[CoreFilter, ...] = tuple(
        Test(column, op, arguments[name]) for name, column, op in _FILTERS if arguments.get(name)
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


def downtimes() -> Declared:
    """schedule_…_downtime and del_…downtime…."""
    scheduled: tuple[tuple[CommandKind, str, CommandedRows], ...] = (
        ("hosts", "host", HOST),
        ("hosts", "host_svc", SERVICES_OF_HOST),
        ("hosts", "and_propagate_host", WITH_CHILDREN),
        ("hosts", "and_propagate_triggered_host", WITH_CHILDREN),
        ("services", "svc", SERVICE),
        ("hostgroups", "hostgroup_host", HOSTS_OF_HOSTGROUP),
        ("hostgroups", "hostgroup_svc", SERVICES_OF_HOSTGROUP),
        ("servicegroups", "servicegroup_host", HOSTS_OF_SERVICEGROUP),
        ("servicegroups", "servicegroup_svc", SERVICES_OF_SERVICEGROUP),
    )
    for kind, name, place in scheduled:
        yield kind, f"schedule_{name}_downtime", _downtime(place)
    yield "hosts", "del_active_host_downtimes", _gone("downtimes")
    yield "services", "del_active_service_downtimes", _gone("downtimes")
    for kind, word, _place in KINDS:
        yield kind, "del_downtime", _gone("downtimes")
        yield "sites", f"del_{word}_downtime", _deleted("downtimes", service=kind == "services")
    for word in ("host_name", "hostgroup_name", "start_time_comment"):
        yield "sites", f"del_downtime_by_{word}", _matching
