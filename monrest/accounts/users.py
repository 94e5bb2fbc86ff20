"""Profiles of users: who is locked, how many logins failed (docs/spec/accounts.md, "Users").

Who is locked is read in one go and kept for a few seconds, so that every request can ask. A user
who is locked through this daemon is refused at once, one whom another daemon on the same
database locks when what is kept here is too old.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import tzinfo
from typing import Any, TypeVar

from attrs import define, field, frozen
from sqlalchemy import Connection, delete, or_, select, update
from twisted.application.service import Service
from twisted.internet.defer import Deferred
from twisted.internet.defer import TimeoutError as TooLate
from twisted.internet.interfaces import IReactorTime
from twisted.logger import Logger

from monrest.accounts.model import Profile
from monrest.base.audit import audit
from monrest.base.clock import WallClock
from monrest.base.concurrency import Periodic, Shared
from monrest.base.errors import Unavailable
from monrest.base.values import INTERNAL, Caller
from monrest.base.workers import Workers
from monrest.config import AuthConfig
from monrest.store.database import Database, insert_if_absent

log = Logger()

users = Profile.table

T = TypeVar("T")

IN_ALL = 10
"""Times as many wrong passwords from all addresses as from one."""

_KEPT = 4.0
_PATIENCE = 2.0
_RETRY = 1.0
_CLEAN = 1800.0


@frozen
class _Known:
    """Names that are locked, and those with failed logins since the last right one.

    Of these ``guessed`` had so many that only addresses where they have been may try.
    """

    locked: frozenset[str]
    failing: frozenset[str]
    guessed: frozenset[str] = frozenset()


@define(eq=False)
class Users(Service):
    """All profiles of the database; ``config`` may be replaced while it runs."""

    database: Database
    clock: IReactorTime
    wall: WallClock
    config: AuthConfig
    workers: Workers = field(factory=Workers)
    _state: bytes = field(init=False, default=b"")
    _known: _Known | None = field(init=False, default=None)
    _until: float = field(init=False, default=0.0)
    _changes: int = field(init=False, default=0)
    _reading: Shared[None] | None = field(init=False, default=None)
    _cleaning: Periodic = field(init=False)

    def __attrs_post_init__(self) -> None:
        self._cleaning = Periodic(self.clock, _CLEAN, self.clean, "forgetting unused profiles")

    async def is_locked(self, name: str) -> bool:
        """Whether the user may not come in; internal users never are.

        While the database is away what was known last is in force; Unavailable without it.
        """
        return name not in INTERNAL and name in (await self._current()).locked

    async def is_guessed(self, name: str) -> bool:
        """Whether wrong passwords from all addresses have locked out the user's passwords."""
        return name in (await self._current()).guessed

    async def get(self, name: str) -> Profile | None:
        """Give a user's profile, None when nothing is stored of them."""
        return await self.database.run(lambda connection: Profile.find(connection, name))

    async def zone_of(self, name: str) -> tzinfo | None:
        """Give the time zone that a user chose, None for the server's."""
        profile = await self.get(name)
        return None if profile is None else profile.zone

    async def list(self) -> list[Profile]:
        query = select(users).order_by(users.c.name)

        def read(connection: Connection) -> list[Profile]:
            return [Profile.of(row) for row in connection.execute(query)]

        return await self.database.run(read)

    async def _current(self) -> _Known:
        known = self._known
        if known is not None and self.clock.seconds() < self._until and not self._overtaken():
            return known
        reading = self._reading
        if reading is None:
            reading = self._reading = Shared()
            reading.run(self._read(), self._has_read)
        waiter = reading.wait()
        try:
            # Who is known to be locked is refused in time even while the database hangs.
            await (waiter if known is None else waiter.addTimeout(_PATIENCE, self.clock))
        except TooLate:
            self._until = self.clock.seconds() + _RETRY
        if self._known is None:
            raise Unavailable("cannot read", "it is not known which users are locked")
        return self._known

    def _has_read(self) -> None:
        self._reading = None

    def _overtaken(self) -> bool:
        """Whether another worker has changed something since the last look."""
        return self._state != self.workers.state("users")

    async def _read(self) -> None:
        query = select(users.c.name, users.c.locked, users.c.failed).where(
            or_(users.c.locked.is_(True), users.c.failed > 0)
        )

        def read(connection: Connection) -> _Known:
            rows = connection.execute(query).all()
            return _Known(
                frozenset(row.name for row in rows if row.locked),
                frozenset(row.name for row in rows),
                frozenset(row.name for row in rows if self._too_many(row.failed)),
            )

        while True:
            changes, begun = self._changes, self.clock.seconds()
            state = self.workers.state("users")
            try:
                known = await self.database.run(read)
            except Unavailable:
                self._until = self.clock.seconds() + _RETRY
                return
            # Else it may be older than what was changed.
            if changes == self._changes and state == self.workers.state("users"):
                break
        self._known, self._until, self._state = known, begun + _KEPT, state

    async def lock(self, name: str) -> None:
        """Lock a user, who needs no profile before; Unavailable when that cannot be stored."""

        def store(connection: Connection) -> None:
            _make(connection, name, int(self.wall.now()))
            connection.execute(_of(name).values(locked=True))

        await self._change(store, name, locked=True)

    async def unlock(self, name: str) -> bool:
        """Unlock a user and forget their failed logins; False when there is no profile."""
        query = _of(name).values(locked=False, failed=0)
        return bool(
            await self._change(
                lambda connection: connection.execute(query).rowcount,
                name,
                locked=False,
                failing=False,
            )
        )

    async def set_zone(self, name: str, zone: str | None) -> None:
        """Store the time zone of a user, who needs no profile before; None: the server's.

        Unavailable when that cannot be stored.
        """

        def store(connection: Connection) -> None:
            _make(connection, name, int(self.wall.now()))
            connection.execute(_of(name).values(tz=zone))

        await self.database.change(store)

    def _too_many(self, failed: int) -> bool:
        return 0 < self.config.lock_after_failed_logins * IN_ALL <= failed

    async def failed(self, name: str, caller: Caller, *, known: bool) -> None:
        """Count a wrong password; too many from all addresses lock out the user's passwords.

        Names that are not ``known`` (in the password file) and have no profile are not stored:
        strangers can make up as many as they like. Nothing is counted while the database is
        away or for who is locked.
        """
        now = int(self.wall.now())

        def count(connection: Connection) -> bool | None:
            if known:
                _make(connection, name, now)
            profile = Profile.find(connection, name)
            if profile is None or profile.locked:
                return None
            connection.execute(
                _of(name).values(failed=profile.failed + 1, last_failed=_where(caller, now))
            )
            return self._too_many(profile.failed + 1)

        if name in INTERNAL:
            return
        try:
            guessed = await self.database.change(count)
        except Unavailable:
            log.warn("a failed login of {name!r} was not counted", name=name)
            return
        if guessed is None:
            return
        before = self._known is not None and name in self._known.guessed
        self._note(name, locked=None, failing=True, guessed=guessed)
        if guessed and not before:
            audit(name, caller, "password lock", target=name, reason="wrong from many addresses")

    async def passed(self, name: str) -> None:
        """Note a right password that came with a request; costs nothing unless some failed."""
        known = self._known
        if known is None or not (name in known.failing or self._overtaken()):
            return
        query = _of(name).where(users.c.locked.is_(False)).values(failed=0)
        try:
            await self._change(
                lambda connection: connection.execute(query).rowcount, name, failing=False
            )
        except Unavailable:
            log.warn("the right password of {name!r} was not noted", name=name)

    async def succeeded(self, name: str, caller: Caller) -> None:
        """Note a login, with a profile for who has none; Unavailable when it is not stored."""
        now = int(self.wall.now())

        def store(connection: Connection) -> None:
            _make(connection, name, now)
            connection.execute(_of(name).values(failed=0, last_success=_where(caller, now)))

        await self._change(store, name, failing=False)

    async def _change(
        self,
        work: Callable[[Connection], T],
        name: str,
        *,
        locked: bool | None = None,
        failing: bool | None = None,
    ) -> T:
        try:
            value = await self.database.change(work)
        except BaseException:
            self._until = 0.0  # it may have been stored all the same
            self.workers.changed("users")
            raise
        self._note(name, locked=locked, failing=failing)
        return value

    def _note(
        self,
        name: str,
        *,
        locked: bool | None,
        failing: bool | None,
        guessed: bool = False,
    ) -> None:
        """Put what was just stored in force here; None: that was not changed."""
        self._changes += 1
        overtaken = self._overtaken()
        self.workers.changed("users")
        if not overtaken:
            # What is known here has this change already.
            self._state = self.workers.state("users")
        known = self._known
        if known is not None:
            self._known = _Known(
                _with(known.locked, name, locked),
                _with(known.failing, name, failing),
                known.guessed if failing is None else _with(known.guessed, name, guessed),
            )

    async def clean(self) -> None:
        """Forget profiles that are not used any more; later while the database is away."""
        now = self.wall.now()

        def forget(connection: Connection) -> int:
            rows = connection.execute(select(users).where(users.c.locked.is_(False))).all()
            gone = [row.name for row in rows if Profile.of(row).outlived(now)]
            for name in gone:
                connection.execute(delete(users).where(users.c.name == name))
            return len(gone)

        try:
            if any(profile.outlived(now) for profile in await self.list()):
                log.info("forgot {n} unused profiles", n=await self.database.change(forget))
        except Unavailable:
            return

    def configure(self, config: AuthConfig) -> None:
        self.config = config

    def startService(self) -> None:
        """Learn who is locked, and forget unused profiles from time to time."""
        super().startService()
        # Known before the first request, it is known as well when the database goes away.
        Deferred.fromCoroutine(self._current()).addErrback(
            lambda failure: failure.trap(Unavailable)
        )
        self._cleaning.startService()

    def stopService(self) -> Deferred[None]:
        """Fire when nothing is being forgotten; before the database stops."""
        super().stopService()
        return self._cleaning.stopService()


def _with(names: frozenset[str], name: str, wanted: bool | None) -> frozenset[str]:
    if wanted is None:
        return names
    return names | {name} if wanted else names - {name}


def _of(name: str) -> Any:
    return update(users).where(users.c.name == name)


def _make(connection: Connection, name: str, now: int) -> None:
    """Make an empty profile unless there is one, also when another daemon does the same."""
    values = {"name": name, "locked": False, "failed": 0, "created": now}
    connection.execute(insert_if_absent(connection, users, values))


def _where(caller: Caller, now: int) -> dict[str, Any]:
    where: dict[str, Any] = {"time": now, "ip": caller.address or caller.client}
    if caller.address and caller.client != caller.address:
        where["forwarded_for"] = caller.client
    return where
