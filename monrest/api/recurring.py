"""Work on a schedule, such as recurring downtimes and reports.

Each record has the next time at which it comes. It is the duty of one daemon of the database to
make a row of every time that has come, and to work at these rows until they are done.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from datetime import tzinfo
from typing import Annotated, Any, ClassVar, Generic, TypeVar

from attrs import define, field, frozen
from sqlalchemy import Connection, select, update
from twisted.internet.defer import CancelledError, Deferred
from twisted.internet.interfaces import IReactorTime
from twisted.logger import Logger
from twisted.python.failure import Failure

from monrest.api.records import StoredRecords
from monrest.base import schedule
from monrest.base.clock import ClockSteps, WallClock
from monrest.base.concurrency import ended
from monrest.base.errors import RestError
from monrest.store.database import Database
from monrest.store.duties import Duties, DutyLostError, Token
from monrest.store.stored import INDEXED, KEY, StoredRow

_PAUSE = 10.0
"""Seconds after which what went wrong is tried again."""


@frozen(kw_only=True)
class RecurringRow(StoredRow):
    """A record that comes by a schedule.

    ``sites`` are ids with the names they had, all sites if there is none. ``next_at`` is the first
    time that has no row yet, in Unix seconds, None for never.
    """

    schedule_field: ClassVar[str]
    """The field of the record that has its schedule."""

    number: Annotated[int, KEY]
    record: Mapping[str, Any] = field(eq=False)
    sites: Mapping[str, str] = field(factory=dict, eq=False)
    next_at: Annotated[int | None, INDEXED] = None
    version: int = 0

    def crons(self) -> list[str]:
        """The expressions of its schedule."""
        return schedule.expressions(self.record[self.schedule_field])


R = TypeVar("R", bound=RecurringRow)


@frozen(eq=False)
class RecurringRecords(StoredRecords[R]):
    """``occur`` makes rows of the times of a record from one moment to another.

    It gets the connection, the record, both moments and the zone, and returns how many times came
    too late to be of use. ``clean`` removes old rows.
    """

    occur: Callable[[Connection, R, float, float, tzinfo], int]
    clean: Callable[[Connection, float], object]

    def first_time(self, record: Mapping[str, Any], now: float, zone: tzinfo) -> int | None:
        """When a record comes next that is stored now."""
        return schedule.following(self.row(number=0, record=record).crons(), now, zone)

    def reschedule(
        self,
        connection: Connection,
        old: R,
        values: Mapping[str, Any],
        now: float,
        zone: tzinfo,
        owner: str | None,
    ) -> bool:
        """Store other values; times of the old schedule that have come are rows before that.

        False when ``old`` is not the stored one any more.
        """

        def before(row: Any) -> None:
            if row.next_at is not None and row.next_at <= now:
                self.occur(connection, old, row.next_at, now, zone)

        return self.replace(connection, old.number, old.version, values, owner, before)

    def is_due(self, connection: Connection, now: float) -> bool:
        """Whether any time has come that has no row."""
        table = self.row.table
        query = select(table.c.number).where(table.c.next_at <= int(now)).limit(1)
        return connection.execute(query).first() is not None

    def plan(self, connection: Connection, now: float, zone: tzinfo) -> dict[int, int]:
        """Make a row of every time that has come; how many came too late, by number."""
        table = self.row.table
        late: dict[int, int] = {}
        for row in connection.execute(select(table).where(table.c.next_at <= int(now))).all():
            record = self.row.of(row)
            missed = self.occur(connection, record, row.next_at, now, zone)
            if missed:
                late[record.number] = missed
            self._set_next(connection, record, now, zone)
        self.clean(connection, now)
        return late

    def plan_again(self, connection: Connection, now: float, zone: tzinfo) -> None:
        """Work out anew when everything comes next that has not come: the clocks may be others."""
        table = self.row.table
        query = select(table).where(table.c.next_at.is_(None) | (table.c.next_at > now))
        for row in connection.execute(query).all():
            self._set_next(connection, self.row.of(row), now, zone)

    def _set_next(self, connection: Connection, record: R, now: float, zone: tzinfo) -> None:
        table = self.row.table
        next_at = schedule.following(record.crons(), now, zone)
        if next_at != record.next_at:
            connection.execute(
                update(table).where(table.c.number == record.number).values(next_at=next_at)
            )


@define(eq=False, kw_only=True)
class Scheduler(Generic[R]):
    """Plans the times of ``records`` and works at their rows, for the service of a family.

    ``word`` stands in the log. ``stepped`` is done where the clock of the machine was set.
    """

    log: Logger
    word: str
    duty: str
    records: RecurringRecords[R]
    database: Database
    clock: IReactorTime
    wall: WallClock
    duties: Duties
    stepped: Callable[[Connection], object] = field(default=lambda _: None)
    working: dict[Hashable, Deferred[Any]] = field(init=False, factory=dict)
    _again: dict[Hashable, float] = field(init=False, factory=dict)
    _planned: tuple[Token, tzinfo, int] | None = field(init=False, default=None)
    _steps: ClockSteps = field(init=False)

    def __attrs_post_init__(self) -> None:
        self._steps = ClockSteps(self.wall, self.clock)

    async def plan(self, token: Token, zone: tzinfo) -> dict[int, int]:
        """Make rows of what has come; how many times came too late, by number.

        Raises Unavailable and DutyLostError.
        """
        now, records = self.wall.now(), self.records
        planned = (token, zone, self._steps.look())
        if self._planned != planned:
            former = self._planned
            stepped = former is not None and former[2] != planned[2]
            since = self._steps.since() if stepped else now
            await self.duties.change(
                token, lambda connection: records.plan_again(connection, since, zone)
            )
            if stepped:
                await self.duties.change(token, self.stepped)
            self._planned = planned
        if not await self.database.run(lambda connection: records.is_due(connection, now)):
            return {}
        return await self.duties.change(
            token, lambda connection: records.plan(connection, now, zone)
        )

    def may_start(self, key: Hashable) -> bool:
        """Whether nothing works at a row and no pause is left."""
        return key not in self.working and self.clock.seconds() >= self._again.get(key, 0.0)

    def start(self, key: Hashable, number: int, work: Callable[[], Deferred[float | None]]) -> None:
        """Work at a row; ``work`` returns the seconds until the next try, None for no further one.

        What it raises is logged, and it is tried again.
        """

        def failed(failure: Failure) -> float | None:
            if failure.check(CancelledError):
                return None
            if failure.check(RestError, DutyLostError):
                reason = str(failure.value)
                self.log.warn(
                    "{word} {number}: {reason}", word=self.word, number=number, reason=reason
                )
            else:
                self.log.failure("{word} {number} failed", failure, word=self.word, number=number)
            return _PAUSE

        def done(pause: float | None) -> None:
            del self.working[key]
            if pause is None:
                self._again.pop(key, None)
            else:
                self._again[key] = self.clock.seconds() + pause

        doing: Deferred[Any] = work()
        self.working[key] = doing
        doing.addErrback(failed)
        doing.addCallback(done)

    async def stop(self, seconds: float) -> None:
        """Wait for what is being worked at, then cancel it."""
        await ended(self.working.values(), self.clock, seconds)
