"""One request to its handler: route, roles, work."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeAlias
from urllib.parse import quote

from attrs import evolve, field, frozen

from monrest.api.endpoint import (
    BACKGROUND,
    SITE_PARAMETERS,
    TIMEOUT,
    Context,
    Endpoint,
)
from monrest.api.fields import named_in
from monrest.api.instances import for_instance, visited_of
from monrest.api.rights import require_change
from monrest.api.router import Router
from monrest.api.visibility import visible_sites
from monrest.base.errors import BadRequest, Unavailable
from monrest.base.truth import flag
from monrest.base.values import Answer, RestRequest
from monrest.sites.site import Deadline

_OF_SITES = SITE_PARAMETERS[0]
_MOST_WARNINGS = 10
_PLAIN = " !\"#$&'()*+,/:<=>?@[\\]^`{|}"
"""Signs that a header shows as they are, beside letters and digits; ``;`` separates warnings."""


Background: TypeAlias = Callable[[Context, RestRequest, Endpoint], Awaitable[Answer]]
"""Starts the job of a request; the answer has the address of its result."""


@frozen(eq=False)
class Dispatch:
    """Finds the endpoint of a request among all, and has it answer."""

    router: Router
    background: Background = field(repr=False)

    async def __call__(self, context: Context, request: RestRequest) -> Answer:
        """The answer of the endpoint that the request means; raises RestError."""
        match = self.router.find(request.method, request.path, request.segments)
        endpoint = match.endpoint
        endpoint.check_roles(request.identity)
        if endpoint.changes and not (endpoint.public or endpoint.own_session):
            await require_change(request, context.contacts, context.config)
        _check_request(context, request, endpoint)
        seconds, direct = waiting_for(request, endpoint)
        if any(name == BACKGROUND.name and flag(name, value) for name, value in request.parameters):
            return await self.background(context, request, endpoint)
        visited = visited_of(context, request)
        if _OF_SITES in endpoint.parameters:
            await context.sites.settled(request.sites or named_in(request.parameters))
        # Handlers know no other sites than those of the user, so that none can forget to look.
        sites = await visible_sites(request.identity, context.sites, context.contacts, visited)
        if visited:
            context, sites = for_instance(context, request.identity, sites)
        if seconds is not None:
            sites = sites.within(Deadline(seconds, context.clock.seconds() + seconds))
        if sites is not context.sites:
            context = evolve(context, sites=sites)
        return warned(context, await match.handler(context, direct, match.arguments))


def warned(context: Context, answer: Answer) -> Answer:
    """The answer with its warnings in a header: the first ten, and how many more there are.

    They are joined with ``; ``; in each ``%``, ``;`` and what is not ASCII are percent-encoded.
    """
    warnings = answer.warnings
    if not warnings:
        return answer
    quoted = [quote(warning, safe=_PLAIN) for warning in warnings[:_MOST_WARNINGS]]
    if len(warnings) > _MOST_WARNINGS:
        quoted.append(f"and {len(warnings) - _MOST_WARNINGS} more")
    header = (context.names.header("Warnings"), "; ".join(quoted))
    return evolve(answer, headers=(*answer.headers, header))


def _check_request(context: Context, request: RestRequest, endpoint: Endpoint) -> None:
    """Raise RestError for what this endpoint is not asked for, or not now."""
    if context.config.server.demo_mode and "GET" not in endpoint.methods:
        raise BadRequest(
            "only GET requests allowed in demo_mode.", "server.demo_mode is on in the configuration"
        )
    if endpoint.changes and not request.identity.confirmed:
        raise Unavailable(
            "nothing can be changed now",
            "the database is away, so it is not known whether you still may; reading is possible",
        )
    if request.structured is not None and not endpoint.structured:
        what = f"parameter {request.structured[:80]}" if request.structured else "request body"
        raise BadRequest(
            "failed to parse json data argument",
            f"{what}: expected a text, number, boolean, null or a list of them"
            if request.structured
            else f"{what}: expected a JSON object {{…}}",
        )


def waiting_for(request: RestRequest, endpoint: Endpoint) -> tuple[float | None, RestRequest]:
    """How many seconds the client waits for sites, None: as long as they may take.

    Every path takes ``timeout`` in its query string, one that only reads from cores in its body
    too. The request comes back without it, because no handler looks at it. Raise BadRequest.
    """
    reads = _OF_SITES in endpoint.parameters and not endpoint.changes
    taken = tuple(
        pair for pair in (request.parameters if reads else request.query) if pair[0] == TIMEOUT.name
    )
    if not taken:
        return None, request
    direct = evolve(
        request,
        parameters=tuple(pair for pair in request.parameters if pair not in taken),
        query=tuple(pair for pair in request.query if pair not in taken),
        form=tuple(pair for pair in request.form if not reads or pair not in taken),
    )
    return TIMEOUT.asked(taken), direct
