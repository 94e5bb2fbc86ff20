"""Columns of configured objects: commands, time periods, contacts and groups of all kinds."""

from __future__ import annotations

from monrest.query.column_names import TableSchema
from monrest.rows.columns.declaring import (
    AnyColumn,
    dictionary,
    flag,
    integer,
    names,
    records,
    table,
    text,
)

COMMAND_COLUMNS = table(
    text({"name": "name of the command", "line": "command line with its macros"}),
    integer({"id": "number of the command in the core"}, default=False),
)
"""The columns of the core's commands table."""

COMMANDS = TableSchema(
    name="commands",
    table="commands",
    columns=COMMAND_COLUMNS,
    order=("name",),
)

TIMEPERIODS = TableSchema(
    name="timeperiods",
    table="timeperiods",
    columns=table(
        text({"name": "name of the time period", "alias": "longer name"}),
        names({"exclusions": "time periods cut out of this one"}),
        integer(
            {
                "id": "number of the time period in the core",
                "in": "1 if the present is inside",
            },
            default=False,
        ),
        records(
            {"days": "seven lists of [from, to] in seconds of the day, Sunday first"},
            default=False,
        ),
        names(
            {
                "exceptions_calendar_dates": "exceptions on calendar dates",
                "exceptions_month_date": "exceptions on days of a named month",
                "exceptions_month_day": "exceptions on days of every month",
                "exceptions_month_week_day": "exceptions on weekdays of a named month",
                "exceptions_week_day": "exceptions on weekdays of every month",
            },
            default=False,
            elements="object",
        ),
    ),
    order=("name",),
)


CONTACT_COLUMNS = table(
    text(
        {
            "name": "name of the contact",
            "alias": "full name",
            "email": "mail address",
            "pager": "pager address",
            "host_notification_period": "time period of notifications about hosts",
            "service_notification_period": "time period of notifications about services",
            **{f"address{number}": f"further address {number}" for number in range(1, 6)},
        }
    ),
    integer(
        {
            "can_submit_commands": "1 if the contact may send commands",
            "host_notifications_enabled": "1 if notifications about hosts are enabled",
            "service_notifications_enabled": "1 if notifications about services are enabled",
            "id": "number of the contact in the core",
        }
    ),
    flag(
        {
            "in_host_notification_period": "1 if notified about hosts at present",
            "in_service_notification_period": "1 if notified about services at present",
        }
    ),
    names(
        {
            "modified_attributes_list": "names of attributes changed while the core runs",
            "groups": "contact groups",
            "host_notification_commands": "commands of notifications about hosts",
            "service_notification_commands": "commands of notifications about services",
            "custom_variable_names": "names of the custom variables",
            "custom_variable_values": "values of the custom variables in the order of their names",
        }
    ),
    dictionary({"custom_variables": "custom variables by name"}),
    integer(
        {"modified_attributes": "bits of attributes changed while the core runs"}, default=False
    ),
    text({"address6": "further address 6"}, default=False),
)
"""The columns of the core's contacts table."""

CONTACTS = TableSchema(
    name="contacts",
    table="contacts",
    columns=table(
        CONTACT_COLUMNS.values(),
        # No core has it, but clients expect the key, as every other kind of object has it.
        text({"last_update": "always empty"}),
    ),
    order=("name",),
    custom=(("custom_variables", "_"),),
)


_NAMED = text({"name": "name of the group", "alias": "longer name"})

_ADDRESSES = text(
    {
        "notes": "notes",
        "notes_url": "address of further notes",
        "action_url": "address of possible actions",
    }
)

_SERVICE_COUNTS: list[AnyColumn] = integer(
    {
        "num_services": "number of services",
        "num_services_ok": "number of services in state ok",
        "num_services_warn": "number of services in state warning",
        "num_services_crit": "number of services in state critical",
        "num_services_unknown": "number of services in state unknown",
        "num_services_pending": "number of services never checked",
        "num_services_hard_ok": "number of services in hard state ok",
        "num_services_hard_warn": "number of services in hard state warning",
        "num_services_hard_crit": "number of services in hard state critical",
        "num_services_hard_unknown": "number of services in hard state unknown",
        "worst_service_state": "worst state of the services",
    }
)

_ID = integer({"id": "number of the group in the core"}, default=False)

HOSTGROUPS = TableSchema(
    name="hostgroups",
    table="hostgroups",
    columns=table(
        _NAMED,
        _ADDRESSES,
        names({"members": "names of the hosts"}),
        integer(
            {
                "num_hosts": "number of hosts",
                "num_hosts_up": "number of hosts up",
                "num_hosts_down": "number of hosts down",
                "num_hosts_unreach": "number of hosts unreachable",
                "num_hosts_pending": "number of hosts never checked",
                "worst_host_state": "worst state of the hosts",
                "worst_service_hard_state": "worst hard state of the services",
            }
        ),
        _SERVICE_COUNTS,
        _ID,
        records({"members_with_state": "hosts as [host, state, has_been_checked]"}, default=False),
    ),
    order=("name",),
    merge="groups",
)

SERVICEGROUPS = TableSchema(
    name="servicegroups",
    table="servicegroups",
    columns=table(
        _NAMED,
        _ADDRESSES,
        records({"members": "services as [host, description]"}),
        _SERVICE_COUNTS,
        _ID,
        records(
            {"members_with_state": ("services as [host, description, state, has_been_checked]")},
            default=False,
        ),
    ),
    order=("name",),
    merge="groups",
)

CONTACTGROUPS = TableSchema(
    name="contactgroups",
    table="contactgroups",
    columns=table(_NAMED, names({"members": "names of the contacts"}), _ID),
    order=("name",),
)
