"""Columns of contacts, commands, time periods, comments, downtimes, log and status."""

from __future__ import annotations

from typing import Any

from monrest.demo.checkable_columns import modified_names
from monrest.demo.columns import Column, column
from monrest.demo.core import (
    COUNTERS,
    INTERVAL_LENGTH,
    LIVESTATUS_VERSION,
    PROGRAM_VERSION,
    Core,
)
from monrest.demo.objects import Contact, Host
from monrest.objectconfig.timeperiods import Anchor, DateRule, Timeperiod


def contact_columns(core: Core) -> tuple[Column, ...]:
    """The 26 columns of contacts."""
    return (
        column("id", "int", "Number of the contact in the core"),
        column("name", "string", "Login name"),
        column("alias", "string", "Full name"),
        column("email", "string", "Mail address"),
        column("pager", "string", "Pager number"),
        *(column(f"address{number}", "string", f"Further address {number}", _address(number))
          for number in range(1, 7)),
        column("can_submit_commands", "int", "Whether commands are allowed (0/1)"),
        column("host_notifications_enabled", "int", "Whether told about hosts (0/1)"),
        column("service_notifications_enabled", "int", "Whether told about services (0/1)"),
        column("host_notification_period", "string", "Time period of host notifications"),
        column("service_notification_period", "string", "Time period of service notifications"),
        column("in_host_notification_period", "int", "Whether now is in that period (0/1)",
               lambda contact: core.in_period(contact.host_notification_period)),
        column("in_service_notification_period", "int", "Whether now is in that period (0/1)",
               lambda contact: core.in_period(contact.service_notification_period)),
        column("host_notification_commands", "list", "Commands that tell about hosts"),
        column("service_notification_commands", "list", "Commands that tell about services"),
        column("groups", "list", "Contact groups of the contact"),
        column("custom_variables", "dict", "Custom variables by name"),
        column("custom_variable_names", "list", "Names of the custom variables",
               lambda contact: tuple(contact.custom_variables)),
        column("custom_variable_values", "list", "Values of the custom variables",
               lambda contact: tuple(contact.custom_variables.values()), deadly=core.valueless),
        column("modified_attributes", "int", "Bits of what commands have changed"),
        column("modified_attributes_list", "list", "Words for what commands have changed",
               lambda contact: modified_names(contact.modified_attributes), "bits"),
    )  # fmt: skip


def _address(number: int) -> Any:
    def get(contact: Contact) -> str:
        return contact.addresses[number - 1]

    return get


CONTACTGROUP = (
    column("id", "int", "Number of the group in the core"),
    column("name", "string", "Name of the contact group"),
    column("alias", "string", "Long name"),
    column("members", "list", "Names of the contacts"),
)

COMMAND = (
    column("id", "int", "Number of the command in the core"),
    column("name", "string", "Name of the command"),
    column("line", "string", "Command line with macros"),
)


def _date(prefix: str, year: int, month: int, anchor: Anchor | None) -> dict[str, int]:
    day = anchor.day if anchor is not None else 0
    return {f"{prefix}year": year, f"{prefix}mon": month, f"{prefix}mday": day}


def _rule(rule: DateRule) -> dict[str, Any]:
    start, end = rule.start, rule.end
    last = end or Anchor()
    found: dict[str, Any] = {
        **_date("s", start.year, max(start.month - 1, 0), start),
        **_date("e", last.year, max(last.month - 1, 0), end),
        "skip_interval": rule.skip if rule.skip > 1 else 0,
        "times": [list(pair) for pair in rule.ranges],
    }
    if start.weekday is not None:
        found |= {"swday": start.weekday, "swday_offset": start.day}
        found |= {"ewday": last.weekday or 0, "ewday_offset": last.day}
    return found


def _rules(kind: int) -> Any:
    def get(period: Timeperiod) -> tuple[dict[str, Any], ...]:
        return tuple(_rule(rule) for rule in period.rules if rule.kind == kind)

    return get


def timeperiod_columns(core: Core) -> tuple[Column, ...]:
    """The 11 columns of time periods."""
    numbers = core.inventory.timeperiods
    return (
        column("id", "int", "Number of the period in the core",
               lambda period: list(numbers).index(period.name)),
        column("name", "string", "Name of the time period"),
        column("alias", "string", "Long name"),
        column("in", "int", "Whether now is in the period (0/1)",
               lambda period: core.in_period(period.name)),
        column("days", "list", "Ranges of the seven weekdays, Sunday first",
               lambda period: tuple(tuple(n for pair in day for n in pair) for day in period.days)),
        column("exceptions_calendar_dates", "list", "Calendar dates", _rules(1)),
        column("exceptions_month_date", "list", "Days of named months", _rules(2)),
        column("exceptions_month_day", "list", "Days of any month", _rules(3)),
        column("exceptions_month_week_day", "list", "Weekdays of named months", _rules(4)),
        column("exceptions_week_day", "list", "Weekdays of any month", _rules(5)),
        column("exclusions", "list", "Names of the excluded periods", "exclude"),
    )  # fmt: skip


