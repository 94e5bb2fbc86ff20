"""The core collections and their single objects."""

from __future__ import annotations

from monrest.api.endpoint import Endpoint
from monrest.api.visibility import SYSTEM
from monrest.query.column_names import TableSchema
from monrest.query.model import Condition
from monrest.query.regex import wildcard
from monrest.rows.columns import (
    COMMANDS,
    COMMENTS,
    CONTACTGROUPS,
    CONTACTS,
    DOWNTIMES,
    HOSTGROUPS,
    HOSTS,
    PROCESSINFO,
    SERVICEGROUPS,
    SERVICES,
    TIMEPERIODS,
)
from monrest.rows.fetch import Conditions, rows_of


def exactly(column: str, value: str) -> Condition:
    """The condition that a plain path segment stands for."""
    return Condition(column, "=", value, "path")


def matching(column: str, segment: str) -> Condition:
    """The condition for a path segment that may hold wildcards."""
    op, value = wildcard(segment)
    return Condition(column, op, value, "path")


def _by(column: str) -> Conditions:
    return lambda arguments: (exactly(column, arguments[0]),)


def _service(arguments: tuple[str, ...]) -> tuple[Condition, ...]:
    host, description = arguments
    return matching("host_name", host), matching("description", description)


_OBJECTS: tuple[tuple[TableSchema, str, str, tuple[str, ...]], ...] = (
    (HOSTS, "name", "hosts", ()),
    (HOSTGROUPS, "name", "host groups", ()),
    (SERVICEGROUPS, "name", "service groups", ()),
    (CONTACTS, "name", "contacts", ()),
    (CONTACTGROUPS, "name", "contact groups", ()),
    (TIMEPERIODS, "name", "time periods", ()),
    (COMMANDS, "name", "commands", ("admin",)),
    (COMMENTS, "id", "comments", ()),
    (DOWNTIMES, "id", "downtimes", ()),
)


ENDPOINTS: tuple[Endpoint, ...] = (
    *(
        endpoint
        for schema, key, words, roles in _OBJECTS
        for endpoint in (
            Endpoint(
                path=f"/{schema.name}",
                description=f"lists {words}",
                handler=rows_of(schema),
                schema=schema,
                roles=roles,
            ),
            Endpoint(
                path=f"/{schema.name}/<{key}>",
                description=f"alias of /{schema.name}?{key}=<{key}>",
                handler=rows_of(schema, _by(key)),
                schema=schema,
                roles=roles,
            ),
        )
    ),
    Endpoint(
        path="/services",
        description="lists services",
        handler=rows_of(SERVICES),
        schema=SERVICES,
    ),
    Endpoint(
        path="/services/<host>/<service>",
        description="alias of /services?host_name=<host>&description=<service>",
        text="Both names may hold wildcards, for example `web*`.",
        handler=rows_of(SERVICES, _service),
        schema=SERVICES,
    ),
    Endpoint(
        path="/hosts/<name>/services",
        description="alias of /services?host_name=<name>",
        handler=rows_of(SERVICES, _by("host_name")),
        schema=SERVICES,
    ),
    Endpoint(
        path="/processinfo",
        description="lists the core of every site",
        roles=(SYSTEM,),
        handler=rows_of(PROCESSINFO),
        schema=PROCESSINFO,
    ),
)
