"""API keys: only their hashes are stored (docs/spec/accounts.md, "Keys").

What was read is kept for a few seconds, so that a request with a key costs a hash and a look-up.
A key that is deleted through this daemon, by whichever of its workers, is refused at once, one that
another daemon on the same database deletes when what is kept here is too old
(docs/spec/accounts.md).
"""

from __future__ import annotations

import re
import secrets

from attrs import define, evolve, field, frozen
from sqlalchemy import Connection, and_, bindparam, delete, func, insert, or_, select, update
from twisted.application.service import Service
from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IReactorTime

from monrest.accounts.model import ApiKey, secret_hash
from monrest.accounts.remembered_credentials import Remembered
from monrest.base.clock import WallClock
from monrest.base.concurrency import Periodic
from monrest.base.errors import Forbidden, Unavailable
from monrest.base.values import Caller
from monrest.base.workers import Workers
from monrest.config import AuthConfig
from monrest.store.database import Database, insert_if_absent, transaction
from monrest.store.stored import StoredRow

api_keys = ApiKey.table

_SECRET_BYTES = 32
_SUFFIX = "_1"  # names the digest
_HASH = re.compile(r"[0-9a-f]{64}")
_FORM = re.compile(r"[A-Za-z0-9]{1,128}(?:_1)?")
_FRESH = 4.0
"""Seconds: other daemons refuse what was revoked within five, their next question included."""

_FLUSH = 10.0


@frozen
class _Use:
    at: int
    client: str


@define(eq=False)
class Keys(Service):
    """All API keys of the database; ``config`` may be replaced while it runs."""

    database: Database
    clock: IReactorTime
    wall: WallClock
    config: AuthConfig
    workers: Workers = field(factory=Workers)
    _remembered: Remembered[ApiKey] = field(init=False)
    _uses: dict[str, _Use] = field(factory=dict, init=False)
    _flusher: Periodic = field(init=False)

    def __attrs_post_init__(self) -> None:
        self._remembered = Remembered(self.clock, self._look_up, _FRESH, self.workers, "keys")
        self._flusher = Periodic(
            self.clock, _FLUSH, self.flush, "storing the use of keys", now=False
        )

    async def find(self, plain: str) -> ApiKey | None:
        """Give the key of its plain text, None for an unknown one.

        Unavailable when the database is and nothing recent is known. ``last_used`` and
        ``last_from`` are as old as what is kept.
        """
        if _FORM.fullmatch(plain) is None:
            return None
        found = await self._remembered.find(secret_hash(plain), self.config.grace)
        if found is None:
            return None
        key, sure = found
        return key if sure else evolve(key, confirmed=False)

    async def _look_up(self, hashed: str) -> ApiKey | None:
        return await self.database.run(lambda connection: ApiKey.find(connection, hashed))

    def configure(self, config: AuthConfig) -> None:
        self.config = config

    def used(self, key: ApiKey, caller: Caller) -> None:
        """Note who used the key; stored within ten seconds, together with other uses."""
        client = caller.client or caller.address
        if caller.address and client != caller.address:
            client = f"{caller.address} ({client})"
        self._uses[key.hashed_key] = _Use(int(self.wall.now()), client)

    async def several(self, user: str | None = None, hashed: str | None = None) -> list[ApiKey]:
        """Give the keys of ``user`` (None: of all) in the order of their creation.

        With a hash only the key that has it.
        """
        query = select(api_keys).order_by(api_keys.c.created, api_keys.c.hashed_key)
        if user is not None:
            query = query.where(api_keys.c.user == user)
        if hashed is not None:
            if _HASH.fullmatch(hashed) is None:
                return []
            query = query.where(api_keys.c.hashed_key == hashed)

        def read(connection: Connection) -> list[ApiKey]:
            return [ApiKey.of(row) for row in connection.execute(query)]

        return [self._with_use(key) for key in await self.database.run(read)]

    def _with_use(self, key: ApiKey) -> ApiKey:
        use = self._uses.get(key.hashed_key)
        return key if use is None else evolve(key, last_used=use.at, last_from=use.client)

    async def create(
        self,
        *,
        user: str | None = None,
        superuser: bool = False,
        force_user: str | None = None,
        roles: tuple[str, ...] | None = None,
        comment: str = "",
        creator: str = "",
        most: int | None = None,
    ) -> tuple[ApiKey, str]:
        """Make a key and store it; the second value is the key itself, which is kept nowhere.

        Forbidden when ``creator`` owns ``most`` keys already (None: no limit).
        """
        plain = secrets.token_hex(_SECRET_BYTES) + _SUFFIX
        key = ApiKey(
            hashed_key=secret_hash(plain),
            user=None if superuser else user,
            superuser=superuser,
            force_user=force_user if superuser else None,
            roles=roles,
            comment=comment,
            created=int(self.wall.now()),
        )

        def store(connection: Connection) -> None:
            if most is not None:
                check_number(_owned(connection, creator), most)
            connection.execute(insert(api_keys), [key.values()])

        await self.database.change(store)
        self._remembered.made(key.hashed_key)
        return key, plain

    async def owned(self, user: str) -> int:
        """Count the keys that belong to ``user``."""
        return await self.database.run(lambda connection: _owned(connection, user))

    async def delete(self, hashed: str) -> bool:
        """Delete a key, which is refused from then on; False when there is none."""
        found = delete(api_keys).where(api_keys.c.hashed_key == hashed)
        try:
            deleted = await self.database.change(
                lambda connection: connection.execute(found).rowcount
            )
        finally:
            # Also after a failure, which does not say whether the key is gone.
            self._remembered.forget(hashed)
        if deleted:
            self._uses.pop(hashed, None)
        return bool(deleted)

    async def flush(self) -> None:
        """Store when and from where keys were used; kept for later while the database is away."""
        uses, self._uses = self._uses, {}
        if not uses:
            return
        rows = [{"hashed": one, "at": use.at, "client": use.client} for one, use in uses.items()]
        try:
            await self.database.change(lambda connection: connection.execute(_USED, rows))
        except Unavailable:
            self._uses = uses | self._uses
        except BaseException:
            self._uses = uses | self._uses
            raise

    def startService(self) -> None:
        """Store uses from time to time."""
        super().startService()
        self._flusher.startService()

    def stopService(self) -> Deferred[None]:
        """Store what is left; fires when that is done or has failed. Before the database stops."""
        super().stopService()
        return Deferred.fromCoroutine(self._stop())

    async def _stop(self) -> None:
        await self._flusher.stopService()
        await self.flush()


@transaction
def adopt(connection: Connection, one: StoredRow) -> bool:
    """Store a key or a profile of another installation; False when it is there."""
    if one.find(connection, getattr(one, one.primary_key().name)) is not None:
        return False
    connection.execute(insert_if_absent(connection, one.table, one.values()))
    return True


_USED = (
    update(api_keys)
    .where(
        and_(
            api_keys.c.hashed_key == bindparam("hashed"),
            or_(api_keys.c.last_used.is_(None), api_keys.c.last_used <= bindparam("at")),
        )
    )
    .values(last_used=bindparam("at"), last_from=bindparam("client"))
)


def check_number(owned: int, most: int) -> None:
    """Raise Forbidden for a user who owns ``most`` keys already."""
    if owned >= most:
        raise Forbidden(f"maximum number of api keys ({most}) reached, cannot create more.")


def _owned(connection: Connection, user: str) -> int:
    query = select(func.count()).select_from(api_keys).where(api_keys.c.user == user)
    return int(connection.execute(query).scalar_one())
