"""``background=1``: the request becomes a job (docs/spec/jobs.md, "The request")."""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import quote, urlencode

from attrs import evolve

from monrest.api.endpoint import Context, Endpoint
from monrest.base.errors import BadRequest
from monrest.base.values import Answer, Document, Parameters, Progress, RestRequest
from monrest.jobs.live import JobWork
from monrest.render.formats import RenderOptions, shows_headers

_NAME = "background"
_SAFE = "/:@!$'()*,;~=+%"
_SECRET = re.compile(
    "passw|passphrase|secret|token|credential|community|auth_?key|api_?key", re.IGNORECASE
)
_HIDDEN = "***"


async def start(context: Context, request: RestRequest, endpoint: Endpoint) -> Answer:
    """Start the job of a request that may be made, and say where its result will be.

    The job is the same request by the same identity without ``background``, through the same
    door. Raises BadRequest for what cannot be a job, and what ``Jobs.start`` raises.
    """
    if endpoint.public or endpoint.at_once:
        raise BadRequest(
            "this cannot be a background job",
            "background: expected 0, because the answer of this path is not kept",
        )
    direct = evolve(
        request,
        parameters=tuple(pair for pair in request.parameters if pair[0] != _NAME),
        document=_without(request.document),
    )
    unhurried = _unhurried(context)

    async def call(progress: Progress) -> Answer:
        return await context.dispatch(unhurried, evolve(direct, progress=progress))

    job = await context.jobs.start(
        JobWork(
            call=call,
            cmd=spelled(direct, endpoint),
            options=_options(direct),
            identity=request.identity,
            caller=request.caller,
            request_id=request.request_id,
            size=_size(direct, context),
            changes=endpoint.changes,
        )
    )
    return Document(
        value={
            "job_id": str(job.id),
            "message": "the request runs as a background job",
            "result_url": result_url(context, job.id),
            "success": True,
        },
        plain=True,
    )


def result_url(context: Context, number: int) -> str:
    """Give the path of a job's result, below the root of the API as every path of a request."""
    return f"/{context.names.app}/jobs/{number}/output"


def spelled(request: RestRequest, endpoint: Endpoint) -> str:
    """Spell a request as method and path, with the parameters of one that changes nothing.

    It is stored and shown to administrators, so that what looks like a secret is not spelled.
    """
    prefix = "" if request.format == "json" else f"/{request.format}"
    if request.sites:
        prefix += f"/sites/{quote(','.join(request.sites), safe=_SAFE)}"
    path = quote(request.path, safe=_SAFE, errors="replace")
    if endpoint.changes:
        return f"{request.method} {prefix}{path}"
    shown = [
        (name, _HIDDEN if _SECRET.search(name) else value) for name, value in request.parameters
    ]
    query = urlencode(shown, safe=_SAFE, quote_via=quote, errors="replace")
    return f"GET {prefix}{path}{'?' if query else ''}{query}"


def _without(document: Any) -> Any:
    if isinstance(document, dict):
        return {name: value for name, value in document.items() if name != _NAME}
    return document


def _unhurried(context: Context) -> Context:
    """Give what handlers wait for the time of a job in the place of that of a request."""
    config = context.config
    server = evolve(config.server, request_timeout=config.jobs.timeout)
    return evolve(context, config=evolve(config, server=server))


def _options(request: RestRequest) -> RenderOptions:
    headers = [shows_headers(value) for name, value in request.parameters if name == "headers"]
    return RenderOptions(
        format=request.format, headers=not headers or headers[-1], pretty=request.pretty
    )


def _size(request: RestRequest, context: Context) -> int:
    """Estimate the bytes that the request holds; a body of unknown length counts as the longest."""
    size = _length(request.parameters) + len(request.path)
    if request.document is not None:
        given = request.caller.headers.get("content-length", "")
        size += int(given) if given.isdigit() else context.config.server.max_body
    return size


def _length(parameters: Parameters) -> int:
    return sum(len(name) + len(value) for name, value in parameters)
