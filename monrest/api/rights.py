"""Rights of an identity that do not follow from its roles (docs/spec/accounts.md, "Roles")."""

from __future__ import annotations

from monrest.base.audit import audit
from monrest.base.errors import Forbidden
from monrest.base.values import READ_ONLY, Contact, ContactBook, Identity, RestRequest
from monrest.config import Config

_COMMAND_ROLES = (
    "authorized_for_all_host_commands",
    "authorized_for_all_service_commands",
    "authorized_for_system_commands",
)


async def may_submit(identity: Identity, contacts: ContactBook, config: Config) -> bool:
    """Whether ``identity`` may send commands at all.

    A role for commands decides, then the role read_only, then the contact of this name, which
    one site may forbid for all, and the configuration for a user who is no contact.
    """
    by_role = _by_role(identity)
    if by_role is not None:
        return by_role
    return submits(identity, await contacts.of(identity.user), config)


def submits(identity: Identity, contact: Contact, config: Config) -> bool:
    """The same for an identity that the cores know as ``contact``."""
    by_role = _by_role(identity)
    if by_role is not None:
        return by_role
    allowed = contact.can_submit_commands
    return config.commands.can_submit_commands if allowed is None else allowed


def _by_role(identity: Identity) -> bool | None:
    """Return what roles decide; None: nothing."""
    if any(identity.may(role) for role in _COMMAND_ROLES):
        return True
    return False if READ_ONLY in identity.roles else None


async def is_read_only(identity: Identity, contacts: ContactBook, config: Config) -> bool:
    """Whether ``identity`` holds read_only, or has it because it may not send commands."""
    return READ_ONLY in identity.roles or not await may_submit(identity, contacts, config)


async def require_change(request: RestRequest, contacts: ContactBook, config: Config) -> None:
    """Raise Forbidden, noted in the audit log, where the user may only read, as admin too."""
    identity = request.identity
    if not await is_read_only(identity, contacts, config):
        return
    why = "" if READ_ONLY in identity.roles else ", and who may not send commands holds it"
    error = Forbidden("not authorized", f"the role {READ_ONLY} forbids every change{why}")
    target = f"{request.method} {request.path}"
    audit(identity, request.caller, "change refused", target=target, result=READ_ONLY)
    raise error
