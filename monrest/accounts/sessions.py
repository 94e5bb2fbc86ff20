"""Sessions by cookie: made at a login, kept by the hash of their value.

A session ends when it was not used for a while, and after a fixed time in any case; both are
looked at whenever one is presented, and what is over is removed from time to time. The value
itself is in the cookie and nowhere else. It also ends with the password that it began with
(docs/spec/accounts.md, "How long a revocation takes").
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from attrs import define, evolve
from sqlalchemy import Connection, bindparam, case, delete, func, insert, or_, select, update

from monrest.accounts.credentials import HashedKind, Use
from monrest.accounts.model import Session, new_secret, proof, secret_hash
from monrest.base.errors import Unavailable
from monrest.base.values import Caller
from monrest.store.database import transaction

sessions = Session.table

MOST_OF_A_USER = 500
"""Sessions of one user; a further one ends the one that was not used for the longest time."""

_FORM = re.compile(r"[0-9a-f]{64}_1")
_UNFLUSHED = 60.0
_RECENT = 300.0


@define(eq=False)
class Sessions(HashedKind[Session]):
    """All sessions of the database."""

    mark = "sessions"
    row = Session
    owner = "username"

    async def find(self, value: str) -> Session | None:
        """Return the session of a cookie, None when there is none or it is over; it counts as used.

        Unavailable when the database is and nothing recent is known.
        """
        if _FORM.fullmatch(value) is None:
            return None
        hashed = secret_hash(value)
        session = await self.lookup(hashed)
        if session is not None and not self._lives(session):
            session = await self.lookup(hashed, anew=True)  # another daemon may know of later use
        if session is None or not self._lives(session):
            return None
        self.service.uses[self.mark, hashed] = Use(self.now())
        return session

    async def lookup(self, hashed: str, *, anew: bool = False) -> Session | None:
        session = await super().lookup(hashed, anew=anew)
        use = self.service.uses.get((self.mark, hashed))
        if session is None or use is None or use.at <= session.active:
            return session
        return evolve(session, active=use.at)

    def store(self, connection: Connection, uses: Mapping[str, Use]) -> None:
        connection.execute(
            _USED, [{"hashed": hashed, "at": use.at} for hashed, use in uses.items()]
        )

    def _lives(self, session: Session) -> bool:
        now, config = self.service.wall.now(), self.service.config
        return (
            now - session.active < config.session_idle
            and now - session.created < config.session_lifetime
        )

    async def several(self, user: str | None = None, hashed: str | None = None) -> list[Session]:
        """The sessions that have not expired."""
        return [session for session in await super().several(user, hashed) if self._lives(session)]

    async def figures(self) -> dict[str, float]:
        """Count sessions and their users, all and those of the last five minutes, in one query."""
        await self.service.flush()
        now = self.service.wall.now()
        recent = case((sessions.c.active >= now - _RECENT, sessions.c.username))
        query = select(
            func.count().label("sessions_total"),
            func.count(sessions.c.username.distinct()).label("sessions_uniq_user_total"),
            func.count(recent).label("sessions_active_5min_total"),
            func.count(recent.distinct()).label("sessions_uniq_user_5min_total"),
        ).where(
            sessions.c.active > now - self.config.session_idle,
            sessions.c.created > now - self.config.session_lifetime,
        )
        row = await self.service.database.run(lambda connection: connection.execute(query).one())
        return {name: int(value) for name, value in row._mapping.items()}

    async def create(
        self, user: str, caller: Caller, password: str, roles: tuple[str, ...] | None = None
    ) -> tuple[Session, str]:
        """Begin a session; the second value is the one of the cookie, which is kept nowhere.

        ``password`` is what the password file says of the user, a hash.
        """
        value = new_secret()
        now = self.now()
        session = Session(
            hashed_id=secret_hash(value),
            username=user,
            address=caller.address or caller.client,
            csrf_token=new_secret(),
            roles=roles,
            created=now,
            active=now,
            proof=proof(value, password),
        )
        await self.service.flush()  # the time of the last use decides which one has to go
        surplus = await self.service.database.change(_begin(session))
        if surplus:
            self.service.forget(self, *surplus)
        return session, value

    async def clean(self) -> int:
        """Remove what is over from the database."""
        await self.service.flush()
        now = self.service.wall.now()
        query = delete(sessions).where(
            or_(
                # Other daemons may not have stored yet that a session was used.
                sessions.c.active <= int(now - self.config.session_idle - _UNFLUSHED),
                sessions.c.created <= int(now - self.config.session_lifetime),
            )
        )
        try:
            return await self.service.database.change(
                lambda connection: connection.execute(query).rowcount
            )
        except Unavailable:
            return 0

    @property
    def cookie_name(self) -> str:
        return f"{self.service.names.app}_auth"

    def cookie(self, value: str, caller: Caller) -> tuple[str, str]:
        """Return the header that hands the cookie to the client, for as long as it runs."""
        return self._set_cookie(value, caller)

    def expired_cookie(self, caller: Caller) -> tuple[str, str]:
        """Return the header that takes the cookie away."""
        return self._set_cookie("", caller, "Max-Age=0", "Expires=Thu, 01 Jan 1970 00:00:00 GMT")

    def _set_cookie(self, value: str, caller: Caller, *more: str) -> tuple[str, str]:
        parts = [f"{self.cookie_name}={value}", f"Path=/{self.service.names.app}"]
        if self.config.cookie_domain:
            parts.append(f"Domain={self.config.cookie_domain}")
        parts += [*more, "HttpOnly", "SameSite=Lax"]
        if caller.secure or self.config.cookie_secure:
            parts.append("Secure")
        return ("Set-Cookie", "; ".join(parts))


@transaction
def _begin(connection: Connection, session: Session) -> list[str]:
    """Store a session; returns the hashes of those that have to go before."""
    of_user = select(sessions.c.hashed_id).where(sessions.c.username == session.username)
    by_use = of_user.order_by(
        sessions.c.active.desc(), sessions.c.created.desc(), sessions.c.hashed_id
    )
    surplus = list(connection.execute(by_use.offset(MOST_OF_A_USER - 1)).scalars())
    if surplus:
        connection.execute(delete(sessions).where(sessions.c.hashed_id.in_(surplus)))
    connection.execute(insert(sessions), [session.values()])
    return surplus


_USED = (
    update(sessions)
    .where(sessions.c.hashed_id == bindparam("hashed"), sessions.c.active < bindparam("at"))
    .values(active=bindparam("at"))
)


def cookie_of(headers: Mapping[str, str], name: str) -> str:
    """Return the value of a cookie, empty when there is none; ``headers`` have lower-case names."""
    for part in headers.get("cookie", "").split(";"):
        key, _, value = part.strip().partition("=")
        if key == name:
            return value.strip('"')
    return ""
