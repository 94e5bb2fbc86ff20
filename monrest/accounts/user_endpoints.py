"""Users: who is asking, profiles, locking (docs/spec/accounts.md, "Users")."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, ClassVar

from attrs import evolve, frozen

from monrest.accounts import usernames
from monrest.accounts.contacts import NO_CONTACT, Contacts
from monrest.accounts.model import Profile, zone_called
from monrest.accounts.passwords import Passwords
from monrest.accounts.roles import GrantedRoles
from monrest.accounts.slowdown import Slowdown
from monrest.accounts.users import Users
from monrest.api.endpoint import OBJECT_PARAMETERS, Context, Endpoint
from monrest.api.fields import AS_IT_IS, Field, Reading, fields_of, require_only
from monrest.api.lists import own_columns, reselect
from monrest.api.records import Records
from monrest.api.rights import submits
from monrest.base.audit import audited
from monrest.base.errors import BadRequest, NotFound, Unavailable
from monrest.base.values import (
    ADMIN,
    INTERNAL,
    READ_ONLY,
    ROLES,
    Answer,
    Column,
    Contact,
    Document,
    Identity,
    RestRequest,
)
from monrest.config import AuthConfig
from monrest.sites.site import Site
from monrest.store.stored import shown_columns, shown_values

COLUMNS = shown_columns(
    Profile,
    Column("alias", "string", "", "longer name, null for a user who is no contact"),
    Column("can_submit_commands", "boolean", "", "1 if the user may send commands"),
    Column("email", "string", "", "mail address, null for a user who is no contact"),
    Column("groups", "array_of_strings", "", "contact groups"),
    Column("has_mon_profile", "boolean", "", "whether data of the user is stored here"),
    Column("roles", "array_of_strings", "", "roles"),
)
_WHOAMI = (
    Column("auth_src", "string", "", "how the request was authenticated"),
    Column("original_username", "string", "", "name before it was transformed"),
)
WHOAMI_COLUMNS = tuple(sorted((*COLUMNS, *_WHOAMI), key=lambda column: column.name))


async def figures(
    users: Users, contacts: Contacts, passwords: Passwords, sites: Sequence[Site], auth: AuthConfig
) -> dict[str, float]:
    """Count all users and those who are locked."""
    seen, _ = await contacts.all_contacts(sites)
    profiles = {profile.name: profile.locked for profile in await users.list()}
    known_users = _user_names(seen, profiles, await _configured(passwords, auth))
    return {
        "users_locked_total": sum(profiles.get(name, False) for name in known_users),
        "users_total": len(known_users),
    }


def _user_names(*sources: Iterable[str]) -> frozenset[str]:
    """Return all users with a contact, a profile or a place in the configuration."""
    return frozenset(name for names in sources for name in names if "*" not in name)


@frozen
class ZoneName(Field):
    """The name of a time zone; None for the server's."""

    def read(self, value: Any, at: Reading = AS_IT_IS) -> str | None:
        text = value.strip() if isinstance(value, str) else value
        if text is None or text == "":
            return None
        if not isinstance(text, str) or zone_called(text) is None:
            raise self.wrong(at, "a time zone such as Europe/Berlin, or nothing")
        return text


_ZONE = ZoneName("tz", "time zone of dates, such as Europe/Berlin; empty: the server's")


async def _configured(passwords: Passwords, auth: AuthConfig) -> frozenset[str]:
    """Return the names in lists of roles and in the password file."""
    names = set(_named(auth))
    with contextlib.suppress(Unavailable):  # the log says that the file cannot be read
        names.update(await passwords.names())
    return frozenset(names - INTERNAL)


def _named(auth: AuthConfig) -> Iterator[str]:
    for entries in auth.roles.values():
        for entry in entries:
            for name in entry.split(","):
                if name.strip() and "*" not in name:
                    yield name.strip()


_CHANGED = (
    Column("code", "number", "", "200"),
    Column("message", "string", "", "what was done"),
)


