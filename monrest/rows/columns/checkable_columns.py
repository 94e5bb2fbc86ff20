"""Columns of /hosts and /services, beginning with those that both have."""

from __future__ import annotations

from monrest.base.values import Column
from monrest.query.column_names import TableSchema
from monrest.rows.columns.declaring import (
    AnyColumn,
    change_or_start,
    decimal,
    derived,
    dictionary,
    flag,
    ids,
    info,
    integer,
    joined,
    names,
    records,
    state_order,
    table,
    text,
    time,
)

COMMON: tuple[AnyColumn, ...] = (
    *text(
        {
            "display_name": "name shown in user interfaces",
            "check_command": "check command, with its arguments for those who may see them",
            "check_period": "time period in which checks are made",
            "event_handler": "command run when the state changes",
            "notification_period": "time period in which notifications are sent",
            "plugin_output": "first line of the last check's output",
            "long_plugin_output": "further lines of the last check's output",
            "perf_data": "performance data of the last check as text",
            "notes": "notes",
            "notes_expanded": "notes with macros expanded",
            "notes_url": "address of further notes",
            "notes_url_expanded": "address of further notes with macros expanded",
            "action_url": "address of possible actions",
            "action_url_expanded": "address of possible actions with macros expanded",
            "icon_image": "file name of the icon",
            "icon_image_expanded": "file name of the icon with macros expanded",
            "icon_image_alt": "text in place of the icon",
        }
    ),
    *integer(
        {
            "state_type": "0 soft, 1 hard",
            "last_state": "state before the present one",
            "last_hard_state": "last hard state",
            "has_been_checked": "1 if there was a check, 0 while pending",
            "check_type": "0 active, 1 passive",
            "current_attempt": "number of the present check attempt",
            "max_check_attempts": "attempts until a problem becomes hard",
            "current_notification_number": "notifications sent for the present problem",
            "scheduled_downtime_depth": "number of downtimes in effect",
            "acknowledged": "1 if the problem is acknowledged",
            "active_checks_enabled": "1 if active checks are enabled",
            "event_handler_enabled": "1 if the event handler is enabled",
            "flap_detection_enabled": "1 if flap detection is enabled",
            "is_flapping": "1 while flapping",
            "notifications_enabled": "1 if notifications are enabled",
            "process_performance_data": "1 if performance data is processed",
        }
    ),
    *time(
        {
            "last_check": "time of the last check",
            "next_check": "time of the next scheduled check",
            "last_state_change": "time of the last change of state, soft or hard",
            "last_hard_state_change": "time of the last change of hard state",
            "last_notification": "time of the last notification",
            "last_update": "time of the last change of any value in the core",
        }
    ),
    *decimal(
        {
            "check_interval": "interval units between two checks",
            "retry_interval": "interval units between two checks of a soft problem",
            "notification_interval": "interval units between two notifications",
            "first_notification_delay": "interval units before the first notification",
        }
    ),
    *decimal(
        {
            "execution_time": "duration of the last check",
            "latency": "delay of the last check behind its schedule",
        },
        unit="s",
    ),
    *decimal(
        {
            "low_flap_threshold": "flapping ends below this percentage of changes",
            "high_flap_threshold": "flapping starts above this percentage of changes",
            "percent_state_change": "percentage of recent checks that changed the state",
        },
        unit="%",
    ),
    *names(
        {
            "contacts": "contacts, those of the contact groups included",
            "contact_groups": "contact groups",
            "modified_attributes_list": "names of attributes changed while the core runs",
            "custom_variable_names": "names of the custom variables",
            "custom_variable_values": "values of the custom variables in the order of their names",
        }
    ),
    *dictionary({"custom_variables": "custom variables by name"}),
    *derived(
        Column("comments_info", "string", "", "comments as one text: id, author, text"),
        ("comments_with_info",),
        info,
    ),
    *derived(
        Column("downtimes_info", "string", "", "downtimes as one text: id, author, text"),
        ("downtimes_with_info",),
        info,
    ),
    *derived(
        Column(
            "last_state_change_order",
            "time",
            "",
            "last_state_change, or the start of the core if the state never changed",
        ),
        ("last_state_change", "program_start"),
        change_or_start,
    ),
    *integer(
        {
            "acknowledgement_type": "0 none, 1 normal, 2 sticky",
            "hourly_value": "value of the object for contacts with a minimum value",
            "id": "number of the object in the core",
            "initial_state": "state assumed at the core's start",
            "modified_attributes": "bits of attributes changed while the core runs",
            "no_more_notifications": "1 if no more notifications are sent for this problem",
            "notified_on": "bits of states that notifications were sent for",
            "obsess": "1 if results are handed to the obsessive command",
            "pnpgraph_present": "1 if there is a graph, 0 if not, -1 if unknown",
            "should_be_scheduled": "1 if active checks are to be scheduled",
        },
        default=False,
    ),
    *integer({"check_timeout": "limit for one check"}, unit="s", default=False),
    *time(
        {"next_notification": "earliest time of the next notification"},
        default=False,
    ),
    *decimal(
        {"staleness": "age of the last result in check intervals"},
        default=False,
    ),
    *ids({"downtimes": "ids of the downtimes"}, default=False),
    *text({"check_source": "what delivered the last result"}, default=False),
)


