"""Recurring downtimes: reading and changing them (docs/spec/downtimes.md)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from monrest.api.endpoint import (
    LIST_PARAMETERS,
    OBJECT_PARAMETERS,
    SITE_PARAMETERS,
    Context,
    Endpoint,
    Parameter,
)
from monrest.api.fields import SITES, fields_of, selected_sites
from monrest.api.lists import local_schema, reselect, select, sparse
from monrest.base.audit import audit
from monrest.base.errors import BadRequest, Conflict, NotFound, RestError
from monrest.base.values import Answer, Column, Document, RestRequest
from monrest.commands.permissions import refused_to_all
from monrest.downtimes import cores
from monrest.downtimes import store as statements
from monrest.downtimes.access import require_commands, visible
from monrest.downtimes.model import TARGETS, Downtime, checked
from monrest.downtimes.orders import command_of
from monrest.store.merge import merged

COLUMNS = (
    Column("backends", "array_of_strings", "", "ids of the sites that it is for"),
    Column("childoptions", "number", "", "for hosts: 1 their children as well, triggered; 2 too"),
    Column("comment", "string", "", "comment of the downtimes"),
    Column("created_by", "string", "", "who made it"),
    Column("duration", "number", "minutes", "how long a downtime lasts"),
    Column("edited_by", "string", "", "who changed it last"),
    Column("error", "string", "", "what is wrong, a line each; absent if nothing is"),
    Column("file", "number", "", "its number"),
    Column("fixed", "boolean", "", "1: begins at its time; 0: with the first problem after it"),
    Column("flex_range", "number", "minutes", "for how long one that is not fixed may begin"),
    Column("host", "array_of_strings", "", "hosts"),
    Column("hostgroup", "array_of_strings", "", "host groups"),
    Column("last_changed", "time", "", "last change"),
    Column("schedule", "array_of_strings", "", "when it comes, a list of objects"),
    Column("service", "array_of_strings", "", "services, each on each of the hosts"),
    Column("servicegroup", "array_of_strings", "", "service groups"),
    Column("target", "string", "", f"type of its objects: {', '.join(TARGETS)}"),
)
_KNOWN = {one.name for one in COLUMNS}
_MOST_DIGITS = 9
_MINE = frozenset({"created_by", "edited_by", "last_changed"})
_WRITTEN = (
    Column("count", "number", "", "always 1"),
    Column("message", "string", "", "what was done"),
)
_MADE = (*_WRITTEN, Column("file", "string", "", "number of the new downtime"))

FIELDS = (
    Parameter(name="target", description=f"type of the objects: {', '.join(TARGETS)}"),
    Parameter(name="host", description="hosts, a list or with commas"),
    Parameter(name="service", description="services, each on each of the hosts"),
    Parameter(name="hostgroup", description="host groups"),
    Parameter(name="servicegroup", description="service groups"),
    Parameter(name="schedule", description="list of objects with `type` day, week, month, "
              "monthday or cust, and `minute`, `hour`, `week_day` (0 to 7, with commas), `day`, "
              "`month_day` (as `1st_Monday`, `Last_Friday`) or `cust` (five cron fields)"),
    Parameter(name="duration", description="minutes, default 120", type="integer"),
    Parameter(name="fixed", description="0 for flexible, default 1", type="boolean"),
    Parameter(name="flex_range", description="minutes, default 720", type="integer"),
    Parameter(name="childoptions", description="0, 1 or 2, for hosts", type="integer"),
    Parameter(name="comment", description="default `automatic downtime`"),
    Parameter(name="backends", description="comma list of sites, default: all of them"),
)  # fmt: skip


def record(context: Context, downtime: Downtime) -> dict[str, Any]:
    """One downtime as it is shown."""
    sites, unknown = cores.chosen(downtime, context.sites.sites)
    return {
        **downtime.record,
        "backends": [site.id for site in sites] + unknown if downtime.sites else [],
        "error": downtime.problems,
        "file": downtime.number,
    }


def _order(downtime: Downtime) -> tuple[Any, ...]:
    stored = downtime.record
    hosts = [name.lower() for name in stored["host"]]
    rest = (stored["service"], stored["hostgroup"], stored["servicegroup"])
    return (downtime.target, hosts, *rest, downtime.number)


# -------------------------------------------------------------------- reading


async def recurring_downtimes(context: Context, request: RestRequest, _: tuple[str, ...]) -> Answer:
    """Answer GET /mon/recurring_downtimes."""
    stored = await context.database.run(statements.everything)
    enabled = {site.id for site in context.sites.select(selected_sites(request))}
    found = [one for one in stored if not one.sites or enabled & _ids(context, one)]
    shown = sorted(await visible(context, request.identity, found), key=_order)
    rows = [record(context, one) for one in shown]
    further = sorted({name for row in rows for name in row} - _KNOWN)
    columns = (*COLUMNS, *(Column(name) for name in further))
    schema = local_schema("recurring_downtimes", columns, ())
    answer = await select(context, request, schema, rows)
    return await sparse(context, request, answer, frozenset({"error", *further}))


def _ids(context: Context, downtime: Downtime) -> set[str]:
    return {site.id for site in cores.chosen(downtime, context.sites.sites)[0]}


async def _one(context: Context, request: RestRequest, name: str) -> Downtime:
    """Find the downtime of a path, if the asker may see it; NotFound."""
    found = None
    if name.isascii() and name.isdigit() and name[0] != "0" and len(name) <= _MOST_DIGITS:
        found = await context.database.run(statements.one(int(name)))
    if found is None or not await visible(context, request.identity, [found]):
        raise NotFound("no such downtime")
    return found


async def recurring_downtime(
    context: Context, request: RestRequest, where: tuple[str, ...]
) -> Answer:
    """Answer GET /mon/recurring_downtimes/<file>."""
    shown = record(context, await _one(context, request, where[0]))
    value = {name: item for name, item in shown.items() if name != "error" or item is not None}
    return await reselect(context, request, Document(value=value, columns=COLUMNS))


# -------------------------------------------------------------------- changing


def _sites(context: Context, items: Iterable[str]) -> dict[str, str]:
    return {site.id: site.name for site in context.sites.select(tuple(items))}


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


def _complete(
    context: Context, request: RestRequest, fields: Mapping[str, Any], created_by: str
) -> dict[str, Any]:
    given = {name: value for name, value in fields.items() if name not in _MINE}
    made = checked(given, context.config.commands)
    if (disabled := refused_to_all(command_of(made), context.config.commands)) is not None:
        raise disabled
    return {
        **made,
        "created_by": created_by,
        "edited_by": request.identity.user,
        "last_changed": int(context.wall.now()),
    }


async def create(context: Context, request: RestRequest, _: tuple[str, ...]) -> Answer:
    """Answer POST /mon/recurring_downtimes."""
    try:
        fields = fields_of(request)
        first = str(fields.get("file", ""))
        digits = first.isascii() and first.isdigit() and len(first) <= _MOST_DIGITS
        sites = _sites(context, _named(fields) or selected_sites(request))
        made = _complete(context, request, fields, request.identity.user)
        await require_commands(context, request.identity, made, sites)
        number = await context.database.change(
            statements.add(
                max(1, int(first)) if digits else 1,
                made,
                sites,
                context.wall.now(),
                context.zone,
            )
        )
    except RestError as error:
        _audit(request, "create", "", error)
        raise
    _audit(request, "create", str(number))
    value = {"message": "successfully created downtime.", "file": str(number), "count": 1}
    return Document(value=value)


async def replace(context: Context, request: RestRequest, where: tuple[str, ...]) -> Answer:
    """Answer POST /mon/recurring_downtimes/<file>."""
    return await _change(context, request, where[0], patch=False)


async def update(context: Context, request: RestRequest, where: tuple[str, ...]) -> Answer:
    """Answer PATCH /mon/recurring_downtimes/<file>."""
    return await _change(context, request, where[0], patch=True)


async def _change(context: Context, request: RestRequest, name: str, *, patch: bool) -> Answer:
    old = await _one(context, request, name)
    try:
        await require_commands(context, request.identity, old.record, old.sites)
        fields = fields_of(request)
        named = _named(fields) or _named(dict(request.parameters))
        # null stands for what a new one has: the sites of the request, or all of them.
        kept = patch and not named and all(fields.get(name, "") is not None for name in SITES)
        sites = dict(old.sites) if kept else _sites(context, named or request.sites)
        if patch:
            fields = {key: value for key, value in fields.items() if key not in SITES}
            fields = merged(dict(old.record), fields)
        made = _complete(context, request, fields, old.record.get("created_by", ""))
        await require_commands(context, request.identity, made, sites)
        work = statements.replace(old, made, sites, context.wall.now(), context.zone)
        if not await context.database.change(work):
            raise Conflict("the downtime was changed meanwhile", "read it again and repeat this")
    except RestError as error:
        _audit(request, "change", name, error)
        raise
    _audit(request, "change", name)
    return Document(value={"message": "successfully saved 1 downtime.", "count": 1})


async def delete(context: Context, request: RestRequest, where: tuple[str, ...]) -> Answer:
    """Answer DELETE /mon/recurring_downtimes/<file>."""
    old = await _one(context, request, where[0])
    try:
        await require_commands(context, request.identity, old.record, old.sites)
        if not await context.database.change(statements.remove(old.number)):
            raise NotFound("no such downtime")
    except RestError as error:
        _audit(request, "delete", where[0], error)
        raise
    _audit(request, "delete", where[0])
    return Document(value={"message": "successfully removed 1 downtime.", "count": 1})


def _audit(request: RestRequest, what: str, target: str, error: RestError | None = None) -> None:
    audit(
        request.identity,
        request.caller,
        f"recurring downtime {what}",
        target=target,
        result="ok" if error is None else error.message,
    )


ENDPOINTS: tuple[Endpoint, ...] = (
    Endpoint(
        path="/mon/recurring_downtimes",
        description="recurring downtimes",
        text="Those of which all objects are visible, or a member of each group.",
        handler=recurring_downtimes,
        parameters=(*LIST_PARAMETERS, *SITE_PARAMETERS),
        columns=COLUMNS,
    ),
    Endpoint(
        path="/mon/recurring_downtimes",
        methods=("POST",),
        description="create a recurring downtime",
        text="Needs the permission to send commands for all objects. Fields that are not known "
        "are kept. Number is the first free one from `file` on.",
        handler=create,
        shape="object",
        parameters=(*FIELDS, Parameter(name="file", description="first number", type="integer")),
        columns=_MADE,
        structured=True,
    ),
    Endpoint(
        path="/mon/recurring_downtimes/<file>",
        description="one recurring downtime",
        handler=recurring_downtime,
        shape="object",
        parameters=OBJECT_PARAMETERS,
        columns=COLUMNS,
    ),
    Endpoint(
        path="/mon/recurring_downtimes/<file>",
        methods=("POST",),
        description="replace a recurring downtime",
        text="Needs the permission to send commands for all objects, old and new.",
        handler=replace,
        shape="object",
        parameters=FIELDS,
        columns=_WRITTEN,
        structured=True,
    ),
    Endpoint(
        path="/mon/recurring_downtimes/<file>",
        methods=("PATCH",),
        description="change fields of a recurring downtime",
        text="The body is merged into what is stored: null removes a field, lists are changed "
        "position by position.",
        handler=update,
        shape="object",
        parameters=FIELDS,
        columns=_WRITTEN,
        structured=True,
    ),
    Endpoint(
        path="/mon/recurring_downtimes/<file>",
        methods=("DELETE",),
        description="remove a recurring downtime",
        text="Downtimes that are set already stay.",
        handler=delete,
        shape="object",
        parameters=(),
        columns=_WRITTEN,
    ),
)
