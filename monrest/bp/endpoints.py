"""Business processes: list, read, write, calculate (docs/spec/bp.md)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import orjson
from attrs import evolve

from monrest.accounts.rights import may_submit
from monrest.api.endpoint import LIST_PARAMETERS, OBJECT_PARAMETERS, Context, Endpoint, Parameter
from monrest.api.lists import local_schema, reselect, select
from monrest.api.visibility import HOSTS, SERVICES, visibility
from monrest.base.audit import audit
from monrest.base.errors import BadRequest, Forbidden, NotFound, RestError
from monrest.base.values import (
    READ_ONLY,
    Answer,
    Column,
    Document,
    Identity,
    RestRequest,
    SiteProblem,
)
from monrest.bp.results import shown as runtime_of
from monrest.bp.store import Stored, number_of
from monrest.commands.lookups import commanded
from monrest.commands.permissions import Grant, grant, needed
from monrest.livestatus.command import Target
from monrest.query.schema import CoreType
from monrest.sites.federation.site import FederatedSite

ROLE = "authorized_for_business_processes"

COLUMNS = (
    Column("affected_peers", "array_of_strings", "", "sites the last calculation is from, or null"),
    Column("bp_backend", "string", "", "site with the host of this process, or null"),
    Column("create_host_object", "boolean", "", "1: a host is made for it in the core"),
    Column("draft", "boolean", "", "1 until it is changed for the first time"),
    Column("filter", "array_of_strings", "", "filters of all nodes"),
    Column("id", "string", "", "number of the process"),
    Column("last_check", "time", "", "when it was calculated; 0: never"),
    Column("last_state_change", "time", "", "when its status changed; 0: never"),
    Column("name", "string", "", "name, also of its host in the core"),
    Column("nodes", "object", "", "list of nodes with their functions and states"),
    Column("rankDir", "string", "", "TB: drawn vertically, LR: horizontally"),
    Column("state_type", "string", "", "core states that count: both, or hard only"),
    Column("status", "number", "", "0 ok, 1 warning, 2 critical, 3 unknown, 4 pending"),
    Column("status_text", "string", "", "what it says"),
    Column("template", "string", "", "template of its host in the core; empty: the usual one"),
    Column("time", "number", "s", "duration of the last calculation"),
)
_HELD: Mapping[str, CoreType] = {"nodes": "list"}
_SCHEMA = local_schema("bp", COLUMNS, (), _HELD)
_STORED = (
    "name",
    "template",
    "rankDir",
    "state_type",
    "filter",
    "create_host_object",
    "nodes",
)


def record(process: Stored) -> dict[str, Any]:
    """Give a process as it is shown."""
    definition, result = process.definition, process.result
    return {
        "affected_peers": None if result.affected_peers is None else list(result.affected_peers),
        "bp_backend": result.bp_backend,
        "create_host_object": definition.create_host_object,
        "draft": int(process.draft),
        "filter": list(definition.filter),
        "id": process.id,
        "last_check": result.last_check,
        "last_state_change": result.last_state_change,
        "name": definition.name,
        "nodes": [
            {**node.document(), **runtime_of(result.node(node.id), result)}
            for node in definition.nodes
        ],
        "rankDir": definition.rank_dir,
        "state_type": definition.state_type,
        "status": result.status,
        "status_text": result.status_text,
        "template": definition.template,
        "time": result.time,
    }


# -------------------------------------------------------------------- who sees what


async def readable(context: Context, identity: Identity) -> Callable[[Stored], bool]:
    """Give what tells whether a process exists for ``identity``.

    Without the role it has to be live, and some service of it to be visible. Raises SitesFailed
    when the cores cannot be asked.
    """
    if identity.may(ROLE):
        return lambda _: True
    seen = visibility(identity, "services", strict=context.config.auth.strict_host_authorization)
    carried = await context.bp.carriers("services", context.sites.select(), seen)
    numbers = frozenset(carried.values())
    return lambda process: not process.draft and process.id in numbers


async def shown(
    context: Context, identity: Identity, processes: Sequence[Stored]
) -> tuple[list[Stored], tuple[SiteProblem, ...]]:
    """Give processes with what ``identity`` may see of them (docs/spec/bp.md).

    The second value are sites that could not say what that is.
    """
    own = {site.id for site in context.sites.sites}
    whole = own.issuperset(site.id for site in context.bp.sites.sites)
    far = any(isinstance(site, FederatedSite) for site in context.sites.sites)
    if not processes or (identity.may(HOSTS) and identity.may(SERVICES) and whole and not far):
        return list(processes), ()
    strict = context.config.auth.strict_host_authorization
    return await context.bp.visible(
        processes, context.sites.select(), lambda table: visibility(identity, table, strict)
    )


async def found(context: Context, request: RestRequest, text: str) -> Stored:
    """Give the process of a path, if it exists for the asker; NotFound."""
    number = number_of(text)
    if number is None:
        raise NotFound(f"unknown rest path: {request.path}")
    process = await context.bp.get(number)
    if process is None or not (await readable(context, request.identity))(process):
        raise _no_such_process()
    return process


def _no_such_process() -> NotFound:
    return NotFound("no such business process")


# -------------------------------------------------------------------- reading


async def processes(context: Context, request: RestRequest, _: tuple[str, ...]) -> Answer:
    """Answer GET /mon/bp: live ones and drafts by name, those that the asker may see."""
    context.figures.expire("business processes")
    visible = await readable(context, request.identity)
    known = [one for one in await context.bp.several() if visible(one)]
    theirs, problems = await shown(context, request.identity, known)
    answer = await select(context, request, _SCHEMA, map(record, theirs))
    return evolve(answer, failed_sites=problems)


async def process(context: Context, request: RestRequest, where: tuple[str, ...]) -> Answer:
    """Answer GET /mon/bp/<nr>."""
    one = await found(context, request, where[0])
    (theirs,), problems = await shown(context, request.identity, [one])
    value = Document(value=record(theirs), columns=COLUMNS, failed_sites=problems)
    return await reselect(context, request, value)


# -------------------------------------------------------------------- writing


def given(request: RestRequest) -> dict[str, Any]:
    """Give the attributes of a process in a request: of its JSON object, or of a form.

    Nodes of a form are JSON text. Raises BadRequest.
    """
    document = request.document
    if document is not None and not isinstance(document, dict):
        raise BadRequest("invalid value", "request body: expected an object")
    values: dict[str, Any] = dict(document or {})
    pairs: dict[str, list[str]] = {}
    for name, value in request.parameters:
        if name in (*_STORED, "id") and name not in values:
            pairs.setdefault(name, []).append(value)
    for name, texts in pairs.items():
        if name == "filter":
            values[name] = [one.strip() for text in texts for one in text.split(",") if one.strip()]
        elif len(texts) > 1:
            raise BadRequest("too many values", f"{name}: expected one value, got {len(texts)}")
        else:
            values[name] = _nodes(texts[0]) if name == "nodes" else texts[0]
    return values


def _nodes(text: str) -> Any:
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        raise BadRequest("invalid nodes", "nodes: expected a list of objects in JSON") from None


def _writable(context: Context, identity: Identity) -> None:
    if READ_ONLY in identity.roles:
        raise Forbidden("not authorized", f"the role {READ_ONLY} forbids all changes")
    if context.config.bp.read_only:
        raise Forbidden("business processes are read-only", "bp.read_only is on")


async def create(context: Context, request: RestRequest, _: tuple[str, ...]) -> Answer:
    """Answer POST /mon/bp: make a draft."""
    _writable(context, request.identity)
    values = given(request)
    first = values.get("id")
    start = 1 if first in (None, "") else number_of(str(first).strip())
    if start is None:
        raise BadRequest("invalid id", "id: expected a number above 0, the first one to try")
    made = await context.bp.create(values, start)
    audit(request.identity, request.caller, "bp create", target=made.id, name=made.definition.name)
    return _done(context, "business process successfully created", data=record(made))


async def replace(context: Context, request: RestRequest, where: tuple[str, ...]) -> Answer:
    """Answer POST /mon/bp/<nr>: the body is all of the definition, which goes live."""
    return await _change(context, request, where, context.bp.replace)


async def patch(context: Context, request: RestRequest, where: tuple[str, ...]) -> Answer:
    """Answer PATCH /mon/bp/<nr>: merge into the definition, which goes live."""
    return await _change(context, request, where, context.bp.patch)


async def _change(
    context: Context,
    request: RestRequest,
    where: tuple[str, ...],
    change: Callable[[int, Mapping[str, Any]], Any],
) -> Answer:
    _writable(context, request.identity)
    before = await found(context, request, where[0])
    values = {name: value for name, value in given(request).items() if name in _STORED}
    try:
        after = await change(before.nr, values)
    except RestError as error:
        _audit(request, "bp change", before, error.message)
        raise
    if after is None:
        raise _no_such_process()
    _audit(request, "bp change", after)
    return _done(context, "business process successfully updated")


async def delete(context: Context, request: RestRequest, where: tuple[str, ...]) -> Answer:
    """Answer DELETE /mon/bp/<nr>."""
    _writable(context, request.identity)
    before = await found(context, request, where[0])
    if not await context.bp.delete(before.nr):
        raise _no_such_process()
    _audit(request, "bp delete", before)
    return _done(context, "business process successfully removed")


def _done(context: Context, message: str, **more: Any) -> Document:
    """Say what was done, and which processes the core's configuration could not have."""
    value = {"message": message, **more}
    if context.bp.left_out:
        value["description"] = f"not exported: {'; '.join(context.bp.left_out)}"
    return Document(value=value)


