"""Who may see and change which recurring downtimes (docs/spec/downtimes.md, "Rights")."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from monrest.api.endpoint import Context
from monrest.api.rights import may_submit
from monrest.api.visibility import HOSTS, SERVICES
from monrest.base.errors import Forbidden, SitesFailed
from monrest.base.values import Identity
from monrest.commands.lookups import commanded, existing, seen
from monrest.commands.permissions import Grant, grant
from monrest.downtimes.model import HOST, HOSTGROUP, Downtime, targets_of
from monrest.livestatus.catalogue import singular
from monrest.livestatus.command import Target
from monrest.sites.registry import remembered_sites


async def visible(
    context: Context, identity: Identity, downtimes: Sequence[Downtime]
) -> list[Downtime]:
    """Those of which ``identity`` sees every object, or a member of every group.

    Raise SitesFailed when the cores would have to be asked and none answers.
    """
    open_ = [one for one in downtimes if not identity.may(_sees_all(one))]
    targets = {target for one in open_ for target in one.targets()}
    if not targets:
        return list(downtimes)
    if not identity.user or not context.sites.sites:
        return [one for one in downtimes if identity.may(_sees_all(one))]
    found = await seen(
        context.sites.sites,
        targets,
        identity,
        context.clock,
        strict=context.config.auth.strict_host_authorization,
    )

    def sees(one: Downtime) -> bool:
        keys = {site.id for site in remembered_sites(one.sites, context.sites.sites)[0]}
        return all(not keys.isdisjoint(found.on(target)) for target in one.targets())

    return [one for one in downtimes if identity.may(_sees_all(one)) or sees(one)]


def _sees_all(downtime: Downtime) -> str:
    """The role that sees all objects of this type."""
    return HOSTS if downtime.target in (HOST, HOSTGROUP) else SERVICES


async def require_commands(
    context: Context, identity: Identity, record: Mapping[str, Any], sites: Mapping[str, str]
) -> None:
    """Raise Forbidden unless ``identity`` may command every object, wherever it is.

    ``sites`` are those of the downtime. SitesFailed when one of them cannot be asked and no role
    decides.
    """
    allowed = await may_submit(identity, context.contacts, context.config)
    by_contact: list[Target] = []
    for target in targets_of(record):
        kind = singular(target.kind)
        verdict = grant(identity, kind, target.name, may_submit=allowed)
        if verdict is Grant.DENIED:
            raise _denied(kind, target)
        if verdict is Grant.CONTACT:
            by_contact.append(target)
    if by_contact:
        await _require_contact(context, identity, by_contact, sites)


async def _require_contact(
    context: Context, identity: Identity, targets: Collection[Target], keys: Mapping[str, str]
) -> None:
    sites, unknown = remembered_sites(keys, context.sites.sites)
    if not sites or unknown:
        # A site that they do not see, or none: it is not known whether they are a contact there.
        raise Forbidden("permission denied", "backends: expected sites that exist for you")
    strict = context.config.auth.strict_host_authorization
    own = await commanded(sites, targets, identity.user, context.clock, strict=strict)
    there = await existing(sites, targets, context.clock)
    problems = {**own.problems, **there.problems}
    if problems:
        raise SitesFailed(tuple(problems.values()))
    for target in targets:
        if not own.on(target) or not own.on(target) >= there.on(target):
            raise _denied(singular(target.kind), target)


def _denied(kind: str, target: Target) -> Forbidden:
    what = f"{kind} {target.name}"
    if target.service:
        what = f"service {target.service} on host {target.name}"
    return Forbidden("permission denied", f"you have no command permissions for {what}")
