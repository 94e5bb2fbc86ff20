"""Reports: reading and changing them, making them, fetching their files (docs/spec/reports.md)."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from typing import Any, ClassVar

from attrs import frozen

from monrest.api.endpoint import Context, Endpoint, Parameter
from monrest.api.fields import Flag, Text, fields_of, named_sites, selected_sites
from monrest.api.records import (
    Records,
    Save,
    bound_owner,
    first_number,
    number_of,
    record_columns,
)
from monrest.base.audit import audited
from monrest.base.errors import BadRequest, Conflict, Forbidden, NotFound
from monrest.base.values import (
    ADMIN,
    READ_ONLY,
    Answer,
    Column,
    Document,
    Identity,
    RestRequest,
    Stream,
)
from monrest.query.parse import RESERVED
from monrest.reports import store as statements
from monrest.reports.files import FORMATS, disposition, require_form
from monrest.reports.model import FIELDS, MAIL, Report, checked, shown_permissions
from monrest.reports.service import Reports
from monrest.reports.settings import read
from monrest.reports.store import LIMITS
from monrest.reports.templates import TEMPLATES
from monrest.reports.url_report import check_link
from monrest.sites.registry import remembered_sites

ROLE = "authorized_for_reports"

COLUMNS = record_columns(
    Report,
    FIELDS,
    Column("backends", "array_of_strings", "", "ids of the sites that it is about, none: all"),
    Column("error", "string", "", "what went wrong last, first line; absent if nothing did"),
    Column("failed", "boolean", "", "1: it could not be made, or not be sent"),
    Column("readonly", "boolean", "", "1: the user may only read it"),
    Column("template", "string", "", "file name of the template"),
    Column("user", "string", "", "owner, with whose rights it is made"),
)
_USER = Text(
    "user",
    "owner; only administrators name another one",
    longest=300,
    numbers=(),
    stripped=False,
    expected=("the name of a user",) * 3,
)
_HIDDEN = frozenset({"failed_backends", "var", "long_error"})


@frozen
class AccessibleReport:
    """A report that the user may read (``ro``) or change (``rw``)."""

    report: Report
    access: str

    def require_write(self) -> None:
        if self.access != "rw":
            raise Forbidden("permission denied", "the report may only be read")


def _sites(context: Context, items: Iterable[str]) -> dict[str, str]:
    wanted = tuple(items)
    return {site.id: site.name for site in context.sites.select(wanted)} if wanted else {}


def _owner(request: RestRequest, fields: Mapping[str, Any], present: str) -> str:
    """The owner of a report; Forbidden for a user who names another one without being admin."""
    wanted = _USER.read(fields.get(_USER.name))
    if wanted in ("", present):
        return present
    if not request.identity.may(ADMIN):
        raise Forbidden("permission denied", "user: only administrators name another owner")
    return wanted


def _limit(request: RestRequest) -> tuple[str, ...] | None:
    limit = request.identity.limit
    return None if limit is None else tuple(sorted(limit))


@frozen(kw_only=True, eq=False)
class ReportRecords(Records[AccessibleReport]):
    """The endpoints of reports, with their rights."""

    word = "report"
    title = "report"
    path = "/mon/reports"
    key = "nr"
    summary = "reports"
    columns = COLUMNS
    optional = frozenset({"error"})
    fields = FIELDS
    limits = LIMITS
    further_parameters = (
        Parameter(
            name="template",
            description=f"{', '.join(sorted(TEMPLATES))}, or one of the folder `reports.templates`",
        ),
        Parameter(name="backends", description="sites, default: all of them"),
        _USER,
    )
    create_parameters = (Parameter(name="nr", description="first number", type="integer"),)
    key_column = Column("id", "number", "", "number of the new report")
    created = "successfully saved 1 report."
    create_roles = (ROLE,)
    texts: ClassVar = {
        "list": "Own ones, public ones, and those that other users share. A key or session that is "
        "limited to roles has as its own those that are made with no more roles than these.",
        "create": "Fields that are not known are kept. Number is the first free one from `nr` on.",
        "replace": "Owner and results stay. Needs the right to change it.",
        "remove": "With its results. Not while it is being made (409).",
    }

    reports: Reports

    async def find(
        self, context: Context, request: RestRequest, key: str | None
    ) -> Sequence[AccessibleReport]:
        """Return those that the user may read, by name."""
        number = None if key is None else number_of(key)
        if key is not None and number is None:
            return []
        stored = await self.database.run(statements.several(number))
        identity = request.identity
        groups = frozenset[str]()
        if stored and identity.user and not identity.may(ADMIN):
            groups = frozenset((await context.contacts.of(identity.user)).groups)
        return [
            AccessibleReport(record, access)
            for record in sorted(stored, key=lambda record: (record.name, record.number))
            if (access := record.access(identity, groups, own=await self._own(identity, record)))
        ]

    def name(self, report: AccessibleReport) -> str:
        return str(report.report.number)

    async def rows(
        self, context: Context, reports: Iterable[AccessibleReport]
    ) -> list[dict[str, Any]]:
        return [self._record(context, report.report, report.access) for report in reports]

    def shown_alone(self, row: dict[str, Any]) -> dict[str, Any]:
        return super().shown_alone({**row, "nr": str(row["nr"])})

    def document(self, report: AccessibleReport) -> dict[str, Any]:
        return dict(report.report.record)

    async def add(self, context: Context, request: RestRequest, save: Save) -> int:
        """Store it for the user, or for the one that an administrator names."""
        fields = save.fields
        sites = _sites(context, named_sites(fields) or selected_sites(request))
        report = self._checked(context, fields)
        report["user"] = _owner(request, fields, request.identity.user)
        first, now = first_number(fields.get("nr")), context.wall.now()
        owner = bound_owner(request.identity, report["user"])
        values = statements.values(report, sites, _limit(request), now, context.zone)
        return await self.database.change(statements.add(first, values, owner))

    async def require_write(
        self, context: Context, request: RestRequest, old: AccessibleReport
    ) -> None:
        del context, request
        old.require_write()

    async def replace(
        self, context: Context, request: RestRequest, old: AccessibleReport, save: Save
    ) -> bool:
        before, fields = old.report, save.fields
        named = named_sites(save.sent) or named_sites(dict(request.parameters))
        sites = _sites(context, named or request.sites)
        if save.patch and not named and "backends" not in save.sent:
            sites = dict(before.sites)
        report = self._checked(context, fields)
        report["user"] = _owner(request, fields, before.owner)
        self._require_same_path(request, before, report)
        # Only the owner limits the report to roles; other users leave its limit.
        mine = report["user"] == request.identity.user
        same = report["user"] == before.owner
        limit = _limit(request) if mine else before.limit if same else None
        now = context.wall.now()
        owner = bound_owner(request.identity, report["user"])
        values = statements.values(report, sites, limit, now, context.zone)
        work = statements.replace(before, values, now, context.zone, owner)
        return await self.database.change(work)

    async def remove(self, old: AccessibleReport) -> bool:
        """Delete it with its results, but not while it is being made."""
        if await self.reports.being_made(old.report):
            raise Conflict("failed to remove report", "it is being made, try again after that")
        return await self.database.change(statements.remove(old.report))

    async def _own(self, identity: Identity, report: Report) -> bool:
        """Whether the report is the user's, and made with no more roles than they come with.

        So a limited key does not see what its owner may see without it (docs/spec/accounts.md).
        """
        if not identity.user or identity.user != report.owner:
            return False
        if identity.limit is None:
            return True
        maker = await self.reports.owner(report)
        return all(identity.may(role) for role in maker.roles if role != READ_ONLY)

    def _record(self, context: Context, report: Report, access: str) -> dict[str, Any]:
        sites, unknown = remembered_sites(report.sites, context.sites.sites)
        error = report.error(self.reports.templates)
        values = {name: value for name, value in report.record.items() if name not in _HIDDEN}
        return {
            **values,
            "backends": [site.id for site in sites] + unknown if report.sites else [],
            "error": error,
            "failed": int(error is not None),
            "nr": report.number,
            "permissions": shown_permissions(report.record),
            "readonly": int(access != "rw"),
            "user": report.owner,
        }

    def _path(self, record: Mapping[str, Any]) -> str | None:
        template = self.reports.templates.get(record["template"])
        return record["params"].get("url") if template and template.kind == "url" else None

    def _require_same_path(
        self, request: RestRequest, old: Report, fields: Mapping[str, Any]
    ) -> None:
        """Raise Forbidden for a user who would read something with the rights of the owner."""
        if request.identity.may(ADMIN) or request.identity.user == old.owner:
            return
        wanted = self._path(fields)
        if wanted is not None and wanted != self._path(old.record):
            raise Forbidden(
                "permission denied",
                "params.url: only the owner and administrators choose what is read as the owner",
            )

    def _checked(self, context: Context, fields: Mapping[str, Any]) -> dict[str, Any]:
        """The record as it is stored; BadRequest that names what is wrong."""
        templates = self.reports.templates
        record = checked(fields, templates, context.config.reports.default_template)
        link = read(templates[record["template"]], record["params"]).url
        if link is not None:
            check_link(context, link)
        return record


_PIECE = 65536
_MAIL = Flag("mail", "1: and send it to `to` and `cc`, at any level; for users who may change it")
_HTML = Flag("html", "1: as a page (HTML)")
_STARTED = (
    Column("job", "string", "", "id of the job that makes it; absent when it has to wait"),
    Column("message", "string", "", "what was done"),
)
_SAFE = (
    ("X-Content-Type-Options", "nosniff"),
    ("Content-Security-Policy", "sandbox; default-src 'none'; style-src 'unsafe-inline'"),
)
"""The restrictions for a browser that opens a report."""


@Endpoint(
    path="/mon/reports/<nr>/generate",
    methods=("POST",),
    description="generate the report",
    text="By a background job, with the rights of its owner. While it is being made already, "
    "or as many are as may be, it waits for its turn and there is no job yet. Users that may "
    "read it may have it made.",
    shape="object",
    parameters=(_MAIL,),
    columns=_STARTED,
)
async def generate(
    family: ReportRecords, context: Context, request: RestRequest, where: tuple[str, ...]
) -> Answer:
    accessible = await family.find_one(context, request, where[0])
    report = accessible.report
    fields = fields_of(request)
    with audited(request, "report generate", where[0]):
        if _MAIL.read(fields.pop(_MAIL.name, None)):
            accessible.require_write()
            if not (report.record["to"] or report.record["cc"]):
                raise BadRequest("cannot be mailed", "mail: expected a report with to or cc")
            now = int(context.wall.now())
            await family.database.change(statements.queue(report, now, MAIL))
            job = None
        else:
            job = await family.reports.start(
                report, request.identity, request.caller, request.request_id
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
    report = (await family.find_one(context, request, where[0])).report
    wanted = _format(request, _forms(family.reports, report))
    kept = await family.database.run(statements.result(report.number, wanted))
    if kept is None:
        require_form(wanted)
        await family.reports.now(report, request.progress)
        kept = await family.database.run(statements.result(report.number, wanted))
    if kept is None:
        raise NotFound("no such report", "it was removed meanwhile")
    name, data = kept

    async def pieces() -> AsyncIterator[bytes]:
        for at in range(0, len(data), _PIECE):
            yield data[at : at + _PIECE]

    return Stream(
        status=200,
        content_type=FORMATS[wanted][1],
        disposition=disposition(name, wanted),
        size=len(data),
        headers=_SAFE,
        pieces=pieces(),
    )


def _forms(reports: Reports, report: Report) -> tuple[str, ...]:
    """All forms that it has, first the one that a request without a form means."""
    try:
        form = report.settings(reports.templates).form
    except BadRequest:
        # Its template is gone or wants something else by now: what was made once is still there.
        form = "pdf"
    names = (name for name, (_, _, render) in FORMATS.items() if render is not None)
    return tuple(dict.fromkeys((form, *names)))


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
