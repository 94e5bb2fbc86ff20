"""Making reports and fetching them (docs/spec/reports.md)."""

from __future__ import annotations

from collections.abc import AsyncIterator

from monrest.api.endpoint import Context, Endpoint, Parameter
from monrest.api.fields import Flag, fields_of
from monrest.base.audit import audited
from monrest.base.errors import BadRequest, NotFound
from monrest.base.values import Answer, Column, Document, RestRequest, Stream
from monrest.query.parse import RESERVED
from monrest.reports import store as statements
from monrest.reports.endpoints import ReportRecords
from monrest.reports.files import FORMATS, disposition, require_form
from monrest.reports.model import Report
from monrest.reports.service import Reports
from monrest.reports.store import MAIL

_PIECE = 65536
_MAIL = Flag(
    "mail", "1: and send it to `to` and `cc`, whatever its level; for those who may change it"
)
_HTML = Flag("html", "1: as a page (HTML)")
_STARTED = (
    Column("job", "string", "", "id of the job that makes it; absent when it has to wait"),
    Column("message", "string", "", "what was done"),
)


@Endpoint(
    path="/mon/reports/<nr>/generate",
    methods=("POST",),
    description="generate the report",
    text="By a background job, with the rights of its owner. While it is being made already, "
    "or as many are as may be, it waits for its turn and there is no job yet. Who may read it "
    "may have it made.",
    shape="object",
    parameters=(_MAIL,),
    columns=_STARTED,
)
async def generate(
    family: ReportRecords, context: Context, request: RestRequest, where: tuple[str, ...]
) -> Answer:
    accessible = await family.one(context, request, where[0])
    found = accessible.report
    fields = fields_of(request)
    with audited(request, "report generate", where[0]):
        if _MAIL.read(fields.pop(_MAIL.name, None)):
            accessible.require_write()
            if not (found.record["to"] or found.record["cc"]):
                raise BadRequest("cannot be mailed", "mail: expected a report with to or cc")
            now = int(context.wall.now())
            await family.database.change(statements.queue(found, now, MAIL))
            job = None
        else:
            job = await family.reports.start(
                found, request.identity, request.caller, request.request_id
            )
    if job is None:
        return Document(value={"message": "report queued"})
    return Document(value={"message": "report started in background", "job": str(job.id)})


@Endpoint(
    path="/mon/reports/<nr>/report",
    description="the report file in binary form",
    text="The last result as PDF (of report_from_url.tt as its address gives it), or in "
    "another form; it is made now if there is none. The "
    "prefixes /csv and /xls mean the same as `type`.",
    shape="object",
    parameters=(
        _HTML,
        Parameter(name="type", description="pdf, html, xls, csv or json"),
    ),
    media=tuple(kind.partition(";")[0] for _, kind, _ in FORMATS.values()),
    at_once=True,
)
async def output(
    family: ReportRecords, context: Context, request: RestRequest, where: tuple[str, ...]
) -> Answer:
    """Answer GET /mon/reports/<nr>/report: the file, made now if there is none."""
    found = (await family.one(context, request, where[0])).report
    wanted = _format(request, _forms(family.reports, found))
    kept = await family.database.run(statements.result(found.number, wanted))
    if kept is None:
        require_form(wanted)
        await family.reports.now(found, request.progress)
        kept = await family.database.run(statements.result(found.number, wanted))
    if kept is None:
        raise NotFound("no such report", "it was removed meanwhile")
    name, data = kept
    return Stream(
        status=200,
        content_type=FORMATS[wanted][1],
        disposition=disposition(name, wanted),
        size=len(data),
        headers=_SAFE,
        pieces=_pieces(data),
    )


_SAFE = (
    ("X-Content-Type-Options", "nosniff"),
    ("Content-Security-Policy", "sandbox; default-src 'none'; style-src 'unsafe-inline'"),
)
"""What a browser may do with a report that it opens all the same."""


async def _pieces(data: bytes) -> AsyncIterator[bytes]:
    for at in range(0, len(data), _PIECE):
        yield data[at : at + _PIECE]


def _forms(reports: Reports, report: Report) -> tuple[str, ...]:
    """All forms that it has, first the one that is meant where nobody asks for another."""
    try:
        form = report.settings(reports.templates).form
    except BadRequest:
        # Its template is gone or wants something else by now: what was made once is still there.
        form = "pdf"
    made = (name for name, (_, _, render) in FORMATS.items() if render is not None)
    return tuple(dict.fromkeys((form, *made)))


def _format(request: RestRequest, forms: tuple[str, ...]) -> str:
    """The form of the file; BadRequest that names the parameter."""
    wanted: str = request.format if request.format in ("csv", "xls") else forms[0]
    for name, value in request.parameters:
        if name == _HTML.name:
            wanted = "html" if _HTML.read(value) else wanted
        elif name == "type":
            wanted = value.strip().lower() or wanted
            if wanted not in forms:
                raise BadRequest("invalid type", f"type: expected one of {', '.join(forms)}")
        elif name not in RESERVED:
            raise BadRequest("unknown parameter", f"{name[:80]!r}: expected html or type")
    return wanted
