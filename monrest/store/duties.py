"""Duties: what exactly one living daemon of a database does, such as triggering downtimes.

A holder's beat grows for as long as it lives. If it stands still for ``seconds``, as measured by
each of the others, or the holder announced that it leaves, another daemon takes the duty over and
its number grows. No clocks of two machines are compared.

A daemon that was paused and does not know yet that it lost a duty can still begin something, which
is why everything that counts is done in a transaction that asks ``still_held`` first.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Iterable, Mapping
from typing import ClassVar, Generic, TypeVar

from attrs import define, field, frozen
from sqlalchemy import Connection, Update, delete, insert, select, update
from twisted.application.service import Service
from twisted.internet.defer import Deferred, succeed
from twisted.internet.interfaces import IReactorTime
from twisted.logger import Logger

from monrest.base.concurrency import Periodic
from monrest.base.errors import LostError, Unavailable
from monrest.store.database import Database, Work, transaction
from monrest.store.tables import duties, duty_daemons

B = TypeVar("B")
T = TypeVar("T")

SECONDS = 20.0
"""Seconds for which a beat must stand still; another daemon takes over within 30 s of a death."""

_LOOKS = 8
_BITS = 52


def boot_time() -> float:
    """Measure seconds that pass, also while the machine sleeps; this clock cannot be set."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


@define(eq=False)
class Heartbeats(Generic[B]):
    """For how long the beat of each run stands still, as far as its looks can tell.

    Time counts only between two looks that both succeeded, and never more than ``most`` seconds
    of it: a look that came late, because this process did not run or its clock was set, says
    little about others, who may not have run either.
    """

    most: float
    _seen: dict[int, tuple[B, float]] = field(factory=dict, init=False)
    _last: float | None = field(default=None, init=False)

    def missed(self) -> None:
        """Note that a look failed: no daemon could beat then."""
        self._last = None

    def look(self, beats: Mapping[int, B], began: float, ended: float) -> dict[int, float]:
        """Take the beats that were read between two moments; the seconds each stands still.

        It counts from the end of one look to the beginning of the next: surely between the two.
        """
        passed = 0.0 if self._last is None else max(0.0, min(began - self._last, self.most))
        self._last = ended
        seen: dict[int, tuple[B, float]] = {}
        for run, beat in beats.items():
            before, still = self._seen.get(run, (beat, 0.0))
            seen[run] = (beat, still + passed if run in self._seen and before == beat else 0.0)
        self._seen = seen
        return {run: still for run, (_, still) in seen.items()}


@frozen
class Token:
    """The right to do ``duty``; the next holder has a greater ``number``."""

    duty: str
    number: int


class DutyLostError(LostError):
    """The duty is another daemon's meanwhile, and nothing was changed."""


def still_held(connection: Connection, token: Token) -> bool:
    """Whether the duty is held by this token, until the transaction of ``connection`` ends.

    It has to be one that changes something: no daemon takes the duty over before it is committed.
    """
    query = select(duties.c.number).where(duties.c.name == token.duty).with_for_update(read=True)
    return connection.execute(query).scalar_one_or_none() == token.number


@frozen
class _Holder:
    """One daemon that holds a duty, as it was seen."""

    owner: str
    beat: int


