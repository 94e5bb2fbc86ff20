"""Permissions for external commands (docs/spec/commands.md, "Permissions").

Roles decide at once; where being a contact decides, the cores are asked with the filters given
here, which are strict: what a user merely sees does not count.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum

from monrest.base.errors import Forbidden
from monrest.base.values import ADMIN, READ_ONLY, Identity
from monrest.config.sections import CommandsConfig
from monrest.livestatus.catalogue import Command
from monrest.query.model import CoreFilter, Group, Test

HOST_COMMANDS = "authorized_for_all_host_commands"
SERVICE_COMMANDS = "authorized_for_all_service_commands"
SYSTEM_COMMANDS = "authorized_for_system_commands"


class Grant(Enum):
    """The result of the roles: yes, no, or yes for a contact of the object."""

    ALLOWED = "allowed"
    DENIED = "denied"
    CONTACT = "contact"


_ROLES = {
    "host": (HOST_COMMANDS,),
    "hostgroup": (HOST_COMMANDS,),
    "service": (SERVICE_COMMANDS,),
    "servicegroup": (SERVICE_COMMANDS,),
    "system": (SYSTEM_COMMANDS,),
    "all_hosts+all_services": (HOST_COMMANDS, SERVICE_COMMANDS),
}
"""Permission of the catalogue to the roles of which all are needed."""

_BY_CONTACT = frozenset({"host", "service", "hostgroup", "servicegroup"})

PERMISSIONS = frozenset({*_ROLES, "contact", "contactgroup"})
"""Every permission that the catalogue knows."""


def grant(identity: Identity, permission: str, name: str, *, may_submit: bool) -> Grant:
    """The permission of ``identity`` by its roles; ``name`` is that of the contact or other object.

    In this order: read-only users never, users who may not submit commands never, administrators
    always, then users with the roles of the permission, then contacts. LookupError for an unknown
    permission.
    """
    if permission not in PERMISSIONS:
        raise LookupError(permission)
    if READ_ONLY in identity.roles or not may_submit:
        return Grant.DENIED
    if identity.may(ADMIN):
        return Grant.ALLOWED
    roles = _ROLES.get(permission)
    if roles is not None and all(identity.may(role) for role in roles):
        return Grant.ALLOWED
    if not identity.user:
        return Grant.DENIED
    if permission == "contact" and name == identity.user:
        return Grant.ALLOWED
    return Grant.CONTACT if permission in _BY_CONTACT else Grant.DENIED


def contact_filter(table: str, user: str, *, strict: bool) -> CoreFilter:
    """The rows of ``hosts`` or ``services`` whose contact ``user`` is.

    ``strict`` as in the configuration: contacts of a host are none of its services.
    """
    own = Test("contacts", ">=", user)
    if table == "hosts" or strict:
        return own
    return Group("or", (own, Test("host_contacts", ">=", user)))


def is_contact(user: str, *lists: Iterable[str] | None) -> bool:
    """Whether ``user`` is in one of the lists of contacts of a row."""
    return any(user in names for names in lists if names)


def refused_to_all(command: Command, config: CommandsConfig) -> Forbidden | None:
    """The error for a command that the configuration forbids; None if it does not."""
    if config.enabled and not command.is_in(config.enabled):
        key, why = "commands.enabled", "does not name it"
    elif command.is_in(config.disabled):
        key, why = "commands.disabled", "names it"
    else:
        return None
    return Forbidden(
        "this command is disabled", f"{command.name}: {key} in the configuration {why}"
    )


def refusal(identity: Identity, permission: str, kind: str, name: str, service: str) -> Forbidden:
    """The error for a command that is not allowed; ``kind`` in the singular.

    ``help`` in the document names the roles that would allow it.
    """
    message = "you are not allowed to run this command"
    if permission == "system":
        message = "you are not allowed to run system commands"
        description = "you don' have the system_commands role"
    elif permission == "all_hosts+all_services":
        message += ", all_host_commands/all_service_commands permissions required"
        description = "you don' have the all_host_commands/all_service_commands role"
    else:
        what = f"service {service} on host {name}" if kind == "service" else f"{kind} {name}"
        description = f"you don' have command permissions for {what}"
    forbidden = READ_ONLY in identity.roles
    needs = (
        f"the role {READ_ONLY} forbids all commands"
        if forbidden
        else f"needs {needed(permission, kind)}{_limited(identity, permission)}"
    )
    return Forbidden(message, description, extra={"help": needs})


def _limited(identity: Identity, permission: str) -> str:
    reasons = (identity.why_not(role) for role in _ROLES.get(permission, (ADMIN,)))
    return next((reason for reason in reasons if reason), "")


def needed(permission: str, kind: str) -> str:
    """The permission in words; ``kind`` in the singular."""
    roles = " and ".join(_ROLES.get(permission, (ADMIN,)))
    if permission in ("host", "service"):
        return f"the role {roles}, or a contact of the {kind}"
    if permission in _BY_CONTACT:
        return f"the role {roles}, or a contact of every member of a group that has some"
    if permission == "contact":
        return f"the role {roles}, or the contact itself"
    return f"the role {roles}"
