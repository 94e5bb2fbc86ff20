"""The catalogue: every collection of core rows with all of its columns, declared once.

Types, units and descriptions go into wrapped JSON's ``meta.columns`` and the reference page;
core types and defaults are what the query engine goes by when it asks cores.
"""

from __future__ import annotations

from collections.abc import Mapping

from monrest.query.column_names import TableSchema
from monrest.rows.columns.checkable_columns import HOSTS, SERVICES
from monrest.rows.columns.declaring import PSEUDO_COLUMNS, Joined
from monrest.rows.columns.event_columns import COMMENTS, DOWNTIMES, LOGS
from monrest.rows.columns.object_columns import (
    COMMANDS,
    CONTACTGROUPS,
    CONTACTS,
    HOSTGROUPS,
    SERVICEGROUPS,
    TIMEPERIODS,
)
from monrest.rows.columns.status_columns import PROCESSINFO

__all__ = [
    "COMMANDS",
    "COMMENTS",
    "CONTACTGROUPS",
    "CONTACTS",
    "DOWNTIMES",
    "HOSTGROUPS",
    "HOSTS",
    "JOINED",
    "LOGS",
    "PROCESSINFO",
    "PSEUDO_COLUMNS",
    "SCHEMAS",
    "SERVICEGROUPS",
    "SERVICES",
    "TIMEPERIODS",
]

SCHEMAS: Mapping[str, TableSchema] = {
    schema.name: schema
    for schema in (
        HOSTS,
        SERVICES,
        HOSTGROUPS,
        SERVICEGROUPS,
        CONTACTS,
        CONTACTGROUPS,
        COMMANDS,
        TIMEPERIODS,
        COMMENTS,
        DOWNTIMES,
        LOGS,
        PROCESSINFO,
    )
}
"""Every collection by the first segment of its path."""

_OF_AN_EVENT = (Joined("host_", "hosts"), Joined("service_", "services"))

JOINED: Mapping[str, tuple[Joined, ...]] = {
    "services": _OF_AN_EVENT[:1],
    "comments": _OF_AN_EVENT,
    "downtimes": _OF_AN_EVENT,
    "logs": (
        Joined("current_host_", "hosts"),
        Joined("current_service_", "services"),
        Joined("current_contact_", "contacts"),
        Joined("current_command_", "commands"),
    ),
}
"""The collections whose own columns can be selected in another one, by prefix."""
