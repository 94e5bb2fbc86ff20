"""Staged changes of objects on all selected sites: what they are for, and what is answered.

A change is looked at on every site before the first one is made, so that what is refused changes
nothing anywhere (docs/spec/objectconfig.md, "Changes").
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Literal, TypeAlias

from attrs import frozen

from monrest.base.concurrency import shielded
from monrest.base.errors import BadRequest, RestError
from monrest.base.values import Answer, Column, Document, Parameters
from monrest.objectconfig.config_request import MOST_NAMED, ConfigRequest, Tool, named
from monrest.objectconfig.federated_tools import count_of, strings_of
from monrest.objectconfig.inheritance import ConfigObject
from monrest.objectconfig.model import ConfigSite, SiteModel
from monrest.objectconfig.object_editor import Editor
from monrest.objectconfig.object_rows import META_NAMES, ObjectRow, bound_filter, passing
from monrest.objectconfig.parameters import EVERY
from monrest.query.bind import TYPO
from monrest.sites.federation.federated_site import FederatedSite
from monrest.sites.site import Site

Action: TypeAlias = Literal["change", "remove"]
Choose: TypeAlias = Callable[[SiteModel, ConfigSite], list[ConfigObject]]
"""Which objects of a site a change is for; called in threads."""

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
    """What a change did on one site; ``records`` are the first of its objects."""

    count: int
    records: Sequence[ObjectRow] = ()
    warnings: Sequence[str] = ()


async def change(
    given: ConfigRequest, action: Action, choose: Callable[[Sequence[Tool]], Choose], make: Make
) -> Answer:
    """Make a change to the objects that ``choose`` finds; nothing when a site refuses it."""
    try:
        selected = await given.tools()
        given.far.check_reachable()
        unknown = None
        try:
            chosen = await given.context.threads.run(lambda: choose(selected))
        except BadRequest as error:
            if not given.far.sites or error.message != TYPO:
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
    if len(selected) + len(given.far.sites) > 1:
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

        for site, answer in await given.far.change(filters=given.request.path == FILTERED):
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
        if (given.far.sites or len(objects) > 1) and not unlimited:
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
    """A choice that does not depend on the selected sites."""
    return lambda _selected: chosen
