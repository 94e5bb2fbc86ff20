"""One request to its handler: route, roles, work (style-models.md, section 7.2)."""

from __future__ import annotations

from monrest.errors import BadRequest
from monrest.resources.declare import Context
from monrest.resources.registry import router
from monrest.values import Answer, RestRequest


async def dispatch(context: Context, request: RestRequest) -> Answer:
    """The answer of the endpoint that the request means; raises RestError."""
    match = router(context.names.app).find(request.method, request.path, request.segments)
    match.endpoint.check_roles(request.identity)
    if any(name == "background" and value not in ("", "0") for name, value in request.parameters):
        raise BadRequest(
            "background jobs are not available",
            "background: expected 0, this version answers every request at once",
        )
    return await match.endpoint.handler(context, request, match.arguments)