@frozen(eq=False, kw_only=True)
class UserRecords(Records[dict[str, Any]]):
    """The users, and the changes that administrators may make."""

    word = "user"
    title = "user"
    path = "/mon/users"
    key = "id"
    summary = "users: contacts, those named for roles or with a password, and profiles"
    columns = COLUMNS
    verbs: ClassVar = {
        "list": {"text": "Administrators see all of them, others themselves."},
        "one": {"description": "one user by name"},
    }

    users: Users
    contacts: Contacts
    passwords: Passwords
    slowdown: Slowdown

    @Endpoint(
        path="/mon/whoami",
        description="the user who is asking",
        shape="object",
        parameters=OBJECT_PARAMETERS,
        columns=WHOAMI_COLUMNS,
    )
    async def whoami(self, context: Context, request: RestRequest, _: tuple[str, ...]) -> Answer:
        identity = request.identity
        contact = await self.contacts.of(identity.user)
        profile = await self.users.get(identity.user)
        value = {
            **_record(context, identity, contact, profile),
            "auth_src": identity.source,
            "original_username": identity.original or identity.user,
        }
        columns = own_columns(WHOAMI_COLUMNS, context.names)
        return await reselect(context, request, Document(value=value, columns=columns))

    def columns_of(self, context: Context) -> tuple[Column, ...]:
        return own_columns(COLUMNS, context.names)

    async def answer_list(
        self, context: Context, request: RestRequest, where: tuple[str, ...]
    ) -> Answer:
        """All users, with the sites that failed; for others than administrators only themselves."""
        if not request.identity.may(ADMIN):
            return await super().answer_list(context, request, where)
        contacts, problems = await self.contacts.all_contacts(context.sites.sites)
        profiles = {profile.name: profile for profile in await self.users.list()}
        users = _user_names(
            contacts, profiles, await _configured(self.passwords, context.config.auth)
        )
        granted = GrantedRoles.of(context.config.auth)

        def row(name: str) -> dict[str, Any]:
            contact = contacts.get(name, NO_CONTACT)
            identity = Identity(user=name, roles=granted.held(name, contact.groups))
            return _record(context, identity, contact, profiles.get(name))

        answer = await self.listed(context, request, list(map(row, sorted(users))))
        return evolve(answer, failed_sites=problems)

    async def find(
        self, context: Context, request: RestRequest, key: str | None
    ) -> Sequence[dict[str, Any]]:
        """A user is there for themselves, also where nothing is known of them."""
        identity = request.identity
        name = identity.user if key is None else key
        if name != identity.user and not (
            identity.may(ADMIN) and "*" not in name and await self._exists(context, name)
        ):
            return []
        contact = await self.contacts.of(name)
        profile = await self.users.get(name)
        roles = GrantedRoles.of(context.config.auth).held(name, contact.groups)
        return [_record(context, Identity(user=name, roles=roles), contact, profile)]

    async def rows(self, context: Context, users: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
        del context
        return list(users)

    @Endpoint(
        path="/mon/users/<id>",
        methods=("PATCH",),
        description="change what is stored of a user",
        text="Users change what is stored of themselves, administrators that of all users.",
        shape="object",
        parameters=(_ZONE,),
        columns=_CHANGED,
    )
    async def update(
        self, context: Context, request: RestRequest, where: tuple[str, ...]
    ) -> Answer:
        identity, (name,) = request.identity, where
        with audited(request, "user change", name):
            if name != identity.user and not (
                identity.may(ADMIN) and await self._exists(context, name)
            ):
                raise NotFound("no such user")
            usernames.check(name, "id")
            fields = fields_of(request)
            if unknown := fields.keys() - {"tz"}:
                raise BadRequest("unknown parameter", f"{min(unknown)[:80]!r}: expected only tz")
            if "tz" in fields:
                await self.users.set_zone(name, _ZONE.read(fields["tz"]))
        return Document(value={"code": 200, "message": "ok - user has been changed"})

    @Endpoint(
        path="/mon/users/<id>/cmd/lock",
        methods=("POST",),
        description="lock a user",
        text="Every way of authentication is refused to a locked user, here at once and by other "
        "daemons on the same database within five seconds.",
        shape="object",
        parameters=(),
        columns=_CHANGED,
        roles=("admin",),
    )
    async def lock(self, context: Context, request: RestRequest, where: tuple[str, ...]) -> Answer:
        return await self._locked(context, request, where[0], "lock")

    @Endpoint(
        path="/mon/users/<id>/cmd/unlock",
        methods=("POST",),
        description="unlock a user",
        text="Forgets the failed logins as well.",
        shape="object",
        parameters=(),
        columns=_CHANGED,
        roles=("admin",),
    )
    async def unlock(
        self, context: Context, request: RestRequest, where: tuple[str, ...]
    ) -> Answer:
        return await self._locked(context, request, where[0], "unlock")

    async def _locked(self, context: Context, request: RestRequest, name: str, word: str) -> Answer:
        with audited(request, f"user {word}", name):
            require_only(request)
            if word == "lock":
                usernames.check(name, "id")
                await self.users.lock(name)
            elif not await self._exists(context, name):
                raise NotFound("no such user")
            else:
                await self.users.unlock(name)
                self.slowdown.forgive(name)
        return Document(value={"code": 200, "message": f"ok - user has been {word}ed"})

    async def _exists(self, context: Context, name: str) -> bool:
        """Whether a user is known beyond this request."""
        return name.isprintable() and (
            name in await _configured(self.passwords, context.config.auth)
            or await self.users.get(name) is not None
            or (await self.contacts.of(name)).alias is not None
        )


def _record(
    context: Context, identity: Identity, contact: Contact, profile: Profile | None
) -> dict[str, Any]:
    may_submit = submits(identity, contact, context.config)
    held = {role for role in ROLES if identity.may(role)}
    return {
        "alias": contact.alias,
        "can_submit_commands": int(may_submit),
        "email": contact.email,
        "groups": sorted(contact.groups),
        f"has_{context.names.app}_profile": profile is not None,
        "roles": sorted(held if may_submit else held | {READ_ONLY}),
        **shown_values(profile or Profile(name=identity.user)),
    }
