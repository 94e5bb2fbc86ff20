"""Files, differences and the quick check, as the user's staged changes make them.

Rules: docs/spec/objectconfig.md, "The precheck".
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any

from attrs import evolve

from monrest.api.endpoint import LIST_PARAMETERS, SITE_PARAMETERS, Context, Endpoint
from monrest.api.fields import Flag
from monrest.api.lists import local_schema, select
from monrest.base.values import Answer, Column, Parameters, RestRequest, SiteProblem
from monrest.objectconfig.config_request import ConfigRequest, Tool
from monrest.objectconfig.model import UnreadableError
from monrest.objectconfig.parameters import REFRESH, without
from monrest.objectconfig.precheck import precheck
from monrest.objectconfig.service import Staging
from monrest.objectconfig.store import StagedBy
from monrest.query.column_names import TableSchema

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
    far = await given.far.rows((*asked, *sent), alone=alone)
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
