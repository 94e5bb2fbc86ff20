"""Reports: reading and changing them (docs/spec/reports.md)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar

from attrs import frozen

from monrest.api.endpoint import Context, Parameter
from monrest.api.fields import Text, named_sites, selected_sites
from monrest.api.records import Records, Save, bound_owner, first_number, number_of
from monrest.base.errors import Conflict, Forbidden
from monrest.base.values import ADMIN, READ_ONLY, Column, Identity, RestRequest
from monrest.reports import store as statements
from monrest.reports.model import FIELDS, Report, checked, shown_permissions
from monrest.reports.service import Reports
from monrest.reports.settings import read
from monrest.reports.store import LIMITS, STORED
from monrest.reports.templates import TEMPLATES
from monrest.reports.url_report import check_link
from monrest.sites.registry import remembered_sites

ROLE = "authorized_for_reports"

COLUMNS = (
    Column("backends", "array_of_strings", "", "ids of the sites that it is about, none: all"),
    Column("cc", "string", "", "mail addresses that get a copy"),
    Column("desc", "string", "", "description"),
    Column("error", "string", "", "what went wrong last, first line; absent if nothing did"),
    Column("failed", "boolean", "", "1: it could not be made, or not be sent"),
    Column("is_public", "boolean", "", "1: everybody may read it"),
    Column("name", "string", "", "name"),
    Column("nr", "number", "", "its number"),
    Column("params", "string", "", "parameters of the template, an object"),
    Column("permissions", "string", "", "who else may read or change it, a list of objects"),
    Column("readonly", "boolean", "", "1: the user may only read it"),
    Column("send_types", "array_of_strings", "", "when it is made and sent, a list of objects"),
    Column("template", "string", "", "file name of the template"),
    Column("to", "string", "", "mail addresses that get it"),
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
        """Raise Forbidden for who may only read."""
        if self.access != "rw":
            raise Forbidden("permission denied", "the report may only be read")


async def _groups(context: Context, identity: Identity) -> frozenset[str]:
    if not identity.user or identity.may(ADMIN):
        return frozenset()
    return frozenset((await context.contacts.of(identity.user)).groups)


def _sites(context: Context, items: Iterable[str]) -> dict[str, str]:
    wanted = tuple(items)
    return {site.id: site.name for site in context.sites.select(wanted)} if wanted else {}


def _owner(request: RestRequest, fields: Mapping[str, Any], present: str) -> str:
    """Whose a report is to be; Forbidden for who gives it to somebody else without being admin."""
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
    """Who sees which reports, and what becomes of one that is sent."""

    noun = "report"
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
    made = Column("id", "number", "", "number of the new report")
    created = "successfully saved 1 report."
    create_roles = (ROLE,)
    texts: ClassVar = {
        "list": "Own ones, public ones, and those that somebody shares. A key or session that is "
        "limited to roles has as its own those that are made with no more roles than these.",
        "create": "Fields that are not known are kept. Number is the first free one from `nr` on.",
        "replace": "Owner and results stay. Needs the right to change it.",
        "remove": "With its results. Not while it is being made (409).",
    }

    reports: Reports

    async def find(
        self, context: Context, request: RestRequest, key: str | None
    ) -> Sequence[AccessibleReport]:
        """Give those that the user may read, by name."""
        number = None if key is None else number_of(key)
        if key is not None and number is None:
            return []
        stored = await self.database.run(STORED.read(number))
        identity = request.identity
        groups = await _groups(context, identity) if stored else frozenset()
        return [
            AccessibleReport(one, access)
            for one in sorted(stored, key=lambda one: (one.name, one.number))
            if (access := one.access(identity, groups, own=await self._own(identity, one)))
        ]

    def name(self, one: AccessibleReport) -> str:
        return str(one.report.number)

    async def rows(
        self, context: Context, found: Iterable[AccessibleReport]
    ) -> list[dict[str, Any]]:
        """Give them with what went wrong last."""
        return [self._record(context, one.report, one.access) for one in found]

    def shown_alone(self, row: dict[str, Any]) -> dict[str, Any]:
        """Give the number as a text."""
        return super().shown_alone({**row, "nr": str(row["nr"])})

    def document(self, one: AccessibleReport) -> dict[str, Any]:
        return dict(one.report.record)

    async def add(self, context: Context, request: RestRequest, save: Save) -> int:
        """Store it for the user, or for whom an administrator names."""
        fields = save.fields
        sites = _sites(context, named_sites(fields) or selected_sites(request))
        made = self._checked(context, fields)
        made["user"] = _owner(request, fields, request.identity.user)
        first, now = first_number(fields.get("nr")), context.wall.now()
        owner = bound_owner(request.identity, made["user"])
        work = statements.add(first, made, sites, _limit(request), now, context.zone, owner)
        return await self.database.change(work)

    async def require_write(
        self, context: Context, request: RestRequest, old: AccessibleReport
    ) -> None:
        """Raise Forbidden for who may only read."""
        del context, request
        old.require_write()

    async def replace(
        self, context: Context, request: RestRequest, old: AccessibleReport, save: Save
    ) -> bool:
        """Store it with the results of the old one."""
        before, fields = old.report, save.fields
        named = named_sites(save.sent) or named_sites(dict(request.parameters))
        sites = _sites(context, named or request.sites)
        if save.patch and not named and "backends" not in save.sent:
            sites = dict(before.sites)
        made = self._checked(context, fields)
        made["user"] = _owner(request, fields, before.owner)
        self._require_same_path(request, before, made)
        # Who writes their own report says which roles it gets; others leave that as it is.
        mine = made["user"] == request.identity.user
        same = made["user"] == before.owner
        limit = _limit(request) if mine else before.limit if same else None
        now = context.wall.now()
        owner = bound_owner(request.identity, made["user"])
        work = statements.replace(before, made, sites, limit, now, context.zone, owner)
        return await self.database.change(work)

    async def remove(self, old: AccessibleReport) -> bool:
        """Delete it with its results, but not while it is being made."""
        if await self.reports.being_made(old.report):
            raise Conflict("failed to remove report", "it is being made, try again after that")
        one = old.report
        return await self.database.change(STORED.remove(one.number, one.version))

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
        shown = {name: value for name, value in report.record.items() if name not in _HIDDEN}
        return {
            **shown,
            "backends": [site.id for site in sites] + unknown if report.sites else [],
            "error": error,
            "failed": int(error is not None),
            "nr": report.number,
            "permissions": shown_permissions(report.record),
            "readonly": int(access != "rw"),
            "user": report.owner,
        }

    def _path(self, record: Mapping[str, Any]) -> str | None:
        """What of the API a report is about, None for one that is not."""
        template = self.reports.templates.get(record["template"])
        return record["params"].get("url") if template and template.kind == "url" else None

    def _require_same_path(
        self, request: RestRequest, old: Report, made: Mapping[str, Any]
    ) -> None:
        """Raise Forbidden for who would read something with the rights of somebody else."""
        if request.identity.may(ADMIN) or request.identity.user == old.owner:
            return
        wanted = self._path(made)
        if wanted is not None and wanted != self._path(old.record):
            raise Forbidden(
                "permission denied",
                "params.url: only the owner and administrators choose what is read as the owner",
            )

    def _checked(self, context: Context, fields: Mapping[str, Any]) -> dict[str, Any]:
        """The record as it is stored; BadRequest that names what is wrong."""
        templates = self.reports.templates
        made = checked(fields, templates, context.config.reports.default_template)
        link = read(templates[made["template"]], made["params"]).url
        if link is not None:
            check_link(context, link)
        return made


ENDPOINTS = ReportRecords.endpoints()
