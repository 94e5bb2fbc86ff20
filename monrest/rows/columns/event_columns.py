"""Columns of log lines (docs/spec/logs.md, "Columns"), of comments and of downtimes."""

from __future__ import annotations

from monrest.query.column_names import TableSchema
from monrest.rows.columns.checkable_columns import HOST_COLUMNS, SERVICE_COLUMNS
from monrest.rows.columns.declaring import AnyColumn, integer, joined, table, text, time
from monrest.rows.columns.object_columns import COMMAND_COLUMNS, CONTACT_COLUMNS

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


_OBJECT = frozenset({"host_name", "service_description"})


def _objects() -> list[AnyColumn]:
    """Declare the joined columns of the host and of the service, where there is one."""
    return [
        *joined("host_", HOST_COLUMNS, "host", default=_OBJECT),
        *joined("service_", SERVICE_COLUMNS, "service", default=_OBJECT),
    ]


COMMENTS = TableSchema(
    name="comments",
    table="comments",
    columns=table(
        text({"author": "who wrote it", "comment": "the text"}),
        integer(
            {
                "id": "number of the comment, by which it is deleted",
                "entry_type": "1 user, 2 downtime, 3 flapping, 4 acknowledgement",
                "expires": "1 if it ends by itself",
                "persistent": "1 if it survives a restart of the core",
                "source": "0 written by the core, 1 from outside",
                "type": "1 on a host, 2 on a service",
            }
        ),
        time({"entry_time": "time of writing", "expire_time": "time of its end, 0 for none"}),
        integer({"is_service": "1 on a service"}, default=False),
        _objects(),
    ),
    q_aliases={"host": "host_name", "service": "service_description"},
    order=("id",),
)

DOWNTIMES = TableSchema(
    name="downtimes",
    table="downtimes",
    columns=table(
        text({"author": "who scheduled it", "comment": "the reason"}),
        integer(
            {
                "id": "number of the downtime, by which it is deleted",
                "fixed": "1 from start to end, 0 when it waits for a problem in between",
                "triggered_by": "id of the downtime that starts this one, 0 for none",
            }
        ),
        integer({"duration": "length of a flexible downtime"}, unit="s"),
        time(
            {
                "entry_time": "time of scheduling",
                "start_time": "its start",
                "end_time": "its end",
            }
        ),
        integer({"is_service": "1 on a service"}, default=False),
        integer({"type": "0 in effect, 1 pending"}, default=False),
        _objects(),
    ),
    q_aliases={"host": "host_name", "service": "service_description"},
    order=("id",),
)