def _is_service(item: Any) -> int:
    return int(not isinstance(item.target, Host))


def _type(item: Any) -> int:
    return 1 + _is_service(item)


_ENTRY = (
    column("id", "int", "Number of the entry"),
    column("author", "string", "Who made the entry"),
    column("comment", "string", "Text"),
    column("entry_time", "int", "When the entry was made", "", "time"),
    column("is_service", "int", "0: of a host, 1: of a service", _is_service),
    column("type", "int", "1: of a host, 2: of a service", _type),
)

COMMENT = (
    *_ENTRY,
    column("entry_type", "int", "1: user, 2: downtime, 3: flapping, 4: acknowledgement"),
    column("expires", "int", "Whether the comment expires (0/1)"),
    column("expire_time", "int", "When it expires", "", "time"),
    column("persistent", "int", "Whether it outlives a restart (0/1)"),
    column("source", "int", "0: the core itself, 1: from outside"),
)

DOWNTIME = (
    *_ENTRY,
    column("start_time", "int", "First moment", "", "time"),
    column("end_time", "int", "Last moment", "", "time"),
    column("fixed", "int", "1: fixed, 0: flexible"),
    column("duration", "int", "Seconds of a flexible downtime"),
    column("triggered_by", "int", "Downtime that starts this one, 0 for none"),
)

LOG = (
    column("time", "int", "When the line was written", "", "time"),
    column("lineno", "int", "Number of the line in its file"),
    column("class", "int", "Class of the message", "class_"),
    column("message", "string", "The complete line"),
    column("type", "string", "Text before the first colon"),
    column("options", "string", "Text after the first colon"),
    column("comment", "string", "Comment of the message"),
    column("plugin_output", "string", "Plugin output in the message"),
    column("state", "int", "State in the message"),
    column("state_type", "string", "Type of the state"),
    column("attempt", "int", "Check attempt"),
    column("host_name", "string", "Host in the message"),
    column("service_description", "string", "Service in the message"),
    column("contact_name", "string", "Contact in the message"),
    column("command_name", "string", "Command in the message"),
)

COLUMNS = (
    column("table", "string", "Name of the table", lambda row: row[0]),
    column("name", "string", "Name of the column", lambda row: row[1].name),
    column("description", "string", "What the column holds", lambda row: row[1].base.description),
    column("type", "string", "string, int, float, list or dict", lambda row: row[1].base.type),
)

_SWITCHES = (
    "accept_passive_host_checks",
    "accept_passive_service_checks",
    "check_external_commands",
    "check_host_freshness",
    "check_service_freshness",
    "enable_event_handlers",
    "enable_flap_detection",
    "enable_notifications",
    "execute_host_checks",
    "execute_service_checks",
    "obsess_over_hosts",
    "obsess_over_services",
    "process_performance_data",
)


def _counter(name: str) -> Any:
    return lambda core: core.counters[name]


def _rate(name: str) -> Any:
    return lambda core: core.rates[name]


STATUS = (
    *(
        column(name, "int", name.replace("_", " ").capitalize() + " (0/1)", f"switches.{name}")
        for name in _SWITCHES
    ),
    *(column(name, "int", f"Number of {name} so far", _counter(name), "counter")
      for name in COUNTERS),
    *(column(f"{name}_rate", "float", f"{name} per second", _rate(name), "counter")
      for name in COUNTERS),
    column("livestatus_version", "string", "Version of the module", lambda _: LIVESTATUS_VERSION),
    column("program_version", "string", "Version of the core; -demo is a simulation",
           lambda _: PROGRAM_VERSION),
    column("cached_log_messages", "int", "Log lines in memory",
           lambda core: len(core.log.entries)),
    column("interval_length", "int", "Seconds of an interval unit", lambda _: INTERVAL_LENGTH),
    column("last_command_check", "int", "When commands were looked for", "", "time"),
    column("last_log_rotation", "int", "When the log was rotated", "", "time"),
    column("nagios_pid", "int", "Number of the process", "pid"),
    column("num_hosts", "int", "Number of hosts", lambda core: len(core.inventory.hosts)),
    column("num_services", "int", "Number of services",
           lambda core: len(core.inventory.services)),
    column("program_start", "int", "When the core started", "", "time"),
)  # fmt: skip
