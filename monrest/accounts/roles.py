"""Roles: who has which by configuration, and what a restriction leaves of them.

Rules: docs/spec/accounts.md, "Roles" and "Limits".
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TypeAlias

import re2
from attrs import frozen

from monrest.base.values import ADMIN, READ_ONLY, ROLES, Identity
from monrest.config import AuthConfig
from monrest.config.check import full_role

Matches: TypeAlias = Callable[[str], bool]

EVERYTHING = frozenset(ROLES) - {READ_ONLY}
"""The roles of administrators and internal users."""


@frozen
class RoleTable:
    """The rows of ``[auth.roles]`` or ``[auth.contactgroup_roles]``, ready to be asked.

    ``for_all``: roles held even by users without any contact group. ``rules``: (full role
    name, test of one name).
    """

    for_all: frozenset[str]
    rules: tuple[tuple[str, Matches], ...]

    @classmethod
    def of(cls, roles: Mapping[str, Iterable[str]]) -> RoleTable:
        """Read a table of role to names; entries may hold several names between commas."""
        for_all, rules = set(), []
        for role, entries in roles.items():
            names = {name.strip() for entry in entries for name in entry.split(",")} - {""}
            if "*" in names:
                for_all.add(full_role(role))
            elif names:
                rules.append((full_role(role), _matcher(names)))
        return cls(frozenset(for_all), tuple(rules))

    def held(self, names: Iterable[str]) -> frozenset[str]:
        """Return the roles that go with these names (of a user or of groups)."""
        given = tuple(names)
        return self.for_all | {
            role for role, matches in self.rules if any(matches(name) for name in given)
        }

    @property
    def empty(self) -> bool:
        return not self.rules and not self.for_all


@frozen
class GrantedRoles:
    """The roles of the configuration, by user and by contact group."""

    by_user: RoleTable
    by_group: RoleTable

    @classmethod
    def of(cls, auth: AuthConfig) -> GrantedRoles:
        return cls(RoleTable.of(auth.roles), RoleTable.of(auth.contactgroup_roles))

    def held(self, user: str, groups: Iterable[str]) -> frozenset[str]:
        return self.by_user.held((user,)) | self.by_group.held(groups)


def restricted(roles: frozenset[str], limit: frozenset[str] | None) -> frozenset[str]:
    """Return what ``limit`` leaves of ``roles`` (full names; None: everything).

    An administrator holds what they are limited to. read_only takes rights away, so a limit can add
    it and never removes it.
    """
    if limit is None:
        return roles
    held = roles | EVERYTHING if ADMIN in roles else roles
    return (held & limit) | ((roles | limit) & {READ_ONLY})


def grantable(identity: Identity, asked: Iterable[str] | None) -> tuple[str, ...] | None:
    """Return the roles of a key that ``identity`` makes; None: the key restricts nothing.

    ``asked`` are full names, None when nothing was asked for. What the maker does not hold is
    left out, and a maker who is limited gives at most that.
    """
    if asked is None:
        if identity.limit is None:
            return None
        asked = identity.limit
    given = {role for role in asked if role == READ_ONLY or identity.may(role)}
    if identity.limit is not None:
        given = {role for role in given if role == READ_ONLY or role in identity.limit}
    return tuple(role for role in ROLES if role in given)


def _matcher(names: set[str]) -> Matches:
    """Test for one of ``names``, where ``*`` stands for any text and case counts."""
    exact = frozenset(name for name in names if "*" not in name)
    wild = [
        ".*".join(re2.escape(part) for part in name.split("*")) for name in names if "*" in name
    ]
    if not wild:
        return exact.__contains__
    pattern = re2.compile(f"(?s:{'|'.join(sorted(wild))})")

    def matches(name: str) -> bool:
        return name in exact or pattern.fullmatch(name) is not None

    return matches
