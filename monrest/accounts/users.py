"""Profiles of users: who is locked, how many logins failed (docs/spec/accounts.md, "Users")."""

from __future__ import annotations

from datetime import tzinfo
from typing import Any, TypeVar

from attrs import define, frozen
from sqlalchemy import Connection, delete, or_, select, update
from twisted.logger import Logger

from monrest.accounts.credentials import Kind
from monrest.accounts.model import Profile
from monrest.base.audit import audit
from monrest.base.errors import Unavailable
from monrest.base.values import INTERNAL, Caller
from monrest.store.database import Work, insert_if_absent, transaction

log = Logger()

users = Profile.table

T = TypeVar("T")

IN_ALL = 10
"""Times as many wrong passwords from all addresses as from one."""


@frozen
class _Known:
    """Names that are locked, and those with failed logins since the last right one.

    Of these ``guessed`` had so many that only addresses where they have been may try.
    """

    locked: frozenset[str]
    failing: frozenset[str]
    guessed: frozenset[str] = frozenset()


@define(eq=False)
class Users(Kind[_Known]):
    """All profiles of the database.

    Who is locked is read and kept for all users together, so that it is known of each of them
    when the database goes away, and stays in force until it is back.
    """

    mark = "users"

    async def is_locked(self, name: str) -> bool:
        """Whether the user may not come in; internal users never are.

        While the database is away what was known last is in force; Unavailable without it.
        """
        return name not in INTERNAL and name in (await self._current()).locked

    async def is_guessed(self, name: str) -> bool:
        """Whether wrong passwords from all addresses have locked out the user's passwords."""
        return name in (await self._current()).guessed

    async def get(self, name: str) -> Profile | None:
        """Return a user's profile, None when nothing is stored of them."""
        return await self.service.database.run(lambda connection: Profile.find(connection, name))

    async def zone_of(self, name: str) -> tzinfo | None:
        """Return the time zone that a user chose, None for the server's."""
        profile = await self.get(name)
        return None if profile is None else profile.zone

    async def list(self) -> list[Profile]:
        query = select(users).order_by(users.c.name)

        def read(connection: Connection) -> list[Profile]:
            return [Profile.of(row) for row in connection.execute(query)]

        return await self.service.database.run(read)

    async def _current(self) -> _Known:
        current = await self.service.find(self, "")
        assert current is not None
        return current[0]

    async def look_up(self, name: str) -> _Known:
        """Ask for all users that are locked or failed; ``name`` is not used."""
        del name
        query = select(users.c.name, users.c.locked, users.c.failed).where(
            or_(users.c.locked.is_(True), users.c.failed > 0)
        )
        rows = await self.service.database.run(lambda connection: connection.execute(query).all())
        return _Known(
            frozenset(row.name for row in rows if row.locked),
            frozenset(row.name for row in rows),
            frozenset(row.name for row in rows if self._too_many(row.failed)),
        )

    async def lock(self, name: str) -> None:
        """Lock a user, who needs no profile before; Unavailable when that cannot be stored."""
        await self._change(_write(name, self.now(), {"locked": True}))

    async def unlock(self, name: str) -> bool:
        """Unlock a user and forget their failed logins; False when there is no profile."""
        query = _of(name).values(locked=False, failed=0)
        return bool(await self._change(lambda connection: connection.execute(query).rowcount))

    async def set_zone(self, name: str, zone: str | None) -> None:
        """Store the time zone of a user, who needs no profile before; None: the server's.

        Unavailable when that cannot be stored.
        """
        await self.service.database.change(_write(name, self.now(), {"tz": zone}))

    def _too_many(self, failed: int) -> bool:
        return 0 < self.config.lock_after_failed_logins * IN_ALL <= failed

    async def failed(self, name: str, caller: Caller, *, known: bool) -> None:
        """Count a wrong password; too many from all addresses lock out the user's passwords.

        Names that are not ``known`` (in the password file) and have no profile are not stored:
        strangers can make up as many as they like. Nothing is counted while the database is
        away or for who is locked.
        """
        if name in INTERNAL:
            return
        now = self.now()
        try:
            count = await self.service.database.change(
                _count(name, now, _where(caller, now), known=known)
            )
            if count:
                await self._changed()
        except Unavailable:
            log.warn("a failed login of {name!r} was not counted", name=name)
            return
        if self._too_many(count) and not self._too_many(count - 1):
            reason = "wrong from many addresses"
            audit(name, caller, "password lock", target=name, reason=reason)

    async def passed(self, name: str) -> None:
        """Note a right password that came with a request; costs nothing unless some failed."""
        query = _of(name).where(users.c.locked.is_(False)).values(failed=0)
        try:
            if name in (await self._current()).failing:
                await self._change(lambda connection: connection.execute(query).rowcount)
        except Unavailable:
            log.warn("the right password of {name!r} was not noted", name=name)

    async def succeeded(self, name: str, caller: Caller) -> None:
        """Note a login, with a profile for who has none; Unavailable when it is not stored."""
        now = self.now()
        await self._change(_write(name, now, {"failed": 0, "last_success": _where(caller, now)}))

    async def _change(self, work: Work[T]) -> T:
        try:
            value = await self.service.database.change(work)
        except BaseException:
            self.service.workers.changed(self.mark)  # it may have been stored all the same
            raise
        await self._changed()
        return value

    async def _changed(self) -> None:
        """Put what was just stored in force, here before the caller gets its result."""
        self.service.workers.changed(self.mark)
        await self.service.read(self, "")

    async def clean(self) -> int:
        """Forget profiles that are not used any more."""
        now = self.service.wall.now()
        try:
            if not any(profile.outlived(now) for profile in await self.list()):
                return 0
            count = await self.service.database.change(_forget_unused(now))
        except Unavailable:
            return 0
        log.info("forgot {n} unused profiles", n=count)
        return count


def _of(name: str) -> Any:
    return update(users).where(users.c.name == name)


def _make(connection: Connection, name: str, now: int) -> None:
    """Make an empty profile unless there is one, also when another daemon does the same."""
    empty = Profile(name=name, created=now).values()
    connection.execute(insert_if_absent(connection, users, empty))


@transaction
def _write(connection: Connection, name: str, now: int, values: dict[str, Any]) -> None:
    """Change a profile, which is made where there is none."""
    _make(connection, name, now)
    connection.execute(_of(name).values(values))


@transaction
def _count(
    connection: Connection, name: str, now: int, where: dict[str, Any], *, known: bool
) -> int:
    """Count a failed login; returns how many there are, 0 for a user who is locked or not known."""
    if known:
        _make(connection, name, now)
    profile = Profile.find(connection, name)
    if profile is None or profile.locked:
        return 0
    connection.execute(_of(name).values(failed=profile.failed + 1, last_failed=where))
    return profile.failed + 1


@transaction
def _forget_unused(connection: Connection, now: float) -> int:
    rows = connection.execute(select(users).where(users.c.locked.is_(False))).all()
    gone = [row.name for row in rows if Profile.of(row).outlived(now)]
    for name in gone:
        connection.execute(delete(users).where(users.c.name == name))
    return len(gone)


def _where(caller: Caller, now: int) -> dict[str, Any]:
    where: dict[str, Any] = {"time": now, "ip": caller.address or caller.client}
    if caller.address and caller.client != caller.address:
        where["forwarded_for"] = caller.client
    return where
