"""Keys, sessions and users: what is kept of them here, what is stored later, what is over.

Rules: docs/spec/accounts.md, "How long a revocation takes" and "While the database is away". How
old something is counts from the moment at which the database was asked: what another daemon
revoked before that is known.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Mapping
from math import inf
from typing import Any, ClassVar, Generic, NamedTuple, TypeVar, cast

from attrs import define, evolve, field, frozen
from sqlalchemy import Connection, delete, select
from twisted.application.service import Service
from twisted.internet.defer import Deferred
from twisted.internet.defer import TimeoutError as TooLate
from twisted.internet.interfaces import IReactorTime

from monrest.accounts.model import ApiKey, Session
from monrest.base.clock import WallClock
from monrest.base.concurrency import Periodic, Shared
from monrest.base.errors import Unavailable
from monrest.base.names import Names
from monrest.base.workers import Mark, Workers
from monrest.config import AuthConfig
from monrest.store.database import Database, insert_if_absent, transaction
from monrest.store.stored import StoredRow

V = TypeVar("V")
C = TypeVar("C", ApiKey, Session)

FRESH = 4.0
"""Seconds: other daemons refuse what was revoked within five, their next question included."""
_MOST_KEPT = 4096
_PATIENCE = 2.0
"""Seconds for which a request waits for a database that hangs, where it can do without."""
_RETRY = 1.0
_FLUSH = 10.0
_CLEAN = 600.0
_IN_A_MESSAGE = 200
"""Hashes, so that a message is short enough for the line between workers."""
_HASH = re.compile(r"[0-9a-f]{64}")


@frozen
class _Kept:
    value: Any
    asked: float
    state: bytes


class Use(NamedTuple):
    """When and from where a key or a session was used last."""

    at: int
    client: str = ""


@define(eq=False)
class Credentials(Service):
    """The cache of credentials, by kind and hash or name; ``configure`` while it runs.

    What was read is good for four seconds, so that most requests cost no query; or until one of
    the ``workers`` sets the mark of its kind, because it has revoked something. They tell each
    other what that was: it is not good for one more request, even while the database is away.
    """

    database: Database
    clock: IReactorTime
    wall: WallClock
    config: AuthConfig
    names: Names = field(factory=Names)
    workers: Workers = field(factory=Workers)
    kinds: dict[Mark, Kind[Any]] = field(factory=dict, init=False, repr=False)
    uses: dict[tuple[Mark, str], Use] = field(factory=dict, init=False)
    """Uses of keys and sessions that are not stored yet."""
    _kept: dict[tuple[Mark, str], _Kept] = field(factory=dict, init=False)
    _reading: dict[tuple[Mark, str], Shared[Any]] = field(factory=dict, init=False)
    _away: float = field(default=0.0, init=False)
    _jobs: tuple[Periodic, ...] = field(init=False)

    def __attrs_post_init__(self) -> None:
        self.workers.hear("revoked", self._let_go)
        self._jobs = (
            Periodic(self.clock, _FLUSH, self.flush, "storing the use of keys", now=False),
            Periodic(self.clock, _CLEAN, self.clean, "removing old sessions", now=False),
        )

    async def find(self, kind: Kind[V], name: str, *, anew: bool = False) -> tuple[V, bool] | None:
        """Return what has this hash or name and whether that is sure; None when there is nothing.

        Without an answer of the database its last answer within the grace of the kind counts,
        and is not sure. ``anew``: what is cached is not fresh enough. Raises Unavailable when
        nothing recent is known.
        """
        now = self.clock.seconds()
        key = (kind.mark, name)
        kept = self._kept.get(key)
        if (
            kept is not None
            and now < kept.asked + FRESH
            and kept.state == self.workers.state(kind.mark)
            and not anew
        ):
            return kept.value, True
        if now < self._away and (doubtful := self._doubtful(kind, name)) is not None:
            return doubtful
        reading = self._reading.get(key)
        if reading is None:
            reading = self._reading[key] = Shared()
            reading.run(self.read(kind, name), lambda: self._reading.pop(key, None))
        waiter = reading.wait()
        if self._doubtful(kind, name) is not None:
            waiter.addTimeout(_PATIENCE, self.clock)
        try:
            value = await waiter
        except (TooLate, Unavailable) as error:
            # It may have been revoked here meanwhile, and then it is not kept any more.
            doubtful = self._doubtful(kind, name)
            if doubtful is not None:
                self._away = self.clock.seconds() + _RETRY
                return doubtful
            if isinstance(error, Unavailable):
                raise
            raise Unavailable("cannot read", "the database did not answer in time") from None
        return None if value is None else (value, True)

    def _doubtful(self, kind: Kind[V], name: str) -> tuple[V, bool] | None:
        """Return the last answer of the database within the grace."""
        kept = self._kept.get((kind.mark, name))
        if kept is None or self.clock.seconds() >= kept.asked + kind.grace:
            return None
        return kept.value, False

    async def read(self, kind: Kind[V], name: str) -> V | None:
        """Ask the database, and keep what it says; Unavailable."""
        key = (kind.mark, name)
        while True:
            begun, state = self.clock.seconds(), self.workers.state(kind.mark)
            value = await kind.look_up(name)
            if value is None:
                self._kept.pop(key, None)
                return None
            # Else it may have been revoked or changed after it was read.
            if state == self.workers.state(kind.mark):
                # The one that was read the longest time ago goes first.
                self._kept.pop(key, None)
                while len(self._kept) >= _MOST_KEPT:
                    del self._kept[next(iter(self._kept))]
                self._kept[key] = _Kept(value, begun, state)
                return value

    def forget(self, kind: Kind[Any], *names: str) -> None:
        """Note that these are revoked; what is being read just now does not count any more."""
        self.workers.changed(kind.mark)
        for at in range(0, len(names), _IN_A_MESSAGE):
            self.workers.tell("revoked", kind.mark, *names[at : at + _IN_A_MESSAGE])
        self._let_go(kind.mark, *names)

    def _let_go(self, mark: Mark, *names: str) -> None:
        for name in names:
            self._kept.pop((mark, name), None)
            self.uses.pop((mark, name), None)

    async def flush(self) -> None:
        """Store how keys and sessions were used; kept for later while the database is away."""
        uses, self.uses = self.uses, {}
        if not uses:
            return
        try:
            await self.database.change(_store_uses(self.kinds, uses))
        except BaseException as error:
            self.uses = uses | self.uses
            if not isinstance(error, Unavailable):
                raise

    async def clean(self) -> None:
        """Remove what is over; later while the database is away."""
        for kind in self.kinds.values():
            await kind.clean()

    def configure(self, config: AuthConfig, names: Names) -> None:
        self.config, self.names = config, names

    def startService(self) -> None:
        """Store uses and remove what is over from time to time."""
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


@transaction
def _store_uses(
    connection: Connection, kinds: Mapping[Mark, Kind[Any]], uses: Mapping[tuple[Mark, str], Use]
) -> None:
    """In the same order by all daemons, so that none waits for another that waits for it."""
    for mark, kind in kinds.items():
        of_kind = {name: use for (kind, name), use in sorted(uses.items()) if kind == mark}
        if of_kind:
            kind.store(connection, of_kind)


@define(eq=False)
class Kind(ABC, Generic[V]):
    """Keys, sessions or users."""

    mark: ClassVar[Mark]

    service: Credentials

    def __attrs_post_init__(self) -> None:
        self.service.kinds[self.mark] = self

    @property
    def config(self) -> AuthConfig:
        return self.service.config

    @property
    def grace(self) -> float:
        """Seconds for which what was read counts without a database."""
        return inf

    def now(self) -> int:
        return int(self.service.wall.now())

    @abstractmethod
    async def look_up(self, name: str) -> V | None:
        """Ask the database for one of it: None for none, Unavailable without an answer."""

    def store(self, connection: Connection, uses: Mapping[str, Use]) -> None:
        """Store how some were used."""

    async def clean(self) -> int:
        """Remove expired records, and return their number."""
        return 0


@define(eq=False)
class HashedKind(Kind[C]):
    """Records that are found by the hash of a secret; ``owner`` is the column of its user."""

    row: ClassVar[type[Any]]
    owner: ClassVar[str]

    @property
    def grace(self) -> float:
        return self.config.grace

    async def look_up(self, name: str) -> C | None:
        row = await self.service.database.run(lambda connection: self.row.find(connection, name))
        return cast("C | None", row)

    async def lookup(self, hashed: str, *, anew: bool = False) -> C | None:
        """Return that of a hash; Unavailable when the database is and nothing recent is known.

        ``anew``: what is kept is not fresh enough.
        """
        current = await self.service.find(self, hashed, anew=anew)
        if current is None:
            self.service.uses.pop((self.mark, hashed), None)
            return None
        credential, sure = current
        return credential if sure else evolve(credential, confirmed=False)

    async def several(self, user: str | None = None, hashed: str | None = None) -> list[C]:
        """Return those of ``user`` (None: of all) in the order in which they were made.

        With a hash only the one that has it.
        """
        table, key = self.row.table, self.row.primary_key()
        query = select(table).order_by(table.c.created, key)
        if user is not None:
            query = query.where(table.c[self.owner] == user)
        if hashed is not None:
            if _HASH.fullmatch(hashed) is None:
                return []
            query = query.where(key == hashed)

        def read(connection: Connection) -> list[C]:
            return [self.row.of(row) for row in connection.execute(query)]

        await self.service.flush()  # when and where each was used last
        return await self.service.database.run(read)

    async def delete(self, hashed: str) -> bool:
        """Delete one, which is refused from then on; False when there is none."""
        query = delete(self.row.table).where(self.row.primary_key() == hashed)
        try:
            deleted = await self.service.database.change(
                lambda connection: connection.execute(query).rowcount
            )
        finally:
            # Also after a failure, which does not say whether it is gone.
            self.service.forget(self, hashed)
        return bool(deleted)


@transaction
def adopt(connection: Connection, record: StoredRow) -> bool:
    """Store a key or a profile of another installation; False when it is there."""
    if record.find(connection, getattr(record, record.primary_key().name)) is not None:
        return False
    connection.execute(insert_if_absent(connection, record.table, record.values()))
    return True
