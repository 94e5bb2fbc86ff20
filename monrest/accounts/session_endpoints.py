"""Sessions: list and read (docs/spec/accounts.md, "Sessions")."""

from __future__ import annotations

from typing import Any

from attrs import frozen

from monrest.accounts.passwords import Passwords
from monrest.accounts.sessions import DIGEST, Session, Sessions
from monrest.api.endpoint import LIST_PARAMETERS, OBJECT_PARAMETERS, Context, Endpoint
from monrest.api.lists import local_schema, reselect, select
from monrest.base.errors import NotFound
from monrest.base.metrics import Metrics
from monrest.base.values import ADMIN, Answer, Column, Document, Identity, RestRequest

COLUMNS = (
    Column("active", "time", "", "when it was used last"),
    Column("address", "string", "", "where the login came from: the other end of its connection"),
    Column("digest", "string", "", "how the session's id is hashed"),
    Column("fake", "boolean", "", "always 0: only a login makes a session"),
    Column("file", "string", "", "where it is kept: table and record in the database"),
    Column("hashed_key", "string", "", "hash of the session's id, by which it is known here"),
    Column("oauth_groups", "array_of_strings", "", "empty: there are no logins by OAuth"),
    Column("roles", "array_of_strings", "", "all that it may give; empty: no restriction"),
    Column("username", "string", "", "whose session it is"),
)
_SCHEMA = local_schema("sessions", COLUMNS, ())


def record(session: Session) -> dict[str, Any]:
    """One session as it is shown; never its CSRF token."""
    return {
        "active": session.active,
        "address": session.address,
        "digest": DIGEST,
        "fake": 0,
        "file": session.file,
        "hashed_key": session.hashed_id,
        "oauth_groups": [],
        "roles": list(session.roles or ()),
        "username": session.username,
    }


def _owner(identity: Identity) -> str | None:
    """Whose sessions ``identity`` sees; None: everybody's."""
    return None if identity.may(ADMIN) else identity.user


@frozen(eq=False, kw_only=True)
class SessionEndpoints:
    """Sessions of the users that the password file still has."""

    sessions: Sessions
    passwords: Passwords
    figures: Metrics

    @Endpoint(
        path="/mon/sessions",
        description="sessions that began with a login",
        text="Administrators see all of them, others their own. A session ends with its time, with "
        "a logout, and when its user is taken out of the password file or gets another password.",
        parameters=LIST_PARAMETERS,
        columns=COLUMNS,
    )
    async def list_sessions(
        self, context: Context, request: RestRequest, _: tuple[str, ...]
    ) -> Answer:
        """Answer GET /mon/sessions: all sessions for administrators, their own for others."""
        self.figures.expire("sessions")
        known = await self.passwords.names()
        found = [
            one
            for one in await self.sessions.list(_owner(request.identity))
            if one.username in known
        ]
        return await select(context, request, _SCHEMA, map(record, found))

    @Endpoint(
        path="/mon/sessions/<id>",
        description="one session by its hash",
        shape="object",
        parameters=OBJECT_PARAMETERS,
        columns=COLUMNS,
    )
    async def read_session(
        self, context: Context, request: RestRequest, where: tuple[str, ...]
    ) -> Answer:
        found = await self.sessions.get(where[0])
        owner = _owner(request.identity)
        if (
            found is None
            or (owner is not None and found.username != owner)
            or await self.passwords.hash_of(found.username) is None
        ):
            raise NotFound("no such session")
        return await reselect(context, request, Document(value=record(found), columns=COLUMNS))
