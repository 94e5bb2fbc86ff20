"""What no log tells: sites, jobs, saved configuration, what objects show (docs/spec/events.md).

It is kept in the database, whose numbers give it an order that is the same for all processes and
nodes. The database is looked at once a second, and only while there are followers.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from typing import Any, ClassVar

from attrs import define, field, frozen
from sqlalchemy import Connection, delete, func, insert, select
from sqlalchemy.exc import IntegrityError
from twisted.internet.defer import Deferred, DeferredLock, succeed
from twisted.internet.interfaces import IReactorTime
from twisted.logger import Logger

from monrest.base.clock import WallClock
from monrest.base.concurrency import Periodic, shielded
from monrest.base.errors import Unavailable
from monrest.base.values import ADMIN, Identity
from monrest.events.event_source import Source
from monrest.events.model import OWN, Event, Place
from monrest.store.database import Database, transaction
from monrest.store.tables import own_events

KEPT = 7 * 86400.0
"""Seconds after which own events are removed."""

_POLL = 1.0
_SLICE = 500
_MOST_REMEMBERED = 2_000
_MOST_BYTES = 8_000_000
_CLEANED = 100
"""How often, in events, old ones are removed."""

_TRIES = 5
_OWNER, _ROLES = "owner", "roles"


@frozen(kw_only=True)
class NewEvent:
    """What is to be kept. ``owner``: only this user may see it, with all of ``roles``.

    ``site`` is where it happened, empty for the daemon. Of those with the same ``name`` the first
    one is kept, whichever process saw it.
    """

    time: float
    type: str
    subject: str
    data: Mapping[str, Any]
    owner: str | None = None
    roles: Sequence[str] = ()
    site: str = OWN
    name: str | None = None

    def values(self) -> dict[str, Any]:
        """The columns of the table."""
        return {
            "time": self.time,
            "type": self.type,
            "subject": self.subject,
            "data": dict(self.data),
            "owner": self.owner,
            "roles": list(self.roles),
            "site": self.site or None,
            "name": self.name,
        }


@define(eq=False)
class OwnEvents(Source):
    """The source of these events. ``told`` gets those that are new."""

    log: ClassVar[Logger] = Logger()

    id: str = field(init=False, default=OWN)
    most: int = field(init=False, default=_MOST_REMEMBERED)
    most_bytes: int = field(init=False, default=_MOST_BYTES)
    database: Database
    clock: IReactorTime
    wall: WallClock
    told: Callable[[Sequence[Event]], None]
    _looking: Periodic | None = field(init=False, default=None)
    _lock: DeferredLock = field(init=False, factory=DeferredLock)

    def tell(
        self,
        kind: str,
        subject: str,
        data: Mapping[str, Any],
        owner: str | None = None,
        roles: Sequence[str] = (),
    ) -> None:
        """Keep an event, soon; what the database does not take is lost with a line in the log."""
        event = NewEvent(
            time=self.wall.now(), type=kind, subject=subject, data=data, owner=owner, roles=roles
        )

        async def keep() -> None:
            try:
                await self._keep([event])
            except Unavailable:
                self.log.warn("{kind} of {subject} is told to nobody", kind=kind, subject=subject)

        shielded(keep())

    async def keep(self, events: Sequence[NewEvent]) -> None:
        """Keep events, and tell at once those that were not kept before; raise Unavailable."""
        await self._keep(events)
        await self._look()

    async def _keep(self, events: Sequence[NewEvent]) -> None:
        await self.database.change(_added(events, self.wall.now() - KEPT))

    def start(self) -> None:
        """Begin with what is told from now on."""
        if self._looking is None:
            self._known = False
            self._events.clear()
            self._size = 0
            self._looking = Periodic(self.clock, _POLL, self._look, "looking at own events")
            self._looking.startService()

    def stop(self) -> Deferred[None]:
        looking, self._looking = self._looking, None
        return succeed(None) if looking is None else looking.stopService()

    async def _look(self) -> None:
        """Tell what is new, each once; nothing while there are no followers."""
        await self._lock.acquire()
        try:
            if self._looking is None:
                return
            if not self._known:
                self.place = self.begin = Place(await self.database.run(_last))
                self._known = True
            while news := await self._after(self.place):
                self.place = news[-1].place
                self._remember(news)
                self.told(news)
        except Unavailable:
            return
        finally:
            self._lock.release()
            self._let_go()

    async def _after(self, place: Place) -> list[Event]:
        rows = await self.database.run(_behind(place.time))
        return [_event(row) for row in rows]

    async def older(self, place: Place) -> AsyncIterator[list[Event]]:
        while place < self.begin:
            found = [one for one in await self._after(place) if one.place <= self.begin]
            if not found:
                return
            place = found[-1].place
            yield found

    async def place_at(self, time: int) -> Place:
        """Before the first event of a second or a later one."""
        try:
            return Place(await self.database.run(_last_before(time)))
        except Unavailable:
            return self.place


def sees(event: Event, identity: Identity) -> bool:
    """Whether a user may see an event of the daemon; the caller checks the site."""
    owner = event.audience.get(_OWNER)
    if owner is None or identity.may(ADMIN):
        return True
    return bool(owner == identity.user) and all(map(identity.may, event.audience[_ROLES]))


def _event(row: Any) -> Event:
    number, time, kind, subject, data, owner, roles, site, _ = row
    return Event(
        site=site or OWN,
        place=Place(number),
        type=kind,
        time=time,
        subject=subject,
        data={**data, "time": int(time)},
        host=data.get("host_name", "") if site else "",
        service=data.get("service_description", "") if site else "",
        audience={_OWNER: owner, _ROLES: roles},
        by=OWN,
    )


@transaction
def _behind(connection: Connection, number: int) -> list[Any]:
    query = (
        select(own_events)
        .where(own_events.c.number > number)
        .order_by(own_events.c.number)
        .limit(_SLICE)
    )
    return list(connection.execute(query).all())


def _last(connection: Connection) -> int:
    query = select(func.coalesce(func.max(own_events.c.number), 0))
    return int(connection.execute(query).scalar_one())


@transaction
def _last_before(connection: Connection, time: int) -> int:
    """The number before those from ``time`` on: one that was seen late is behind younger ones."""
    query = select(func.min(own_events.c.number)).where(own_events.c.time >= time)
    first = connection.execute(query).scalar()
    return _last(connection) if first is None else int(first) - 1


@transaction
def _added(connection: Connection, events: Sequence[NewEvent], old: float) -> None:
    """Add them behind all others: a process that takes the same number waits, and tries another.

    So a smaller number is never seen after a greater one.
    """
    for left in reversed(range(_TRIES)):
        new = _new(connection, events)
        first = _last(connection) + 1
        rows = [{"number": first + at, **one.values()} for at, one in enumerate(new)]
        if not rows:
            return
        try:
            with connection.begin_nested():
                connection.execute(insert(own_events), rows)
        except IntegrityError:
            if not left:
                raise
            continue
        if first // _CLEANED != (first + len(rows)) // _CLEANED:
            connection.execute(
                delete(own_events).where(own_events.c.time < old, own_events.c.number < first)
            )
        return


def _new(connection: Connection, events: Sequence[NewEvent]) -> list[NewEvent]:
    """Those whose names are not kept yet, each name once."""
    known: set[str | None] = set()
    names = [one.name for one in events if one.name is not None]
    for at in range(0, len(names), _SLICE):
        some = names[at : at + _SLICE]
        known.update(
            connection.execute(
                select(own_events.c.name).where(own_events.c.name.in_(some))
            ).scalars()
        )
    found: list[NewEvent] = []
    for one in events:
        if one.name is None or one.name not in known:
            found.append(one)
            known.add(one.name)
    return found
