"""From a caller to an identity (docs/spec/accounts.md, "Authentication").

One method decides, in this order: key, session cookie, basic authentication, the user header of a
trusted proxy, the user of a Unix socket, the default user. A key that is
presented decides alone: a wrong one is refused, also beside other credentials.
"""

from __future__ import annotations

import base64
import binascii
import hmac
import os
from collections.abc import Iterable
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import TypeAlias

from attrs import define, evolve, field, frozen

from monrest.accounts.contacts import Contacts
from monrest.accounts.keys import Keys
from monrest.accounts.model import ApiKey, Session, secret_hash
from monrest.accounts.passwords import Passwords
from monrest.accounts.roles import EVERYTHING, GrantedRoles, restricted
from monrest.accounts.secret_key import is_key
from monrest.accounts.sessions import Sessions, cookie_of
from monrest.accounts.slowdown import WRONG, Slowdown, is_right, not_authenticated
from monrest.accounts.usernames import UserName, UserNames
from monrest.accounts.users import Users
from monrest.base.audit import audit
from monrest.base.errors import BadRequest, Forbidden, NotAuthenticated, Unavailable
from monrest.base.names import Names
from monrest.base.values import API, CLI, INTERNAL, READ_ONLY, Caller, Identity
from monrest.config import AuthConfig

# Nothing else is stripped: what another one before us takes for a letter stays one.
_BLANKS = " \t"
_BASIC = "basic"
_BEARER = "bearer"
_LOGIN_REQUIRED = "login required"
_REMEMBERED = 4096
_NOBODY: frozenset[str] = frozenset()
# A proxy that speaks to our Unix socket as root does not make its clients root.
_FORWARDED = ("x-forwarded-for", "x-forwarded-host", "x-real-ip", "forwarded", "via")


