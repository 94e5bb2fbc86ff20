"""The list of all endpoints."""

from __future__ import annotations

from monrest.api.endpoint import LIST_PARAMETERS, METHOD_ORDER, Context, Endpoint
from monrest.api.lists import local_schema, select
from monrest.base.values import Answer, Column, RestRequest
from monrest.commands.listing import url_of
from monrest.livestatus.catalogue import ALL

COLUMNS = (
    Column("url", "string", "", "path with its variables in angle brackets"),
    Column("protocol", "string", "", "method"),
    Column("description", "string", "", "what it is for"),
)
_SCHEMA = local_schema("index", COLUMNS, ("url",))


async def index(context: Context, request: RestRequest, _: tuple[str, ...]) -> Answer:
    """List every path and method, sorted by path."""
    records = [
        {
            "url": spelled(endpoint.path, context.names.app),
            "protocol": method,
            "description": endpoint.description,
        }
        for endpoint in context.dispatch.router.endpoints
        for method in endpoint.methods
    ]
    records += [
        {"url": url_of(one), "protocol": "POST", "description": one.description} for one in ALL
    ]
    records.sort(key=lambda one: (one["url"], METHOD_ORDER.index(one["protocol"])))
    return await select(context, request, _SCHEMA, records)


def spelled(path: str, app: str) -> str:
    """A template with the site's own word in the place of ``mon``."""
    return f"/{app}{path[4:]}" if path == "/mon" or path.startswith("/mon/") else path


ENDPOINTS: tuple[Endpoint, ...] = (
    Endpoint(
        path="/",
        description="alias of /index",
        handler=index,
        parameters=LIST_PARAMETERS,
        columns=COLUMNS,
    ),
    Endpoint(
        path="/index",
        description="lists all rest urls",
        handler=index,
        parameters=LIST_PARAMETERS,
        columns=COLUMNS,
    ),
)
