"""Objects of the configuration: lists and staged changes (docs/spec/objectconfig.md, "Changes").

A change is looked at on every site before the first one is made, so that what is refused changes
nothing anywhere.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from itertools import chain
from typing import Any, Literal, TypeAlias

from attrs import evolve, frozen

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
from monrest.base.concurrency import shielded
from monrest.base.errors import BadRequest, RestError
from monrest.base.values import Answer, Column, Document, Parameters, RestRequest, SiteProblem
from monrest.objectconfig.attributes import LONGEST_NAME, object_type
from monrest.objectconfig.config_request import (
    EVERY,
    MOST_NAMED,
    REFRESH,
    ConfigRequest,
    Tool,
    attributes,
    change_filters,
    count_of,
    named,
    no_body,
    no_filters,
    objects_of,
    removal_filters,
    strings_of,
    without,
)
from monrest.objectconfig.inheritance import ConfigObject
from monrest.objectconfig.model import ConfigSite, SiteModel
from monrest.objectconfig.object_editor import Editor
from monrest.objectconfig.object_rows import (
    COLUMNS,
    META_NAMES,
    TEMPLATES,
    ObjectRow,
    bound_filter,
    passing,
    select_objects,
)
from monrest.objectconfig.service import Staging
from monrest.objectconfig.site_files import LONGEST_FILE_NAME, LONGEST_PATH
from monrest.query.bind import TYPO
from monrest.sites.federation.federated_site import FederatedSite
from monrest.sites.site import Site

Action: TypeAlias = Literal["change", "remove"]
Choose: TypeAlias = Callable[[SiteModel, ConfigSite], list[ConfigObject]]
"""The objects of a site that a change is for; called in threads."""

Make: TypeAlias = Callable[[Editor, list[ConfigObject]], int]
"""Makes a change; returns for how many objects. Called in threads, maybe more than once."""

FILTERED = "/config/objects"
"""The path whose changes are for what the query string chooses."""

_DONE = {"change": "changed", "remove": "removed"}

ANSWER = (
    Column("count", "number", "", "how many objects were changed"),
    Column("message", "string", "", "what was done"),
    Column(
        "warnings",
        "array_of_strings",
        "",
        "references in read-only files that could not follow a rename; absent without any",
    ),
)


@frozen(kw_only=True)
class SiteChange:
    """The result of a change on one site; ``records`` are the first of its objects."""

    count: int
    records: Sequence[ObjectRow] = ()
    warnings: Sequence[str] = ()


async def change(
    given: ConfigRequest, action: Action, choose: Callable[[Sequence[Tool]], Choose], make: Make
) -> Answer:
    """Make a change to the objects that ``choose`` finds; nothing when a site refuses it."""
    try:
        selected = await given.tools()
        given.check_reachable()
        unknown = None
        try:
            chosen = await given.context.threads.run(lambda: choose(selected))
        except BadRequest as error:
            if not given.far or error.message != TYPO:
                raise
            # Names that no site here knows; those of other instances may.
            unknown, selected = error, []

        def changed(tool: Tool, editor: Editor) -> SiteChange:
            items = chosen(editor.base, tool.config)
            rows = [editor.base.row(item, tool.config) for item in items[:MOST_NAMED]]
            count = make(editor, items)
            return SiteChange(count=count, records=rows, warnings=editor.warnings)

        def there(_: FederatedSite, answer: dict[str, Any]) -> SiteChange:
            return SiteChange(count=count_of(answer), warnings=strings_of(answer.get("warnings")))

        done = await on_every_site(given, action, selected, changed, there)
        if unknown is not None and not done:
            raise unknown
    except RestError as error:
        given.note_failure(action, error)
        raise
    count = sum(site_change.count for site_change in done)
    value: dict[str, Any] = {
        "message": f"{_DONE[action]} {count} objects successfully.",
        "count": count,
    }
    if warnings := [text for site_change in done for text in site_change.warnings]:
        value["warnings"] = warnings
    return Document(value=value, columns=ANSWER)


async def on_every_site(
    given: ConfigRequest,
    action: str,
    selected: Sequence[Tool],
    here: Callable[[Tool, Editor], SiteChange],
    there: Callable[[FederatedSite, dict[str, Any]], SiteChange],
) -> list[SiteChange]:
    """Make a change on every site, first at other instances, where no trial is possible.

    ``here`` is called in threads, maybe more than once; ``there`` gets the answer of another
    instance.
    """
    if len(selected) + len(given.far) > 1:
        # A trial that is not stored: what one site refuses must not be done on another.
        for tool in selected:
            await given.context.threads.run(partial(here, tool, Editor(tool.view.model)))

    async def all_sites() -> list[SiteChange]:
        done: list[SiteChange] = []

        def note(site: Site, change: SiteChange) -> None:
            done.append(change)
            if change.count:
                objects, warnings = named(change.records), tuple(change.warnings)
                given.note(
                    action,
                    target=site.id,
                    count=change.count,
                    objects=objects,
                    warnings=warnings,
                )

        for site, answer in await given.change_far(filters=given.request.path == FILTERED):
            note(site, there(site, answer))
        for tool in selected:
            work = partial(here, tool)
            note(tool.site, await given.staging.edit(tool.config, given.user, work))
        return done

    return await shielded(all_sites())


def by_filters(given: ConfigRequest, parameters: Parameters) -> Callable[[Sequence[Tool]], Choose]:
    """Objects that pass filters; a name that no object of any site has is a typing error.

    Without any filter a change of more than one object needs ``all=1``.
    """
    unlimited = bool(parameters) or bool(EVERY.asked(given.request.parameters))

    def choose(selected: Sequence[Tool]) -> Choose:
        objects = [item for tool in selected for item in tool.view.model.objects]
        if (given.far or len(objects) > 1) and not unlimited:
            raise BadRequest(
                "bad request", f"expected a filter, or {EVERY.name}=1 if all objects are meant"
            )
        names = set(META_NAMES).union(*(item.attributes for item in objects))
        bound = bound_filter(given.context, parameters, names)

        def chosen(model: SiteModel, site: ConfigSite) -> list[ConfigObject]:
            passed = passing(bound, (model.row(item, site) for item in model.objects))
            return [model.by_id[record[":ID"]] for record in passed]

        return chosen

    return choose


def always(chosen: Choose) -> Callable[[Sequence[Tool]], Choose]:
    return lambda _selected: chosen


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
    return await _all_objects(given, SiteModel.row, COLUMNS)


@_list(
    "/config/fullobjects",
    "objects of the configuration with what their templates give them",
    columns=(*COLUMNS, TEMPLATES),
)
async def full_objects(
    staging: Staging, context: Context, request: RestRequest, _: tuple[str, ...]
) -> Answer:
    given = ConfigRequest.of(staging, context, request)
    return await _all_objects(given, SiteModel.full_row, (*COLUMNS, TEMPLATES))


async def _all_objects(
    given: ConfigRequest,
    row: Callable[[SiteModel, ConfigObject, ConfigSite], ObjectRow],
    meta: Sequence[Column],
) -> Answer:
    selected, failed = await given.readable_tools()
    records = (
        row(tool.view.model, item, tool.config)
        for tool in selected
        for item in tool.view.model.objects
    )
    return await _listed(given, records, meta, failed, alone=not selected)


async def _listed(
    given: ConfigRequest,
    records: Iterable[ObjectRow],
    meta: Sequence[Column],
    failed: Iterable[SiteProblem],
    *,
    alone: bool,
) -> Answer:
    far = await given.far_objects(meta, alone=alone)
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
        given.check_reachable()
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
"""The objects of the variables of a path."""


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
