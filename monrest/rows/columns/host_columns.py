"""Columns of /hosts."""

from __future__ import annotations

from monrest.query.column_names import TableSchema
from monrest.rows.columns.checkable_columns import COMMON
from monrest.rows.columns.declaring import (
    decimal,
    flag,
    integer,
    labelled,
    names,
    table,
    text,
    time,
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
            "services_with_state": "services as [description, state, has_been_checked]",
            "services_with_info": (
                "services as [description, state, has_been_checked, plugin_output]"
            ),
            "comments": "ids of the comments",
            "depends_exec": "hosts that checks depend on",
            "depends_notify": "hosts that notifications depend on",
        }
    ),
    labelled(
        {
            "comments_with_info": (
                "comments as [id, author, comment, entry_time, entry_type, expires, expire_time]"
            )
        },
        "list",
        "string",
    ),
    labelled(
        {
            "downtimes_with_info": (
                "downtimes as [id, author, comment, entry_time, start_time, end_time, fixed, "
                "duration, triggered_by]"
            )
        },
        "list",
        "number",
    ),
    COMMON,
    integer(
        {
            "check_flapping_recovery_notification": (
                "notification number when flapping started, to be told of the recovery"
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
    names(
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
