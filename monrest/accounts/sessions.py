"""Sessions by cookie: made at a login, kept by the hash of their value.

A session ends when it was not used for a while, and after a fixed time in any case; both are
looked at whenever one is presented, and what is over is removed from time to time. The value
itself is in the cookie and nowhere else. It also ends with the password that it began with
(docs/spec/accounts.md, "How long a revocation takes").
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Mapping

from attrs import define, evolve, field
from sqlalchemy import (
    Connection,
    and_,
    bindparam,
    case,
    delete,
    func,
    insert,
    or_,
    select,
    update,
)
from twisted.application.service import Service
from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IReactorTime

from monrest.accounts.model import Session, proof, secret_hash
from monrest.accounts.remembered_credentials import Remembered
from monrest.base.clock import WallClock
from monrest.base.concurrency import Periodic
from monrest.base.errors import Unavailable
from monrest.base.names import Names
from monrest.base.values import Caller
from monrest.base.workers import Workers
from monrest.config import AuthConfig
from monrest.store.database import Database

sessions = Session.table

MOST_OF_A_USER = 500
"""Sessions of one user; a further one ends the one that was not used for the longest time."""

_FORM = re.compile(r"[0-9a-f]{64}_1")
_HASH = re.compile(r"[0-9a-f]{64}")
_SECRET_BYTES = 32
_SUFFIX = "_1"  # names the digest
_FRESH = 4.0
_FLUSH = 10.0
_CLEAN = 300.0
_UNFLUSHED = 60.0
_RECENT = 300.0


@define(eq=False)
class Sessions(Service):
    """All sessions of the database; ``config`` and ``names`` may be replaced while it runs."""

    database: Database
    clock: IReactorTime
    wall: WallClock
    config: AuthConfig
    names: Names
    workers: Workers = field(factory=Workers)
    _remembered: Remembered[Session] = field(init=False)
    _seen: dict[str, int] = field(factory=dict, init=False)
    _jobs: tuple[Periodic, ...] = field(init=False)

    def __attrs_post_init__(self) -> None:
        self._remembered = Remembered(self.clock, self._look_up, _FRESH, self.workers, "sessions")
        self._jobs = (
            Periodic(self.clock, _FLUSH, self.flush, "storing the use of sessions", now=False),
            Periodic(self.clock, _CLEAN, self.clean, "removing old sessions", now=False),
        )

    async def find(self, value: str) -> Session | None:
        """Give the session of a cookie, None when there is none or it is over; it counts as used.

        Unavailable when the database is and nothing recent is known.
        """
        if _FORM.fullmatch(value) is None:
            return None
        hashed = secret_hash(value)
        session = await self._found(hashed)
        if session is not None and not self._lives(session):
            session = await self._found(hashed, anew=True)  # another daemon may know of later use
        if session is None or not self._lives(session):
            return None
        self._seen[hashed] = int(self.wall.now())
        return session

    async def _found(self, hashed: str, *, anew: bool = False) -> Session | None:
        found = await self._remembered.find(hashed, self.config.grace, anew=anew)
        if found is None:
            self._seen.pop(hashed, None)
            return None
        session, sure = found
        session = self._used(session)
        return session if sure else evolve(session, confirmed=False)

    async def _look_up(self, hashed: str) -> Session | None:
        return await self.database.run(lambda connection: Session.find(connection, hashed))

    def _used(self, session: Session) -> Session:
        """Add what is not stored yet."""
        seen = self._seen.get(session.hashed_id, 0)
        return evolve(session, active=seen) if seen > session.active else session

    def _lives(self, session: Session) -> bool:
        now = self.wall.now()
        return (
            now - session.active < self.config.session_idle
            and now - session.created < self.config.session_lifetime
        )

    async def several(self, user: str | None = None, hashed: str | None = None) -> list[Session]:
        """Give the sessions of ``user`` (None: of all) in the order of the logins.

        With a hash only the session that has it.
        """
        query = select(sessions).order_by(sessions.c.created, sessions.c.hashed_id)
        if user is not None:
            query = query.where(sessions.c.username == user)
        if hashed is not None:
            if _HASH.fullmatch(hashed) is None:
                return []
            query = query.where(sessions.c.hashed_id == hashed)

        def read(connection: Connection) -> list[Session]:
            return [Session.of(row) for row in connection.execute(query)]

        found = [self._used(session) for session in await self.database.run(read)]
        return [session for session in found if self._lives(session)]

    async def figures(self) -> dict[str, float]:
        """Count sessions and their users, all and those of the last five minutes, in one query."""
        await self.flush()
        now = self.wall.now()
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
        row = await self.database.run(lambda connection: connection.execute(query).one())
        return {name: int(value) for name, value in row._mapping.items()}

    async def create(
        self, user: str, caller: Caller, password: str, roles: tuple[str, ...] | None = None
    ) -> tuple[Session, str]:
        """Begin a session; the second value is the one of the cookie, which is kept nowhere.

        ``password`` is what the password file says of the user, a hash.
        """
        value = secrets.token_hex(_SECRET_BYTES) + _SUFFIX
        now = int(self.wall.now())
        session = Session(
            hashed_id=secret_hash(value),
            username=user,
            address=caller.address or caller.client,
            csrf_token=secrets.token_hex(_SECRET_BYTES) + _SUFFIX,
            roles=roles,
            created=now,
            active=now,
            proof=proof(value, password),
        )

        def store(connection: Connection) -> list[str]:
            # What has to go before a further session may begin.
            of_user = select(sessions.c.hashed_id).where(sessions.c.username == user)
            by_use = of_user.order_by(
                sessions.c.active.desc(), sessions.c.created.desc(), sessions.c.hashed_id
            )
            surplus = list(connection.execute(by_use.offset(MOST_OF_A_USER - 1)).scalars())
            if surplus:
                connection.execute(delete(sessions).where(sessions.c.hashed_id.in_(surplus)))
            connection.execute(insert(sessions), [session.values()])
            return surplus

        await self.flush()  # the time of the last use decides which one has to go
        surplus = await self.database.change(store)
        if surplus:
            self._forget(*surplus)
        self._remembered.made(session.hashed_id)
        return session, value

    async def delete(self, hashed: str) -> bool:
        """End a session, which is refused from then on; False when there is none."""
        query = delete(sessions).where(sessions.c.hashed_id == hashed)
        try:
            deleted = await self.database.change(
                lambda connection: connection.execute(query).rowcount
            )
        finally:
            # Also after a failure, which does not say whether the session is gone.
            self._forget(hashed)
        return bool(deleted)

    def _forget(self, *hashes: str) -> None:
        self._remembered.forget(*hashes)
        for hashed in hashes:
            self._seen.pop(hashed, None)

    async def flush(self) -> None:
        """Store when sessions were used; kept for later while the database is away."""
        seen, self._seen = self._seen, {}
        if not seen:
            return
        rows = [{"hashed": hashed, "at": at} for hashed, at in sorted(seen.items())]
        try:
            await self.database.change(lambda connection: connection.execute(_USED, rows))
        except Unavailable:
            self._seen = seen | self._seen
        except BaseException:
            self._seen = seen | self._seen
            raise

    async def clean(self) -> int:
        """Remove what is over from the database; how many sessions that were."""
        await self.flush()
        now = self.wall.now()
        query = delete(sessions).where(
            or_(
                # Other daemons may not have stored yet that a session was used.
                sessions.c.active <= int(now - self.config.session_idle - _UNFLUSHED),
                sessions.c.created <= int(now - self.config.session_lifetime),
            )
        )
        try:
            removed = await self.database.change(
                lambda connection: connection.execute(query).rowcount
            )
        except Unavailable:
            return 0
        return int(removed)

    @property
    def cookie_name(self) -> str:
        return f"{self.names.app}_auth"

    def cookie(self, value: str, caller: Caller) -> tuple[str, str]:
        """Give the header that hands the cookie to the client, for as long as it runs."""
        return self._set_cookie(value, caller)

    def expired_cookie(self, caller: Caller) -> tuple[str, str]:
        """Give the header that takes the cookie away."""
        return self._set_cookie("", caller, "Max-Age=0", "Expires=Thu, 01 Jan 1970 00:00:00 GMT")

    def _set_cookie(self, value: str, caller: Caller, *more: str) -> tuple[str, str]:
        parts = [f"{self.cookie_name}={value}", f"Path=/{self.names.app}"]
        if self.config.cookie_domain:
            parts.append(f"Domain={self.config.cookie_domain}")
        parts += [*more, "HttpOnly", "SameSite=Lax"]
        if caller.secure or self.config.cookie_secure:
            parts.append("Secure")
        return ("Set-Cookie", "; ".join(parts))

    def configure(self, config: AuthConfig, names: Names) -> None:
        self.config, self.names = config, names

    def startService(self) -> None:
        """Store uses and remove old sessions from time to time."""
        super().startService()
        for job in self._jobs:
            job.startService()

    def stopService(self) -> Deferred[None]:
        """Store what is left; fires when that is done or has failed. Before the database stops."""
        super().stopService()
        return Deferred.fromCoroutine(self._stop())

    async def _stop(self) -> None:
        for job in self._jobs:
            await job.stopService()
        await self.flush()


_USED = (
    update(sessions)
    .where(and_(sessions.c.hashed_id == bindparam("hashed"), sessions.c.active < bindparam("at")))
    .values(active=bindparam("at"))
)


def cookie_of(headers: Mapping[str, str], name: str) -> str:
    """Give the value of a cookie, empty when there is none; ``headers`` have lower-case names."""
    for part in headers.get("cookie", "").split(";"):
        found, _, value = part.strip().partition("=")
        if found == name:
            return value.strip('"')
    return ""