def _audit(request: RestRequest, action: str, one: Stored, result: str = "ok") -> None:
    audit(
        request.identity,
        request.caller,
        action,
        target=one.id,
        result=result,
        name=one.definition.name,
    )


async def refresh(context: Context, request: RestRequest, where: tuple[str, ...]) -> Answer:
    """Answer POST /mon/bp/<nr>/refresh: calculate now and submit the results."""
    before = await found(context, request, where[0])
    await _check_refresh(context, request.identity, before.definition.name)
    done = await context.bp.refresh(before)
    (theirs,), problems = await shown(context, request.identity, [done.process])
    own = {site.id for site in context.sites.sites}
    problems += tuple(one for one in done.problems if one.site in own and one not in problems)
    value = {
        "message": "business process refreshed successfully",
        "data": record(theirs),
    }
    return Document(value=value, failed_sites=problems)


async def _check_refresh(context: Context, identity: Identity, name: str) -> None:
    """Raise Forbidden without the role and without the right to command the host of this name."""
    if identity.may(ROLE) and READ_ONLY not in identity.roles:
        return
    allowed = await may_submit(identity, context.contacts, context.config)
    verdict = grant(identity, "host", name, may_submit=allowed)
    sites = context.sites.select()
    if verdict is Grant.CONTACT and sites:
        target = Target("hosts", name)
        strict = context.config.auth.strict_host_authorization
        commands = await commanded(sites, (target,), identity.user, context.clock, strict=strict)
        verdict = Grant.ALLOWED if commands.on(target) else Grant.DENIED
    if verdict is not Grant.ALLOWED:
        raise Forbidden(
            "not authorized",
            f"needs the role {ROLE}, or for the host {name}: {needed('host', 'host')}",
        )


