"""Sessions: log in and out with a cookie, list, read (docs/spec/accounts.md)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, ClassVar

from attrs import frozen

from monrest.accounts.model import DIGEST, Session, secret_hash
from monrest.accounts.passwords import Passwords
from monrest.accounts.sessions import Sessions, cookie_of
from monrest.accounts.slowdown import WRONG, Slowdown, is_right, not_authenticated
from monrest.accounts.usernames import UserField, UserNames
from monrest.accounts.users import Users
from monrest.api.csrf import check_page
from monrest.api.endpoint import Context, Endpoint, Parameter
from monrest.api.records import Records
from monrest.base.audit import audit
from monrest.base.errors import BadRequest, Forbidden, TooManyRequests, Unavailable
from monrest.base.values import ADMIN, Answer, Caller, Column, Document, RestRequest
from monrest.query.parse import RESERVED
from monrest.store.stored import shown_columns, shown_values

_ALWAYS = {"digest": DIGEST, "fake": 0, "oauth_groups": []}
COLUMNS = shown_columns(
    Session,
    Column("digest", "string", "", "how the session's id is hashed"),
    Column("fake", "boolean", "", "always 0: only a login makes a session"),
    Column("file", "string", "", "where it is kept: table and record in the database"),
    Column("oauth_groups", "array_of_strings", "", "empty: there are no logins by OAuth"),
)
_LOGIN = UserField("login", "name of the user, or `username`", required=True)
_NAMES = (_LOGIN.name, "username")
_PASSWORD = "password"  # noqa: S105  the parameter's name


@frozen(eq=False, kw_only=True)
class SessionRecords(Records[Session]):
    """Sessions of users that the password file still has: administrators see all of them."""

    word = "session"
    title = "session"
    path = "/mon/sessions"
    key = "id"
    summary = "sessions that began with a login"
    columns = COLUMNS
    verbs: ClassVar = {
        "list": {
            "text": "Administrators see all of them, others their own. A session ends with its "
            "time, with a logout, and when its user is taken out of the password file or gets "
            "another password."
        },
        "one": {"description": "one session by its hash"},
    }

    sessions: Sessions
    passwords: Passwords
    users: Users
    slowdown: Slowdown

    async def find(
        self, context: Context, request: RestRequest, key: str | None
    ) -> Sequence[Session]:
        del context
        identity = request.identity
        sessions = await self.sessions.several(None if identity.may(ADMIN) else identity.user, key)
        names = frozenset(await self.passwords.names())
        return [session for session in sessions if session.username in names]

    async def rows(self, context: Context, sessions: Iterable[Session]) -> list[dict[str, Any]]:
        """The sessions as they are shown; never with their CSRF token."""
        del context
        return [{**_ALWAYS, "file": session.file, **shown_values(session)} for session in sessions]

    @Endpoint(
        path="/mon/login",
        methods=("POST",),
        description="log in and get a session cookie",
        text="The cookie is in the answer's header `Set-Cookie`. Requests that change something "
        "and come with the cookie need the token as well, in the header `X-Mon-CSRF-Token` or "
        "in the parameter `CSRFtoken`. A wrong password is answered with 401, more slowly with "
        "each further one. After too many the right one is answered like them for some time, and "
        "a user whom an administrator has locked with 403. Needs `auth.htpasswd_file`.",
        shape="object",
        parameters=(
            _LOGIN,
            Parameter(name=_PASSWORD, description="password of the user", required=True),
        ),
        columns=(
            Column("csrf_token", "string", "", "what state-changing requests must carry"),
            Column("user", "string", "", "name of the user"),
        ),
        public=True,
    )
    async def login(self, context: Context, request: RestRequest, _: tuple[str, ...]) -> Answer:
        caller = request.caller
        check_page(caller.headers)
        if not self.passwords.configured:
            raise BadRequest(
                "login is not available",
                "no auth.htpasswd_file is configured; use an API key",
            )
        name, password = _credentials(request)
        user = UserNames(context.config.auth).read(name, "login").name
        try:
            session, value = await self._begin(context, user, password, caller)
        except (TooManyRequests, Unavailable) as error:
            audit(user, caller, "login failed", result=error.message)
            raise
        audit(user, caller, "login", target=session.hashed_id)
        return Document(
            value={"csrf_token": session.csrf_token, "user": user},
            headers=(self.sessions.cookie(value, caller),),
        )

    async def _begin(
        self, context: Context, user: str, password: str, caller: Caller
    ) -> tuple[Session, str]:
        """Look at the password and make a session; a wrong password and a lock are audited here."""
        # Looked at first: if it changes meanwhile, the session is over and not one too many.
        hashed = await self.passwords.hash_of(user)
        right = await is_right(
            user,
            password,
            caller,
            passwords=self.passwords,
            slowdown=self.slowdown,
            users=self.users,
        )
        if not right or hashed is None:
            raise not_authenticated("login failed", WRONG, caller, context.names, passwords=False)
        if await self.users.is_locked(user):
            audit(user, caller, "login failed", result="locked")
            raise Forbidden(context.config.auth.locked_message)
        # The session always has a new id: one that was planted in the browser is worth nothing.
        old = cookie_of(caller.headers, self.sessions.cookie_name)
        if old and old.isascii():
            await self.sessions.delete(secret_hash(old))
        await self.users.succeeded(user, caller)
        return await self.sessions.create(user, caller, hashed)

    @Endpoint(
        path="/mon/logout",
        methods=("POST",),
        description="end the session of the cookie",
        shape="object",
        parameters=(),
        columns=(Column("message", "string", "", "what was done"),),
        at_once=True,
        own_session=True,
    )
    async def logout(self, context: Context, request: RestRequest, _: tuple[str, ...]) -> Answer:
        del context
        identity = request.identity
        if not identity.session:
            raise BadRequest("there is no session to end", "Cookie: expected that of a login")
        await self.sessions.delete(identity.session)
        audit(identity, request.caller, "logout", target=identity.session)
        return Document(
            value={"message": "logged out"},
            headers=(self.sessions.expired_cookie(request.caller),),
        )


def _credentials(request: RestRequest) -> tuple[str, str]:
    """Return name and password; BadRequest, which never shows a value, when they are not there."""
    names, passwords = [], []
    for name, value in request.parameters:
        if name in _NAMES:
            names.append(value)
        elif name == _PASSWORD:
            passwords.append(value)
        elif name not in RESERVED:
            raise BadRequest(
                "unknown parameter", f"{name[:80]!r}: expected only login and password"
            )
    for what, values in (("login", names), (_PASSWORD, passwords)):
        if not values or not values[0]:
            raise BadRequest(f"missing argument: {what}", f"{what} is a required argument")
        if len(values) > 1:
            raise BadRequest("too many values", f"{what}: expected one value, got {len(values)}")
    return names[0].strip(), passwords[0]
