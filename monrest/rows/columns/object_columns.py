"""Columns of /commands and /timeperiods."""

from __future__ import annotations

from monrest.query.column_names import TableSchema
from monrest.rows.columns.declaring import integer, names, table, text

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
        names(
            {
                "days": "seven lists of [from, to] in seconds of the day, Sunday first",
                "exceptions_calendar_dates": "exceptions on calendar dates",
                "exceptions_month_date": "exceptions on days of a named month",
                "exceptions_month_day": "exceptions on days of every month",
                "exceptions_month_week_day": "exceptions on weekdays of a named month",
                "exceptions_week_day": "exceptions on weekdays of every month",
            },
            default=False,
        ),
    ),
    order=("name",),
)
