"""Columns of /services."""

from __future__ import annotations

from monrest.base.values import Column
from monrest.query.column_names import TableSchema
from monrest.rows.columns.checkable_columns import COMMON
from monrest.rows.columns.compute import state_order
from monrest.rows.columns.declaring import (
    derived,
    flag,
    integer,
    joined,
    labelled,
    names,
    table,
    text,
    time,
)
from monrest.rows.columns.host_columns import HOST_COLUMNS

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
    names(
        {
            "groups": "service groups",
            "downtimes_with_info": (
                "downtimes as [id, author, comment, entry_time, start_time, end_time, fixed, "
                "duration, triggered_by]"
            ),
            "depends_exec": "services that checks depend on as [host, description]",
            "depends_notify": "services that notifications depend on as [host, description]",
            "parents": "parent services as [host, description]",
        }
    ),
    labelled(
        {"check_options": "how the last check came about: 0 forced, 1 normal, 2 freshness"},
        "int",
        "string",
    ),
    labelled(
        {
            "comments": "ids of the comments",
            "comments_with_info": (
                "comments as [id, author, comment, entry_time, entry_type, expires, expire_time]"
            ),
        },
        "list",
        "string",
    ),
    COMMON,
    integer({"check_freshness": "1 if the age of results is watched"}, default=False),
    names(
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
