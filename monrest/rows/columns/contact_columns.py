"""Columns of /contacts."""

from __future__ import annotations

from monrest.query.column_names import TableSchema
from monrest.rows.columns.declaring import dictionary, flag, integer, names, table, text

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
        # No core tells it, but clients expect the key, as every other kind of object has it.
        text({"last_update": "always empty"}),
    ),
    order=("name",),
    custom=(("custom_variables", "_"),),
)
