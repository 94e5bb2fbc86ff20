"""Columns of /hostgroups, /servicegroups and /contactgroups."""

from __future__ import annotations

from monrest.query.column_names import TableSchema
from monrest.rows.columns.declaring import AnyColumn, integer, names, table, text

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
        names({"members_with_state": "hosts as [host, state, has_been_checked]"}, default=False),
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
        names({"members": "services as [host, description]"}),
        _SERVICE_COUNTS,
        _ID,
        names(
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