@define(eq=False, kw_only=True)
class Authenticator:
    """Identifies callers; one for each generation of the configuration.

    ``own_uid`` is the user of this process, who administers it over a Unix socket as root does.
    """

    config: AuthConfig
    names: Names
    secret_key: str = field(repr=False)
    keys: Keys
    sessions: Sessions
    users: Users
    passwords: Passwords
    slowdown: Slowdown
    contacts: Contacts
    own_uid: int = field(factory=os.geteuid)
    proxies: Proxies = field(init=False)
    user_names: UserNames = field(init=False)
    _granted: GrantedRoles = field(init=False)
    _held: dict[tuple[str, frozenset[str]], frozenset[str]] = field(factory=dict, init=False)
    """Roles by user name and contact groups, before any limit: with many rules of wildcards a
    look at them takes 80 microseconds, an eighth of a small request."""

    def __attrs_post_init__(self) -> None:
        self.proxies = Proxies.of(self.config.trusted_proxies)
        self.user_names = UserNames(self.config)
        self._granted = GrantedRoles.of(self.config)

    async def authenticate(self, caller: Caller) -> Identity:
        """Return the identity behind ``caller``.

        Raises NotAuthenticated without credentials or with a wrong password, Forbidden for a
        wrong key and a locked user, BadRequest for impossible names, TooManyRequests after many
        wrong passwords, and Unavailable when a key or a session cannot be looked up and none of
        the time of ``auth.grace`` is left.
        """
        key = self._presented(caller)
        identity = await (self._by_key(caller, key) if key is not None else self._otherwise(caller))
        if identity.user in INTERNAL:
            return identity
        try:
            locked = await self.users.is_locked(identity.user)
        except Unavailable:
            # The secret key is trusted with every user's name, and reads without a database.
            if key is None or identity.key:
                raise
            return evolve(identity, confirmed=False)
        if locked:
            raise Forbidden(self.config.locked_message)
        return identity

    async def of_user(self, name: str, limit: frozenset[str] | None = None) -> Identity:
        """Return the identity of a user who is not here, for what is done in their name.

        ``limit`` are the roles to which they were restricted. Internal users may everything else.
        Raises Forbidden for a user who is locked, Unavailable when that cannot be looked up.
        """
        if name in INTERNAL:
            roles = restricted(EVERYTHING, limit)
            return Identity(
                user=name, original=name, roles=roles, source="owner", superuser=limit is None,
                limit=limit,
            )  # fmt: skip
        if await self.users.is_locked(name):
            raise Forbidden(self.config.locked_message)
        return await self._user(UserName(name, name), "owner", limit)

    def _presented(self, caller: Caller) -> str | None:
        """Return the key that the caller presents; other credentials do not count then."""
        key = caller.headers.get(self.names.header("Auth-Key"))
        if key is not None:
            return key.strip(_BLANKS)
        scheme, _, credentials = (
            caller.headers.get("authorization", "").strip(_BLANKS).partition(" ")
        )
        return credentials.strip(_BLANKS) if scheme.lower() == _BEARER else None

    async def _by_key(self, caller: Caller, plain: str) -> Identity:
        if plain.isascii() and hmac.compare_digest(plain, self.secret_key):
            return await self._by_secret(caller)
        if not is_key(plain):
            raise self._wrong_key(caller, "")
        key = await self.keys.find(plain) if self.config.api_keys_enabled else None
        if key is None:
            raise self._wrong_key(caller, plain)
        identity = await self._by_api_key(caller, key)
        self.keys.used(key, caller)
        return identity if key.confirmed else evolve(identity, confirmed=False)

    async def _by_secret(self, caller: Caller) -> Identity:
        asked = self._asked_user(caller)
        if asked is None:
            spelled = self.names.header("Auth-User").title()
            raise BadRequest(
                f"Authentication by secret key requires {spelled} header",
                f"send the header {spelled} with the name of the user whose rights apply",
            )
        return await self._user(asked, "secret_key")

    async def _by_api_key(self, caller: Caller, key: ApiKey) -> Identity:
        limit = None if key.roles is None else frozenset(key.roles)
        if not key.superuser:
            owner = key.user or ""
            return await self._user(UserName(owner, owner), "api_key", limit, key.hashed_key)
        if key.force_user is not None:
            forced = UserName(key.force_user, key.force_user)
            return await self._user(forced, "api_key", limit, key.hashed_key, replaces=True)
        asked = self._asked_user(caller) or self._default_user()
        if asked is not None:
            return await self._user(asked, "api_key", limit, key.hashed_key)
        return Identity(
            user=API,
            original=API,
            roles=restricted(EVERYTHING, limit),
            source="api_key",
            superuser=limit is None,
            limit=limit,
            key=key.hashed_key,
        )

    def _asked_user(self, caller: Caller) -> UserName | None:
        """Return the user whose context a superuser asks for."""
        header = self.names.header("Auth-User")
        text = caller.headers.get(header, "").strip(_BLANKS)
        return self.user_names.read(text, header.title()) if text else None

    def _default_user(self) -> UserName | None:
        text = self.config.default_user
        return self.user_names.read(text, "auth.default_user") if text else None

    def _wrong_key(self, caller: Caller, plain: str) -> Forbidden:
        target = secret_hash(plain)[:_SHOWN_OF_HASH] if plain else ""
        audit("", caller, "key refused", target=target, result="wrong authentication key")
        return Forbidden(
            "wrong authentication key",
            "the key is not known here or was deleted; no other credentials are read beside it",
        )

    async def _otherwise(self, caller: Caller) -> Identity:
        identity = await self._by_cookie(caller)
        if identity is None:
            identity = await self._by_password(caller)
        if identity is None:
            identity = await self._by_proxy(caller)
        if identity is None:
            identity = await self._by_unix_peer(caller)
        if identity is not None:
            return identity
        default = self._default_user()
        if default is not None:
            return await self._user(default, "default_user_name")
        if self._cookie_of(caller):
            raise self._not_authenticated(caller, "session is not valid (anymore)")
        raise self._not_authenticated(caller)

    def _not_authenticated(
        self, caller: Caller, message: str = _LOGIN_REQUIRED, description: str = WRONG
    ) -> NotAuthenticated:
        """Make the error for a caller without credentials, or with wrong ones."""
        return not_authenticated(
            message, description, caller, self.names, passwords=self.passwords.configured
        )

    async def _by_cookie(self, caller: Caller) -> Identity | None:
        value = self._cookie_of(caller)
        session = await self.sessions.find(value) if value else None
        if session is None:
            return None
        password = await self.passwords.hash_of(session.username)
        if password is None or not session.began_with(value, password):
            return None
        return await self._user(
            UserName(session.username, session.username),
            "cookie",
            None if session.roles is None else frozenset(session.roles),
            session=session,
        )

    def _cookie_of(self, caller: Caller) -> str:
        """Return the value of the session cookie, empty when there is none."""
        return cookie_of(caller.headers, f"{self.names.app}_auth")

    async def _by_password(self, caller: Caller) -> Identity | None:
        scheme, _, encoded = caller.headers.get("authorization", "").strip(_BLANKS).partition(" ")
        if scheme.lower() != _BASIC:
            return None
        if not self.passwords.configured:
            if self._remote_user(caller):
                return None  # the proxy that sends the user's name has looked at the password
            raise self._not_authenticated(
                caller,
                description="basic authentication is not available here: no auth.htpasswd_file is "
                f"configured; send an API key in {self.names.header('Auth-Key').title()}",
            )
        pair = _user_and_password(encoded)
        if pair is None:
            raise self._not_authenticated(caller)
        user = self.user_names.read(pair[0], "Authorization")
        if not await is_right(
            user.name,
            pair[1],
            caller,
            passwords=self.passwords,
            slowdown=self.slowdown,
            users=self.users,
        ):
            raise self._not_authenticated(caller)
        return await self._user(user, "basic auth")

    async def _by_proxy(self, caller: Caller) -> Identity | None:
        text = self._remote_user(caller)
        if not text:
            return None
        user = self.user_names.read(text, self.config.remote_user_header)
        return await self._user(user, "basic auth")

    def _remote_user(self, caller: Caller) -> str:
        """Return the name that a trusted proxy sends; one from another neighbour does not count."""
        header = self.config.remote_user_header.lower()
        if not header or not self.proxies.trusts(caller.address):
            return ""
        return caller.headers.get(header, "").strip(_BLANKS)

    async def _by_unix_peer(self, caller: Caller) -> Identity | None:
        if caller.uid is None or caller.uid not in (0, self.own_uid):
            return None
        if any(name in caller.headers for name in _FORWARDED):
            return None
        asked = self._asked_user(caller)
        if asked is not None:
            return await self._user(asked, "cli")
        return Identity(user=CLI, original=CLI, roles=EVERYTHING, source="cli", superuser=True)

    async def _user(
        self,
        user: UserName,
        source: str,
        limit: frozenset[str] | None = None,
        key: str = "",
        *,
        replaces: bool = False,
        session: Session | None = None,
    ) -> Identity:
        """Return the identity of an ordinary user with what ``limit`` leaves of their roles.

        ``replaces``: a limit gives its roles, also those that the user does not hold, except that
        a user who may only read stays so.
        """
        held = await self._roles_of(user.name)
        if replaces and limit is not None:
            held = limit | (held & {READ_ONLY})
        return Identity(
            user=user.name,
            original=user.original,
            roles=held if limit is None else restricted(held, limit),
            source=source,
            limit=limit,
            key=key,
            session="" if session is None else session.hashed_id,
            csrf_token="" if session is None else session.csrf_token,
            confirmed=session is None or session.confirmed,
        )

    async def _roles_of(self, name: str) -> frozenset[str]:
        """Return all roles that the user holds by name and by contact group.

        Only this is remembered: what a key or a session leaves of it is worked out each time, so
        that one never answers for another.
        """
        groups = _NOBODY
        if not self._granted.by_group.empty:
            groups = (await self.contacts.of(name)).groups
        key = (name, groups)
        held = self._held.get(key)
        if held is None:
            held = self._granted.held(name, groups)
            if len(self._held) >= _REMEMBERED:
                self._held.clear()
            self._held[key] = held
        return held


