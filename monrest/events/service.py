"""The clients that listen to events, and the sites whose events are stored (docs/spec/events.md).

The process that has the duty watches all sites, for as long as some process has clients. Each
process reads the table. Clients with the same question belong to one group, which checks an event
once.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import suppress
from functools import partial
from typing import Any, ClassVar, TypeAlias

from attrs import define, field
from twisted.application.service import Service
from twisted.internet.defer import Deferred, DeferredList, DeferredLock, succeed
from twisted.internet.interfaces import IReactorTime
from twisted.logger import Logger
from twisted.python.failure import Failure

from monrest.api.endpoint import Context
from monrest.base.clock import WallClock
from monrest.base.concurrency import Periodic, after, pause, shielded
from monrest.base.errors import RestError, Unavailable
from monrest.base.values import Identity
from monrest.events import store
from monrest.events.filter import EventFilter
from monrest.events.followers import EventListener, Follower, ListenerGroup, Who
from monrest.events.model import Cursor, Event, site_subject
from monrest.events.selection import EventSelection
from monrest.events.watch import SiteWatch
from monrest.jobs.model import Job
from monrest.jobs.store import read_job
from monrest.logs.source import LogSource
from monrest.sites.registry import Registry
from monrest.sites.site import Site
from monrest.store.database import Database
from monrest.store.duties import Duties

DUTY = "events of cores"

RIGHTS_LAST = 4.0
"""Seconds for which the rights of a client, and its sites, are not read again."""

MOST_BYTES = 64_000_000
"""Bytes of the events that wait for slow readers, all groups together."""

_FEW_GROUPS = 3
LOOKED = 2.0
"""Seconds after which a change of a site or job is seen."""

HEARTBEAT = 15.0
"""Seconds after which a stream shows that it lives."""

_POLL = 0.25
"""Seconds after which events are read that another process has stored."""

_WATCHED = 1.0
"""Seconds after which it is seen which sites are to be watched."""

_PATIENCE, _AGAIN = 2.0, 0.1
"""Seconds for which a stream waits until another process watches its sites, and between looks."""

_SOME = 200
"""Clients that are looked at in one go."""

_GroupKey: TypeAlias = tuple[EventFilter, str, frozenset[str], bool]


@define(eq=False)
class Events(Service):
    """All followers of this process, and the sites that it watches while it has the duty.

    ``context`` is what requests get at present. ``reports_sites``: this process reports on sites,
    ``jobs`` returns those at which it works, ``logs`` what has the log of all sites.
    """

    log: ClassVar[Logger] = Logger()

    clock: IReactorTime
    wall: WallClock
    registry: Registry
    context: Callable[[], Context]
    database: Database
    duties: Duties
    reports_sites: Callable[[], bool]
    jobs: Callable[[], Iterable[Job]]
    logs: Callable[[], LogSource]
    followers: dict[Follower, None] = field(init=False, factory=dict)
    groups: dict[_GroupKey, ListenerGroup] = field(init=False, factory=dict)
    watches: dict[str, SiteWatch] = field(init=False, factory=dict)
    number: int | None = field(init=False, default=None)
    """The number of the last event that groups have; None while nothing is read."""
    _reading: DeferredLock = field(init=False, factory=DeferredLock)
    _listening: tuple[Periodic, ...] = field(init=False)
    """The periodic work while there are followers."""
    _always: Periodic = field(init=False)
    _states: dict[str, str] = field(init=False, factory=dict)
    _progress: dict[int, tuple[float, str]] = field(init=False, factory=dict)
    _stopping: list[Deferred[None]] = field(init=False, factory=list)
    _leaving: Deferred[None] = field(init=False, factory=lambda: succeed(None))

    def __attrs_post_init__(self) -> None:
        self._always = Periodic(self.clock, LOOKED, self._look_around, "looking at sites and jobs")
        self._listening = (
            Periodic(self.clock, _POLL, self._read, "reading events", now=False),
            Periodic(self.clock, _WATCHED, self._look_at_watches, "watching sites", now=False),
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
        stops = [group.stopService() for group in (*self._listening, self._always) if group.running]
        ends = DeferredList([*stops, *self._stopping, self._leaving], consumeErrors=True)
        return ends.addCallback(lambda _: None)

    def end(self) -> None:
        """End all streams: their clients continue at another daemon, where they were."""
        for follower in tuple(self.followers):
            follower.end()

    async def check(self, wanted: EventFilter, identity: Identity) -> None:
        """Raise BadRequest for what no event and no object has."""
        if _group_key(wanted, identity) not in self.groups:
            await self._selection(wanted, identity).check()

    async def follow(
        self, wanted: EventFilter, who: Who, listener: EventListener, since: Cursor | None = None
    ) -> Follower:
        """Send ``listener`` the events of ``wanted`` that ``who`` may see, those behind ``since``.

        Without ``since`` those from now on. It gets them when the follower begins, which is before
        this returns. Raise BadRequest for an impossible filter, Unavailable, and what ``who``
        raises.
        """
        identity = await who()
        follower = Follower(self, wanted, who, identity, listener)
        self.followers[follower] = None
        for group in self._listening:
            if not group.running:
                group.startService()
        try:
            follower.begin(await self._group(wanted, identity), since)
        except BaseException:
            self.left(follower)
            raise
        return follower

    def left(self, follower: Follower) -> None:
        """Forget a follower that has ended; without any nothing is watched or read."""
        self.followers.pop(follower, None)
        for group in self.groups.values():
            group.members.pop(follower, None)
        self._forget_groups()
        if not self.followers:
            self.number = None
            self._stopping = [stop for stop in self._stopping if not stop.called]
            self._stopping += [group.stopService() for group in self._listening if group.running]
            self._watch_only({}, 0)
            self._leaving = shielded(self._leave())

    async def _leave(self) -> None:
        with suppress(Unavailable):
            await self.duties.leave(DUTY)

    def _forget_groups(self) -> None:
        for key, group in tuple(self.groups.items()):
            if not group.members:
                group.close()
                del self.groups[key]

    def _room(self) -> int:
        return MOST_BYTES // max(_FEW_GROUPS, len(self.groups))

    def _selection(self, wanted: EventFilter, identity: Identity) -> EventSelection:
        moment = self.context().moment()
        return EventSelection(wanted, identity, self.context, moment)

    async def _group(self, wanted: EventFilter, identity: Identity) -> ListenerGroup:
        """The group of those that get the same; it has what happens from now on."""
        key = _group_key(wanted, identity)
        if key not in self.groups:
            selection = self._selection(wanted, identity)
            await selection.check()
            await self._watched(selection.sites)
            number = await self.database.run(store.last)
            if self.number is None:
                self.number = number
            if key not in self.groups:
                self.groups[key] = ListenerGroup(selection, self.clock, self._room, number)
        return self.groups[key]

    async def _watched(self, sites: Collection[str]) -> None:
        """Wait until these sites are watched, here or by another process, or cannot be asked."""
        await after(self._leaving)
        self.duties.want(DUTY)
        if self.duties.held(DUTY) is None:
            await self.duties.look()
        await self._look_at_watches()
        if self.duties.held(DUTY) is not None:
            for watch in [self.watches[site] for site in sites if site in self.watches]:
                await watch.ready()
            return
        end = self.clock.seconds() + _PATIENCE
        up = {site.id for site in self.registry.sites if site.health.state != "down"}
        while not up.intersection(sites) <= await self.database.run(store.watched(DUTY)):
            if self.clock.seconds() >= end:
                return
            await pause(self.clock, _AGAIN)

    async def _look_at_watches(self) -> None:
        """Watch all sites while this process has the duty, and none otherwise."""
        token = self.duties.held(DUTY)
        listened = token is not None and bool(self.followers)
        sites = {site.id: site for site in self.registry.sites} if listened else {}
        self._watch_only(sites, 0 if token is None else token.number)
        if token is None:
            return
        for site in sites:
            if site not in self.watches:
                self.watches[site] = SiteWatch(
                    site,
                    partial(self.site, site),
                    self.clock,
                    self.wall,
                    partial(self.duties.change, token),
                    token.number,
                    self._wake,
                )
                self.watches[site].start()

    def _watch_only(self, sites: Mapping[str, Site], token: int) -> None:
        """Stop watching other sites, and those that were watched under a former duty."""
        for site, watch in tuple(self.watches.items()):
            if site not in sites or watch.token != token:
                del self.watches[site]
                self._stopping = [stop for stop in self._stopping if not stop.called]
                self._stopping.append(watch.stop())

    def site(self, site: str) -> Site | None:
        return next(
            (configured for configured in self.registry.sites if configured.id == site), None
        )

    def _wake(self) -> None:
        shielded(self._read())

    async def _read(self) -> None:
        """Pass what is new in the table to all groups."""
        if self._reading.waiting:
            return
        await self._reading.acquire()
        try:
            while self.number is not None:
                events = await self.database.run(store.behind(self.number))
                if not events or self.number is None:
                    return
                self.number = events[-1].number
                for group in tuple(self.groups.values()):
                    group.take(events)
        except Unavailable:
            return
        finally:
            self._reading.release()

    def _publish(
        self,
        kind: str,
        subject: str,
        data: Mapping[str, Any],
        owner: str | None = None,
        roles: Iterable[str] = (),
    ) -> None:
        """Store an event of the daemon, soon; what the database does not take is lost."""
        now = self.wall.now()
        event = Event(
            time=now,
            type=kind,
            subject=subject,
            data={**data, "time": int(now)},
            owner=owner,
            roles=list(roles),
        )

        async def keep() -> None:
            try:
                await self.database.change(store.add([event], now))
            except Unavailable:
                self.log.warn("the event {kind} of {subject} is lost", kind=kind, subject=subject)
            else:
                await self._read()

        shielded(keep())

    def publish_saved(self, site: str, user: str) -> None:
        data = {"site": site, "action": "saved", "author": user}
        self._publish("config", site_subject(site), data)

    async def _look_around(self) -> None:
        """Report sites that went up or down, and jobs that have got on."""
        if self.reports_sites():
            self._look_at_sites()
        here = {job.id: job for job in self.jobs()}
        for job in here.values():
            if self._progress.get(job.id) != (job.percent, job.message):
                self._progress[job.id] = (job.percent, job.message)
                self._publish_job(job, "running" if job.started else "waiting")
        self._progress = {number: job for number, job in self._progress.items() if number in here}

    def publish_ended(self, number: int) -> None:

        async def publish() -> None:
            with suppress(Unavailable):
                job = await self.database.run(read_job(number))
                if job is not None and job.ended is not None:
                    self._publish_job(job, "ended" if job.rc == 0 else "failed")

        if self.running:
            shielded(publish())

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
                self._publish("site", site_subject(site.id), data)
        for gone in self._states.keys() - sites.keys():
            del self._states[gone]

    def _publish_job(self, job: Job, action: str) -> None:
        data = {
            "job": str(job.id),
            "action": action,
            "percent": job.percent,
            "comment": job.message,
            "command_name": job.cmd,
        }
        self._publish("job", f"jobs/{job.id}", data, job.user, job.roles)

    async def _look(self) -> None:
        """Read again the rights of each client, and the sites that exist for it."""
        identities: dict[Identity, Identity | Failure] = {}
        for count, follower in enumerate(tuple(self.followers)):
            if count % _SOME == _SOME - 1:
                await pause(self.clock)
            if follower not in self.followers:
                continue
            before = follower.identity
            if before not in identities:
                identities[before] = await self._who(follower)
            now = identities[before]
            if isinstance(now, Failure):
                follower.end(now)
            elif _rights(now) != _rights(before):
                await self._change(follower, now)
            else:
                follower.identity = now
        for group in tuple(self.groups.values()):
            try:
                await group.selection.look()
            except RestError as error:
                for member in tuple(group.members):
                    member.end(Failure(error))

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
                    if member in group.members and not member.listener.paused:
                        here = member.at == group.end
                        member.listener.beat((cursor or member.cursor) if here else "")
                await pause(self.clock)


def _group_key(wanted: EventFilter, identity: Identity) -> _GroupKey:
    return wanted, *_rights(identity)


def _rights(identity: Identity) -> tuple[str, frozenset[str], bool]:
    return identity.user, identity.roles, identity.superuser
