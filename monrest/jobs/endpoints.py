"""Background jobs: list, read, fetch the result, cancel (docs/spec/jobs.md)."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from typing import Any, ClassVar
from urllib.parse import quote, urlencode

from attrs import evolve, frozen

from monrest.api.endpoint import (
    BACKGROUND,
    Context,
    Endpoint,
)
from monrest.api.fields import Number, require_only
from monrest.api.records import Records
from monrest.base.audit import audit
from monrest.base.errors import BadRequest, NotFound, error_value
from monrest.base.hidden import HIDDEN, SENSITIVE
from monrest.base.values import (
    ADMIN,
    Answer,
    Column,
    Document,
    Progress,
    RestRequest,
    SiteProblem,
    Stream,
)
from monrest.jobs.model import Job, id_of, visible
from monrest.jobs.running_job import JobWork
from monrest.jobs.service import Jobs
from monrest.render.formats import RenderOptions, shows_headers
from monrest.store.stored import shown_columns, shown_values

_SAFE = "/:@!$'()*,;~=+%"
_SECRET = re.compile(SENSITIVE, re.IGNORECASE)


def result_url(context: Context, number: int) -> str:
    """The path of a job's result as a client opens it: with the root of the API."""
    return f"{context.names.root}/{context.names.app}/jobs/{number}/output"


def shown_command(request: RestRequest, endpoint: Endpoint) -> str:
    """A request as method and path, with the parameters of one that changes nothing.

    It is stored and shown to administrators, so values that may be secrets are hidden.
    """
    prefix = "" if request.format == "json" else f"/{request.format}"
    if request.sites:
        prefix += f"/sites/{quote(','.join(request.sites), safe=_SAFE)}"
    path = quote(request.path, safe=_SAFE, errors="replace")
    if endpoint.changes:
        return f"{request.method} {prefix}{path}"
    items = [
        (name, HIDDEN if _SECRET.search(name) else value) for name, value in request.parameters
    ]
    query = urlencode(items, safe=_SAFE, quote_via=quote, errors="replace")
    return f"GET {prefix}{path}{'?' if query else ''}{query}"


_WAIT = Number(
    "wait",
    "seconds to wait for the end, at most and by default 30; 0: none",
    least=0,
    most=999_999_999,
    default=30,
    expected="0 to 30 seconds",
)
_MARGIN = 5.0
"""Seconds that a request needs beside waiting."""

COLUMNS = shown_columns(
    Job,
    Column("forward", "string", "", "path of the result, once it ended"),
    Column("is_running", "boolean", "", "1 until it ended, also while it waits for its turn"),
    Column("perl_res", "string", "", "always empty, of an older server"),
    Column("rc", "number", "", "0: the result is no error, else 1; empty until it ended"),
    Column("remaining", "number", "s", "estimated time to the end; -1 when it is not known"),
    Column("show_output", "boolean", "", "1 when there is a result to fetch"),
    Column("start", "time", "", "when it began; while it waits, when it was asked for"),
    Column("time", "number", "s", "how long it runs, or ran"),
)
_NOT_ENDED = (
    Column("job_id", "string", "", "id of a job that has not ended"),
    Column("message", "string", "", "what to do"),
    Column("percent", "number", "%", "how far it is"),
    Column("result_url", "string", "", "path of the result"),
)


def record(context: Context, job: Job) -> dict[str, Any]:
    ended, begun = job.ended, job.begun()
    until = context.wall.now() if ended is None else ended
    left = job.seconds_left(until)
    row = {
        **shown_values(job),
        "forward": "" if job.status is None else result_url(context, job.id),
        "is_running": int(ended is None),
        "perl_res": "",
        "rc": None if ended is None else job.rc,
        "remaining": -1 if left is None or ended is not None else math.ceil(left),
        "show_output": int(job.status is not None),
        "start": int(begun),
        "time": round(max(0.0, until - begun), 3),
    }
    return row if ended is None else {**row, "percent": 100, "pid": None}


def _not_ended(context: Context, request: RestRequest, job: Job) -> Document:
    where = result_url(context, job.id)
    query = urlencode(request.parameters, quote_via=quote, errors="replace")
    query = f"?{query}" if query else ""
    return Document(
        value={
            "job_id": str(job.id),
            "message": "the job is not done yet, ask again",
            "percent": job.percent,
            "result_url": where,
        },
        status=302,
        headers=(("Location", f"{where}{query}"),),
        plain=True,
    )