_SHOWN_OF_HASH = 16


def _user_and_password(encoded: str) -> tuple[str, str] | None:
    """Read what follows ``Basic``; None unless it is base64 of UTF-8 with a colon."""
    try:
        text = base64.b64decode(encoded.strip(_BLANKS), validate=True).decode("utf-8")
    except (binascii.Error, ValueError):
        return None
    user, colon, password = text.partition(":")
    return (user, password) if colon else None


IPAddress: TypeAlias = IPv4Address | IPv6Address
Network: TypeAlias = IPv4Network | IPv6Network

_MOST_HOPS = 32


@frozen
class Proxies:
    """Proxies that may name the client behind them, and that client.

    Forwarded headers count only from ``auth.trusted_proxies`` (docs/spec/http.md, "The caller"):
    what any other neighbour says about addresses is made up.
    """

    trusted: tuple[Network, ...]

    @classmethod
    def of(cls, trusted: Iterable[str]) -> Proxies:
        """Read addresses and networks such as ``10.0.0.0/8``; ValueError for anything else."""
        return cls(tuple(ip_network(network) for network in trusted))

    def trusts(self, address: str) -> bool:
        """Whether the neighbour with this address may name clients; none without an address."""
        read = _address(address)
        return read is not None and self._among(read)

    def client(self, peer: str, forwarded_for: str) -> str:
        """Return the client's address from the other end of a connection and X-Forwarded-For.

        Every proxy appends whom it was asked by, so the list is read from its end, for as long
        as the one who says so is trusted. What is no address ends it as well.
        """
        client = peer
        if not forwarded_for or not self.trusts(peer):
            return client
        for text in reversed(forwarded_for.split(",")[-_MOST_HOPS:]):
            read = _address(_without_port(text.strip()))
            if read is None:
                break
            client = str(read)
            if not self._among(read):
                break
        return client

    def _among(self, address: IPAddress) -> bool:
        return any(address in network for network in self.trusted)


def _address(text: str) -> IPAddress | None:
    """Read an address; IPv4 inside IPv6 is IPv4, and the zone of a link-local one is no matter."""
    try:
        address = ip_address(text.partition("%")[0])
    except ValueError:
        return None
    if isinstance(address, IPv6Address) and address.ipv4_mapped is not None:
        return address.ipv4_mapped
    return address


def _without_port(text: str) -> str:
    if text.startswith("["):
        return text[1:].partition("]")[0]
    return text.partition(":")[0] if text.count(":") == 1 else text
