"""Which sites and which rows of a core's table an identity may see.

The filters are sent to the cores with every query; what is invisible is simply absent.

Rules: docs/spec/accounts.md, "Visibility".
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeAlias

from monrest.base.values import ADMIN, INTERNAL, ContactBook, Identity
from monrest.query.column_names import View, Visibility
from monrest.query.model import CoreFilter, Group, Test
from monrest.sites.federation.remote import OnBehalfOf

if TYPE_CHECKING:
    from monrest.api.endpoint import Context
    from monrest.sites.registry import Sites

HOSTS = "authorized_for_all_hosts"
SERVICES = "authorized_for_all_services"
CONFIGURATION = "authorized_for_configuration_information"
SYSTEM = "authorized_for_system_information"

VisibilityRule: TypeAlias = Callable[[Identity, bool], CoreFilter | None]


async def visible_sites(
    identity: Identity, sites: Sites, contacts: ContactBook, visited: tuple[str, ...] = ()
) -> Sites:
    """Return the sites that exist for ``identity``: those open to all and those of its groups.

    The contact groups are asked only where a site is restricted to some. Other instances are
    asked in the name of the user, after the instances that the request has ``visited``.
    """
    user = "" if identity.user in INTERNAL else identity.user
    if not sites.restricted or identity.may(ADMIN):
        return sites.acting(OnBehalfOf(user, visited))
    groups = (await contacts.of(identity.user)).groups if identity.user else frozenset[str]()
    return sites.permitted(groups).acting(OnBehalfOf(user, visited))


def visibility(identity: Identity, table: str, strict: bool) -> CoreFilter | None:
    """Return the filter that every query of ``identity`` to ``table`` carries; None: sees all.

    ``strict``: contacts of a host do not see its services
    (``auth.strict_host_authorization``). A table without a rule raises LookupError, so that a
    new table is never open by oversight.
    """
    return _RULES[table](identity, strict)


def _open(_identity: Identity, _strict: bool) -> None:
    return None


def _contact(column: str, identity: Identity) -> Test:
    return Test(column, ">=", identity.user)


def _hosts(identity: Identity, _strict: bool) -> CoreFilter | None:
    return None if identity.may(HOSTS) else _contact("contacts", identity)


def _services(identity: Identity, strict: bool) -> CoreFilter | None:
    if identity.may(SERVICES):
        return None
    own = _contact("contacts", identity)
    return own if strict else Group("or", (own, _contact("host_contacts", identity)))


def _contacts(identity: Identity, _strict: bool) -> CoreFilter | None:
    return None if identity.may(CONFIGURATION) else Test("name", "=", identity.user)


def _entries(identity: Identity, strict: bool) -> CoreFilter | None:
    """Comments and downtimes, which belong to a host or to a service."""
    all_hosts, all_services = identity.may(HOSTS), identity.may(SERVICES)
    if all_hosts and all_services:
        return None
    of_host, of_service = Test("is_service", "=", "0"), Test("is_service", "=", "1")
    by_host = _contact("host_contacts", identity)
    seen: list[CoreFilter] = [
        of_service
        if all_services
        else Group("and", (of_service, _contact("service_contacts", identity)))
    ]
    if all_hosts:
        seen.append(of_host)
    elif strict:
        seen.append(Group("and", (of_host, by_host)))
    if not strict:
        seen.append(by_host)
    return Group("or", tuple(seen))


def _log(identity: Identity, strict: bool) -> CoreFilter | None:
    """Log lines of services, of hosts, and of neither."""
    all_hosts, all_services = identity.may(HOSTS), identity.may(SERVICES)
    system = identity.may(SYSTEM)
    if all_hosts and all_services and system:
        return None
    with_service = Test("service_description", "!=", "")
    # Icinga 2 has no host_name in the lines of hosts, other cores no current one of what is gone.
    named = Group("or", (Test("host_name", "!=", ""), Test("current_host_name", "!=", "")))
    of_host = Group("and", (named, Test("service_description", "=", "")))
    by_host = _contact("current_host_contacts", identity)
    seen: list[CoreFilter] = [
        with_service
        if all_services
        else Group("and", (with_service, _contact("current_service_contacts", identity)))
    ]
    if all_hosts:
        seen.append(of_host)
    elif strict:
        seen.append(Group("and", (of_host, by_host)))
    if not strict:
        seen.append(Group("and", (named, by_host)))
    if system:
        seen.append(Group("and", (Test("host_name", "=", ""), Test("current_host_name", "=", ""))))
    return Group("or", tuple(seen))


_RULES: dict[str, VisibilityRule] = {
    "hosts": _hosts,
    "services": _services,
    "contacts": _contacts,
    "comments": _entries,
    "downtimes": _entries,
    "log": _log,
    "hostgroups": _open,
    "servicegroups": _open,
    "contactgroups": _open,
    "timeperiods": _open,
    "commands": _open,
    "status": _open,
}


def view_of(context: Context, identity: Identity, table: str = "") -> View:
    """The view of the identity on rows of a core's ``table``.

    Only log lines carry attributes of contacts, which are those of the user without the role
    to list all contacts; views of other tables are the same for all users of the same roles.
    """
    display = context.config.display
    informed = identity.may(CONFIGURATION)
    level = display.show_full_commandline
    return View(
        commands=level == 2 or (level == 1 and informed),
        variables=Visibility(patterns=tuple(display.expose_custom_variables), all_visible=informed),
        contact=None if informed or table != "log" else identity.user,
        addresses=identity.may(SYSTEM),
        members=_sees_members(context, identity, table),
    )


def _sees_members(context: Context, identity: Identity, table: str) -> bool:
    """Whether all members of the visible rows of a table are visible."""
    if table in ("timeperiods", "commands", "contacts", "status", ""):
        return True  # they have none
    if table == "contactgroups":
        return identity.may(CONFIGURATION)
    if table == "hosts" and not context.config.auth.strict_host_authorization:
        # A user who sees a host as its contact sees its services.
        return identity.may(SERVICES) or not identity.may(HOSTS)
    return identity.may(SERVICES) and (identity.may(HOSTS) or table != "hostgroups")
