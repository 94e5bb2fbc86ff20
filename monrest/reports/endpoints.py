"""Reports: reading, changing, making and fetching them (docs/spec/reports.md)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from attrs import evolve

from monrest.api.endpoint import LIST_PARAMETERS, OBJECT_PARAMETERS, Context, Endpoint, Parameter
from monrest.api.fields import SITES, fields_of, selected_sites
from monrest.api.lists import local_schema, reselect, select, sparse
from monrest.base.audit import audit
from monrest.base.errors import BadRequest, Conflict, Forbidden, NotFound, RestError
from monrest.base.values import ADMIN, READ_ONLY, Answer, Column, Document, Identity, RestRequest
from monrest.reports import store as statements
from monrest.reports.address import check_link
from monrest.reports.asking import chosen_sites
from monrest.reports.model import Report, checked, shown_permissions
from monrest.reports.settings import read
from monrest.reports.templates import TEMPLATES
from monrest.store.merge import merged

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
    Column("readonly", "boolean", "", "1: the asker may only read it"),
    Column("send_types", "array_of_strings", "", "when it is made and sent, a list of objects"),
    Column("template", "string", "", "file name of the template"),
    Column("to", "string", "", "mail addresses that get it"),
    Column("user", "string", "", "owner, with whose rights it is made"),
)
_KNOWN = {one.name for one in COLUMNS}
_HIDDEN = frozenset({"failed_backends", "var", "long_error"})
_MOST_DIGITS = 9
_WRITTEN = (
    Column("count", "number", "", "always 1"),
    Column("message", "string", "", "what was done"),
)
_MADE = (*_WRITTEN, Column("id", "number", "", "number of the new report"))

FIELDS = (
    Parameter(name="name", description="name, default `New Report`"),
    Parameter(name="desc", description="description"),
    Parameter(name="template", description=f"{', '.join(sorted(TEMPLATES))}, or "
              "one of the folder `reports.templates`"),
    Parameter(name="params", description="parameters of the template, an object, in a form as "
              "JSON (so are `send_types` and `permissions`)"),
    Parameter(name="to", description="mail addresses with commas"),
    Parameter(name="cc", description="mail addresses with commas"),
    Parameter(name="backends", description="sites, default: all of them"),
    Parameter(name="failed_backends", description="cancel (default): nothing is made while one "
              "of its sites does not answer; continue: without that site"),
    Parameter(name="send_types", description="list of objects with `type` day, week, month, "
              "monthday or cust, and `minute`, `hour`, `week_day`, `day`, `month_day` or `cust`, "
              "as the schedule of recurring downtimes"),
    Parameter(name="permissions", description="list of objects with `type` user or group, `name` "
              "a list of names (`*`: everybody) and `perm` ro or rw"),
    Parameter(name="is_public", description="1: everybody may read it", type="boolean"),
    Parameter(name="user", description="owner; only administrators name another one"),
)  # fmt: skip


# -------------------------------------------------------------------- reading


async def _groups(context: Context, identity: Identity) -> frozenset[str]:
    if not identity.user or identity.may(ADMIN):
        return frozenset()
    return frozenset((await context.contacts.of(identity.user)).groups)


async def _own(context: Context, identity: Identity, report: Report) -> bool:
    """Whether the report is the asker's, and made with no more roles than they come with.

    So a limited key does not see what its owner may see without it (docs/spec/accounts.md, Limits).
    """
    if not identity.user or identity.user != report.owner:
        return False
    if identity.limit is None:
        return True
    maker = await context.reports.owner(report)
    return all(identity.may(role) for role in maker.roles if role != READ_ONLY)


def _record(context: Context, report: Report, access: str) -> dict[str, Any]:
    """One report as it is shown."""
    sites, unknown = chosen_sites(report, context.sites.sites)
    error = report.error(context.reports.templates)
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


async def reports(context: Context, request: RestRequest, _: tuple[str, ...]) -> Answer:
    """Answer GET /mon/reports."""
    stored = await context.database.run(statements.everything)
    identity = request.identity
    groups = await _groups(context, identity)
    rows = [
        _record(context, one, access)
        for one in sorted(stored, key=lambda one: (one.name, one.number))
        if (access := one.access(identity, groups, own=await _own(context, identity, one)))
    ]
    further = sorted({name for row in rows for name in row} - _KNOWN)
    columns = (*COLUMNS, *(Column(name) for name in further))
    answer = await select(context, request, local_schema("reports", columns, ()), rows)
    return await sparse(context, request, answer, frozenset({"error", *further}))


async def find_report(context: Context, request: RestRequest, name: str) -> tuple[Report, str]:
    """Find the report of a path and what the asker may do with it; NotFound."""
    found = None
    if name.isascii() and name.isdigit() and name[0] != "0" and len(name) <= _MOST_DIGITS:
        found = await context.database.run(statements.one(int(name)))
    if found is None:
        raise NotFound("no such report")
    identity = request.identity
    own = await _own(context, identity, found)
    access = found.access(identity, await _groups(context, identity), own=own)
    if not access:
        raise NotFound("no such report")
    return found, access


async def report(context: Context, request: RestRequest, where: tuple[str, ...]) -> Answer:
    """Answer GET /mon/reports/<nr>."""
    shown = _record(context, *await find_report(context, request, where[0]))
    value = {name: item for name, item in shown.items() if name != "error" or item is not None}
    value["nr"] = str(value["nr"])
    return await reselect(context, request, Document(value=value, columns=COLUMNS))


# -------------------------------------------------------------------- changing


def _named(fields: Mapping[str, Any]) -> tuple[str, ...]:
    """The sites among the fields of a JSON body."""
    found: list[str] = []
    for name in SITES:
        value = fields.get(name)
        items = value.split(",") if isinstance(value, str) else value or []
        if not isinstance(items, list) or not all(isinstance(one, str) for one in items):
            raise BadRequest(f"invalid {name}", f"{name}: expected a list of sites")
        found += [one.strip() for one in items if one.strip()]
    return tuple(found)


def _sites(context: Context, items: Iterable[str]) -> dict[str, str]:
    wanted = tuple(items)
    return {site.id: site.name for site in context.sites.select(wanted)} if wanted else {}


def _owner(request: RestRequest, fields: Mapping[str, Any], present: str) -> str:
    """Whose a report is to be; Forbidden for who gives it to somebody else without being admin."""
    wanted = fields.get("user")
    if wanted is None or wanted in ("", present):
        return present
    if not isinstance(wanted, str) or not wanted.isprintable() or len(wanted) > len(wanted[:300]):
        raise BadRequest("invalid user", "user: expected the name of a user")
    if not request.identity.may(ADMIN):
        raise Forbidden("permission denied", "user: only administrators name another owner")
    return wanted


def _path(context: Context, record: Mapping[str, Any]) -> str | None:
    """What of the API a report is about, None for one that is not."""
    template = context.reports.templates.get(record["template"])
    return record["params"].get("url") if template and template.kind == "url" else None


def _require_same_path(
    context: Context, request: RestRequest, old: Report, made: Mapping[str, Any]
) -> None:
    """Raise Forbidden for who would read something with the rights of somebody else."""
    if request.identity.may(ADMIN) or request.identity.user == old.owner:
        return
    wanted = _path(context, made)
    if wanted is not None and wanted != _path(context, old.record):
        raise Forbidden(
            "permission denied",
            "params.url: only the owner and administrators choose what is read as the owner",
        )


def _limit(request: RestRequest) -> tuple[str, ...] | None:
    limit = request.identity.limit
    return None if limit is None else tuple(sorted(limit))


def _checked(context: Context, fields: Mapping[str, Any]) -> dict[str, Any]:
    """The record as it is stored; BadRequest that names what is wrong."""
    templates = context.reports.templates
    made = checked(fields, templates, context.config.reports.default_template)
    link = read(templates[made["template"]], made["params"]).url
    if link is not None:
        check_link(context, link)
    return made


async def create(context: Context, request: RestRequest, _: tuple[str, ...]) -> Answer:
    """Answer POST /mon/reports."""
    try:
        fields = fields_of(request)
        sites = _sites(context, _named(fields) or selected_sites(request))
        made = _checked(context, fields)
        made["user"] = _owner(request, fields, request.identity.user)
        first = str(fields.get("nr", ""))
        digits = first.isascii() and first.isdigit() and len(first) <= _MOST_DIGITS
        number = await context.database.change(
            statements.add(
                max(1, int(first)) if digits else 1,
                made,
                sites,
                _limit(request),
                context.wall.now(),
                context.zone,
            )
        )
    except RestError as error:
        audit_report(request, "create", "", error)
        raise
    audit_report(request, "create", str(number))
    return Document(value={"message": "successfully saved 1 report.", "id": number, "count": 1})


async def replace(context: Context, request: RestRequest, where: tuple[str, ...]) -> Answer:
    """Answer POST /mon/reports/<nr>."""
    return await _change(context, request, where[0], patch=False)


async def update(context: Context, request: RestRequest, where: tuple[str, ...]) -> Answer:
    """Answer PATCH /mon/reports/<nr>."""
    return await _change(context, request, where[0], patch=True)


async def _change(context: Context, request: RestRequest, name: str, *, patch: bool) -> Answer:
    old, access = await find_report(context, request, name)
    try:
        require_write(access)
        fields = fields_of(request)
        named = _named(fields) or _named(dict(request.parameters))
        sites = _sites(context, named or request.sites)
        if patch:
            if not named and "backends" not in fields:
                sites = dict(old.sites)
            fields = {key: value for key, value in fields.items() if key not in SITES}
            fields = merged(dict(old.record), fields)
        made = _checked(context, fields)
        made["user"] = _owner(request, fields, old.owner)
        _require_same_path(context, request, old, made)
        # Who writes his own report says how far he goes; others leave that as it is.
        mine = made["user"] == request.identity.user
        limit = _limit(request) if mine else old.limit if made["user"] == old.owner else None
        work = statements.replace(old, made, sites, limit, context.wall.now(), context.zone)
        if not await context.database.change(work):
            raise Conflict("the report was changed meanwhile", "read it again and repeat this")
    except RestError as error:
        audit_report(request, "change", name, error)
        raise
    audit_report(request, "change", name)
    return Document(value={"message": "successfully saved 1 report.", "count": 1})


def require_write(access: str) -> None:
    """Raise Forbidden for who may only read."""
    if access != "rw":
        raise Forbidden("permission denied", "the report may only be read")


async def delete(context: Context, request: RestRequest, where: tuple[str, ...]) -> Answer:
    """Answer DELETE /mon/reports/<nr>."""
    old, access = await find_report(context, request, where[0])
    try:
        require_write(access)
        if await context.reports.being_made(old):
            raise Conflict("failed to remove report", "it is being made, try again after that")
        if not await context.database.change(statements.remove(old.number)):
            raise NotFound("no such report")
    except RestError as error:
        audit_report(request, "delete", where[0], error)
        raise
    audit_report(request, "delete", where[0])
    return Document(value={"message": "successfully removed 1 report.", "count": 1})


def audit_report(
    request: RestRequest, what: str, target: str, error: RestError | None = None
) -> None:
    """Write a line of the audit log."""
    audit(
        request.identity,
        request.caller,
        f"report {what}",
        target=target,
        result="ok" if error is None else error.message,
    )


_ITEM = Endpoint(
    path="/mon/reports/<nr>",
    description="one report",
    handler=report,
    shape="object",
    parameters=OBJECT_PARAMETERS,
    columns=COLUMNS,
)
_WRITE = evolve(_ITEM, parameters=FIELDS, columns=_WRITTEN, structured=True)

ENDPOINTS: tuple[Endpoint, ...] = (
    Endpoint(
        path="/mon/reports",
        description="reports",
        text="Own ones, public ones, and those that somebody shares. A key or session that is "
        "limited to roles has as its own those that are made with no more roles than these.",
        handler=reports,
        parameters=LIST_PARAMETERS,
        columns=COLUMNS,
    ),
    Endpoint(
        path="/mon/reports",
        methods=("POST",),
        description="create a report",
        text="Fields that are not known are kept. Number is the first free one from `nr` on.",
        handler=create,
        shape="object",
        parameters=(*FIELDS, Parameter(name="nr", description="first number", type="integer")),
        columns=_MADE,
        roles=(ROLE,),
        structured=True,
    ),
    _ITEM,
    evolve(
        _WRITE, methods=("POST",), description="replace a report", handler=replace,
        text="Owner and results stay. Needs the right to change it.",
    ),
    evolve(
        _WRITE, methods=("PATCH",), description="change fields of a report", handler=update,
        text="The body is merged into what is stored: null removes a field, lists are changed "
        "position by position.",
    ),
    evolve(
        _WRITE, methods=("DELETE",), description="remove a report", handler=delete,
        text="With its results. Not while it is being made (409).",
        parameters=(), structured=False,
    ),
)  # fmt: skip