@frozen(eq=False, kw_only=True)
class JobRecords(Records[Job]):
    """Background jobs: administrators deal with all of them, others with their own."""

    word = "job"
    title = "background job"
    path = "/mon/jobs"
    key = "id"
    summary = "background jobs"
    columns = COLUMNS
    verbs: ClassVar = {
        "list": {
            "text": "Administrators see all of them, others their own. Any request becomes a job "
            "with `background=1` and is answered with the `job_id`."
        },
        "one": {},
        "remove": {
            "description": "cancel a background job, or remove one that ended",
            "text": "A job that has not ended is canceled; its record stays. One that ended is "
            "removed with its result.",
            "columns": (
                Column("id", "number", "", "id of the job"),
                Column("message", "string", "", "what was done"),
            ),
        },
    }

    jobs: Jobs

    async def find(self, context: Context, request: RestRequest, key: str | None) -> list[Job]:
        """The jobs of the user and those without one; all for an administrator."""
        del context
        identity = request.identity
        if key is None:
            jobs = await self.jobs.several(None if identity.may(ADMIN) else identity.user)
            return [self.jobs.current(job) for job in jobs if visible(job, identity)]
        number = id_of(key)
        job = None if number is None else await self.jobs.get(number)
        return [] if job is None or not visible(job, identity) else [job]

    async def rows(self, context: Context, listed: Iterable[Job]) -> list[dict[str, Any]]:
        jobs = list(listed)
        return await context.compute(
            lambda _: [record(context, job) for job in jobs], len(jobs) * len(COLUMNS)
        )

    def missing(self) -> NotFound:
        return NotFound(
            "no such job",
            "it never was, was removed, or ended longer ago than jobs are kept; "
            f"{self.path} lists yours",
        )

    async def start(self, context: Context, request: RestRequest, endpoint: Endpoint) -> Answer:
        """Start a request as a job, and answer where its result will be.

        The job is the same request by the same identity without ``background``, dispatched
        again. Raises BadRequest for a request that cannot be a job, and what ``Jobs.start`` raises.
        """
        if BACKGROUND not in endpoint.common_parameters:
            raise BadRequest(
                "this cannot be a background job",
                "background: expected 0, because the answer of this path is not kept",
            )
        document = request.document
        if isinstance(document, dict):
            document = {name: value for name, value in document.items() if name != BACKGROUND.name}
        parameters = tuple(pair for pair in request.parameters if pair[0] != BACKGROUND.name)
        direct = evolve(request, parameters=parameters, document=document)
        headers = [shows_headers(value) for name, value in parameters if name == "headers"]
        size = sum(len(name) + len(value) for name, value in parameters) + len(request.path)
        # Handlers get the time limit of jobs, not that of requests.
        config = context.config
        server = evolve(config.server, request_timeout=config.jobs.timeout)
        patient = evolve(context, config=evolve(config, server=server))

        async def call(progress: Progress) -> Answer:
            return await context.dispatch(patient, evolve(direct, progress=progress))

        job = await self.jobs.start(
            JobWork(
                call=call,
                cmd=shown_command(direct, endpoint),
                options=RenderOptions(
                    format=request.format,
                    headers=not headers or headers[-1],
                    pretty=request.pretty,
                ),
                identity=request.identity,
                caller=request.caller,
                request_id=request.request_id,
                size=size if document is None else size + request.body_size,
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

    @Endpoint(
        path="/mon/jobs/<id>/output",
        description="result of a background job",
        text="The answer of the request as it would have been: status, type and body. While the "
        "job has not ended: a redirect (302) to the same path after 30 seconds. A job that was "
        "canceled or died: 500 with the reason in `description`.",
        shape="object",
        parameters=(_WAIT,),
        columns=_NOT_ENDED,
        media=("*/*",),
        at_once=True,
    )
    async def read_output(
        self, context: Context, request: RestRequest, where: tuple[str, ...]
    ) -> Answer:
        longest = min(_WAIT.default, max(0.0, context.config.server.request_timeout - _MARGIN))
        require_only(request, _WAIT.name)
        seconds = min(float(_WAIT.asked(request.parameters)), longest)
        job: Job | None = await self.find_one(context, request, where[0])
        assert job is not None
        if job.ended is None and seconds > 0:
            job = await self.jobs.wait(job.id, seconds)
        if job is None:
            raise self.missing()
        if job.ended is None:
            return _not_ended(context, request, job)
        if job.status is None:
            value = error_value(500, "background job failed", job.stderr)
            return Document(value=value, status=500)
        return Stream(
            status=job.status,
            content_type=job.content_type,
            disposition=job.disposition,
            size=job.size,
            headers=job.headers,
            failed_sites=tuple(SiteProblem(site, site, "") for site in job.failed_sites),
            pieces=self.jobs.output(job),
        )

    async def delete(
        self, context: Context, request: RestRequest, where: tuple[str, ...]
    ) -> Answer:
        """Cancel one that has not ended, and remove another."""
        job = await self.find_one(context, request, where[0])
        if job.ended is not None:
            if not await self.jobs.remove(job.id):
                raise self.missing()
            return Document(value={"message": "removed job", "id": job.id})
        after = await self.jobs.cancel(job, request.identity.user)
        done = after is None or after.ended is not None
        message = "canceled job" if done else "the job will be canceled"
        if not job.cmd.startswith("GET "):
            audit(
                request.identity,
                request.caller,
                "job cancel",
                target=str(job.id),
                result="ok" if done else "asked for",
                cmd=job.cmd,
            )
        return Document(value={"message": message, "id": job.id})
