"""Columns of /logs, /notifications and /alerts (docs/spec/logs.md, "Columns")."""

from __future__ import annotations

from monrest.query.column_names import TableSchema
from monrest.rows.columns.contact_columns import CONTACT_COLUMNS
from monrest.rows.columns.declaring import integer, joined, table, text, time
from monrest.rows.columns.host_columns import HOST_COLUMNS
from monrest.rows.columns.object_columns import COMMAND_COLUMNS
from monrest.rows.columns.service_columns import SERVICE_COLUMNS

LOG_COLUMNS = table(
    integer(
        {
            "class": (
                "0 info, 1 state, 2 program, 3 notification, 4 passive, 5 command, "
                "6 initial or current state, 7 text"
            ),
            "state": "state of the object at that time",
            "attempt": "number of the check attempt",
            "lineno": "number of the line in its file",
        }
    ),
    time({"time": "time of the entry"}),
    text(
        {
            "type": "type of the entry, for example SERVICE ALERT",
            "message": "the whole line with its time stamp",
            "options": "the part of the line after the type",
            "host_name": "name of the host",
            "service_description": "description of the service",
            "contact_name": "name of the contact",
            "comment": "comment of the entry",
            "plugin_output": "output of the check",
            "state_type": "HARD or SOFT; for notifications the reason or the state",
            "command_name": "name of the command",
        }
    ),
    joined("current_host_", HOST_COLUMNS, "host at present"),
    joined("current_service_", SERVICE_COLUMNS, "service at present"),
    joined("current_contact_", CONTACT_COLUMNS, "contact at present"),
    joined("current_command_", COMMAND_COLUMNS, "command at present"),
)

LOGS = TableSchema(
    name="logs",
    table="log",
    columns=LOG_COLUMNS,
    q_aliases={"host": "host_name", "service": "service_description"},
    order=("time", "lineno"),
    merge="logs",
)
