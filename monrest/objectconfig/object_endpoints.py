"""Objects of the configuration: lists and staged changes (docs/spec/objectconfig.md, "Changes")."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from itertools import chain
from typing import Any, TypeAlias

from attrs import evolve

from monrest.api.endpoint import (
    LIST_PARAMETERS,
    SITE_PARAMETERS,
    Context,
    DeclaredParameter,
    Endpoint,
    FamilyHandler,
    Method,
    Parameter,
)
from monrest.base.errors import BadRequest, RestError
from monrest.base.values import Answer, Column, Document, RestRequest, SiteProblem
from monrest.objectconfig.attributes import LONGEST_NAME, object_type
from monrest.objectconfig.config_request import ConfigRequest, Tool
from monrest.objectconfig.federated_tools import objects_of
from monrest.objectconfig.inheritance import ConfigObject
from monrest.objectconfig.model import ConfigSite, SiteModel
from monrest.objectconfig.object_editor import Editor
from monrest.objectconfig.object_rows import (
    COLUMNS,
    TEMPLATES,
    ObjectRow,
    select_objects,
)
from monrest.objectconfig.parameters import (
    EVERY,
    REFRESH,
    attributes,
    change_filters,
    no_body,
    no_filters,
    removal_filters,
    without,
)
from monrest.objectconfig.service import Staging
from monrest.objectconfig.site_files import LONGEST_FILE_NAME, LONGEST_PATH
from monrest.objectconfig.staged_changes import (
    ANSWER,
    Choose,
    Make,
    SiteChange,
    always,
    by_filters,
    change,
    on_every_site,
)
from monrest.sites.federation.federated_site import FederatedSite

TYPE = Parameter(name=":TYPE", description="the type of the object, such as host", required=True)
FILE = Parameter(
    name=":FILE",
    description="the file that it goes into, as a path below the folder of the object files",
    required=True,
    limit=f"{LONGEST_PATH} bytes, each name in it {LONGEST_FILE_NAME}",
)
_COLLECTIONS = {
    "commands": "command",
    "contactgroups": "contactgroup",
    "contacts": "contact",
    "hostgroups": "hostgroup",
    "hosts": "host",
    "servicegroups": "servicegroup",
    "timeperiods": "timeperiod",
}
"""Collections whose objects have a name, and the type of their definitions."""
_LIST = (*LIST_PARAMETERS, *SITE_PARAMETERS, REFRESH)
_ATTRIBUTE = Parameter(
    name="<attribute>",
    description="attributes in the body, lists as a list or a comma string; null removes one",
    limit=f"names of {LONGEST_NAME} characters",
)
_FILTER = Parameter(name="<attribute>[<op>]", description="filter in the query string; repeatable")
_Q = Parameter(name="q", description="filter in the query language, in the query string")
_LONG_LISTS = 8_388_608
"""Bytes of a body: a group may have a hundred thousand members."""
_CREATED = (
    Column("count", "number", "", "on how many sites it was created"),
    Column("message", "string", "", "what was done"),
    Column("objects", "array_of_strings", "", "the new objects, one for each site"),
)
_ALL = "Without any filter more than one object is only meant with `all=1`."
_STAGED = "It is staged: see `/config/diff`, `/config/save` and `/config/revert`."


def _list(
    path: str, description: str, text: str = "", columns: tuple[Column, ...] = COLUMNS
) -> Endpoint:
    return Endpoint(
        path=path,
        description=description,
        text=text,
        parameters=_LIST,
        columns=columns,
        roles=("admin",),
    )


def _staged(
    path: str,
    method: Method,
    description: str,
    *parameters: DeclaredParameter,
    text: str = "",
    columns: tuple[Column, ...] = ANSWER,
    structured: bool = True,
) -> Endpoint:
    """A change that waits for a save."""
    return Endpoint(
        path=path,
        methods=(method,),
        description=description,
        text=f"{text} {_STAGED}".lstrip(),
        shape="object",
        parameters=(*parameters, *SITE_PARAMETERS, REFRESH),
        columns=columns,
        roles=("admin",),
        structured=structured,
        body_limit=_LONG_LISTS,
    )


@_list(
    "/config/objects",
    "objects of the configuration with their own attributes",
    "Changes that the user has staged are included. The rows have the attributes that "
    "the objects have, so that their keys differ.",
)
async def objects(
    staging: Staging, context: Context, request: RestRequest, _: tuple[str, ...]
) -> Answer:
    given = ConfigRequest.of(staging, context, request)
    selected, failed = await given.readable_tools()
    records = (
        tool.view.model.row(item, tool.config)
        for tool in selected
        for item in tool.view.model.objects
    )
    return await _listed(given, records, COLUMNS, failed, alone=not selected)


@_list(
    "/config/fullobjects",
    "objects of the configuration with what their templates give them",
    columns=(*COLUMNS, TEMPLATES),
)
async def full_objects(
    staging: Staging, context: Context, request: RestRequest, _: tuple[str, ...]
) -> Answer:
    given = ConfigRequest.of(staging, context, request)
    selected, failed = await given.readable_tools()
    records = (
        tool.view.model.full_row(item, tool.config)
        for tool in selected
        for item in tool.view.model.objects
    )
    return await _listed(given, records, (*COLUMNS, TEMPLATES), failed, alone=not selected)


async def _listed(
    given: ConfigRequest,
    records: Iterable[ObjectRow],
    meta: Sequence[Column],
    failed: Iterable[SiteProblem],
    *,
    alone: bool,
) -> Answer:
    """The objects of sites here and of those of other instances that the request wants."""
    far = await given.far.objects(meta, alone=alone)
    every = chain(records, far.rows)
    parameters = without(given.request.parameters, REFRESH.name)
    answer = await select_objects(given.context, given.request, parameters, every, meta)
    return evolve(answer, failed_sites=(*failed, *far.problems))


@_staged(
    "/config/objects",
    "POST",
    "creates an object",
    TYPE,
    FILE,
    _ATTRIBUTE,
    text="On every selected site with an object configuration.",
    columns=_CREATED,
)
async def create(
    staging: Staging, context: Context, request: RestRequest, _: tuple[str, ...]
) -> Answer:
    given = ConfigRequest.of(staging, context, request)
    try:
        values = attributes(request, query=True)
        kind, file = _required(values, TYPE), _required(values, FILE)
        object_type(kind)

        def here(tool: Tool, editor: Editor) -> SiteChange:
            row = editor.base.row(editor.create(kind, file, values), tool.config)
            return SiteChange(count=1, records=[row])

        def there(site: FederatedSite, answer: dict[str, Any]) -> SiteChange:
            rows = objects_of(site, answer)
            return SiteChange(count=len(rows), records=rows)

        selected = await given.tools()
        given.far.check_reachable()
        done = await on_every_site(given, "create", selected, here, there)
    except RestError as error:
        given.note_failure("create", error)
        raise
    created = [row for site_change in done for row in site_change.records]
    value = {
        "message": f"created {len(created)} objects successfully.",
        "count": len(created),
        "objects": created,
    }
    return Document(value=value, columns=_CREATED)


def _required(values: dict[str, Any], parameter: Parameter) -> str:
    name, meaning = parameter.name, parameter.description
    value = values.get(name)
    if value in (None, "", []):
        raise BadRequest(
            f"{name} is a required parameter.",
            f"{name}: expected {meaning}",
            extra={"help": f"{name}: {meaning}"},
        )
    if not isinstance(value, str):
        raise BadRequest("bad request", f"{name}: expected a text: {meaning}")
    return value


@_staged(
    "/config/objects",
    "PATCH",
    "changes attributes of all objects that match the filters",
    _FILTER,
    _Q,
    EVERY,
    _ATTRIBUTE,
    text=f"Keys of the body that begin with a colon, such as `:TYPE`, are filters as well. {_ALL}",
)
async def patch_matching(
    staging: Staging, context: Context, request: RestRequest, _: tuple[str, ...]
) -> Answer:
    given = ConfigRequest.of(staging, context, request)
    choose = by_filters(given, change_filters(request))
    values = attributes(request)
    values.pop(EVERY.name, None)
    return await change(given, "change", choose, _patching(values))


@_staged(
    "/config/objects",
    "DELETE",
    "removes all objects that match the filters",
    _FILTER,
    _Q,
    EVERY,
    text=f"Those in read-only files stay. {_ALL}",
    structured=False,
)
async def remove_matching(
    staging: Staging, context: Context, request: RestRequest, _: tuple[str, ...]
) -> Answer:
    given = ConfigRequest.of(staging, context, request)
    choose = by_filters(given, removal_filters(request))
    return await change(given, "remove", choose, Editor.delete)


def _patching(values: dict[str, Any]) -> Make:
    return lambda editor, items: len(editor.patch(items, values))


def _replacing(values: dict[str, Any]) -> Make:
    if all(name.startswith(":") for name in values):
        raise BadRequest(
            "use DELETE to remove objects completely",
            "request body: expected all attributes of the object",
        )
    return lambda editor, items: len(editor.replace(items, values))


_Chooser: TypeAlias = Callable[[tuple[str, ...]], Choose]
"""Which objects the variables of a path mean."""


def _endpoints_of(path: str, what: str, choose: _Chooser, text: str = "") -> tuple[Endpoint, ...]:
    async def chosen_list(
        staging: Staging, context: Context, request: RestRequest, names: tuple[str, ...]
    ) -> Answer:
        given = ConfigRequest.of(staging, context, request)
        chosen = choose(names)

        def rows(tool: Tool) -> list[ObjectRow]:
            model = tool.view.model
            return [model.row(item, tool.config) for item in chosen(model, tool.config)]

        records: list[ObjectRow] = []
        selected, failed = await given.readable_tools()
        for tool in selected:
            records += await context.threads.run(partial(rows, tool))
        return await _listed(given, records, COLUMNS, failed, alone=not records)

    def changing(making: Callable[[dict[str, Any]], Make]) -> FamilyHandler:
        async def handler(
            staging: Staging, context: Context, request: RestRequest, names: tuple[str, ...]
        ) -> Answer:
            no_filters(request)
            make = making(attributes(request))
            given = ConfigRequest.of(staging, context, request)
            return await change(given, "change", always(choose(names)), make)

        return handler

    async def remove(
        staging: Staging, context: Context, request: RestRequest, names: tuple[str, ...]
    ) -> Answer:
        no_filters(request)
        no_body(request)
        given = ConfigRequest.of(staging, context, request)
        return await change(given, "remove", always(choose(names)), Editor.delete)

    replaces = f"replaces the configuration of {what} completely"
    return (
        evolve(_list(path, f"configuration of {what}", text), handler=chosen_list),
        evolve(_staged(path, "POST", replaces, _ATTRIBUTE), handler=changing(_replacing)),
        evolve(
            _staged(path, "PATCH", f"changes attributes of {what}", _ATTRIBUTE),
            handler=changing(_patching),
        ),
        evolve(_staged(path, "DELETE", f"removes {what} from the configuration"), handler=remove),
    )


def _by_id(names: tuple[str, ...]) -> Choose:
    def chosen(model: SiteModel, _: ConfigSite) -> list[ConfigObject]:
        item = model.by_id.get(names[0])
        return [] if item is None else [item]

    return chosen


def _by_name(kind: str) -> _Chooser:
    return lambda names: lambda model, _: model.find(kind, names[0])


def _of_service(names: tuple[str, ...]) -> Choose:
    return lambda model, _: model.service_definitions(names[0], names[1])


ENDPOINTS: tuple[Endpoint, ...] = (
    *_endpoints_of("/config/objects/<id>", "one object by its id", _by_id),
    *(
        endpoint
        for collection, kind in _COLLECTIONS.items()
        for endpoint in _endpoints_of(f"/{collection}/<name>/config", f"a {kind}", _by_name(kind))
    ),
    *_endpoints_of(
        "/services/<host>/<service>/config",
        "a service",
        _of_service,
        "All definitions of this description that apply to the host; one that applies to several "
        "hosts is changed for all of them.",
    ),
)
"""The endpoints of the objects that a path means; the others stand above their handlers."""
