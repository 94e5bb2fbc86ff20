"""The configured sites (docs/spec/sites.md, "Selection")."""

from __future__ import annotations

from typing import Any

from attrs import evolve

from monrest.api.endpoint import LIST_PARAMETERS, Context, Endpoint
from monrest.api.instances import visited_of
from monrest.api.lists import local_schema, select
from monrest.api.visibility import SYSTEM
from monrest.base.values import Answer, Column, Identity, RestRequest
from monrest.sites.federation.federated_site import FederatedSite
from monrest.sites.lmd.lmd_source import LmdSite
from monrest.sites.site import Site

# last_error is a text: filters would read what they compare a time with as one.
COLUMNS = (
    Column("addr", "string", "", "address, empty without the role for system information"),
    Column("connected", "boolean", "", "1 if the core answered last time"),
    Column("federation_addr", "array_of_strings", "", "addresses along the way to the core"),
    Column("federation_key", "array_of_strings", "", "ids along the way to the core"),
    Column("federation_name", "array_of_strings", "", "names along the way to the core"),
    Column("federation_type", "array_of_strings", "", "connection types along the way"),
    Column("federation_version", "array_of_strings", "", "versions along the way"),
    Column("id", "string", "", "id, the peer_key of its rows"),
    Column("last_error", "string", "", "why the core could not be asked, empty while it can"),
    Column("localtime", "time", "", "clock of the core at the last probe"),
    Column("name", "string", "", "name, the peer_name of its rows"),
    Column("section", "string", "", "section, the peer_section of its rows"),
    Column("status", "boolean", "", "0 OK, 1 DOWN"),
    Column("type", "string", "", "kind of connection"),
)
MORE = (
    Column("core", "string", "", "digest of the tables of the core; on demand"),
    Column("groups", "array_of_strings", "", "contact groups that may use it; on demand"),
    Column("hidden", "boolean", "", "1 when only an explicit selection means it; on demand"),
    Column("instances", "array_of_strings", "", "instances on the way to the core; on demand"),
    Column("program_start", "time", "", "start of the core; on demand"),
    Column("tables", "object", "", "tables, columns and types of the core; on demand"),
)
"""Columns for instances that federate, part of the answer when the request names them."""
_PLAIN = local_schema("sites", (*COLUMNS, *MORE), ())
_ON_DEMAND = frozenset(column.name for column in MORE)
_SCHEMA = evolve(
    _PLAIN,
    columns={
        name: evolve(column, default=name not in _ON_DEMAND)
        for name, column in _PLAIN.columns.items()
    },
)


def record(site: Site, identity: Identity, instance: str, now: float) -> dict[str, Any]:
    """One site as a record; a site that is not federated has its own values in the lists.

    Where the core is, what runs there and why it cannot be asked is for users with the role for
    system information; all users see whether it works. ``instance`` is this one's id, ``now``
    the date.
    """
    informed = identity.may(SYSTEM)
    hops, core, health = site.hops, site.capabilities, site.health
    unknown = [""] * len(hops.keys)
    # The core's clock at the last probe; ours where the core does not have the column.
    localtime = health.program.localtime
    if localtime is None:
        localtime = 0.0 if health.checked is None else now
    return {
        "addr": site.address if informed else "",
        "connected": int(site.connected),
        "federation_addr": list(hops.addresses) if informed else unknown,
        "federation_key": list(hops.keys),
        "federation_name": list(hops.names),
        "federation_type": list(hops.kinds),
        "federation_version": list(hops.versions) if informed else unknown,
        "id": site.id,
        "last_error": site.last_error if informed else "",
        "localtime": int(localtime),
        "name": site.name,
        "section": site.section,
        "status": site.status,
        "type": site.kind,
        "core": core.key if core is not None and informed else "",
        "groups": list(site.config.groups) if informed else [],
        "hidden": int(site.hidden),
        "instances": [instance, *hops.instances] if informed else [],
        "program_start": int(health.program_start),
        "tables": core.tables if core is not None and informed else {},
    }


LMD_COLUMNS = (
    Column("addr", "string", "", "address in use"),
    Column("bytes_received", "number", "bytes", "bytes received from the site"),
    Column("bytes_send", "number", "bytes", "bytes sent to the site"),
    *(column for column in COLUMNS if column.name.startswith("federation_")),
    Column("flags", "array_of_strings", "", "what is special about the core"),
    Column("idling", "boolean", "", "1 while no client asks for the site"),
    Column("key", "string", "", "id of the site"),
    Column("last_error", "string", "", "why the core could not be asked, empty while it can"),
    Column("last_online", "time", "", "last time the core was reached"),
    Column("last_query", "time", "", "last query of a client"),
    Column("last_update", "time", "", "last update"),
    Column("lmd_last_cache_update", "time", "", "last update of the cache"),
    Column("name", "string", "", "name of the site"),
    Column("parent", "string", "", "id of the site before this one"),
    Column("peer_key", "string", "", "id of the site"),
    Column("peer_name", "string", "", "name of the site"),
    Column("queries", "number", "", "queries sent to the site"),
    Column("response_time", "number", "s", "duration of the last update"),
    Column("section", "string", "", "section of the site"),
    Column("status", "string", "", "number: 0 up, 1 stale, 2 down, 3 broken, 4 pending, 5 begins"),
)


@Endpoint(
    path="/sites",
    description="lists configured backends",
    text="Hidden sites are listed as well, and so are sites that the request does not select. "
    "Columns for instances that federate are part of the answer when the request names them.",
    parameters=LIST_PARAMETERS,
    columns=(*COLUMNS, *MORE),
)
async def sites(context: Context, request: RestRequest, _: tuple[str, ...]) -> Answer:
    visited = frozenset(visited_of(context, request))
    now = context.wall.now()
    records = []
    for site in context.sites.sites:
        # Another instance does not see the sites that are reached through itself, nor those of
        # which that is not known yet.
        unknown = isinstance(site, FederatedSite) and site.facts is None
        if visited.isdisjoint(site.hops.instances) and not (visited and unknown):
            records.append(record(site, request.identity, context.instance, now))
    return await select(context, request, _SCHEMA, records)


_LMD_SCHEMA = local_schema("lmd", LMD_COLUMNS, (), {"status": "int"})


@Endpoint(
    path="/lmd/sites",
    description="lists connected sites, only available if use_lmd is enabled",
    text="What the LMD says of its sites. Without LMD the list is empty.",
    parameters=LIST_PARAMETERS,
    columns=LMD_COLUMNS,
)
async def lmd_sites(context: Context, request: RestRequest, _: tuple[str, ...]) -> Answer:
    records = []
    for site in context.sites.sites:
        if not isinstance(site, LmdSite) or site.facts is None:
            continue
        reported = site.facts.record
        record = {column.name: reported.get(column.name, 0) for column in LMD_COLUMNS}
        record["lmd_last_cache_update"] = reported["last_update"]
        if not site.connected:
            # While the LMD is away its last report stays, and the site is down.
            record["status"] = max(2, int(reported["status"]))
            record["last_error"] = site.last_error or reported["last_error"]
        if not request.identity.may(SYSTEM):
            record["addr"] = record["last_error"] = ""
            for name in ("federation_addr", "federation_version"):
                record[name] = [""] * len(record[name])
        records.append(record)
    return await select(context, request, _LMD_SCHEMA, records)
