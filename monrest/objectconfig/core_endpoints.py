"""Saving and dropping what is staged, and telling the core: save, revert, check, reload.

The rules are in docs/spec/objectconfig.md. What changes files or cores is brought to its end and
into the audit log, also for a client that does not wait any more; a check ends with its client.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping
from typing import Any, TypeAlias

from attrs import define, evolve, field
from twisted.internet.defer import CancelledError, Deferred, DeferredList
from twisted.python.failure import Failure

from monrest.api.endpoint import (
    OBJECT_PARAMETERS,
    SITE_PARAMETERS,
    Context,
    DeclaredParameter,
    Endpoint,
)
from monrest.api.lists import local_schema, select
from monrest.base.concurrency import shielded
from monrest.base.errors import Conflict, RestError
from monrest.base.values import Answer, Column, Document, RestRequest
from monrest.objectconfig import site_commands
from monrest.objectconfig.config_request import ConfigRequest
from monrest.objectconfig.federated_tools import count_of, strings_of
from monrest.objectconfig.parameters import no_conditions, without
from monrest.objectconfig.service import Staging
from monrest.objectconfig.site_commands import (
    FORCE,
    Commands,
    Hooks,
    check_command,
    environment_of,
    hint,
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


def _post(
    path: str,
    description: str,
    columns: tuple[Column, ...],
    text: str,
    *parameters: DeclaredParameter,
) -> Endpoint:
    lists = columns is RESULTS
    return Endpoint(
        path=path,
        methods=("POST",),
        description=description,
        text=text,
        shape="list" if lists else "object",
        parameters=(*parameters, *(OBJECT_PARAMETERS if lists else ()), *SITE_PARAMETERS),
        columns=columns,
        roles=("admin",),
    )


@define(eq=False)
class _Saves:
    """What saves of several sites came to; ``refused`` are those that wrote nothing at all."""

    count: int = 0
    refused: list[RestError] = field(factory=list)
    errors: list[dict[str, str]] = field(factory=list)
    warnings: list[str] = field(factory=list)


@_post(
    "/config/save",
    "writes the user's staged changes to the files",
    _SAVED,
    "All files of a site or none. When a file was changed on disk meanwhile and the changes "
    "cannot be joined, nothing is written and the answer is 409 with the files.",
)
async def save(
    staging: Staging, context: Context, request: RestRequest, _: tuple[str, ...]
) -> Answer:
    given = _selected(staging, context, request)
    sites = (*given.sites, *given.far.sites)
    environments = {site.id: await environment_of(context, request, site) for site in given.sites}

    async def all_sites() -> _Saves:
        saves = _Saves()
        for site in sites:
            try:
                if isinstance(site, FederatedSite):
                    await _save_there(given, site, saves)
                else:
                    await _save_here(given, site, environments[site.id], saves)
            except RestError as error:
                saves.refused.append(error)
                saves.errors.append({"peer_key": site.id, "message": str(error)})
                result, reason = error.message, error.description
                given.note("save", target=site.id, result=result, error=reason)
        return saves

    saves = await shielded(all_sites())
    refused = saves.refused
    if refused and len(refused) == len(sites):
        if all(isinstance(error, Conflict) for error in refused):
            reasons = "; ".join(error.description for error in refused)
            raise Conflict(refused[0].message, reasons)
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
    given: ConfigRequest, site: Site, environment: Mapping[str, str], saves: _Saves
) -> None:
    config = given.context.config
    hooks = Hooks(
        before=config.configtool.pre_obj_save_cmd,
        after=config.configtool.post_obj_save_cmd,
        seconds=config.server.longest_wait,
        hint=hint(given.request),
        environment=environment,
    )
    saved = await given.staging.save(given.config_site(site), given.user, hooks)
    for file in saved.files:
        given.note("save", target=file.path, site=site.id, change=file.action)
    if saved.warnings:
        given.note("save", target=site.id, warnings=saved.warnings)
        saves.warnings += saved.warnings
    if saved.problem:
        given.note("save", target=site.id, result="failed", error=saved.problem)
        saves.errors.append({"peer_key": site.id, "message": saved.problem})
    else:
        given.staging.saved(site.id, given.user)
        saves.count += 1


async def _save_there(given: ConfigRequest, site: FederatedSite, saves: _Saves) -> None:
    answer = await given.far.send(site)
    errors = answer.get("errors")
    for error in errors if isinstance(errors, list) else ():
        message = str(error.get("message")) if isinstance(error, dict) else "failed"
        saves.errors.append({"peer_key": site.id, "message": message})
    saves.warnings += strings_of(answer.get("warnings"))
    saves.count += count_of(answer)
    given.note("save", target=site.id, count=count_of(answer))


_REVERT = ("discards the user's staged changes", _COUNTED, "Changes of other users stay.")


@_post("/config/revert", *_REVERT)
@_post("/config/discard", *_REVERT)
async def revert(
    staging: Staging, context: Context, request: RestRequest, _: tuple[str, ...]
) -> Answer:
    given = _selected(staging, context, request)

    async def all_sites() -> int:
        count = len(given.sites)
        for site in given.sites:
            await staging.revert(given.config_site(site), given.user)
            given.note("revert", target=site.id)
        for there, answer in await given.far.change(filters=False):
            count += count_of(answer)
            given.note("revert", target=there.id)
        return count

    count = await shielded(all_sites())
    message = f"successfully reverted stashed changes for {_sites(count)}."
    return Document(value={"message": message, "count": count}, columns=_COUNTED)


def _sites(count: int) -> str:
    return f"{count} site{'' if count == 1 else 's'}"


_Work: TypeAlias = Callable[
    [ConfigRequest, Site, Mapping[str, str]], Coroutine[Any, Any, tuple[bool, str]]
]
"""Checks or reloads a site with an environment; gives whether that failed, and the output."""


async def _on_each_site(
    given: ConfigRequest, action: str, work: _Work, *options: str, lasting: bool
) -> Answer:
    """Do ``work`` on all selected sites at the same time, one row for each.

    What is ``lasting`` is brought to its end, also for a client that does not wait any more.
    ``options`` are names of parameters.
    """
    context, request, far = given.context, given.request, given.far.sites

    async def here(site: Site) -> list[dict[str, Any]]:
        environment = await environment_of(context, request, site)
        try:
            failed, output = await work(given, site, environment)
        except CancelledError:
            given.note(action, target=site.id, result="canceled")
            raise
        given.note(action, target=site.id, result="failed" if failed else "ok")
        return [{"peer_key": site.id, "failed": failed, "output": output}]

    async def all_sites() -> list[dict[str, Any]]:
        running = [Deferred.fromCoroutine(here(site)) for site in given.sites]
        running += [Deferred.fromCoroutine(_results_there(given, site, action)) for site in far]
        records: list[dict[str, Any]] = []
        for _, value in await DeferredList(running, consumeErrors=True):
            if isinstance(value, Failure):
                value.raiseException()
            records += value
        return records

    records = await (shielded(all_sites()) if lasting else all_sites())
    if far:
        context.contacts.expire()
    listed = evolve(request, parameters=without(request.parameters, *options))
    return await select(context, listed, _RESULTS, records)


async def _results_there(
    given: ConfigRequest, site: FederatedSite, action: str
) -> list[dict[str, Any]]:
    """Check or reload a site; what went wrong is its result. None without a configuration."""
    options = tuple(pair for pair in given.request.query if pair[0] == FORCE.name)
    try:
        answer = await given.far.send(site, options)
    except RestError as error:
        result: dict[str, Any] = {"failed": True, "output": str(error)}
    else:
        rows = answer.get("answer")
        row = rows[0] if isinstance(rows, list) and rows else None
        if not isinstance(row, dict):
            return []
        result = {"failed": bool(row.get("failed")), "output": str(row.get("output"))}
    given.note(action, target=site.id, result="failed" if result["failed"] else "ok")
    return [{"peer_key": site.id, **result}]


@_post(
    "/config/check",
    "checks the files on disk with the command of the site",
    RESULTS,
    "Staged changes are not looked at: save them before.",
)
async def check(
    staging: Staging, context: Context, request: RestRequest, _: tuple[str, ...]
) -> Answer:
    given = _selected(staging, context, request)
    return await _on_each_site(given, "check", _check, lasting=False)


async def _check(
    given: ConfigRequest, site: Site, environment: Mapping[str, str]
) -> tuple[bool, str]:
    if not check_command(given.context, site):
        return True, "obj_check_cmd is not set for this site"
    result = await site_commands.check(given.context, given.request, site, environment)
    return result.failed, result.output


@_post(
    "/config/reload",
    "makes the cores read their files",
    RESULTS,
    "By the command of the site, or else by RESTART_PROCESS; answers when the core is back, "
    "as its start time shows. With `obj_check_cmd` the files are checked before; when that fails "
    "the core is not reloaded, because many end when they read files that do not load.",
    FORCE,
)
async def reload(
    staging: Staging, context: Context, request: RestRequest, _: tuple[str, ...]
) -> Answer:
    given = _selected(staging, context, request, FORCE.name)
    return await _on_each_site(given, "reload", _reload, FORCE.name, lasting=True)


async def _reload(
    given: ConfigRequest, site: Site, environment: Mapping[str, str]
) -> tuple[bool, str]:
    context, request = given.context, given.request
    commands = Commands(
        check="" if FORCE.asked(request.parameters) else check_command(context, site),
        reload=given.config_site(site).tool.obj_reload_cmd,
        environment=environment,
        hint=hint(request),
    )
    seconds = context.config.server.longest_wait
    result = await site_commands.reload(
        site, context.reactor, context.wall, commands, seconds=seconds
    )
    context.contacts.expire()
    return result.failed, result.output


def _selected(
    staging: Staging, context: Context, request: RestRequest, *options: str
) -> ConfigRequest:
    """The selected sites; raises BadRequest for filters, which have no meaning here."""
    no_conditions(request, *options)
    return ConfigRequest.of(staging, context, request)
