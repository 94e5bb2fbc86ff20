"""The files of sites: lists, differences, prechecks; saving and reverting; checks and reloads.

The rules are in docs/spec/objectconfig.md. What changes files or cores is brought to its end and
into the audit log, also for a client that does not wait any more; a check ends with its client.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, TypeAlias

from attrs import define, evolve, field
from twisted.internet.defer import CancelledError

from monrest.api.endpoint import (
    LIST_PARAMETERS,
    OBJECT_PARAMETERS,
    SITE_PARAMETERS,
    Context,
    DeclaredParameter,
    Endpoint,
)
from monrest.api.fields import Flag
from monrest.api.lists import local_schema, select
from monrest.base.concurrency import shielded, together
from monrest.base.errors import Conflict, RestError
from monrest.base.values import Answer, Column, Document, Parameters, RestRequest, SiteProblem
from monrest.objectconfig import site_commands
from monrest.objectconfig.config_request import (
    REFRESH,
    ConfigRequest,
    Tool,
    count_of,
    no_conditions,
    strings_of,
    without,
)
from monrest.objectconfig.model import UnreadableError
from monrest.objectconfig.precheck import precheck
from monrest.objectconfig.service import Staging
from monrest.objectconfig.site_commands import (
    FORCE,
    Hooks,
    Reload,
    check_command,
    environment_of,
    hint,
)
from monrest.objectconfig.store import StagedBy
from monrest.query.column_names import TableSchema
from monrest.sites.federation.federated_site import FederatedSite
from monrest.sites.site import Site

IGNORE = Flag("ignore_whitespace", "1: lines that differ in white space only count as equal")

FILES = (
    Column("hex", "string", "", "SHA-256 of the file on disk; null if there is none to read"),
    Column("mtime", "time", "", "when the file on disk was changed; null as hex"),
    Column("path", "string", "", "path of the file"),
    Column("peer_key", "string", "", "id of the site"),
    Column("readonly", "boolean", "", "1 when the file cannot be changed"),
)
MORE_OF_FILES = (
    Column("content", "string", "", "what save would write, empty for a file that goes; on demand"),
    Column("conflict", "boolean", "", "1: staged, and changed on disk meanwhile; on demand"),
    Column("staged_by", "array_of_strings", "", "who staged changes of the file; on demand"),
)
"""Columns that are part of the answer when the request names them."""

_DEMANDED = frozenset(column.name for column in MORE_OF_FILES)
_PLAIN = local_schema("config_files", (*FILES, *MORE_OF_FILES), ())
_FILES = evolve(
    _PLAIN,
    columns={
        name: evolve(column, default=name not in _DEMANDED)
        for name, column in _PLAIN.columns.items()
    },
)
DIFFS = (
    Column("file", "string", "", "path of the file"),
    Column("output", "string", "", "unified diff from the file on disk to what save would write"),
    Column("peer_key", "string", "", "id of the site"),
)
_DIFFS = local_schema("config_diff", DIFFS, ())
PRECHECKS = (
    Column("errors", "array_of_strings", "", "what is wrong, each with its file and line"),
    Column("failed", "boolean", "", "whether anything is wrong"),
    Column("peer_key", "string", "", "id of the site"),
)
_PRECHECKS = local_schema("config_precheck", PRECHECKS, ())


_LIST = (*LIST_PARAMETERS, *SITE_PARAMETERS, REFRESH)


@Endpoint(
    path="/config/files",
    description="files of the object configuration",
    text="`content`, `conflict` and `staged_by` are part of the answer when the request names "
    "them; with `staged_by` also files that others are about to create.",
    parameters=_LIST,
    columns=(*FILES, *MORE_OF_FILES),
    roles=("admin",),
)
async def files(
    staging: Staging, context: Context, request: RestRequest, _: tuple[str, ...]
) -> Answer:
    demanded = {
        name
        for name in _DEMANDED
        if any(name in key or name in value for key, value in request.parameters)
    }
    given = ConfigRequest.of(staging, context, request)
    selected, failed = await given.readable_tools()
    users: StagedBy = {}
    if "staged_by" in demanded:
        users = await staging.staged_by([tool.site.id for tool in selected])
    records: list[dict[str, Any]] = []
    for tool in selected:
        staged_by = users.get(tool.site.id, {})
        records += await context.threads.run(
            partial(_files_of, tool, staged_by, content="content" in demanded)
        )
    columns = ("columns", ",".join((*(column.name for column in FILES), *sorted(demanded))))
    return await _with_far(given, _FILES, records, failed, alone=not selected, asked=(columns,))


async def _with_far(
    given: ConfigRequest,
    schema: TableSchema,
    records: Iterable[Mapping[str, Any]],
    failed: Iterable[SiteProblem],
    *options: str,
    alone: bool,
    asked: Parameters = (),
) -> Answer:
    """The rows of sites here and of those of other instances, asked for ``asked`` and ``options``.

    ``options`` are names of parameters that are no filters.
    """
    options = (REFRESH.name, *options)
    parameters = given.request.parameters
    sent = tuple(pair for pair in parameters if pair[0] in options)
    far = await given.far_rows((*asked, *sent), alone=alone)
    filtered = evolve(given.request, parameters=without(parameters, *options))
    answer = await select(given.context, filtered, schema, [*records, *far.rows])
    return evolve(answer, failed_sites=(*failed, *far.problems))


def _files_of(
    tool: Tool, staged_by: Mapping[str, Sequence[str]], *, content: bool
) -> list[dict[str, Any]]:
    view = tool.view
    unreadable = view.disk.unreadable
    paths = {*view.model.loaded, *view.disk.loaded, *view.staged, *staged_by, *unreadable}
    return [
        {
            **_on_disk(tool, path),
            "path": path,
            "peer_key": tool.site.id,
            "content": _content(tool, path) if content else None,
            "conflict": int(path in view.conflicts),
            "staged_by": list(staged_by.get(path, ())),
        }
        for path in sorted(paths)
    ]


def _on_disk(tool: Tool, path: str) -> dict[str, Any]:
    loaded = tool.view.disk.loaded.get(path)
    if loaded is None or loaded.stamp is None:
        unreadable = path in tool.view.disk.unreadable
        return {"hex": None, "mtime": None, "readonly": int(unreadable)}
    stamp = loaded.stamp
    return {
        "hex": stamp.sha256,
        "mtime": stamp.mtime_ns // 1_000_000_000,
        "readonly": int(loaded.readonly),
    }


def _content(tool: Tool, path: str) -> str:
    mine = tool.view.staged.get(path)
    if mine is not None:
        data = mine.content or b""
    else:
        loaded = tool.view.disk.loaded.get(path)
        data = b"" if loaded is None else loaded.document.data()
    try:
        return data.decode()
    except UnicodeDecodeError:
        return data.decode("latin-1")


@Endpoint(
    path="/config/diff",
    description="differences between the files on disk and the user's staged changes",
    parameters=(*_LIST, IGNORE),
    columns=DIFFS,
    roles=("admin",),
)
async def diff(
    staging: Staging, context: Context, request: RestRequest, _: tuple[str, ...]
) -> Answer:
    ignore = bool(IGNORE.asked(request.parameters))
    given = ConfigRequest.of(staging, context, request)
    selected, failed = await given.readable_tools()
    records = [
        {"peer_key": tool.site.id, "file": path, "output": output}
        for tool in selected
        for path, output in (
            await staging.diff(tool.config, given.user, ignore_whitespace=ignore)
        ).items()
    ]
    return await _with_far(given, _DIFFS, records, failed, IGNORE.name, alone=not selected)


@Endpoint(
    path="/config/precheck",
    description="a check of the user's staged changes that needs no save",
    text="Names, templates and references; the core's own check is `/config/check`.",
    parameters=_LIST,
    columns=PRECHECKS,
    roles=("admin",),
)
async def check_before(
    staging: Staging, context: Context, request: RestRequest, _: tuple[str, ...]
) -> Answer:
    given = ConfigRequest.of(staging, context, request)
    if REFRESH.asked(request.parameters):
        await given.tools()
    records: list[dict[str, Any]] = []
    for site in given.sites:
        try:
            view = await staging.view(given.config_site(site), given.user)
            errors = await context.threads.run(partial(precheck, view.model))
        except UnreadableError as error:
            errors = [error.problem]
        records.append({"peer_key": site.id, "errors": errors, "failed": bool(errors)})
    return await _with_far(given, _PRECHECKS, records, (), alone=not given.sites)


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
    """The results of saves of several sites; ``refused`` are those that wrote nothing at all."""

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
    sites = (*given.sites, *given.far)
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
    answer = await given.send(site)
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
        for there, answer in await given.change_far(filters=False):
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
"""Checks or reloads a site with an environment; returns whether that failed, and the output."""


async def _on_each_site(
    given: ConfigRequest, action: str, work: _Work, *options: str, lasting: bool
) -> Answer:
    """Do ``work`` on all selected sites at the same time, one row for each.

    What is ``lasting`` is brought to its end, also for a client that does not wait any more.
    ``options`` are names of parameters.
    """
    context, request, far = given.context, given.request, given.far

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
        there = (_results_there(given, site, action) for site in far)
        results = await together([*map(here, given.sites), *there])
        return [record for records in results for record in records]

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
        answer = await given.send(site, options)
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
    work = Reload(
        site=site,
        clock=context.reactor,
        wall=context.wall,
        seconds=context.config.server.longest_wait,
        check="" if FORCE.asked(request.parameters) else check_command(context, site),
        command=given.config_site(site).tool.obj_reload_cmd,
        environment=environment,
        hint=hint(request),
    )
    result = await work.run()
    context.contacts.expire()
    return result.failed, result.output


def _selected(
    staging: Staging, context: Context, request: RestRequest, *options: str
) -> ConfigRequest:
    no_conditions(request, *options)
    return ConfigRequest.of(staging, context, request)