@define(eq=False)
class Duties(Service):
    """The duties of one daemon; see ``want``, ``held`` and ``change``.

    ``owner`` is a name that at most one living process has: what a former process of this name
    held is taken over at once. ``timer`` measures seconds that pass, also while the process or the
    machine does not run; setting the date does not move it.
    """

    log: ClassVar[Logger] = Logger()

    database: Database
    clock: IReactorTime
    owner: str
    seconds: float = SECONDS
    timer: Callable[[], float] = field(default=boot_time, kw_only=True)
    run: int = field(init=False, factory=lambda: secrets.randbits(_BITS) or 1)
    _wanted: set[str] = field(init=False, factory=set)
    _held: dict[str, Token] = field(init=False, factory=dict)
    _until: float = field(init=False, default=0.0)
    _beats: Heartbeats[_Holder] = field(init=False)
    _periodic: Periodic = field(init=False)

    def __attrs_post_init__(self) -> None:
        self._beats = Heartbeats(2 * self.seconds / _LOOKS)
        self._periodic = Periodic(
            self.clock, self.seconds / _LOOKS, self.look, "looking after duties"
        )

    def want(self, name: str) -> None:
        """Take part in doing ``name``: hold it whenever no other daemon does."""
        self._wanted.add(name)

    async def leave(self, name: str) -> None:
        """Take no part in ``name`` until it is wanted again, and leave it to others at once.

        Raises Unavailable.
        """
        self._wanted.discard(name)
        if self._held.pop(name, None) is not None:
            await self.database.change(_give(self.run, name))

    def held(self, name: str) -> Token | None:
        """The right to do ``name`` now, as far as this daemon can know; None: another's."""
        if self.timer() >= self._until:
            return None
        return self._held.get(name)

    async def change(self, token: Token, work: Work[T]) -> T:
        """``Database.change``, but DutyLostError and no change where ``token`` is void."""

        def fenced(connection: Connection) -> T:
            if not still_held(connection, token):
                raise DutyLostError(token.duty)
            return work(connection)

        return await self.database.change(fenced)

    async def look(self) -> None:
        """Beat, see how the others do, and take what no daemon holds."""
        if not self._wanted:
            return
        try:
            if self._held:
                await self._beat()
            gone = await self._gone()
            if gone is not None:
                await self._take(gone)
        except Unavailable:
            # No daemon can beat meanwhile: that time does not count against any of them.
            self._beats.missed()

    async def _beat(self) -> None:
        """Store that this daemon lives, and learn what it still holds."""
        began = self.timer()
        self._hold(await self.database.change(_beat(self.run)), began)

    def _hold(self, held: Iterable[Token], began: float) -> None:
        before, self._held = self._held, {token.duty: token for token in held}
        # Others count from when they see this beat, which is later.
        self._until = began + self.seconds
        if lost := sorted(name for name, token in before.items() if self._held.get(name) != token):
            self.log.warn("duties of another daemon now: {names}", names=", ".join(lost))
        if came := sorted(name for name, token in self._held.items() if before.get(name) != token):
            self.log.info("duties of this daemon now: {names}", names=", ".join(came))

    async def _gone(self) -> dict[int, int] | None:
        """The beats at which daemons stopped; None when there is nothing that could be taken."""
        began = self.timer()
        held, holders = await self.database.run(_state)
        stands = self._beats.look(holders, began, self.timer())
        gone = {
            run: holder.beat
            for run, holder in holders.items()
            if run != self.run and (holder.owner == self.owner or stands[run] >= self.seconds)
        }
        free = {
            name
            for name in self._wanted
            if name not in held or held[name] not in holders or held[name] in gone
        }
        return gone if free else None

    async def _take(self, gone: Mapping[int, int]) -> None:
        began = self.timer()
        took = await self.database.change(_take(self.run, self.owner, sorted(self._wanted), gone))
        self._hold(took, began)

    def identify(self, owner: str) -> None:
        """Take the name that at most one living process has."""
        self.owner = owner

    def startService(self) -> None:
        """Begin to look; the database must run."""
        super().startService()
        self._periodic.startService()

    def stopService(self) -> Deferred[None]:
        """Leave everything to others, at once; the database stops after it."""
        if not self.running:
            return succeed(None)
        super().stopService()
        return Deferred.fromCoroutine(self._stop())

    async def _stop(self) -> None:
        await self._periodic.stopService()
        held, self._held, self._until = self._held, {}, 0.0
        if not held:
            return
        try:
            await self.database.change(_leave(self.run))
        except Unavailable:
            self.log.info("the database is away: others take the duties when they notice")


def _state(connection: Connection) -> tuple[dict[str, int], dict[int, _Holder]]:
    """The holders of duties, and all daemons that hold any."""
    held = {row.name: row.run for row in connection.execute(select(duties))}
    holders = {
        row.run: _Holder(row.owner, row.beat) for row in connection.execute(select(duty_daemons))
    }
    return held, holders


def _one_more(run: int) -> Update:
    """The next beat of a daemon."""
    query = update(duty_daemons).where(duty_daemons.c.run == run)
    return query.values(beat=duty_daemons.c.beat + 1)


def _tokens(connection: Connection, run: int) -> list[Token]:
    query = select(duties.c.name, duties.c.number).where(duties.c.run == run)
    return [Token(row.name, row.number) for row in connection.execute(query)]


@transaction
def _beat(connection: Connection, run: int) -> list[Token]:
    """Store that a daemon lives; returns what it holds, nothing after it was given up."""
    if connection.execute(_one_more(run)).rowcount == 0:
        # Given up by others, who may not have taken everything: it is free for all.
        connection.execute(
            update(duties).where(duties.c.run == run).values(run=0, number=duties.c.number + 1)
        )
        return []
    return _tokens(connection, run)


@transaction
def _take(
    connection: Connection, run: int, owner: str, names: list[str], gone: Mapping[int, int]
) -> list[Token]:
    """Take the free duties of these names; ``gone`` with the beats they stopped at."""
    _, holders = _state(connection)
    dead = {node for node, beat in gone.items() if node in holders and holders[node].beat == beat}
    if dead:
        connection.execute(delete(duty_daemons).where(duty_daemons.c.run.in_(sorted(dead))))
    living = holders.keys() - dead
    if connection.execute(_one_more(run)).rowcount == 0:
        connection.execute(insert(duty_daemons).values(run=run, owner=owner, beat=1))
    query = select(duties.c.name, duties.c.run).where(duties.c.name.in_(names))
    stored = {row.name: row.run for row in connection.execute(query.with_for_update())}
    for name in names:
        if name not in stored:
            connection.execute(insert(duties).values(name=name, run=run, number=1))
        elif stored[name] not in living and stored[name] != run:
            connection.execute(
                update(duties)
                .where(duties.c.name == name)
                .values(run=run, number=duties.c.number + 1)
            )
    return _tokens(connection, run)


@transaction
def _give(connection: Connection, run: int, name: str) -> None:
    """Make one duty of a daemon free for all."""
    connection.execute(
        update(duties)
        .where(duties.c.name == name, duties.c.run == run)
        .values(run=0, number=duties.c.number + 1)
    )


@transaction
def _leave(connection: Connection, run: int) -> None:
    """Forget a daemon, whose duties are free for all then."""
    connection.execute(delete(duty_daemons).where(duty_daemons.c.run == run))
    connection.execute(
        update(duties).where(duties.c.run == run).values(run=0, number=duties.c.number + 1)
    )
