"""Columns that hosts and services have alike."""

from __future__ import annotations

from monrest.base.values import Column
from monrest.rows.columns.compute import change_or_start, info
from monrest.rows.columns.declaring import (
    AnyColumn,
    decimal,
    derived,
    dictionary,
    integer,
    names,
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
    *names({"downtimes": "ids of the downtimes"}, default=False),
    *text({"check_source": "what delivered the last result"}, default=False),
)
