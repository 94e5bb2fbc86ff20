"""Staged changes of objects on all selected sites: what they are for, and what is answered.

A change is looked at on every site before the first one is made, so that what is refused changes
nothing anywhere (docs/spec/objectconfig.md, "Changes").
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Literal, TypeAlias

from attrs import field, frozen

from monrest.api import csrf
from monrest.api.csrf import SAFE
from monrest.api.endpoint import Context
from monrest.api.rights import require_change
from monrest.base.concurrency import shielded
from monrest.base.errors import BadRequest, RestError
from monrest.base.values import Answer, Column, Document, Parameters, RestRequest, SiteProblem
from monrest.objectconfig.federated_tools import FederatedTools, count_of, strings_of
from monrest.objectconfig.inheritance import ConfigObject
from monrest.objectconfig.model import ConfigSite, SiteModel, UnreadableError
from monrest.objectconfig.object_editor import Editor
from monrest.objectconfig.object_rows import META_NAMES, ObjectRow, bound_filter, passing
from monrest.objectconfig.parameters import (
    EVERY,
    MOST_NAMED,
    REFRESH,
    icinga2,
    named,
    note,
    note_failure,
    tool_sites,
    user_of,
)
from monrest.objectconfig.personal_view import PersonalView
from monrest.objectconfig.service import Staging
from monrest.query.bind import TYPO
from monrest.sites.site import Site

Action: TypeAlias = Literal["change", "remove"]
Choose: TypeAlias = Callable[[SiteModel, ConfigSite], list[ConfigObject]]
"""Which objects of a site a change is for; called in threads."""

Make: TypeAlias = Callable[[Editor, list[ConfigObject]], int]
"""Makes a change and tells for how many objects; called in threads, maybe more than once."""

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
class Tool:
    """A selected site with its object configuration, as the user sees it."""

    site: Site
    config: ConfigSite
    view: PersonalView = field(repr=False)


@frozen(kw_only=True)
class SiteChange:
    """What came of a change on one site: ``records`` are the first of its objects, as before."""

    count: int
    records: tuple[ObjectRow, ...] = ()
    warnings: tuple[str, ...] = ()


def config_site(context: Context, site: Site) -> ConfigSite:
    """The site as staging knows it; it must have an object configuration."""
    tool = context.config.tool_of(site.config)
    assert tool is not None
    return ConfigSite(id=site.id, name=site.name, tool=tool)


async def tools(
    staging: Staging,
    context: Context,
    request: RestRequest,
    failed: list[SiteProblem] | None = None,
) -> list[Tool]:
    """All selected sites with an object configuration, one after the other.

    With ``refreshdata=1`` the user's changes in files with conflicts are dropped before. Raise
    BadRequest for a site whose files are of another language, and UnreadableError for one whose
    files cannot be read. A list names it in ``failed`` if other sites answer.
    """
    refresh, user = bool(REFRESH.asked(request.parameters)), user_of(request)
    if refresh:
        await _check_refresh(context, request)
    found: list[Tool] = []
    problems: list[UnreadableError] = []
    for site in tool_sites(context, request):
        config = config_site(context, site)
        if refresh:
            dropped = await staging.refresh(config, user)
            if dropped:
                note(request, "refresh", target=site.id, files=dropped)
        try:
            view = await staging.view(config, user)
        except UnreadableError as error:
            if failed is None:
                raise
            problems.append(error)
            failed.append(SiteProblem(site.id, site.name, error.message))
            continue
        if view.model.files.foreign:
            raise icinga2(site, view.model.files.foreign)
        found.append(Tool(site=site, config=config, view=view))
    if problems and not found and not FederatedTools.of(context, request).sites:
        raise problems[0]
    return found


async def _check_refresh(context: Context, request: RestRequest) -> None:
    """Dropping changes is a change, also by a GET: no page of another site may cause it."""
    await require_change(request, context.contacts, context.config)
    if request.method in SAFE:
        headers = request.caller.headers
        csrf.check(request.identity, "POST", request.parameters, headers, context.names)


async def change(
    staging: Staging,
    context: Context,
    request: RestRequest,
    action: Action,
    choose: Callable[[Sequence[Tool]], Choose],
    make: Make,
) -> Answer:
    """Make a change to the objects that ``choose`` finds; nothing when a site refuses it."""
    sites: Sequence[Site] = ()
    try:
        far = FederatedTools.of(context, request)
        sites = (*tool_sites(context, request), *far.sites)
        selected = await tools(staging, context, request)
        far.check_reachable()
        chosen, unknown = await _chosen(context, choose, selected, elsewhere=bool(far.sites))
        if unknown is not None:
            selected = []
        if len(selected) + len(far.sites) > 1:
            # A trial that is not stored: what one site refuses must not be done on another.
            for tool in selected:
                await context.threads.run(partial(_trial, tool, chosen, make))
        work = _edits(staging, request, action, selected, chosen, make, far)
        done = await shielded(work)
        if unknown is not None and not done:
            raise unknown
    except RestError as error:
        note_failure(request, action, sites, error)
        raise
    count = sum(one.count for one in done)
    value: dict[str, Any] = {
        "message": f"{_DONE[action]} {count} objects successfully.",
        "count": count,
    }
    if warnings := [text for one in done for text in one.warnings]:
        value["warnings"] = warnings
    return Document(value=value, columns=ANSWER)


async def _chosen(
    context: Context,
    choose: Callable[[Sequence[Tool]], Choose],
    selected: Sequence[Tool],
    *,
    elsewhere: bool,
) -> tuple[Choose, BadRequest | None]:
    """What is meant here; nothing, and why, when only other instances may know the names."""
    try:
        return await context.threads.run(lambda: choose(selected)), None
    except BadRequest as error:
        if not elsewhere or error.message != TYPO:
            raise
        return (lambda _model, _site: []), error


def _trial(tool: Tool, chosen: Choose, make: Make) -> None:
    model = tool.view.model
    make(Editor(model), chosen(model, tool.config))


async def _edits(
    staging: Staging,
    request: RestRequest,
    action: Action,
    selected: Sequence[Tool],
    chosen: Choose,
    make: Make,
    far: FederatedTools,
) -> list[SiteChange]:
    """Make the change on every site, first at other instances, where no trial is possible."""
    filters = request.path == FILTERED
    done: list[SiteChange] = []
    for site, answer in await far.change(filters=filters):
        count = count_of(answer)
        done.append(SiteChange(count=count, warnings=tuple(strings_of(answer.get("warnings")))))
        if count:
            note(request, action, target=site.id, count=count)

    def changed(tool: Tool, editor: Editor) -> SiteChange:
        items = chosen(editor.base, tool.config)
        rows = tuple(editor.base.row(item, tool.config) for item in items[:MOST_NAMED])
        count = make(editor, items)
        return SiteChange(count=count, records=rows, warnings=tuple(editor.warnings))

    for tool in selected:
        here = await staging.edit(tool.config, user_of(request), partial(changed, tool))
        done.append(here)
        if here.count:
            note(
                request,
                action,
                target=tool.site.id,
                count=here.count,
                objects=named(here.records),
                warnings=here.warnings,
            )
    return done


def by_filters(
    context: Context, request: RestRequest, parameters: Parameters
) -> Callable[[Sequence[Tool]], Choose]:
    """Objects that pass filters; a name that no object of any site has is a typing error.

    Without any filter more than one object is only meant when the request says so.
    """
    unlimited = bool(parameters) or bool(EVERY.asked(request.parameters))
    elsewhere = bool(FederatedTools.of(context, request).sites)

    def choose(selected: Sequence[Tool]) -> Choose:
        many = elsewhere or sum(len(tool.view.model.objects) for tool in selected) > 1
        if many and not unlimited:
            raise BadRequest(
                "bad request", f"expected a filter, or {EVERY.name}=1 if all objects are meant"
            )
        names = set(META_NAMES)
        for tool in selected:
            for item in tool.view.model.objects:
                names.update(item.attributes)
        bound = bound_filter(context, parameters, names)

        def chosen(model: SiteModel, site: ConfigSite) -> list[ConfigObject]:
            found = passing(bound, (model.row(item, site) for item in model.objects))
            return [model.by_id[record[":ID"]] for record in found]

        return chosen

    return choose


def always(chosen: Choose) -> Callable[[Sequence[Tool]], Choose]:
    """A choice that does not depend on the selected sites."""
    return lambda _selected: chosen
