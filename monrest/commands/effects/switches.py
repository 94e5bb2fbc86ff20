"""Effects of commands that switch something on or off or change a setting."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeAlias

from monrest.base.values import Row
from monrest.commands.effects.model import (
    BEYOND,
    CONTACT,
    CONTACTS_OF_GROUP,
    CORE,
    HOST,
    HOSTS_OF_HOSTGROUP,
    HOSTS_OF_SERVICEGROUP,
    SERVICE,
    SERVICES_OF_HOST,
    SERVICES_OF_HOSTGROUP,
    SERVICES_OF_SERVICEGROUP,
    WITH_CHILDREN,
    CommandedRows,
    Effect,
    ReadEffect,
    RowSequence,
    SentCommand,
    Unseen,
    alike,
    none_of,
    states,
    variables,
)
from monrest.livestatus.catalogue import CommandKind

Declared: TypeAlias = Iterator[tuple[CommandKind, str, ReadEffect]]

_COLUMNS = {
    "check": "active_checks_enabled",
    "checks": "active_checks_enabled",
    "notifications": "notifications_enabled",
    "event_handler": "event_handler_enabled",
    "flap_detection": "flap_detection_enabled",
}
_VERBS = (("enable", 1), ("disable", 0))

_SWITCHES = {
    "notifications": "enable_notifications",
    "event_handlers": "enable_event_handlers",
    "flap_detection": "enable_flap_detection",
    "performance_data": "process_performance_data",
    "host_freshness_checks": "check_host_freshness",
    "service_freshness_checks": "check_service_freshness",
}
_STARTED = {
    "accepting_passive_host_checks": "accept_passive_host_checks",
    "accepting_passive_svc_checks": "accept_passive_service_checks",
    "executing_host_checks": "execute_host_checks",
    "executing_svc_checks": "execute_service_checks",
    "obsessing_over_host_checks": "obsess_over_hosts",
    "obsessing_over_svc_checks": "obsess_over_services",
}


def _is(value: float) -> Callable[[object], bool]:
    return lambda found: isinstance(found, (int, float)) and found == value


def _switched(place: CommandedRows, column: str, value: int) -> ReadEffect:
    return states(place, column, _is(value), f"= {value}")


def switches() -> Declared:
    """enable_…, disable_…, start_… and stop_… of hosts, services, their groups and cores."""
    for verb, value in _VERBS:
        for word in ("check", "notifications", "event_handler", "flap_detection"):
            column = _COLUMNS[word]
            yield "hosts", f"{verb}_host_{word}", _switched(HOST, column, value)
            yield "services", f"{verb}_svc_{word}", _switched(SERVICE, column, value)
        passive = "accept_passive_checks"
        yield "hosts", f"{verb}_passive_host_checks", _switched(HOST, passive, value)
        yield "services", f"{verb}_passive_svc_checks", _switched(SERVICE, passive, value)
        for name, place, word in (
            ("host_svc_checks", SERVICES_OF_HOST, "checks"),
            ("host_svc_notifications", SERVICES_OF_HOST, "notifications"),
            ("host_and_child_notifications", WITH_CHILDREN, "notifications"),
            ("all_notifications_beyond_host", BEYOND, "notifications"),
        ):
            yield "hosts", f"{verb}_{name}", _switched(place, _COLUMNS[word], value)
        for name, column in _SWITCHES.items():
            yield "sites", f"{verb}_{name}", _switched(CORE, column, value)
        yield from _of_groups(verb, value)
        yield from _of_contacts(verb, value)
    for verb, value in (("start", 1), ("stop", 0)):
        host, service = (f"{verb}_obsessing_over_{kind}" for kind in ("host", "svc"))
        yield "hosts", host, _switched(HOST, "obsess_over_host", value)
        yield "services", service, _switched(SERVICE, "obsess_over_service", value)
        for name, column in _STARTED.items():
            yield "sites", f"{verb}_{name}", _switched(CORE, column, value)


def _of_groups(verb: str, value: int) -> Declared:
    places: tuple[tuple[CommandKind, str, str, CommandedRows], ...] = (
        ("hostgroups", "hostgroup", "host", HOSTS_OF_HOSTGROUP),
        ("hostgroups", "hostgroup", "svc", SERVICES_OF_HOSTGROUP),
        ("servicegroups", "servicegroup", "host", HOSTS_OF_SERVICEGROUP),
        ("servicegroups", "servicegroup", "svc", SERVICES_OF_SERVICEGROUP),
    )
    for kind, group, member, place in places:
        for word in ("checks", "notifications"):
            yield kind, f"{verb}_{group}_{member}_{word}", _switched(place, _COLUMNS[word], value)
        passive = f"{verb}_{group}_passive_{member}_checks"
        yield kind, passive, _switched(place, "accept_passive_checks", value)


def _of_contacts(verb: str, value: int) -> Declared:
    for member, word in (("host", "host"), ("svc", "service")):
        column = f"{word}_notifications_enabled"
        own = _switched(CONTACT, column, value)
        yield "contacts", f"{verb}_contact_{member}_notifications", own
        group = _switched(CONTACTS_OF_GROUP, column, value)
        yield "contactgroups", f"{verb}_contactgroup_{member}_notifications", group


def _set(place: CommandedRows, column: str, argument: str) -> ReadEffect:
    def read(sent: SentCommand) -> Effect | Unseen:
        value = int(sent.arguments[argument])
        return states(place, column, _is(value), f"= {value}")(sent)

    return read


def _named(place: CommandedRows, column: str, argument: str) -> ReadEffect:
    def read(sent: SentCommand) -> Effect | Unseen:
        name = sent.arguments[argument]
        return states(place, column, lambda found: alike(found, name), f"= {name}")(sent)

    return read


def _variable(place: CommandedRows) -> ReadEffect:
    """A custom variable; cores with upper-case names have no new ones at run time."""

    def read(sent: SentCommand) -> Effect:
        name = sent.arguments["name"].upper()
        value = sent.arguments["value"]

        def found(row: Row) -> object:
            known = variables(row[0])
            return next((text for key, text in known.items() if key.upper() == name), None)

        def nothing(rows: RowSequence) -> str:
            missing = not sent.on_icinga2 and any(found(row) is None for row in rows)
            if missing:
                return f"{place.called(sent.target)} has no custom variable {name}"
            return none_of(place, sent.target)(rows)

        return Effect(
            table=place.table,
            columns=("custom_variables",),
            filter=place.limit(sent.target),
            what=f"custom variable {name} for {place.called(sent.target)}",
            seen=lambda _before, rows: bool(rows) and all(_same(found(row), value) for row in rows),
            nothing=nothing,
        )

    return read


def _same(found: object, value: str) -> bool:
    return found is not None and alike(found, value)


def settings() -> Declared:
    """change_…, set_…_notification_number and delay_…_notification."""
    kinds: tuple[tuple[CommandKind, str, CommandedRows], ...] = (
        ("hosts", "host", HOST),
        ("services", "svc", SERVICE),
    )
    for kind, word, place in kinds:
        attempts = "interval" if kind == "hosts" else "attempts"
        for name, column, argument in (
            (f"change_normal_{word}_check_interval", "check_interval", "interval"),
            (f"change_retry_{word}_check_interval", "retry_interval", "interval"),
            (f"change_max_{word}_check_attempts", "max_check_attempts", attempts),
            (f"set_{word}_notification_number", "current_notification_number", "number"),
            (f"delay_{word}_notification", "next_notification", "notification_time"),
        ):
            yield kind, name, _set(place, column, argument)
        for word_of, column in (("check", "check_period"), ("notification", "notification_period")):
            reading = _named(place, column, "timeperiod")
            yield kind, f"change_{word}_{word_of}_timeperiod", reading
        yield kind, f"change_custom_{word}_var", _variable(place)
        yield kind, f"change_{word}_modattr", _switched(place, "modified_attributes", 0)
    yield "contacts", "change_custom_contact_var", _variable(CONTACT)
    for word, column in (("host", "host"), ("svc", "service")):
        reading = _named(CONTACT, f"{column}_notification_period", "timeperiod")
        yield "contacts", f"change_contact_{word}_notification_timeperiod", reading
