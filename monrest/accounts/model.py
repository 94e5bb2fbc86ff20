"""Keys, sessions and users as they are stored (docs/spec/accounts.md). Pure.

Times are in seconds since the epoch, roles are full names.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from collections.abc import Mapping
from typing import Annotated, Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from attrs import field, frozen

from monrest.store.stored import (
    INDEXED,
    KEY,
    NOT_STORED,
    Shown,
    StoredRow,
    shown_time,
    stored,
)

DIGEST = "SHA-256"

_DAY = 86400
_YEAR = 365 * _DAY


@stored("api_keys")
@frozen(kw_only=True)
class ApiKey(StoredRow):
    """One key.

    ``user`` is the owner, None for a superuser key. ``roles`` are all that the key may give, None
    when it restricts nothing. ``force_user`` belongs to superuser keys only. ``confirmed``: False
    for what was read a while ago, because the database is away now.
    """

    hashed_key: Annotated[str, KEY, Shown("hash of the key, its id")]
    digest: Annotated[str, Shown("how the key is hashed")] = DIGEST
    user: Annotated[
        str | None, INDEXED, Shown("whose key it is; absent for a superuser key", nothing=None)
    ] = None
    superuser: Annotated[
        bool,
        Shown(
            "1 for a superuser key; absent for a user's key",
            "boolean",
            show=lambda superuser: 1 if superuser else None,
        ),
    ] = False
    force_user: Annotated[
        str | None,
        Shown("user for whom a superuser key acts; absent without one", nothing=None),
    ] = None
    roles: Annotated[
        tuple[str, ...] | None,
        Shown(
            "all that it may give; absent: no restriction",
            "array_of_strings",
            show=list,
            nothing=None,
        ),
    ] = None
    comment: Annotated[str, Shown("what the key is for")] = ""
    created: Annotated[int, shown_time("when it was made")] = 0
    last_used: Annotated[
        int | None, Shown("when it was used last; absent before", "time", nothing=None)
    ] = None
    last_from: Annotated[
        str | None, Shown("address it was used from last; absent before", nothing=None)
    ] = None
    confirmed: Annotated[bool, NOT_STORED] = True

    @property
    def file(self) -> str:
        """The table and the record of the key, like a path."""
        return f"{self.table.name}/{self.hashed_key}.{self.digest}"


@stored("sessions")
@frozen(kw_only=True)
class Session(StoredRow):
    """One session.

    ``roles`` are all that it may give, None when it restricts nothing. ``address`` is the other end
    of the connection of the login, ``active`` the time of the last request. ``proof`` is a digest
    of the session's value and of the password that it began with. ``confirmed`` is that of keys.
    """

    hashed_id: Annotated[
        str, KEY, Shown("hash of the session's id, by which it is known here", name="hashed_key")
    ]
    username: Annotated[str, INDEXED, Shown("whose session it is")]
    address: Annotated[str, Shown("where the login came from: the other end of its connection")]
    csrf_token: str = field(repr=False)
    roles: Annotated[
        tuple[str, ...] | None,
        Shown(
            "all that it may give; empty: no restriction",
            "array_of_strings",
            show=list,
            nothing=[],
        ),
    ] = None
    created: int
    active: Annotated[int, INDEXED, shown_time("when it was used last")]
    proof: str | None = field(default=None, repr=False)
    confirmed: Annotated[bool, NOT_STORED] = True

    @property
    def file(self) -> str:
        """The table and the record of the session, like a path."""
        return f"{self.table.name}/{self.hashed_id}.{DIGEST}"

    def began_with(self, value: str, password: str) -> bool:
        """Whether the user has still the password of the login.

        ``value`` is that of the cookie, ``password`` what the password file says of the user now.
        """
        return self.proof is not None and hmac.compare_digest(self.proof, proof(value, password))


def new_secret() -> str:
    """Make a key, or the value of a session; the suffix names the digest."""
    return f"{secrets.token_hex(32)}_1"


def secret_hash(secret: str) -> str:
    """Return the hash by which a key or a session is known; it covers the suffix."""
    return hashlib.sha256(secret.encode("ascii")).hexdigest()


def proof(value: str, password: str) -> str:
    return hashlib.sha256(f"{value}\0{password}".encode()).hexdigest()


def zone_called(name: str | None) -> ZoneInfo | None:
    """Return the time zone of this name, None when there is none."""
    try:
        return ZoneInfo(name) if name else None
    except (OSError, ValueError, ZoneInfoNotFoundError):
        return None


def _existing(zone: str) -> str | None:
    return zone if zone_called(zone) else None


@stored("users")
@frozen(kw_only=True)
class Profile(StoredRow):
    """The stored record of a user.

    ``failed`` counts wrong passwords since the last right one. ``last_failed`` and
    ``last_success`` are about logins: ``time``, ``ip`` and, behind a proxy, ``forwarded_for``.
    """

    name: Annotated[str, KEY, Shown("name of the user", name="id")]
    locked: Annotated[bool, Shown("whether the user is locked", "boolean")] = False
    failed: int = 0
    last_failed: Mapping[str, Any] | None = None
    last_success: Annotated[
        Mapping[str, Any] | None,
        Shown(
            "last login, null for none",
            "time",
            name="last_login",
            show=lambda login: int(login["time"]),
            nothing=None,
        ),
    ] = None
    tz: Annotated[
        str | None,
        Shown(
            "time zone of the user; null: that of the server",
            show=_existing,
            nothing=None,
        ),
    ] = None
    created: int = 0

    @property
    def zone(self) -> ZoneInfo | None:
        """The time zone of the user, None for the server's: where none is named that exists."""
        return zone_called(self.tz)

    def outlived(self, now: float) -> bool:
        """Whether it can be forgotten; locked ones never.

        A day after the last failed login where there is nothing else in it, else after a year.
        """
        seen = [int(login["time"]) for login in (self.last_failed, self.last_success) if login]
        kept = _DAY if self.last_success is None and self.tz is None else _YEAR
        return not self.locked and now - max([self.created, *seen]) > kept