HOST_COLUMNS = table(
    text(
        {
            "name": "name of the host",
            "alias": "longer name",
            "address": "address, in the form that checks use",
        }
    ),
    integer(
        {
            "state": "0 up, 1 down, 2 unreachable",
            "hard_state": "the last hard state: 0 up, 1 down, 2 unreachable",
            "check_options": "how the last check came about: 0 forced, 1 normal, 2 freshness",
            "check_freshness": "1 if the age of results is watched",
            "checks_enabled": "1 if active checks are enabled",
            "obsess_over_host": "1 if results are handed to the obsessive command",
            "num_services": "number of services",
            "num_services_ok": "number of services in state ok",
            "num_services_warn": "number of services in state warning",
            "num_services_crit": "number of services in state critical",
            "num_services_unknown": "number of services in state unknown",
            "num_services_pending": "number of services never checked",
        }
    ),
    flag(
        {
            "accept_passive_checks": "1 if passive results are accepted",
            "in_check_period": "1 if checks are made at present",
            "in_notification_period": "1 if notifications are sent at present",
            "is_executing": "1 while a check runs",
        }
    ),
    time(
        {
            "last_time_up": "time of the last check with the result up",
            "last_time_down": "time of the last check with the result down",
            "last_time_unreachable": "time of the last check with the result unreachable",
        }
    ),
    names(
        {
            "childs": "hosts directly behind this one",
            "parents": "hosts directly before this one",
            "groups": "host groups",
            "services": "descriptions of the services",
            "depends_exec": "hosts that checks depend on",
            "depends_notify": "hosts that notifications depend on",
        }
    ),
    ids({"comments": "ids of the comments"}),
    records(
        {
            "services_with_state": "services as [description, state, has_been_checked]",
            "services_with_info": (
                "services as [description, state, has_been_checked, plugin_output]"
            ),
            "comments_with_info": (
                "comments as [id, author, comment, entry_time, entry_type, expires, expire_time]"
            ),
            "downtimes_with_info": (
                "downtimes as [id, author, comment, entry_time, start_time, end_time, fixed, "
                "duration, triggered_by]"
            ),
        }
    ),
    COMMON,
    integer(
        {
            "check_flapping_recovery_notification": (
                "notification number when flapping started, to notify of the recovery"
            ),
            "num_services_hard_ok": "number of services in hard state ok",
            "num_services_hard_warn": "number of services in hard state warning",
            "num_services_hard_crit": "number of services in hard state critical",
            "num_services_hard_unknown": "number of services in hard state unknown",
            "pending_flex_downtime": "number of flexible downtimes that wait for a problem",
            "total_services": "number of services",
            "worst_service_state": "worst state of the services",
            "worst_service_hard_state": "worst hard state of the services",
        },
        default=False,
    ),
    decimal(
        {
            "x_3d": "x coordinate in a three-dimensional map",
            "y_3d": "y coordinate in a three-dimensional map",
            "z_3d": "z coordinate in a three-dimensional map",
        },
        default=False,
    ),
    records(
        {
            "depends_exec_with_info": (
                "hosts that checks depend on as [host, failure options, period, inherits_parent]"
            ),
            "depends_notify_with_info": (
                "hosts that notifications depend on as "
                "[host, failure options, period, inherits_parent]"
            ),
        },
        default=False,
    ),
    text(
        {
            "filename": "file with the host's definition",
            "statusmap_image": "file name of the image in maps",
        },
        default=False,
    ),
)
"""Every column of the core's hosts table that is known, and the derived ones."""