# -------------------------------------------------------------------- declarations

_ATTRIBUTES = (
    Parameter(name="name", description="name, also of its host in the core"),
    Parameter(name="template", description="template of its host in the core"),
    Parameter(name="rankDir", description="TB (default) or LR: drawing direction"),
    Parameter(name="state_type", description="both (default) or hard: core states that count"),
    Parameter(name="filter", description="list of filters for all nodes"),
    Parameter(
        name="create_host_object",
        description="0: no host is made in the core; default 1",
        type="boolean",
    ),
    Parameter(
        name="nodes",
        description="list of nodes: objects with id, label, function, function_args, depends, "
        "create_obj, template, contacts, contactgroups, notification_period, max_check_attempts, "
        "event_handler, filter, host_name; the one with the id node1 is the root",
    ),
)
_ID = Parameter(name="id", description="first number to try; default 1", type="integer")
_MESSAGE = (Column("message", "string", "", "what was done"),)
_DATA = (Column("data", "object", "", "the business process"), *_MESSAGE)
_LEFT_OUT = Column(
    "description",
    "string",
    "",
    "processes that are not in the core's configuration, with the reason; absent if there are none",
)
_OTHERS = "Attributes that are not listed are not kept. "

ENDPOINTS: tuple[Endpoint, ...] = (
    Endpoint(
        path="/mon/bp",
        description="business processes",
        text=f"The role {ROLE} sees all of them, drafts too; others those of which they see a "
        "service of the core. Of nodes about hosts and services that the asker may not see it says "
        "`not visible`; the state of the process as a whole is there.",
        handler=processes,
        parameters=LIST_PARAMETERS,
        columns=COLUMNS,
    ),
    Endpoint(
        path="/mon/bp",
        methods=("POST",),
        description="make a business process",
        text="It is a draft, which is not calculated regularly, until it is changed for the first "
        "time: an empty PATCH is enough. A name that is taken gets a number. Functions of nodes: "
        "status, groupstatus, fixed, worst, best, at_least, not_more, equals, statusfilter, "
        f"random, custom. Processes that link to each other in a circle are refused. {_OTHERS}",
        handler=create,
        shape="object",
        parameters=(_ID, *_ATTRIBUTES),
        columns=(*_DATA, _LEFT_OUT),
        roles=(ROLE,),
        structured=True,
    ),
    Endpoint(
        path="/mon/bp/<nr>",
        description="one business process",
        handler=process,
        shape="object",
        parameters=OBJECT_PARAMETERS,
        columns=COLUMNS,
    ),
    Endpoint(
        path="/mon/bp/<nr>",
        methods=("POST",),
        description="replace a business process",
        text=f"What is not given has its default; the name is needed. {_OTHERS}",
        handler=replace,
        shape="object",
        parameters=_ATTRIBUTES,
        columns=(*_MESSAGE, _LEFT_OUT),
        roles=(ROLE,),
        structured=True,
    ),
    Endpoint(
        path="/mon/bp/<nr>",
        methods=("PATCH",),
        description="change a business process",
        text="Objects merge by key, lists by position, null removes. A new function without "
        f"function_args has no arguments but those in its text. {_OTHERS}",
        handler=patch,
        shape="object",
        parameters=_ATTRIBUTES,
        columns=(*_MESSAGE, _LEFT_OUT),
        roles=(ROLE,),
        structured=True,
    ),
    Endpoint(
        path="/mon/bp/<nr>",
        methods=("DELETE",),
        description="delete a business process",
        handler=delete,
        shape="object",
        parameters=(),
        columns=(*_MESSAGE, _LEFT_OUT),
        roles=(ROLE,),
    ),
    Endpoint(
        path="/mon/bp/<nr>/refresh",
        methods=("POST",),
        description="calculate a business process now",
        text=f"Needs the role {ROLE}, or the right to send commands to the host of its name. The "
        "results go to the core as after a regular calculation, except those of a draft.",
        handler=refresh,
        shape="object",
        parameters=(),
        columns=_DATA,
    ),
)
