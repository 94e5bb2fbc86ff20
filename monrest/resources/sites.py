"""The configured sites (api.md, "Index, sites, instance info"; query-engine.md, section 18)."""

from __future__ import annotations

from typing import Any

from monrest.resources.declare import Context, Endpoint
from monrest.resources.local import local_schema, select
from monrest.sites.site import Site
from monrest.values import Answer, Column, Identity, RestRequest

SYSTEM = "authorized_for_system_information"

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
    Column("status", "number", "", "0 OK, 1 DOWN"),
    Column("type", "string", "", "kind of connection"),
)
_SCHEMA = local_schema("sites", COLUMNS, ())


def record(site: Site, identity: Identity) -> dict[str, Any]:
    """One site as a record; a site that is not federated has its own values in the lists."""
    address = site.address if identity.may(SYSTEM) else ""
    capabilities = site.capabilities
    version = capabilities.livestatus_version if capabilities else ""
    return {
        "addr": address,
        "connected": int(site.connected),
        "federation_addr": [address],
        "federation_key": [site.id],
        "federation_name": [site.name],
        "federation_type": [site.kind],
        "federation_version": [version],
        "id": site.id,
        "last_error": site.last_error,
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


_LMD_COLUMNS = tuple(
    Column(name) for name in ("addr", "bytes_received", "bytes_send", "key", "name", "status")
)
_LMD_SCHEMA = local_schema("lmd", _LMD_COLUMNS, ())


async def lmd_sites(context: Context, request: RestRequest, _: tuple[str, ...]) -> Answer:
    """List the sites behind an LMD; none, because this version connects to the cores itself."""
    return await select(context, request, _LMD_SCHEMA, [])


ENDPOINTS: tuple[Endpoint, ...] = (
    Endpoint(
        path="/sites", description="lists configured backends", handler=sites, columns=COLUMNS
    ),
    Endpoint(
        path="/lmd/sites",
        description="lists connected sites, only available if use_lmd is enabled",
        handler=lmd_sites,
        columns=_LMD_COLUMNS,
    ),
)
