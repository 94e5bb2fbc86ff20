"""Recurring downtimes: reading and changing them, and who may (docs/spec/downtimes.md)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar

from attrs import frozen

from monrest.api.endpoint import LIST_PARAMETERS, SITE_PARAMETERS, Context, Parameter
from monrest.api.family import Common, Family, Life, Served
from monrest.api.fields import SITES, named_sites, selected_sites
from monrest.api.records import (
    Records,
    Save,
    bound_owner,
    first_number,
    number_of,
    record_columns,
)
from monrest.api.rights import may_submit
from monrest.api.visibility import HOSTS, SERVICES
from monrest.base.errors import Forbidden, SitesFailed
from monrest.base.values import Column, Identity, RestRequest
from monrest.commands.lookups import commanded, existing, seen
from monrest.commands.permissions import Grant, grant, refused_to_all
from monrest.downtimes import store as statements
from monrest.downtimes.cores import command_of
from monrest.downtimes.model import (
    FIELDS,
    HOST,
    HOSTGROUP,
    Downtime,
    checked,
    targets_of,
)
from monrest.downtimes.service import RecurringDowntimes
from monrest.downtimes.store import LIMITS
from monrest.livestatus.catalogue import singular
from monrest.livestatus.command import Target
from monrest.sites.registry import remembered_sites

COLUMNS = record_columns(
    Downtime,
    FIELDS,
    Column("backends", "array_of_strings", "", "ids of the sites that it is for"),
    Column("created_by", "string", "", "who made it"),
    Column("edited_by", "string", "", "who changed it last"),
    Column("error", "string", "", "what is wrong, a line each; absent if nothing is"),
    Column("last_changed", "time", "", "last change"),
)


def _order(downtime: Downtime) -> tuple[Any, ...]:
    stored = downtime.record
    hosts = [name.lower() for name in stored["host"]]
    rest = (stored["service"], stored["hostgroup"], stored["servicegroup"])
    return (downtime.target, hosts, *rest, downtime.number)


def _site_ids(context: Context, downtime: Downtime) -> set[str]:
    return {site.id for site in remembered_sites(downtime.sites, context.sites.sites)[0]}


async def visible(
    context: Context, identity: Identity, downtimes: Sequence[Downtime]
) -> list[Downtime]:
    """The records of which ``identity`` sees every object, or a member of every group.

    Raise SitesFailed when the cores would have to be asked and none answers.
    """

    def by_role(downtime: Downtime) -> bool:
        return identity.may(HOSTS if downtime.target in (HOST, HOSTGROUP) else SERVICES)

    targets = {
        target for downtime in downtimes if not by_role(downtime) for target in downtime.targets()
    }
    if not targets:
        return list(downtimes)
    if not identity.user or not context.sites.sites:
        return [downtime for downtime in downtimes if by_role(downtime)]
    seen_targets = await seen(
        context.sites.sites,
        targets,
        identity,
        context.clock,
        strict=context.config.auth.strict_host_authorization,
    )

    def by_objects(downtime: Downtime) -> bool:
        ids = _site_ids(context, downtime)
        return all(not ids.isdisjoint(seen_targets.on(target)) for target in downtime.targets())

    return [downtime for downtime in downtimes if by_role(downtime) or by_objects(downtime)]


async def require_commands(
    context: Context, identity: Identity, record: Mapping[str, Any], sites: Mapping[str, str]
) -> None:
    """Raise Forbidden unless ``identity`` may command every object, wherever it is.

    ``sites`` are those of the downtime. SitesFailed when one of them cannot be asked and no role
    decides.
    """

    def denied(target: Target) -> Forbidden:
        what = f"{singular(target.kind)} {target.name}"
        if target.service:
            what = f"service {target.service} on host {target.name}"
        return Forbidden("permission denied", f"you have no command permissions for {what}")

    allowed = await may_submit(identity, context.contacts, context.config)
    by_contact: list[Target] = []
    for target in targets_of(record):
        verdict = grant(identity, singular(target.kind), target.name, may_submit=allowed)
        if verdict is Grant.DENIED:
            raise denied(target)
        if verdict is Grant.CONTACT:
            by_contact.append(target)
    if not by_contact:
        return
    remembered, unknown = remembered_sites(sites, context.sites.sites)
    if not remembered or unknown:
        # On a site that is hidden from users it is not known whether they are contacts.
        raise Forbidden("permission denied", "backends: expected sites that exist for you")
    strict = context.config.auth.strict_host_authorization
    own = await commanded(remembered, by_contact, identity.user, context.clock, strict=strict)
    there = await existing(remembered, by_contact, context.clock)
    problems = {**own.problems, **there.problems}
    if problems:
        raise SitesFailed(tuple(problems.values()))
    for target in by_contact:
        if not own.on(target) or not own.on(target) >= there.on(target):
            raise denied(target)


def _sites(context: Context, items: Iterable[str]) -> dict[str, str]:
    return {site.id: site.name for site in context.sites.select(tuple(items))}


def _complete(
    context: Context, request: RestRequest, fields: Mapping[str, Any], created_by: str
) -> dict[str, Any]:
    """A record as it is stored; Forbidden for a command that the configuration forbids."""
    record = checked(fields, context.config.commands)
    if (disabled := refused_to_all(command_of(record), context.config.commands)) is not None:
        raise disabled
    return {
        **record,
        "created_by": created_by,
        "edited_by": request.identity.user,
        "last_changed": int(context.wall.now()),
    }


@frozen(kw_only=True, eq=False)
class RecurringDowntimeRecords(Records[Downtime]):
    """Needs the permission to command all objects, on all sites, for every change."""

    word = "downtime"
    title = "recurring downtime"
    path = "/mon/recurring_downtimes"
    key = "file"
    summary = "recurring downtimes"
    columns = COLUMNS
    optional = frozenset({"error"})
    fields = FIELDS
    limits = LIMITS
    further_parameters = (
        Parameter(name="backends", description="comma list of sites, default: all of them"),
    )
    create_parameters = (Parameter(name="file", description="first number", type="integer"),)
    key_column = Column("file", "string", "", "number of the new downtime")
    created = "successfully created downtime."
    list_parameters = (*LIST_PARAMETERS, *SITE_PARAMETERS)
    texts: ClassVar = {
        "list": "Those of which all objects are visible, or a member of each group.",
        "create": "Needs the permission to send commands for all objects. Fields that are not "
        "known are kept. Number is the first free one from `file` on.",
        "replace": "Needs the permission to send commands for all objects, old and new.",
        "remove": "Downtimes that are set already stay.",
    }

    async def find(
        self, context: Context, request: RestRequest, key: str | None
    ) -> Sequence[Downtime]:
        """Return those of which the user sees the objects; in a list those of selected sites."""
        number = None if key is None else number_of(key)
        if key is not None and number is None:
            return []
        downtimes = await self.database.run(statements.several(number))
        if key is None:
            enabled = {site.id for site in context.sites.select(selected_sites(request))}
            downtimes = [
                downtime
                for downtime in downtimes
                if not downtime.sites or enabled & _site_ids(context, downtime)
            ]
        return sorted(await visible(context, request.identity, downtimes), key=_order)

    def name(self, downtime: Downtime) -> str:
        return str(downtime.number)

    async def rows(self, context: Context, downtimes: Iterable[Downtime]) -> list[dict[str, Any]]:
        """Return them with what is wrong and with the sites that there are."""
        rows = []
        for downtime in downtimes:
            sites, unknown = remembered_sites(downtime.sites, context.sites.sites)
            rows.append(
                {
                    **downtime.record,
                    "backends": [site.id for site in sites] + unknown if downtime.sites else [],
                    "error": downtime.problems,
                    "file": downtime.number,
                }
            )
        return rows

    def document(self, downtime: Downtime) -> dict[str, Any]:
        return dict(downtime.record)

    async def add(self, context: Context, request: RestRequest, save: Save) -> str:
        """Store it for those who may command all objects."""
        sites = _sites(context, named_sites(save.fields) or selected_sites(request))
        values = _complete(context, request, save.fields, request.identity.user)
        await require_commands(context, request.identity, values, sites)
        first, now = first_number(save.fields.get("file")), context.wall.now()
        owner = bound_owner(request.identity, request.identity.user)
        work = statements.add(first, values, sites, now, context.zone, owner)
        return str(await self.database.change(work))

    async def require_write(self, context: Context, request: RestRequest, old: Downtime) -> None:
        """Raise Forbidden for who may not command all objects of what is stored."""
        await require_commands(context, request.identity, old.record, old.sites)

    async def replace(
        self, context: Context, request: RestRequest, old: Downtime, save: Save
    ) -> bool:
        """Store it for those who may command all new objects as well."""
        named = named_sites(save.sent) or named_sites(dict(request.parameters))
        # null stands for what a new one has: the sites of the request, or all of them.
        given = all(save.sent.get(name, "") is not None for name in SITES)
        sites = dict(old.sites)
        if named or not save.patch or not given:
            sites = _sites(context, named or request.sites)
        values = _complete(context, request, save.fields, old.record.get("created_by", ""))
        await require_commands(context, request.identity, values, sites)
        owner, now = bound_owner(request.identity, values["created_by"]), context.wall.now()
        work = statements.replace(old, values, sites, now, context.zone, owner)
        return await self.database.change(work)

    async def remove(self, old: Downtime) -> bool:
        """Delete it with its occurrences."""
        return await self.database.change(statements.remove(old))


def _downtimes(common: Common) -> RecurringDowntimes:
    return RecurringDowntimes(
        database=common.database,
        clock=common.reactor,
        wall=common.wall,
        duties=common.duties,
        registry=common.registry,
        zone=common.config.display.zone(),
    )


FAMILY = Family(
    life=Life(
        _downtimes,
        configure=lambda common, downtimes: downtimes.configure(common.config.display.zone()),
    ),
    served=(
        Served(
            RecurringDowntimeRecords.endpoints(),
            lambda common: RecurringDowntimeRecords(database=common.database),
        ),
    ),
)
