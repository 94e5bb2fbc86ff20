"""The clients that listen to events, and where events come from (docs/spec/events.md).

A site is watched once for all clients, and only as long as there are some. Clients that ask the
same belong to one group, which judges each event once.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Iterable, Sequence
from contextlib import suppress
from functools import partial
from heapq import merge
from operator import attrgetter
from typing import ClassVar, Protocol, TypeAlias

from attrs import define, evolve, field
from twisted.application.service import Service
from twisted.internet.defer import CancelledError, Deferred, DeferredList
from twisted.internet.interfaces import IReactorTime
from twisted.logger import Logger
from twisted.python.failure import Failure

from monrest.api.endpoint import Context
from monrest.base.clock import WallClock
from monrest.base.concurrency import Periodic, pause, shielded
from monrest.base.errors import RestError, Unavailable
from monrest.base.values import Identity
from monrest.events.event_source import Source
from monrest.events.filter import EventFilter
from monrest.events.group import Gap, ListenerGroup, ToldEvent
from monrest.events.model import OWN, Cursor, Event, Place, read_cursor, site_subject
from monrest.events.own_events import OwnEvents
from monrest.events.selection import EventSelection
from monrest.events.watch import SiteWatch
from monrest.jobs.model import Job
from monrest.jobs.store import one as one_job
from monrest.livestatus.core_errors import LivestatusError
from monrest.logs.source import LogSource
from monrest.sites.registry import Registry
from monrest.sites.site import Site
from monrest.store.database import Database

RIGHTS_LAST = 4.0
"""Seconds for which the rights of a client, and its sites, are not read again."""

MOST_BYTES = 64_000_000
"""Bytes of the events that wait for slow readers, all groups together."""

_FEW_GROUPS = 3
LOOKED = 2.0
"""Seconds after which a change of a site or job is seen."""

HEARTBEAT = 15.0
"""Seconds after which a stream shows that it lives."""

_OWED = 1.0
"""Seconds after which a site that was down is asked again for what a follower has missed."""

_SOME = 200
"""Events that a follower that catches up gets in one go."""

Who: TypeAlias = Callable[[], Awaitable[Identity]]
"""The identity of the client, now; raises a RestError when it may listen no more."""

_GroupKey: TypeAlias = tuple[EventFilter, str, frozenset[str], bool]


class EventListener(Protocol):
    """Takes what a follower gets."""

    @property
    def paused(self) -> bool:
        """Whether it takes nothing at present."""

    def serve(self, follower: Follower) -> None:
        """Take what its group has for it from ``follower.at`` on, and set that."""

    def take(self, told: Sequence[ToldEvent]) -> None:
        """Take events that are for it alone, because it is behind the others."""

    def miss(self, gap: Gap) -> None:
        """Note that events were left out."""

    def beat(self, cursor: str) -> None:
        """Note that nothing happens; ``cursor`` is where to go on, empty while it is behind."""


@define(eq=False)
class Follower:
    """Gets events, at first those that were missed, then with all of its group.

    ``ended`` fires when it is over, and fails when the client may listen no more. ``at`` is the
    number of the next event of the group, -1 while it is behind.
    """

    log: ClassVar[Logger] = Logger()

    events: Events
    wanted: EventFilter
    who: Who
    identity: Identity
    listener: EventListener
    at: int = field(init=False, default=-1)
    ended: Deferred[None] = field(init=False)
    group: ListenerGroup = field(init=False)
    _cursor: Cursor = field(init=False)
    _last: str = field(init=False, default="")
    """The cursor behind the last event of the group that it got."""
    _behind: Deferred[None] | None = field(init=False, default=None)
    _room: Deferred[None] | None = field(init=False, default=None)
    _news: Deferred[None] | None = field(init=False, default=None)
    _asked: dict[str, float] = field(init=False, factory=dict)
    """When sources were asked that could not tell what is owed."""
    _over: bool = field(init=False, default=False)

    def __attrs_post_init__(self) -> None:
        self.ended = Deferred(lambda _: self.stop())

    @property
    def cursor(self) -> str:
        """The place behind the events that it got."""
        group = self.group
        if self.at >= 0 and self.at == group.end and group.idle:
            return str(group.cursor())
        return self._last or str(self._cursor)

    def begin(self, group: ListenerGroup, since: Cursor | None) -> None:
        """Belong to ``group``, behind ``since`` or, without it, from now on."""
        self.group, self._last = group, ""
        group.members[self] = None
        if since is None:
            self._cursor = group.cursor()
            self.at = group.end
            return
        self.at = -1
        places = {site: since.of(site) or place for site, place in group.places.items()}
        self._cursor = Cursor(None, places)
        self._behind = Deferred.fromCoroutine(self._catch_up())
        self._behind.addErrback(self._broken)

    def _leave(self) -> None:
        behind, self._behind = self._behind, None
        if behind is not None:
            behind.cancel()
        self.group.members.pop(self, None)

    def change(self, identity: Identity, group: ListenerGroup) -> None:
        cursor = read_cursor(self.cursor, "since")
        self._leave()
        self.identity = identity
        self.begin(group, cursor)

    def stop(self) -> None:
        if not self._over:
            self._over = True
            self._leave()
            self.events.left(self)

    def end(self, failure: Failure | None = None) -> None:
        """``failure`` is the reason, where there is one."""
        self.stop()
        if not self.ended.called:
            if failure is None:
                self.ended.callback(None)
            else:
                self.ended.errback(failure)

    def _broken(self, failure: Failure) -> None:
        self._behind = None
        if not failure.check(CancelledError):
            self.log.failure("events that were missed could not be told", failure)
            self.end(failure)

    def serve(self) -> None:
        group = self.group
        news, self._news = self._news, None
        if news is not None and not news.called:
            news.callback(None)
        if self.at < 0 or self.listener.paused:
            return
        if self.at < group.start:
            self.listener.miss(Gap(self.cursor, group.lost, group.start - self.at))
            self.at = group.start
        if self.at < group.end:
            self.listener.serve(self)

    def took(self, at: int) -> None:
        """Note that it has everything before the event ``at``."""
        self.at = at
        self._last = self.group.ring[at - 1 - self.group.start].cursor

    def resume(self) -> None:
        room, self._room = self._room, None
        if room is not None:
            room.callback(None)
        elif not self._over and 0 <= self.at < self.group.end:
            self.group.serve_again(self)

    async def _catch_up(self) -> None:
        """Tell what is behind the cursor, until nothing is left; then go with the others.

        What a source cannot tell now comes when it can; only this follower waits for it, and its
        cursor stays before what is missing.
        """
        group = self.group
        while True:
            owing = [one.id for one in tuple(group.sources.values()) if not await self._older(one)]
            pending = self._pending(owing)
            if pending is None:
                continue
            if pending:
                await self._take(pending[:_SOME])
                await self._room_again()
            elif owing:
                self._news = Deferred()
                await self._news.addTimeout(_OWED, self.events.clock, lambda *_: None)
            else:
                break
        self.at, self._behind = group.end, None
        self.serve()

    async def _older(self, source: Source) -> bool:
        """Tell what the source does not remember; whether all of that could be told."""
        await source.ready()
        clock = self.events.clock
        while (place := self._place(source)) < source.begin:
            if clock.seconds() < self._asked.get(source.id, -_OWED) + _OWED:
                return False
            if await source.reach(place):
                break
            told, waiting = place, list[Event]()
            try:
                async for events in source.older(place):
                    if self.group.waits_for(events):
                        # What the cores answer needs room, and an open log holds some.
                        waiting = events
                        break
                    await self._take(events)
                    if self.listener.paused:
                        # Lines that wait for a client would hold the room of others.
                        break
            except (LivestatusError, Unavailable):
                self._asked[source.id] = clock.seconds()
                return False
            if waiting:
                await self._take(waiting)
            if self._place(source) == told:
                # Nothing was there.
                places = {**self._cursor.places, source.id: source.begin}
                self._cursor = evolve(self._cursor, places=places)
            await self._room_again()
        return True

    def _place(self, source: Source) -> Place:
        return self._cursor.places.get(source.id, source.place)

    def _pending(self, owing: Collection[str]) -> list[Event] | None:
        """What others remember behind the cursor, by time; None if some is no more."""
        found: list[list[Event]] = []
        for site, source in self.group.sources.items():
            if site in owing:
                continue
            place, end = self._place(source), self.group.places[site]
            if place < source.begin and place < end:
                return None
            found.append([one for one in source.since(place) if one.place <= end])
        return list(merge(*found, key=attrgetter("time")))

    async def _take(self, events: Sequence[Event]) -> None:
        group, told = self.group, list[ToldEvent]()
        await group.prepare(events)
        for event in events:
            self._cursor = self._cursor.behind(event)
            data = group.judge(event)
            if data is not None:
                told.append(ToldEvent(event, data, str(self._cursor)))
        if told:
            self.listener.take(told)
            self._last = told[-1].cursor
        await pause(self.events.clock)

    async def _room_again(self) -> None:
        while self.listener.paused:
            self._room = Deferred()
            await self._room


@define(eq=False)
class Events(Service):
    """All followers of this process.

    ``context`` is what requests get at present. ``duty`` says whether this process tells of sites,
    ``jobs`` gives those at which it works, ``logs`` what has the log of all sites.
    """

    log: ClassVar[Logger] = Logger()

    clock: IReactorTime
    wall: WallClock
    registry: Registry
    context: Callable[[], Context]
    database: Database
    duty: Callable[[], bool]
    jobs: Callable[[], Iterable[Job]]
    logs: Callable[[], LogSource]
    own: OwnEvents = field(init=False)
    followers: dict[Follower, None] = field(init=False, factory=dict)
    groups: dict[_GroupKey, ListenerGroup] = field(init=False, factory=dict)
    watches: dict[str, SiteWatch] = field(init=False, factory=dict)
    _periodic: tuple[Periodic, ...] = field(init=False)
    _always: Periodic = field(init=False)
    _states: dict[str, str] = field(init=False, factory=dict)
    _progress: dict[int, tuple[float, str]] = field(init=False, factory=dict)
    _stopping: list[Deferred[None]] = field(init=False, factory=list)

    def __attrs_post_init__(self) -> None:
        self.own = OwnEvents(self.database, self.clock, self.wall, self._told_own)
        self._always = Periodic(self.clock, LOOKED, self._look_around, "looking at sites and jobs")
        self._periodic = (
            Periodic(self.clock, RIGHTS_LAST, self._look, "looking at rights", now=False),
            Periodic(self.clock, HEARTBEAT, self._beat, "a heartbeat", now=False),
        )

    def startService(self) -> None:
        super().startService()
        self._always.startService()

    def stopService(self) -> Deferred[None]:
        """End all streams; fires when no core is watched any more."""
        super().stopService()
        self.end()
        stops = [one.stopService() for one in (*self._periodic, self._always) if one.running]
        return DeferredList([*stops, *self._stopping], consumeErrors=True).addCallback(
            lambda _: None
        )

    def end(self) -> None:
        """End all streams: their clients go on somewhere else, where they were."""
        for follower in tuple(self.followers):
            follower.end()

    async def check(self, wanted: EventFilter, identity: Identity) -> None:
        """Raise BadRequest for what no event and no object has."""
        known = self.groups.get(_group_key(wanted, identity))
        if known is None or not known.sources:
            await self._selection(wanted, identity).check()

    async def follow(
        self, wanted: EventFilter, who: Who, listener: EventListener, since: Cursor | None = None
    ) -> Follower:
        """Give ``listener`` the events of ``wanted`` that ``who`` may see, those behind ``since``.

        Without ``since`` those from now on. It gets them when the follower begins, which is before
        this returns. Raise BadRequest for what cannot be asked and whatever ``who`` raises.
        """
        identity = await who()
        follower = Follower(self, wanted, who, identity, listener)
        self.followers[follower] = None
        if len(self.followers) == 1:
            self.own.start()
            for one in self._periodic:
                one.startService()
        try:
            group = await self._group(wanted, identity)
            if since is not None and OWN not in since.places and since.base is not None:
                place = await self.own.place_at(since.base)
                since = evolve(since, places={**since.places, OWN: place})
            follower.begin(group, since)
        except BaseException:
            self.left(follower)
            raise
        return follower

    def left(self, follower: Follower) -> None:
        """Forget a follower that has ended, and watch only what others need."""
        self.followers.pop(follower, None)
        self._forget_groups()
        if not self.followers:
            self._stopping.append(self.own.stop())
            for one in self._periodic:
                if one.running:
                    one.stopService()

    def _forget_groups(self) -> None:
        for key, group in tuple(self.groups.items()):
            if not group.members and not group.expected:
                group.close()
                del self.groups[key]
        self._unwatch()

    def _room(self) -> int:
        return MOST_BYTES // max(_FEW_GROUPS, len(self.groups))

    def _selection(self, wanted: EventFilter, identity: Identity) -> EventSelection:
        moment = self.context().moment()
        return EventSelection(wanted, identity, self.context, moment)

    async def _group(self, wanted: EventFilter, identity: Identity) -> ListenerGroup:
        key = _group_key(wanted, identity)
        group = self.groups.get(key)
        if group is None:
            group = ListenerGroup(self._selection(wanted, identity), self.clock, self._room)
            self.groups[key] = group
        group.expected += 1
        try:
            if not group.sources:
                await group.selection.check()
                await self._join(group)
        finally:
            group.expected -= 1
        return group

    async def _join(self, group: ListenerGroup) -> None:
        """Have a group follow the sites that are meant now, and no others."""
        wanted = group.selection.sites
        for site in [one for one in group.sources if one and one not in wanted]:
            group.leave(site)
        if OWN not in group.sources:
            await self.own.ready()
            if self.own.known and OWN not in group.sources:
                group.join(self.own)
        new = [self._watch(one) for one in wanted if one not in group.sources]
        for watch in new:
            await watch.ready()
            if watch.id not in group.sources and watch.id in group.selection.sites:
                group.join(watch)

    def _watch(self, site: str) -> SiteWatch:
        watch = self.watches.get(site)
        if watch is None:
            watch = self.watches[site] = SiteWatch(
                *(
                    site,
                    partial(self._site, site),
                    self.clock,
                    self.wall,
                    self._told,
                    self.own.keep,
                    self.logs,
                )
            )
            watch.start()
        return watch

    def _site(self, site: str) -> Site | None:
        return next((one for one in self.registry.sites if one.id == site), None)

    def _told(self, watch: SiteWatch, events: Sequence[Event]) -> None:
        for group in tuple(self.groups.values()):
            if group.sources.get(watch.id) is watch:
                group.take(watch.id, events)

    def _told_own(self, events: Sequence[Event]) -> None:
        for group in tuple(self.groups.values()):
            group.take(OWN, events)

    def _unwatch(self) -> None:
        """Stop watching the sites that no group needs."""
        needed = {site for group in self.groups.values() for site in group.selection.sites}
        for site in [one for one in self.watches if one not in needed]:
            stopped = self.watches.pop(site).stop()
            self._stopping = [one for one in self._stopping if not one.called]
            self._stopping.append(stopped)

    def tell_saved(self, site: str, user: str) -> None:
        data = {"site": site, "action": "saved", "author": user}
        self.own.tell("config", site_subject(site), data)

    async def _look_around(self) -> None:
        """Tell of sites that went up or down, and of jobs that have got on."""
        if self.duty():
            self._look_at_sites()
        here = {one.id: one for one in self.jobs()}
        for job in here.values():
            if self._progress.get(job.id) != (job.percent, job.message):
                self._progress[job.id] = (job.percent, job.message)
                self._tell_job(job, "running" if job.started else "waiting")
        self._progress = {number: one for number, one in self._progress.items() if number in here}

    def tell_ended(self, number: int) -> None:

        async def tell() -> None:
            with suppress(Unavailable):
                job = await self.database.run(one_job(number))
                if job is not None and job.ended is not None:
                    self._tell_job(job, "ended" if job.rc == 0 else "failed")

        if self.running:
            shielded(tell())

    def _look_at_sites(self) -> None:
        sites = {site.id: site for site in self.registry.sites}
        for site in sites.values():
            state, before = site.health.state, self._states.get(site.id)
            if state == "pending" or state == before:
                continue
            self._states[site.id] = state
            if before is not None or state == "down":
                data = {"site": site.id, "action": state}
                if state == "down":
                    data["reason"] = site.last_error
                self.own.tell("site", site_subject(site.id), data)
        for gone in self._states.keys() - sites.keys():
            del self._states[gone]

    def _tell_job(self, job: Job, action: str) -> None:
        data = {
            "job": str(job.id),
            "action": action,
            "percent": job.percent,
            "comment": job.message,
            "command_name": job.cmd,
        }
        self.own.tell("job", f"jobs/{job.id}", data, job.user, job.roles)

    async def _look(self) -> None:
        """Read again the rights of each client, and the sites that exist for it."""
        known: dict[Identity, Identity | Failure] = {}
        for count, follower in enumerate(tuple(self.followers)):
            if count % _SOME == _SOME - 1:
                await pause(self.clock)
            if follower not in self.followers:
                continue
            before = follower.identity
            if before not in known:
                known[before] = await self._who(follower)
            now = known[before]
            if isinstance(now, Failure):
                follower.end(now)
            elif _rights(now) != _rights(before):
                await self._change(follower, now)
            else:
                follower.identity = now
        for group in tuple(self.groups.values()):
            try:
                await group.selection.look()
                await self._join(group)
            except RestError as error:
                for member in tuple(group.members):
                    assert isinstance(member, Follower)
                    member.end(Failure(error))
        self._unwatch()

    async def _who(self, follower: Follower) -> Identity | Failure:
        try:
            return await follower.who()
        except Unavailable:
            return follower.identity  # the database is away: nothing is known to have changed
        except RestError:
            return Failure()

    async def _change(self, follower: Follower, now: Identity) -> None:
        try:
            group = await self._group(follower.wanted, now)
        except RestError:
            follower.end(Failure())
        else:
            if follower in self.followers:
                follower.change(now, group)
        self._forget_groups()

    async def _beat(self) -> None:
        """Show each client that its stream lives, and where it is."""
        for group in tuple(self.groups.values()):
            members = tuple(group.members)
            for at in range(0, len(members), _SOME):
                cursor = str(group.cursor()) if group.idle else ""
                for member in members[at : at + _SOME]:
                    assert isinstance(member, Follower)
                    if member in group.members and not member.listener.paused:
                        here = member.at == group.end
                        member.listener.beat((cursor or member.cursor) if here else "")
                await pause(self.clock)


def _group_key(wanted: EventFilter, identity: Identity) -> _GroupKey:
    return wanted, *_rights(identity)


def _rights(identity: Identity) -> tuple[str, frozenset[str], bool]:
    return identity.user, identity.roles, identity.superuser
