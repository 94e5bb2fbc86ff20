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
    """What came of a change on one site: ``records`` are the first of its objects, as before."""

    count: int
    records: tuple[ObjectRow, ...] = ()
    warnings: tuple[str, ...] = ()


async def change(
    given: ConfigRequest, action: Action, choose: Callable[[Sequence[Tool]], Choose], make: Make
) -> Answer:
    """Make a change to the objects that ``choose`` finds; nothing when a site refuses it."""
    far = given.far
    try:
        selected = await given.tools()
        far.check_reachable()
        chosen, unknown = await _chosen(given, choose, selected)
        if unknown is not None:
            selected = []
        if len(selected) + len(far.sites) > 1:
            # A trial that is not stored: what one site refuses must not be done on another.
            for tool in selected:
                await given.context.threads.run(partial(_trial, tool, chosen, make))
        done = await shielded(_edits(given, action, selected, chosen, make))
        if unknown is not None and not done:
            raise unknown
    except RestError as error:
        given.note_failure(action, error)
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
    given: ConfigRequest, choose: Callable[[Sequence[Tool]], Choose], selected: Sequence[Tool]
) -> tuple[Choose, BadRequest | None]:
    """What is meant here; nothing, and why, when only other instances may know the names."""
    try:
        return await given.context.threads.run(lambda: choose(selected)), None
    except BadRequest as error:
        if not given.far.sites or error.message != TYPO:
            raise
        return (lambda _model, _site: []), error


def _trial(tool: Tool, chosen: Choose, make: Make) -> None:
    model = tool.view.model
    make(Editor(model), chosen(model, tool.config))


async def _edits(
    given: ConfigRequest, action: Action, selected: Sequence[Tool], chosen: Choose, make: Make
) -> list[SiteChange]:
    """Make the change on every site, first at other instances, where no trial is possible."""
    done: list[SiteChange] = []
    for site, answer in await given.far.change(filters=given.request.path == FILTERED):
        count = count_of(answer)
        done.append(SiteChange(count=count, warnings=tuple(strings_of(answer.get("warnings")))))
        if count:
            given.note(action, target=site.id, count=count)

    def changed(tool: Tool, editor: Editor) -> SiteChange:
        items = chosen(editor.base, tool.config)
        rows = tuple(editor.base.row(item, tool.config) for item in items[:MOST_NAMED])
        count = make(editor, items)
        return SiteChange(count=count, records=rows, warnings=tuple(editor.warnings))

    for tool in selected:
        here = await given.staging.edit(tool.config, given.user, partial(changed, tool))
        done.append(here)
        if here.count:
            given.note(
                action,
                target=tool.site.id,
                count=here.count,
                objects=named(here.records),
                warnings=here.warnings,
            )
    return done


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
