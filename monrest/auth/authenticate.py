"""From request headers to an identity (auth-and-commands.md, sections 4.1 and 4.2).

The key decides alone: a wrong one is refused whatever else the request carries.
"""

from __future__ import annotations

import hmac
from collections.abc import Awaitable, Callable, Mapping
from typing import TypeAlias

from attrs import define, field

from monrest.auth.roles import RoleTable
from monrest.auth.secret import is_key
from monrest.config import AuthConfig
from monrest.errors import BadRequest, Forbidden, NotAuthenticated
from monrest.names import Names
from monrest.values import Identity

GroupsOf: TypeAlias = Callable[[str], Awaitable[frozenset[str]]]
"""The contact groups of a user, as the cores know them."""

_LONGEST_USER = 255
_REMEMBERED = 4096
_BEARER = "bearer "


@define(eq=False)
class Authenticator:
    """Says who asks. ``groups_of`` is awaited only when contact groups give roles."""

    config: AuthConfig
    names: Names
    secret_key: str = field(repr=False)
    groups_of: GroupsOf
    _by_user: RoleTable = field(init=False)
    _by_group: RoleTable = field(init=False)
    _key: bytes = field(init=False, repr=False)
    _key_header: str = field(init=False)
    _user_header: str = field(init=False)
    _identities: dict[str, Identity] = field(factory=dict, init=False)

    def __attrs_post_init__(self) -> None:
        self._by_user = RoleTable.of(self.config.roles)
        self._by_group = RoleTable.of(self.config.contactgroup_roles)
        self._key = self.secret_key.encode("ascii")
        self._key_header = self.names.header("Auth-Key")
        self._user_header = self.names.header("Auth-User")

    async def authenticate(self, headers: Mapping[str, str]) -> Identity:
        """Give the identity behind ``headers`` (lower-case names).

        Raises NotAuthenticated without credentials, Forbidden for a wrong key, BadRequest for
        the secret key without a user or with an impossible user name.
        """
        key = self._presented(headers)
        if key is None:
            raise NotAuthenticated("login required", "no or invalid credentials used.")
        if not is_key(key) or not hmac.compare_digest(key.encode("ascii"), self._key):
            raise Forbidden("wrong authentication key")
        user = headers.get(self._user_header, "").strip()
        spelled = self._user_header.title()
        if not user:
            raise BadRequest(
                f"Authentication by secret key requires {spelled} header",
                f"send the header {spelled} with the name of the user whose rights apply",
            )
        if len(user) > _LONGEST_USER or not user.isprintable():
            raise BadRequest(
                "invalid user name",
                f"{spelled}: expected up to {_LONGEST_USER} printable characters",
            )
        known = self._identities.get(user)
        if known is None:
            known = self._remember(user)
        if self._by_group.empty:
            return known
        roles = self._by_group.held(await self.groups_of(user))
        return Identity(user=user, roles=known.roles | roles, source=known.source)

    def _presented(self, headers: Mapping[str, str]) -> str | None:
        key = headers.get(self._key_header)
        if key is not None:
            return key.strip()
        authorization = headers.get("authorization", "")
        if authorization[: len(_BEARER)].lower() == _BEARER:
            return authorization[len(_BEARER) :].strip()
        return None

    def _remember(self, user: str) -> Identity:
        if len(self._identities) >= _REMEMBERED:
            self._identities.clear()
        identity = Identity(user=user, roles=self._by_user.held((user,)), source="secret_key")
        self._identities[user] = identity
        return identity