HOSTS = TableSchema(
    name="hosts",
    table="hosts",
    columns=HOST_COLUMNS,
    strip="host_",
    q_aliases={"host": "name"},
    order=("name",),
    perf=(("perf_data", ""),),
    custom=(("custom_variables", "_"),),
)


SERVICE_COLUMNS = table(
    text({"description": "description of the service, unique on its host"}),
    integer(
        {
            "state": "0 ok, 1 warning, 2 critical, 3 unknown",
            "obsess_over_service": "1 if results are handed to the obsessive command",
            "in_check_period": "1 if checks are made at present",
            "in_notification_period": "1 if notifications are sent at present",
            "is_executing": "1 while a check runs",
        }
    ),
    derived(
        Column("state_order", "number", "", "state by severity: critical is 4, after unknown"),
        ("state",),
        state_order,
    ),
    flag(
        {
            "accept_passive_checks": "1 if passive results are accepted",
            "checks_enabled": "1 if active checks are enabled",
        }
    ),
    time(
        {
            "last_time_ok": "time of the last check with the result ok",
            "last_time_warning": "time of the last check with the result warning",
            "last_time_critical": "time of the last check with the result critical",
            "last_time_unknown": "time of the last check with the result unknown",
        }
    ),
    names({"groups": "service groups"}),
    records(
        {
            "downtimes_with_info": (
                "downtimes as [id, author, comment, entry_time, start_time, end_time, fixed, "
                "duration, triggered_by]"
            ),
            "comments_with_info": (
                "comments as [id, author, comment, entry_time, entry_type, expires, expire_time]"
            ),
            "depends_exec": "services that checks depend on as [host, description]",
            "depends_notify": "services that notifications depend on as [host, description]",
            "parents": "parent services as [host, description]",
        }
    ),
    integer({"check_options": "how the last check came about: 0 forced, 1 normal, 2 freshness"}),
    ids({"comments": "ids of the comments"}),
    COMMON,
    integer({"check_freshness": "1 if the age of results is watched"}, default=False),
    records(
        {
            "depends_exec_with_info": (
                "services that checks depend on as "
                "[host, description, failure options, period, inherits_parent]"
            ),
            "depends_notify_with_info": (
                "services that notifications depend on as "
                "[host, description, failure options, period, inherits_parent]"
            ),
        },
        default=False,
    ),
)
"""The core's own columns of services, without those of the host."""

HOST_DEFAULTS = frozenset(
    f"host_{name}"
    for name in (
        *("name", "alias", "display_name", "address", "check_command", "plugin_output"),
        *("perf_data", "notes", "notes_url_expanded", "action_url_expanded"),
        *("icon_image_expanded", "icon_image_alt", "state", "has_been_checked", "check_type"),
        *("current_attempt", "scheduled_downtime_depth", "last_state_change", "acknowledged"),
        *("accept_passive_checks", "active_checks_enabled", "checks_enabled"),
        *("notifications_enabled", "is_executing", "is_flapping", "latency", "groups"),
        *("parents", "contacts", "contact_groups", "comments", "custom_variable_names"),
        *("custom_variable_values", "custom_variables"),
    )
)
"""The host's columns that are part of a service row without ``columns``."""

SERVICES = TableSchema(
    name="services",
    table="services",
    columns=table(
        joined("host_", HOST_COLUMNS, "host", default=HOST_DEFAULTS), SERVICE_COLUMNS.values()
    ),
    strip="service_",
    q_aliases={"host": "host_name", "service": "description"},
    order=("host_name", "description"),
    perf=(("perf_data", ""), ("host_perf_data", "host_")),
    custom=(("custom_variables", "_"), ("host_custom_variables", "_HOST")),
)
