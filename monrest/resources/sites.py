"""The configured sites (api.md, "Index, sites, instance info"; query-engine.md, section 18)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from monrest.auth.visibility import SYSTEM
from monrest.query.schema import CoreType
from monrest.resources.declare import LIST_PARAMETERS, Context, Endpoint
from monrest.resources.local import local_schema, select
from monrest.sites.site import Site
from monrest.values import Answer, Column, Identity, RestRequest

# Types are the labels of api.md, also where the values are lists. Only last_error is not labelled
# as a time, which it is not: filters would read what they compare it with as one.
COLUMNS = (
    Column("addr", "string", "", "address, empty without the role for system information"),
    Column("connected", "boolean", "", "1 if the core answered last time"),
    Column("federation_addr", "string", "", "addresses along the way to the core, a list"),
    Column("federation_key", "string", "", "ids along the way to the core, a list"),
    Column("federation_name", "string", "", "names along the way to the core, a list"),
    Column("federation_type", "string", "", "connection types along the way, a list"),
    Column("federation_version", "string", "", "versions along the way, a list"),
    Column("id", "string", "", "id, the peer_key of its rows"),
    Column("last_error", "string", "", "why the core could not be asked, empty while it can"),
    Column("localtime", "time", "", "clock of the core at the last probe"),
    Column("name", "string", "", "name, the peer_name of its rows"),
    Column("section", "string", "", "section, the peer_section of its rows"),
    Column("status", "boolean", "", "0 OK, 1 DOWN"),
    Column("type", "string", "", "kind of connection"),
)
_LISTS: Mapping[str, CoreType] = {
    one.name: "list" for one in COLUMNS if one.name.startswith("federation_")
}
_SCHEMA = local_schema("sites", COLUMNS, (), _LISTS)


def record(site: Site, identity: Identity) -> dict[str, Any]:
    """One site as a record; a site that is not federated has its own values in the lists.

    Where the core is, what runs there and why it cannot be asked is for those with the role for
    system information; everybody sees whether it works.
    """
    informed = identity.may(SYSTEM)
    address = site.address if informed else ""
    capabilities = site.capabilities
    version = capabilities.livestatus_version if informed and capabilities else ""
    return {
        "addr": address,
        "connected": int(site.connected),
        "federation_addr": [address],
        "federation_key": [site.id],
        "federation_name": [site.name],
        "federation_type": [site.kind],
        "federation_version": [version],
        "id": site.id,
        "last_error": site.last_error if informed else "",
        "localtime": int(site.health.localtime),
        "name": site.name,
        "section": site.section,
        "status": site.status,
        "type": site.kind,
    }


async def sites(context: Context, request: RestRequest, _: tuple[str, ...]) -> Answer:
    """List all configured sites, whatever the selection of the request."""
    records = [record(site, request.identity) for site in context.sites.sites]
    return await select(context, request, _SCHEMA, records)


LMD_COLUMNS = (
    Column("addr", "string", "", "address in use"),
    Column("bytes_received", "number", "bytes", "bytes received from the site"),
    Column("bytes_send", "number", "bytes", "bytes sent to the site"),
    *(one for one in COLUMNS if one.name.startswith("federation_")),
    Column("flags", "array_of_strings", "", "what is special about the core"),
    Column("idling", "boolean", "", "1 while nobody asks for the site"),
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
    Column("status", "string", "", "number: 0 up, 1 stale, 2 down, 4 pending"),
)
_LMD_SCHEMA = local_schema("lmd", LMD_COLUMNS, (), {**_LISTS, "status": "int"})


async def lmd_sites(context: Context, request: RestRequest, _: tuple[str, ...]) -> Answer:
    """List the sites behind an LMD; none, because this version connects to the cores itself."""
    return await select(context, request, _LMD_SCHEMA, [])


ENDPOINTS: tuple[Endpoint, ...] = (
    Endpoint(
        path="/sites",
        description="lists configured backends",
        text="Hidden sites are listed as well, whatever sites the request selects.",
        handler=sites,
        parameters=LIST_PARAMETERS,
        columns=COLUMNS,
    ),
    Endpoint(
        path="/lmd/sites",
        description="lists connected sites, only available if use_lmd is enabled",
        handler=lmd_sites,
        text="Without LMD the list is empty.",
        parameters=LIST_PARAMETERS,
        columns=LMD_COLUMNS,
    ),
)
