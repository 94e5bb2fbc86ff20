"""Every command and how its effect is read back, a line each, or for two that are opposites.

Cores acknowledge a command before it acts, and most say nothing at all; what they show afterwards
is in their tables (docs/spec/commands.md, "Effects").
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from monrest.base.values import Capabilities
from monrest.commands.predicates import (
    BEYOND,
    CONTACT,
    CONTACTS,
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
    SentCommand,
    Unseen,
    acknowledged,
    checked,
    commented,
    downtime,
    forced_check,
    found_ones_gone,
    matching_ones_gone,
    named_one_gone,
    no_comments,
    noted,
    notified,
    restarted,
    result,
    unacknowledged,
    unseen,
    value,
    variable,
)
from monrest.livestatus.catalogue import Command, CommandKind
from monrest.livestatus.command import Target
from monrest.query.model import columns_of

CHECKS = "active_checks_enabled"
PASSIVE = "accept_passive_checks"
NOTIFICATIONS = "notifications_enabled"
HOST_NOTIFICATIONS = "host_notifications_enabled"
SERVICE_NOTIFICATIONS = "service_notifications_enabled"

_NO_HANDLERS = "no core shows its global event handlers"
_STATE_FILE = "no core shows when it read or wrote its state file"
_STOPPED = "a core that has stopped cannot be asked"

SWITCHES: Mapping[CommandKind, Mapping[str, tuple[CommandedRows, str]]] = {
    "contactgroups": {
        "contactgroup_host_notifications": (CONTACTS, HOST_NOTIFICATIONS),
        "contactgroup_svc_notifications": (CONTACTS, SERVICE_NOTIFICATIONS),
    },
    "contacts": {
        "contact_host_notifications": (CONTACT, HOST_NOTIFICATIONS),
        "contact_svc_notifications": (CONTACT, SERVICE_NOTIFICATIONS),
    },
    "hostgroups": {
        "hostgroup_host_checks": (HOSTS_OF_HOSTGROUP, CHECKS),
        "hostgroup_host_notifications": (HOSTS_OF_HOSTGROUP, NOTIFICATIONS),
        "hostgroup_passive_host_checks": (HOSTS_OF_HOSTGROUP, PASSIVE),
        "hostgroup_passive_svc_checks": (SERVICES_OF_HOSTGROUP, PASSIVE),
        "hostgroup_svc_checks": (SERVICES_OF_HOSTGROUP, CHECKS),
        "hostgroup_svc_notifications": (SERVICES_OF_HOSTGROUP, NOTIFICATIONS),
    },
    "hosts": {
        "all_notifications_beyond_host": (BEYOND, NOTIFICATIONS),
        "host_and_child_notifications": (WITH_CHILDREN, NOTIFICATIONS),
        "host_check": (HOST, CHECKS),
        "host_event_handler": (HOST, "event_handler_enabled"),
        "host_flap_detection": (HOST, "flap_detection_enabled"),
        "host_notifications": (HOST, NOTIFICATIONS),
        "host_svc_checks": (SERVICES_OF_HOST, CHECKS),
        "host_svc_notifications": (SERVICES_OF_HOST, NOTIFICATIONS),
        "obsessing_over_host": (HOST, "obsess_over_host"),
        "passive_host_checks": (HOST, PASSIVE),
    },
    "servicegroups": {
        "servicegroup_host_checks": (HOSTS_OF_SERVICEGROUP, CHECKS),
        "servicegroup_host_notifications": (HOSTS_OF_SERVICEGROUP, NOTIFICATIONS),
        "servicegroup_passive_host_checks": (HOSTS_OF_SERVICEGROUP, PASSIVE),
        "servicegroup_passive_svc_checks": (SERVICES_OF_SERVICEGROUP, PASSIVE),
        "servicegroup_svc_checks": (SERVICES_OF_SERVICEGROUP, CHECKS),
        "servicegroup_svc_notifications": (SERVICES_OF_SERVICEGROUP, NOTIFICATIONS),
    },
    "services": {
        "obsessing_over_svc": (SERVICE, "obsess_over_service"),
        "passive_svc_checks": (SERVICE, PASSIVE),
        "svc_check": (SERVICE, CHECKS),
        "svc_event_handler": (SERVICE, "event_handler_enabled"),
        "svc_flap_detection": (SERVICE, "flap_detection_enabled"),
        "svc_notifications": (SERVICE, NOTIFICATIONS),
    },
    "sites": {
        "accepting_passive_host_checks": (CORE, "accept_passive_host_checks"),
        "accepting_passive_svc_checks": (CORE, "accept_passive_service_checks"),
        "event_handlers": (CORE, "enable_event_handlers"),
        "executing_host_checks": (CORE, "execute_host_checks"),
        "executing_svc_checks": (CORE, "execute_service_checks"),
        "flap_detection": (CORE, "enable_flap_detection"),
        "host_freshness_checks": (CORE, "check_host_freshness"),
        "notifications": (CORE, "enable_notifications"),
        "obsessing_over_host_checks": (CORE, "obsess_over_hosts"),
        "obsessing_over_svc_checks": (CORE, "obsess_over_services"),
        "performance_data": (CORE, "process_performance_data"),
        "service_freshness_checks": (CORE, "check_service_freshness"),
    },
}
"""Kind of object, and name without its verb, of commands that set a column to 1 or 0."""

_SWITCHED = {"enable": 1, "start": 1, "disable": 0, "stop": 0}

READINGS: Mapping[CommandKind, Mapping[str, tuple[Any, ...]]] = {
    "contacts": {
        "change_contact_host_notification_timeperiod": (
            value,
            CONTACT,
            "host_notification_period",
            "timeperiod",
        ),
        "change_contact_svc_notification_timeperiod": (
            value,
            CONTACT,
            "service_notification_period",
            "timeperiod",
        ),
        "change_custom_contact_var": (variable, CONTACT),
    },
    "hostgroups": {
        "schedule_hostgroup_host_downtime": (downtime, HOSTS_OF_HOSTGROUP),
        "schedule_hostgroup_svc_downtime": (downtime, SERVICES_OF_HOSTGROUP),
    },
    "hosts": {
        "acknowledge_host_problem": (acknowledged, HOST),
        "acknowledge_host_problem_expire": (acknowledged, HOST),
        "add_host_comment": (commented, HOST),
        "change_custom_host_var": (variable, HOST),
        "change_host_check_timeperiod": (value, HOST, "check_period", "timeperiod"),
        "change_host_modattr": (value, HOST, "modified_attributes", 0),
        "change_host_notification_timeperiod": (value, HOST, "notification_period", "timeperiod"),
        "change_max_host_check_attempts": (value, HOST, "max_check_attempts", "interval"),
        "change_normal_host_check_interval": (value, HOST, "check_interval", "interval"),
        "change_retry_host_check_interval": (value, HOST, "retry_interval", "interval"),
        "del_active_host_downtimes": (found_ones_gone, "downtimes"),
        "del_all_host_comments": (no_comments, HOST),
        "del_comment": (found_ones_gone, "comments"),
        "del_downtime": (found_ones_gone, "downtimes"),
        "delay_host_notification": (value, HOST, "next_notification", "notification_time"),
        "note": (noted, "HOST NOTE"),
        "process_host_check_result": (result, HOST),
        "remove_host_acknowledgement": (unacknowledged, HOST),
        "schedule_and_propagate_host_downtime": (downtime, WITH_CHILDREN),
        "schedule_and_propagate_triggered_host_downtime": (downtime, WITH_CHILDREN),
        "schedule_forced_host_check": (forced_check, HOST),
        "schedule_forced_host_svc_checks": (forced_check, SERVICES_OF_HOST),
        "schedule_host_check": (checked, HOST),
        "schedule_host_downtime": (downtime, HOST),
        "schedule_host_svc_checks": (checked, SERVICES_OF_HOST),
        "schedule_host_svc_downtime": (downtime, SERVICES_OF_HOST),
        "send_custom_host_notification": (notified, HOST),
        "set_host_notification_number": (value, HOST, "current_notification_number", "number"),
    },
    "servicegroups": {
        "schedule_servicegroup_host_downtime": (downtime, HOSTS_OF_SERVICEGROUP),
        "schedule_servicegroup_svc_downtime": (downtime, SERVICES_OF_SERVICEGROUP),
    },
    "services": {
        "acknowledge_svc_problem": (acknowledged, SERVICE),
        "acknowledge_svc_problem_expire": (acknowledged, SERVICE),
        "add_svc_comment": (commented, SERVICE),
        "change_custom_svc_var": (variable, SERVICE),
        "change_max_svc_check_attempts": (value, SERVICE, "max_check_attempts", "attempts"),
        "change_normal_svc_check_interval": (value, SERVICE, "check_interval", "interval"),
        "change_retry_svc_check_interval": (value, SERVICE, "retry_interval", "interval"),
        "change_svc_check_timeperiod": (value, SERVICE, "check_period", "timeperiod"),
        "change_svc_modattr": (value, SERVICE, "modified_attributes", 0),
        "change_svc_notification_timeperiod": (value, SERVICE, "notification_period", "timeperiod"),
        "del_active_service_downtimes": (found_ones_gone, "downtimes"),
        "del_all_svc_comments": (no_comments, SERVICE),
        "del_comment": (found_ones_gone, "comments"),
        "del_downtime": (found_ones_gone, "downtimes"),
        "delay_svc_notification": (value, SERVICE, "next_notification", "notification_time"),
        "note": (noted, "SERVICE NOTE"),
        "process_service_check_result": (result, SERVICE),
        "remove_svc_acknowledgement": (unacknowledged, SERVICE),
        "schedule_forced_svc_check": (forced_check, SERVICE),
        "schedule_svc_check": (checked, SERVICE),
        "schedule_svc_downtime": (downtime, SERVICE),
        "send_custom_svc_notification": (notified, SERVICE),
        "set_svc_notification_number": (value, SERVICE, "current_notification_number", "number"),
    },
    "sites": {
        "change_global_host_event_handler": (unseen, _NO_HANDLERS),
        "change_global_svc_event_handler": (unseen, _NO_HANDLERS),
        "del_downtime_by_host_name": (matching_ones_gone,),
        "del_downtime_by_hostgroup_name": (matching_ones_gone,),
        "del_downtime_by_start_time_comment": (matching_ones_gone,),
        "del_host_comment": (named_one_gone, "comments", "host"),
        "del_host_downtime": (named_one_gone, "downtimes", "host"),
        "del_svc_comment": (named_one_gone, "comments", "service"),
        "del_svc_downtime": (named_one_gone, "downtimes", "service"),
        "log": (noted, ""),
        "read_state_information": (unseen, _STATE_FILE),
        "restart_process": (restarted,),
        "restart_program": (restarted,),
        "save_state_information": (unseen, _STATE_FILE),
        "shutdown_process": (unseen, _STOPPED),
        "shutdown_program": (unseen, _STOPPED),
    },
}
"""Kind and name of every other command to its predicate and what that needs to know."""


def _unknown_to_icinga2() -> Iterator[str]:
    for word in ("HOST", "SVC"):
        yield f"CHANGE_CONTACT_{word}_NOTIFICATION_TIMEPERIOD"
        yield f"CHANGE_GLOBAL_{word}_EVENT_HANDLER"
        yield f"CHANGE_{word}_MODATTR"
        yield f"CHANGE_{word}_NOTIFICATION_TIMEPERIOD"
        yield f"SET_{word}_NOTIFICATION_NUMBER"
        for verb in ("START", "STOP"):
            yield f"{verb}_ACCEPTING_PASSIVE_{word}_CHECKS"
            yield f"{verb}_OBSESSING_OVER_{word}"
            yield f"{verb}_OBSESSING_OVER_{word}_CHECKS"
        for verb in ("ENABLE", "DISABLE"):
            yield f"{verb}_CONTACT_{word}_NOTIFICATIONS"
            yield f"{verb}_CONTACTGROUP_{word}_NOTIFICATIONS"
    for verb in ("ENABLE", "DISABLE"):
        yield f"{verb}_ALL_NOTIFICATIONS_BEYOND_HOST"
        yield f"{verb}_HOST_AND_CHILD_NOTIFICATIONS"
        yield f"{verb}_HOST_FRESHNESS_CHECKS"
        yield f"{verb}_SERVICE_FRESHNESS_CHECKS"
    yield from ("CHANGE_CUSTOM_CONTACT_VAR", "LOG")
    yield from ("DEL_DOWNTIME_BY_HOSTGROUP_NAME", "DEL_DOWNTIME_BY_START_TIME_COMMENT")
    yield from ("READ_STATE_INFORMATION", "SAVE_STATE_INFORMATION")
    yield from ("RESTART_PROGRAM", "SHUTDOWN_PROGRAM")


UNKNOWN_TO_ICINGA2 = frozenset(_unknown_to_icinga2())
"""Core names of commands that Icinga 2 refuses: so a 2.13.6 answered, asked for each."""


def expected(
    command: Command,
    target: Target,
    arguments: Mapping[str, str],
    now: float,
    core: Capabilities | None = None,
    ids: tuple[int, ...] = (),
) -> Effect | Unseen:
    """The effect to look for after ``command`` was sent with ``arguments`` (those of ``parse``).

    ``now`` is the time of the request in Unix time, ``core`` what the site can do (None: a
    Naemon). ``ids`` are the comments or downtimes found for a command resolved by lookup.
    """
    if core is not None and core.icinga2 and command.core_name in UNKNOWN_TO_ICINGA2:
        return Unseen("Icinga 2 does not know this command")
    sent = SentCommand(
        command=command, target=target, arguments=arguments, now=now, core=core, ids=ids
    )
    verb, _, rest = command.name.partition("_")
    effect: Effect | Unseen
    if verb in _SWITCHED and (switch := SWITCHES[command.kind].get(rest)) is not None:
        effect = value(sent, *switch, _SWITCHED[verb])
    else:
        predicate, *more = READINGS[command.kind][command.name]
        effect = predicate(sent, *more)
    if core is None or isinstance(effect, Unseen):
        return effect
    for column in (*effect.columns, *columns_of(effect.filter)):
        if not core.has(effect.table, column):
            return Unseen(f"the core has no column {column} in its table {effect.table}")
    return effect
