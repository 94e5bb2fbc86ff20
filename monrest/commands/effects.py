"""Every command and how its effect is read back, one line each.

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

__all__ = ["READINGS", "UNKNOWN_TO_ICINGA2", "Effect", "Unseen", "expected"]

CHECKS = "active_checks_enabled"
PASSIVE = "accept_passive_checks"
NOTIFICATIONS = "notifications_enabled"
HOST_NOTIFICATIONS = "host_notifications_enabled"
SERVICE_NOTIFICATIONS = "service_notifications_enabled"

_NO_HANDLERS = "no core shows its global event handlers"
_STATE_FILE = "no core shows when it read or wrote its state file"
_STOPPED = "a core that has stopped cannot be asked"

READINGS: Mapping[CommandKind, Mapping[str, tuple[Any, ...]]] = {
    "contactgroups": {
        "disable_contactgroup_host_notifications": (value, CONTACTS, HOST_NOTIFICATIONS, 0),
        "disable_contactgroup_svc_notifications": (value, CONTACTS, SERVICE_NOTIFICATIONS, 0),
        "enable_contactgroup_host_notifications": (value, CONTACTS, HOST_NOTIFICATIONS, 1),
        "enable_contactgroup_svc_notifications": (value, CONTACTS, SERVICE_NOTIFICATIONS, 1),
    },
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
        "disable_contact_host_notifications": (value, CONTACT, HOST_NOTIFICATIONS, 0),
        "disable_contact_svc_notifications": (value, CONTACT, SERVICE_NOTIFICATIONS, 0),
        "enable_contact_host_notifications": (value, CONTACT, HOST_NOTIFICATIONS, 1),
        "enable_contact_svc_notifications": (value, CONTACT, SERVICE_NOTIFICATIONS, 1),
    },
    "hostgroups": {
        "disable_hostgroup_host_checks": (value, HOSTS_OF_HOSTGROUP, CHECKS, 0),
        "disable_hostgroup_host_notifications": (value, HOSTS_OF_HOSTGROUP, NOTIFICATIONS, 0),
        "disable_hostgroup_passive_host_checks": (value, HOSTS_OF_HOSTGROUP, PASSIVE, 0),
        "disable_hostgroup_passive_svc_checks": (value, SERVICES_OF_HOSTGROUP, PASSIVE, 0),
        "disable_hostgroup_svc_checks": (value, SERVICES_OF_HOSTGROUP, CHECKS, 0),
        "disable_hostgroup_svc_notifications": (value, SERVICES_OF_HOSTGROUP, NOTIFICATIONS, 0),
        "enable_hostgroup_host_checks": (value, HOSTS_OF_HOSTGROUP, CHECKS, 1),
        "enable_hostgroup_host_notifications": (value, HOSTS_OF_HOSTGROUP, NOTIFICATIONS, 1),
        "enable_hostgroup_passive_host_checks": (value, HOSTS_OF_HOSTGROUP, PASSIVE, 1),
        "enable_hostgroup_passive_svc_checks": (value, SERVICES_OF_HOSTGROUP, PASSIVE, 1),
        "enable_hostgroup_svc_checks": (value, SERVICES_OF_HOSTGROUP, CHECKS, 1),
        "enable_hostgroup_svc_notifications": (value, SERVICES_OF_HOSTGROUP, NOTIFICATIONS, 1),
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
        "disable_all_notifications_beyond_host": (value, BEYOND, NOTIFICATIONS, 0),
        "disable_host_and_child_notifications": (value, WITH_CHILDREN, NOTIFICATIONS, 0),
        "disable_host_check": (value, HOST, CHECKS, 0),
        "disable_host_event_handler": (value, HOST, "event_handler_enabled", 0),
        "disable_host_flap_detection": (value, HOST, "flap_detection_enabled", 0),
        "disable_host_notifications": (value, HOST, NOTIFICATIONS, 0),
        "disable_host_svc_checks": (value, SERVICES_OF_HOST, CHECKS, 0),
        "disable_host_svc_notifications": (value, SERVICES_OF_HOST, NOTIFICATIONS, 0),
        "disable_passive_host_checks": (value, HOST, PASSIVE, 0),
        "enable_all_notifications_beyond_host": (value, BEYOND, NOTIFICATIONS, 1),
        "enable_host_and_child_notifications": (value, WITH_CHILDREN, NOTIFICATIONS, 1),
        "enable_host_check": (value, HOST, CHECKS, 1),
        "enable_host_event_handler": (value, HOST, "event_handler_enabled", 1),
        "enable_host_flap_detection": (value, HOST, "flap_detection_enabled", 1),
        "enable_host_notifications": (value, HOST, NOTIFICATIONS, 1),
        "enable_host_svc_checks": (value, SERVICES_OF_HOST, CHECKS, 1),
        "enable_host_svc_notifications": (value, SERVICES_OF_HOST, NOTIFICATIONS, 1),
        "enable_passive_host_checks": (value, HOST, PASSIVE, 1),
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
        "start_obsessing_over_host": (value, HOST, "obsess_over_host", 1),
        "stop_obsessing_over_host": (value, HOST, "obsess_over_host", 0),
    },
    "servicegroups": {
        "disable_servicegroup_host_checks": (value, HOSTS_OF_SERVICEGROUP, CHECKS, 0),
        "disable_servicegroup_host_notifications": (value, HOSTS_OF_SERVICEGROUP, NOTIFICATIONS, 0),
        "disable_servicegroup_passive_host_checks": (value, HOSTS_OF_SERVICEGROUP, PASSIVE, 0),
        "disable_servicegroup_passive_svc_checks": (value, SERVICES_OF_SERVICEGROUP, PASSIVE, 0),
        "disable_servicegroup_svc_checks": (value, SERVICES_OF_SERVICEGROUP, CHECKS, 0),
        "disable_servicegroup_svc_notifications": (
            value,
            SERVICES_OF_SERVICEGROUP,
            NOTIFICATIONS,
            0,
        ),
        "enable_servicegroup_host_checks": (value, HOSTS_OF_SERVICEGROUP, CHECKS, 1),
        "enable_servicegroup_host_notifications": (value, HOSTS_OF_SERVICEGROUP, NOTIFICATIONS, 1),
        "enable_servicegroup_passive_host_checks": (value, HOSTS_OF_SERVICEGROUP, PASSIVE, 1),
        "enable_servicegroup_passive_svc_checks": (value, SERVICES_OF_SERVICEGROUP, PASSIVE, 1),
        "enable_servicegroup_svc_checks": (value, SERVICES_OF_SERVICEGROUP, CHECKS, 1),
        "enable_servicegroup_svc_notifications": (
            value,
            SERVICES_OF_SERVICEGROUP,
            NOTIFICATIONS,
            1,
        ),
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
        "disable_passive_svc_checks": (value, SERVICE, PASSIVE, 0),
        "disable_svc_check": (value, SERVICE, CHECKS, 0),
        "disable_svc_event_handler": (value, SERVICE, "event_handler_enabled", 0),
        "disable_svc_flap_detection": (value, SERVICE, "flap_detection_enabled", 0),
        "disable_svc_notifications": (value, SERVICE, NOTIFICATIONS, 0),
        "enable_passive_svc_checks": (value, SERVICE, PASSIVE, 1),
        "enable_svc_check": (value, SERVICE, CHECKS, 1),
        "enable_svc_event_handler": (value, SERVICE, "event_handler_enabled", 1),
        "enable_svc_flap_detection": (value, SERVICE, "flap_detection_enabled", 1),
        "enable_svc_notifications": (value, SERVICE, NOTIFICATIONS, 1),
        "note": (noted, "SERVICE NOTE"),
        "process_service_check_result": (result, SERVICE),
        "remove_svc_acknowledgement": (unacknowledged, SERVICE),
        "schedule_forced_svc_check": (forced_check, SERVICE),
        "schedule_svc_check": (checked, SERVICE),
        "schedule_svc_downtime": (downtime, SERVICE),
        "send_custom_svc_notification": (notified, SERVICE),
        "set_svc_notification_number": (value, SERVICE, "current_notification_number", "number"),
        "start_obsessing_over_svc": (value, SERVICE, "obsess_over_service", 1),
        "stop_obsessing_over_svc": (value, SERVICE, "obsess_over_service", 0),
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
        "disable_event_handlers": (value, CORE, "enable_event_handlers", 0),
        "disable_flap_detection": (value, CORE, "enable_flap_detection", 0),
        "disable_host_freshness_checks": (value, CORE, "check_host_freshness", 0),
        "disable_notifications": (value, CORE, "enable_notifications", 0),
        "disable_performance_data": (value, CORE, "process_performance_data", 0),
        "disable_service_freshness_checks": (value, CORE, "check_service_freshness", 0),
        "enable_event_handlers": (value, CORE, "enable_event_handlers", 1),
        "enable_flap_detection": (value, CORE, "enable_flap_detection", 1),
        "enable_host_freshness_checks": (value, CORE, "check_host_freshness", 1),
        "enable_notifications": (value, CORE, "enable_notifications", 1),
        "enable_performance_data": (value, CORE, "process_performance_data", 1),
        "enable_service_freshness_checks": (value, CORE, "check_service_freshness", 1),
        "log": (noted, ""),
        "read_state_information": (unseen, _STATE_FILE),
        "restart_process": (restarted,),
        "restart_program": (restarted,),
        "save_state_information": (unseen, _STATE_FILE),
        "shutdown_process": (unseen, _STOPPED),
        "shutdown_program": (unseen, _STOPPED),
        "start_accepting_passive_host_checks": (value, CORE, "accept_passive_host_checks", 1),
        "start_accepting_passive_svc_checks": (value, CORE, "accept_passive_service_checks", 1),
        "start_executing_host_checks": (value, CORE, "execute_host_checks", 1),
        "start_executing_svc_checks": (value, CORE, "execute_service_checks", 1),
        "start_obsessing_over_host_checks": (value, CORE, "obsess_over_hosts", 1),
        "start_obsessing_over_svc_checks": (value, CORE, "obsess_over_services", 1),
        "stop_accepting_passive_host_checks": (value, CORE, "accept_passive_host_checks", 0),
        "stop_accepting_passive_svc_checks": (value, CORE, "accept_passive_service_checks", 0),
        "stop_executing_host_checks": (value, CORE, "execute_host_checks", 0),
        "stop_executing_svc_checks": (value, CORE, "execute_service_checks", 0),
        "stop_obsessing_over_host_checks": (value, CORE, "obsess_over_hosts", 0),
        "stop_obsessing_over_svc_checks": (value, CORE, "obsess_over_services", 0),
    },
}
"""Kind and name of every command to its predicate and what that needs to know."""


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
    """What to look for after ``command`` was sent with ``arguments`` (those of ``parse``).

    ``now`` is the time of the request in Unix time, ``core`` what the site can do (None: a
    Naemon). ``ids`` are the comments or downtimes found for a command resolved by lookup.
    """
    if core is not None and core.icinga2 and command.core_name in UNKNOWN_TO_ICINGA2:
        return Unseen("Icinga 2 does not know this command")
    sent = SentCommand(
        command=command, target=target, arguments=arguments, now=now, core=core, ids=ids
    )
    predicate, *more = READINGS[command.kind][command.name]
    effect: Effect | Unseen = predicate(sent, *more)
    if core is None or isinstance(effect, Unseen):
        return effect
    for column in (*effect.columns, *columns_of(effect.filter)):
        if not core.has(effect.table, column):
            return Unseen(f"the core has no column {column} in its table {effect.table}")
    return effect
