"""Saving and dropping what is staged, and telling the core: save, revert, check, reload.

The rules are in docs/spec/objectconfig.md. What changes files or cores is brought to its end and
into the audit log, also for a client that does not wait any more; a check ends with its client.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import Any

from attrs import define, evolve, field
from twisted.internet.defer import CancelledError, Deferred, DeferredList
from twisted.python.failure import Failure

from monrest.api.endpoint import (
    OBJECT_PARAMETERS,
    SITE_PARAMETERS,
    Context,
    DeclaredParameter,
    Endpoint,
    FamilyHandler,
)
from monrest.api.lists import local_schema, select
from monrest.base.concurrency import shielded
from monrest.base.errors import Conflict, RestError
from monrest.base.values import Answer, Column, Document, RestRequest
from monrest.objectconfig.federated_tools import FederatedTools, count_of, strings_of
from monrest.objectconfig.parameters import (
    no_conditions,
    note,
    tool_sites,
    user_of,
    without,
)
from monrest.objectconfig.service import Staging
from monrest.objectconfig.site_commands import (
    FORCE,
    Commands,
    Hooks,
    check,
    check_command,
    environment_of,
    hint,
)
from monrest.objectconfig.site_commands import reload as reload_core
from monrest.objectconfig.staged_changes import (
    config_site,
)
from monrest.sites.federation.federated_site import FederatedSite
from monrest.sites.site import Site

RESULTS = (
    Column("failed", "boolean", "", "whether it failed"),
    Column("output", "string", "", "what the command wrote, and what went wrong"),
    Column("peer_key", "string", "", "id of the site"),
)
_RESULTS = local_schema("config_results", RESULTS, ())
_COUNTED = (
    Column("count", "number", "", "on how many sites it was done"),
    Column("message", "string", "", "what was done"),
)
_SAVED = (
    *_COUNTED,
    Column("errors", "array_of_strings", "", "objects with peer_key and message; absent without"),
    Column("failed", "boolean", "", "true when a site failed; else absent"),
    Column(
        "warnings",
        "array_of_strings",
        "",
        "what of the old files could not be kept, such as their owner; absent without any",
    ),
)


@define(eq=False)
class _Saves:
    """What saves of several sites came to; ``refused`` are those that wrote nothing at all."""

    count: int = 0
    refused: list[RestError] = field(factory=list)
    errors: list[dict[str, str]] = field(factory=list)
    warnings: list[str] = field(factory=list)

    def refuse(self, request: RestRequest, site: Site, error: RestError) -> None:
        """Take down, also in the audit log, that a site refused."""
        self.refused.append(error)
        self.errors.append({"peer_key": site.id, "message": str(error)})
        note(request, "save", target=site.id, result=error.message, error=error.description)


async def save(
    staging: Staging, context: Context, request: RestRequest, _: tuple[str, ...]
) -> Answer:
    """Answer POST /config/save: write what the user has staged, each site by itself."""
    sites = _begun(context, request)
    far = FederatedTools.of(context, request).sites
    given = {site.id: await environment_of(context, request, site) for site in sites}
    return await shielded(_save(staging, context, request, (*sites, *far), given))


async def _save(
    staging: Staging,
    context: Context,
    request: RestRequest,
    sites: Sequence[Site],
    given: Mapping[str, Mapping[str, str]],
) -> Answer:
    saves = _Saves()
    for site in sites:
        try:
            if isinstance(site, FederatedSite):
                await _save_there(context, request, site, saves)
            else:
                await _save_here(staging, context, request, site, given[site.id], saves)
        except RestError as error:
            saves.refuse(request, site, error)
    refused = saves.refused
    if refused and len(refused) == len(sites):
        if all(isinstance(error, Conflict) for error in refused):
            told = "; ".join(error.description for error in refused)
            raise Conflict(refused[0].message, told)
        raise refused[0]
    value: dict[str, Any] = {
        "message": f"successfully saved changes for {_sites(saves.count)}.",
        "count": saves.count,
    }
    if saves.errors:
        value |= {"failed": True, "errors": saves.errors}
    if saves.warnings:
        value["warnings"] = saves.warnings
    return Document(value=value, columns=_SAVED)


async def _save_here(
    staging: Staging,
    context: Context,
    request: RestRequest,
    site: Site,
    given: Mapping[str, str],
    saves: _Saves,
) -> None:
    tool = context.config.configtool
    hooks = Hooks(
        before=tool.pre_obj_save_cmd,
        after=tool.post_obj_save_cmd,
        seconds=context.config.server.longest_wait,
        hint=hint(request),
        environment=given,
    )
    saved = await staging.save(config_site(context, site), user_of(request), hooks)
    for file in saved.files:
        note(request, "save", target=file.path, site=site.id, change=file.action)
    if saved.warnings:
        note(request, "save", target=site.id, warnings=saved.warnings)
        saves.warnings += saved.warnings
    if saved.problem:
        note(request, "save", target=site.id, result="failed", error=saved.problem)
        saves.errors.append({"peer_key": site.id, "message": saved.problem})
    else:
        staging.saved(site.id, user_of(request))
        saves.count += 1


async def _save_there(
    context: Context, request: RestRequest, site: FederatedSite, saves: _Saves
) -> None:
    answer = await FederatedTools.of(context, request).send(site)
    told = answer.get("errors")
    for one in told if isinstance(told, list) else ():
        message = str(one.get("message")) if isinstance(one, dict) else "failed"
        saves.errors.append({"peer_key": site.id, "message": message})
    saves.warnings += strings_of(answer.get("warnings"))
    saves.count += count_of(answer)
    note(request, "save", target=site.id, count=count_of(answer))


async def revert(
    staging: Staging, context: Context, request: RestRequest, _: tuple[str, ...]
) -> Answer:
    """Answer POST /config/revert and /config/discard."""
    sites = _begun(context, request)
    far = FederatedTools.of(context, request)

    async def all_sites() -> int:
        count = len(sites)
        for site in sites:
            await staging.revert(config_site(context, site), user_of(request))
            note(request, "revert", target=site.id)
        for there, answer in await far.change(filters=False):
            count += count_of(answer)
            note(request, "revert", target=there.id)
        return count

    count = await shielded(all_sites())
    message = f"successfully reverted stashed changes for {_sites(count)}."
    return Document(value={"message": message, "count": count}, columns=_COUNTED)


def _sites(count: int) -> str:
    return f"{count} site{'' if count == 1 else 's'}"


def _of_each(
    action: str,
    work: Callable[
        [Context, RestRequest, Site, Mapping[str, str]], Coroutine[Any, Any, tuple[bool, str]]
    ],
    *options: str,
    lasting: bool,
) -> FamilyHandler:
    """A handler that does ``work`` for all selected sites at the same time.

    What is ``lasting`` is brought to its end, also for a client that does not wait any more.
    ``options`` are names of parameters.
    """

    async def one(context: Context, request: RestRequest, site: Site) -> dict[str, Any]:
        given = await environment_of(context, request, site)
        try:
            failed, output = await work(context, request, site, given)
        except CancelledError:
            note(request, action, target=site.id, result="canceled")
            raise
        note(request, action, target=site.id, result="failed" if failed else "ok")
        return {"peer_key": site.id, "failed": failed, "output": output}

    async def here(context: Context, request: RestRequest, site: Site) -> list[dict[str, Any]]:
        return [await one(context, request, site)]

    async def everyone(
        context: Context,
        request: RestRequest,
        sites: Sequence[Site],
        far: Sequence[FederatedSite],
    ) -> list[dict[str, Any]]:
        running = [
            *(Deferred.fromCoroutine(here(context, request, site)) for site in sites),
            *(
                Deferred.fromCoroutine(_results_there(context, request, site, action))
                for site in far
            ),
        ]
        records: list[dict[str, Any]] = []
        for _, value in await DeferredList(running, consumeErrors=True):
            if isinstance(value, Failure):
                value.raiseException()
            records += value
        return records

    async def handler(
        _: Staging, context: Context, request: RestRequest, __: tuple[str, ...]
    ) -> Answer:
        sites = _begun(context, request, *options)
        far = FederatedTools.of(context, request).sites
        working = everyone(context, request, sites, far)
        records = await (shielded(working) if lasting else working)
        if far:
            context.contacts.expire()
        listed = evolve(request, parameters=without(request.parameters, *options))
        return await select(context, listed, _RESULTS, records)

    return handler


async def _results_there(
    context: Context, request: RestRequest, site: FederatedSite, action: str
) -> list[dict[str, Any]]:
    """Check or reload a site; what went wrong is its result. None without a configuration."""
    options = tuple(pair for pair in request.query if pair[0] == FORCE.name)
    try:
        answer = await FederatedTools.of(context, request).send(site, options)
    except RestError as error:
        result: dict[str, Any] = {"failed": True, "output": str(error)}
    else:
        rows = answer.get("answer")
        row = rows[0] if isinstance(rows, list) and rows else None
        if not isinstance(row, dict):
            return []
        result = {"failed": bool(row.get("failed")), "output": str(row.get("output"))}
    note(request, action, target=site.id, result="failed" if result["failed"] else "ok")
    return [{"peer_key": site.id, **result}]


async def _check(
    context: Context, request: RestRequest, site: Site, given: Mapping[str, str]
) -> tuple[bool, str]:
    if not check_command(context, site):
        return True, "obj_check_cmd is not set for this site"
    result = await check(context, request, site, given)
    return result.failed, result.output


async def _reload(
    context: Context, request: RestRequest, site: Site, given: Mapping[str, str]
) -> tuple[bool, str]:
    told = Commands(
        check="" if FORCE.asked(request.parameters) else check_command(context, site),
        reload=config_site(context, site).tool.obj_reload_cmd,
        environment=given,
        hint=hint(request),
    )
    seconds = context.config.server.longest_wait
    result = await reload_core(site, context.reactor, context.wall, told, seconds=seconds)
    context.contacts.expire()
    return result.failed, result.output


def _begun(context: Context, request: RestRequest, *options: str) -> tuple[Site, ...]:
    """The sites that are meant, after everything that speaks against it."""
    no_conditions(request, *options)
    return tool_sites(context, request)


def _endpoint(
    path: str,
    description: str,
    handler: FamilyHandler,
    columns: tuple[Column, ...],
    text: str,
    parameters: tuple[DeclaredParameter, ...] = (),
) -> Endpoint:
    return Endpoint(
        path=path,
        methods=("POST",),
        description=description,
        text=text,
        handler=handler,
        shape="list" if columns is RESULTS else "object",
        parameters=(
            *parameters,
            *(OBJECT_PARAMETERS if columns is RESULTS else ()),
            *SITE_PARAMETERS,
        ),
        columns=columns,
        roles=("admin",),
    )


ENDPOINTS: tuple[Endpoint, ...] = (
    _endpoint(
        "/config/save",
        "writes the user's staged changes to the files",
        save,
        _SAVED,
        "All files of a site or none. When a file was changed on disk meanwhile and the changes "
        "cannot be joined, nothing is written and the answer is 409 with the files.",
    ),
    *(
        _endpoint(
            path,
            "discards the user's staged changes",
            revert,
            _COUNTED,
            "Changes of other users stay.",
        )
        for path in ("/config/revert", "/config/discard")
    ),
    _endpoint(
        "/config/check",
        "checks the files on disk with the command of the site",
        _of_each("check", _check, lasting=False),
        RESULTS,
        "Staged changes are not looked at: save them before.",
    ),
    _endpoint(
        "/config/reload",
        "makes the cores read their files",
        _of_each("reload", _reload, FORCE.name, lasting=True),
        RESULTS,
        "By the command of the site, or else by RESTART_PROCESS; answers when the core is back, "
        "which its start time tells. With `obj_check_cmd` the files are checked before; when that "
        "fails the core is not told, because many end when they read files that do not load.",
        (FORCE,),
    ),
)
