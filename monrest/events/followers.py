"""The clients that listen to events, in groups that listen to the same (docs/spec/events.md).

An event is judged and written once for a group. What was judged waits in one list until all members
have got it, and each knows how far it is. A client that has missed events catches up by itself and
then goes with its group.
"""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias, TypeVar

from attrs import define, evolve, field, frozen
from twisted.internet.defer import CancelledError, Deferred
from twisted.internet.interfaces import IDelayedCall, IReactorTime
from twisted.logger import Logger
from twisted.python.failure import Failure

from monrest.base.concurrency import pause
from monrest.base.errors import RestError, Unavailable
from monrest.base.values import Identity
from monrest.events import store
from monrest.events.filter import EventFilter
from monrest.events.line_events import CLASSES, LineEvents
from monrest.events.model import Cursor, Event, Place, line_id, read_cursor
from monrest.events.selection import EventSelection
from monrest.livestatus.core_errors import LivestatusError
from monrest.logs.source import Wanted
from monrest.store.database import Work

if TYPE_CHECKING:
    from monrest.events.service import Events

T = TypeVar("T")

MOST_WAITING = 20_000
"""Events that wait for the slowest of a group; a client that is further behind has a gap."""

_BATCH = 50
"""Events that are judged before clients are served again."""

_TAKEN = 100
"""Events that a listener takes at once."""

_CHUNK = 32_768
"""Bytes that are written to a client before it is seen whether it takes them."""

_MOST_CHUNKS = 64
"""Chunks that are kept for the next client that is as far behind, in one round."""

_BUDGET = 0.008
"""Seconds for which clients are served in one go."""

_OWED = 1.0
"""Seconds after which a site that was down is asked again for what a follower has missed."""

_SOON = 0.05
"""Seconds after which a group is seen to have what another process had before."""


@frozen
class StreamEvent:
    """An event as a stream sends it: ``data`` are its columns, ``cursor`` continues behind it."""

    event: Event
    data: Mapping[str, Any]
    cursor: str


@frozen
class Gap:
    """``count`` events or more, since ``time``, were left out between two cursors."""

    since: str
    until: str
    count: int
    time: int


Write: TypeAlias = Callable[[StreamEvent], bytes]


@define(eq=False)
class ListenerGroup:
    """Judges events for all its ``members`` by one ``selection``."""

    log: ClassVar[Logger] = Logger()

    selection: EventSelection
    clock: IReactorTime
    room: Callable[[], int]
    """Returns how many bytes may wait."""
    number: int
    """The events up to there were judged, or happened before."""
    members: dict[Follower, None] = field(init=False, factory=dict)
    ring: deque[StreamEvent] = field(init=False, factory=deque)
    size: int = field(init=False, default=0)
    """About how many bytes wait."""
    start: int = field(init=False, default=0)
    """The number of the first event of the ring."""
    lost: str = field(init=False, default="")
    """The cursor behind the last event that was dropped before all had it."""
    _queue: deque[Sequence[Event]] = field(init=False, factory=deque)
    _working: Deferred[None] | None = field(init=False, default=None)
    _chunks: dict[tuple[int, Write], tuple[bytes, int]] = field(init=False, factory=dict)
    _round: deque[Follower] = field(init=False, factory=deque)
    _served: int = field(init=False, default=0)
    _next: IDelayedCall | None = field(init=False, default=None)

    @property
    def end(self) -> int:
        """The number of the next event."""
        return self.start + len(self.ring)

    @property
    def idle(self) -> bool:
        """Whether nothing waits to be judged."""
        return not self._queue and self._working is None

    def close(self) -> None:
        self._queue.clear()
        working, self._working = self._working, None
        if working is not None:
            working.cancel()
        if self._next is not None:
            self._next.cancel()
            self._next = None

    def cursor(self) -> Cursor:
        """The cursor of the members that are not behind."""
        return Cursor(self.number)

    def take(self, events: Sequence[Event]) -> None:
        """Judge the next events of the table."""
        self._queue.append(events)
        if self._working is None:
            self._working = Deferred.fromCoroutine(self._work())
            self._working.addErrback(self._broken)
            if self._working is not None and self._working.called:
                self._working = None

    def _broken(self, failure: Failure) -> None:
        if not failure.check(CancelledError):
            self.log.failure("events could not be judged", failure)

    async def _work(self) -> None:
        try:
            while self._queue:
                events = self._queue.popleft()
                await self.prepare(events)
                await self._judge_all(events)
                self.pump()
        finally:
            self._working = None

    def waits_for(self, events: Sequence[Event]) -> bool:
        """Whether the cores have to be asked before these events can be judged."""
        return bool(self.selection.waits_for(events))

    async def prepare(self, events: Sequence[Event]) -> None:
        """Read what has to be known of objects before these events are judged."""
        sets = self.selection.waits_for(events)
        if sets:
            try:
                await self.selection.read(sets)
            except RestError as error:
                self.log.warn("objects of a filter are not read: {reason}", reason=error)

    async def _judge_all(self, events: Sequence[Event]) -> None:
        for at, event in enumerate(events):
            if event.number <= self.number:
                continue
            self.number = event.number
            data = self.judge(event)
            if data is not None:
                self._append(StreamEvent(event, data, str(self.cursor())))
            if at % _BATCH == _BATCH - 1:
                self.pump()
                await pause(self.clock)

    def judge(self, event: Event) -> Mapping[str, Any] | None:
        """Its columns as clients get them; None where it is not for them."""
        try:
            return self.selection.judge(event)
        except RestError as error:
            self.log.warn("an event cannot be judged: {reason}", reason=error)
            return None

    def _append(self, event: StreamEvent) -> None:
        if self.members:
            self.ring.append(event)
            self.size += event.event.size
            most = self.room()
            while len(self.ring) > MOST_WAITING or self.size > most:
                # A member that has not got it has a gap.
                self.lost = self._pop().cursor

    def _pop(self) -> StreamEvent:
        event = self.ring.popleft()
        self.start += 1
        self.size -= event.event.size
        return event

    def chunk(self, at: int, write: Write) -> tuple[bytes, int]:
        """Some bytes from the event ``at`` on, and the number of the event behind them."""
        chunk = self._chunks.get((at, write))
        if chunk is None:
            parts: list[bytes] = []
            size, end = 0, at
            for event in islice(self.ring, at - self.start, None):
                parts.append(write(event))
                size += len(parts[-1])
                end += 1
                if size >= _CHUNK:
                    break
            if len(self._chunks) >= _MOST_CHUNKS:
                self._chunks.clear()
            chunk = self._chunks[at, write] = (b"".join(parts), end)
        return chunk

    def items(self, at: int, most: int) -> list[StreamEvent]:
        """Some events from the number ``at`` on."""
        begin = at - self.start
        return list(islice(self.ring, begin, begin + most))

    def pump(self) -> None:
        """Serve all members, some at a time."""
        if self._next is None and not self._round:
            self._serve()

    def serve_again(self, member: Follower) -> None:
        """Serve ``member``, which has room again, in a turn with all that have."""
        self._round.append(member)
        if self._next is None:
            self._next = self.clock.callLater(0, self._serve)

    def _serve(self) -> None:
        self._next = None
        until = self.clock.seconds() + _BUDGET
        if not self._round:
            self._served = self.end
            self._round.extend(self.members)
        while self._round:
            member = self._round.popleft()
            if member in self.members:
                member.serve()
            if self.clock.seconds() >= until and self._round:
                self._next = self.clock.callLater(0, self._serve)
                return
        self._trim()
        if self._served != self.end:
            self._next = self.clock.callLater(0, self._serve)

    def _trim(self) -> None:
        """Forget what all have got."""
        # A chunk may end before what was added meanwhile.
        self._chunks.clear()
        low = min((member.at for member in self.members if member.at >= 0), default=self.end)
        while self.start < low and self.ring:
            self._pop()


Who: TypeAlias = Callable[[], Awaitable[Identity]]
"""The identity of the client, now; raises a RestError when it may listen no more."""


class EventListener:
    """The receiver of a follower's events."""

    @property
    def paused(self) -> bool:
        """Whether it takes nothing at present."""
        raise NotImplementedError

    def serve(self, follower: Follower) -> None:
        """Take what its group has for it from ``follower.at`` on, and set that."""
        group = follower.group
        while follower.at < group.end and not self.paused:
            events = group.items(follower.at, _TAKEN)
            follower.took(follower.at + len(events))
            self.take(events)

    def take(self, events: Sequence[StreamEvent]) -> None:
        """Take events, at first those that are for it alone, because it is behind the others."""

    def miss(self, gap: Gap) -> None:
        """Note that events were left out."""

    def beat(self, cursor: str) -> None:
        """Send a heartbeat; ``cursor`` is where to continue, empty while the client is behind."""


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
    """The cursor of a follower that is behind."""
    _last: str = field(init=False, default="")
    """The cursor behind the last event that it got."""
    _time: int = field(init=False)
    """and the time of that event, or of the beginning."""
    _behind: Deferred[None] | None = field(init=False, default=None)
    _room: Deferred[None] | None = field(init=False, default=None)
    _news: Deferred[None] | None = field(init=False, default=None)
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
        self.group, self._last, self._time = group, "", int(self.events.wall.now())
        self._cursor, self.at = group.cursor(), group.end
        if self._over:
            return  # the daemon stops
        group.members[self] = None
        if since is None:
            return
        self.at, self._cursor = -1, since
        self._behind = Deferred.fromCoroutine(self._catch_up())
        self._behind.addErrback(self._broken)

    def _stop_catching_up(self) -> None:
        behind, self._behind = self._behind, None
        if behind is not None:
            behind.cancel()

    def change(self, identity: Identity, group: ListenerGroup) -> None:
        cursor = read_cursor(self.cursor, "since")
        self._stop_catching_up()
        self.group.members.pop(self, None)
        self.identity = identity
        self.begin(group, cursor)

    def stop(self) -> None:
        if not self._over:
            self._over = True
            self._stop_catching_up()
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
            self.log.failure("events that were missed could not be sent", failure)
            self.end(failure)

    def serve(self) -> None:
        group = self.group
        news, self._news = self._news, None
        if news is not None and not news.called:
            news.callback(None)
        if self.at < 0 or self.listener.paused:
            return
        if self.at < group.start:
            missed = group.start - self.at
            self.listener.miss(Gap(self.cursor, group.lost, missed, self._time))
            self.at = group.start
        if self.at < group.end:
            self.listener.serve(self)

    def took(self, at: int) -> None:
        """Note that it has everything before the event ``at``."""
        self.at = at
        self._note(self.group.ring[at - 1 - self.group.start])

    def _note(self, event: StreamEvent) -> None:
        self._last, self._time = event.cursor, int(event.event.time)

    def resume(self) -> None:
        room, self._room = self._room, None
        if room is not None:
            room.callback(None)
        elif not self._over and 0 <= self.at < self.group.end:
            self.group.serve_again(self)

    async def _catch_up(self) -> None:
        """Tell what is behind the cursor, until nothing is left; then go with the others.

        What a site cannot answer now comes when it can; only this follower waits for it, and its
        cursor names the place of that site until then.
        """
        group, clock = self.group, self.events.clock
        self._cursor = await self._missed(self._cursor)
        asked: dict[str, float] = {}
        while True:
            number, end, owed = self._number, group.number, self._cursor.places
            due = [site for site in owed if clock.seconds() >= asked.get(site, 0.0)]
            if number < end:
                rows = await self._read(store.behind(number))
                events = [row for row in rows if row.number <= end]
                # Of a site that owes something the older events come first.
                await self._take(
                    [event for event in events if not (event.nth and event.site in owed)]
                )
                number = events[-1].number if events else end
                self._cursor = evolve(self._cursor, number=number)
                await self._room_again()
            elif number > end:
                # Another process was quicker.
                await pause(clock, _SOON)
            elif due:
                for site in due:
                    if site not in group.selection.sites or await self._send_older(site):
                        self._cursor = self._cursor.without(site)
                    else:
                        asked[site] = clock.seconds() + _OWED
            elif owed:
                self._news = Deferred()
                await self._news.addTimeout(_OWED, clock, lambda *_: None)
            else:
                break
        self.at, self._behind = group.end, None
        self.serve()

    @property
    def _number(self) -> int:
        assert self._cursor.number is not None
        return self._cursor.number

    async def _missed(self, since: Cursor) -> Cursor:
        """The number up to which nothing is missed, but for sites behind their places."""
        sites = self.group.selection.sites
        places = {site: place for site, place in since.places.items() if site in sites}
        number, time, now = since.number, since.time, self.events.wall.now()
        if number is None and since.base is None and len(since.places) == 1:
            ((site, place),) = since.places.items()
            number = await self._read(store.number_of(line_id(site, place)))
            places = {} if number is not None else places
        elif since.base is not None:
            number = None
        if number is None:
            assert time is not None
            covered = await self._read(store.coverage)
            for site in sites:
                if site not in covered or covered[site].since > time:
                    places.setdefault(site, Place(time))
            return Cursor(await self._read(store.before(time)), None, places)
        first, last = await self._read(store.kept)
        if not first <= number <= last:
            stored = min(max(number, first), last)
            gap = Gap(str(since), str(Cursor(stored)), abs(stored - number), int(now - store.KEPT))
            self.listener.miss(gap)
            number = stored
        others = [site for site in sites if site not in places]
        places |= await self._read(store.uncovered(others, number, now))
        return Cursor(number, None, places)

    async def _send_older(self, site: str) -> bool:
        """Send what is missed of a site, at first what only its log has; whether that was all."""
        group = self.group
        covered = (await self._read(store.coverage)).get(site)
        until = int(self.events.wall.now()) if covered is None else covered.since - 1
        while self._cursor.places[site].time <= until:
            waiting: list[Event] = []
            try:
                async for events in self._older(site, until):
                    if group.waits_for(events):
                        # What the cores answer needs room, and an open log holds some.
                        waiting = events
                        break
                    await self._take(events)
                    if self.listener.paused:
                        # Lines that wait for a client would hold the room of others.
                        break
                else:
                    if covered is None:
                        break  # until the site is watched there may be more
                    self._cursor = self._cursor.at(site, Place(covered.since))
            except (LivestatusError, Unavailable):
                return False
            await self._take(waiting)
            await self._room_again()
        if covered is None:
            return False
        while rows := await self._read(
            store.of_log(site, covered.since, self._cursor.places[site], self._number)
        ):
            await self._take(rows)
            await self._room_again()
        return True

    async def _older(self, site: str, until: int) -> AsyncIterator[list[Event]]:
        """The missed events of a site in its log, up to the second ``until``.

        The log cache has it also of a core that is down.
        """
        owner = self.events.site(site)
        if owner is None:
            return
        place = self._cursor.places[site]
        reader, numbers = LineEvents(site), {place.time: place.number}
        wanted = Wanted(since=place.time, until=until, texts="all", classes=frozenset(CLASSES))
        async for lines in self.events.logs().slices(owner, wanted):
            events = [event for event in reader.events(lines, numbers) if event.time <= until]
            if events:
                yield events

    async def _take(self, events: Sequence[Event]) -> None:
        group, items = self.group, list[StreamEvent]()
        await group.prepare(events)
        for event in events:
            if event.place is not None and event.site in self._cursor.places:
                self._cursor = self._cursor.at(event.site, event.place)
            else:
                self._cursor = evolve(self._cursor, number=event.number)
            data = group.judge(event)
            if data is not None:
                items.append(StreamEvent(event, data, str(self._cursor)))
        if items:
            self.listener.take(items)
            self._note(items[-1])
        await pause(self.events.clock)

    async def _room_again(self) -> None:
        while self.listener.paused:
            self._room = Deferred()
            await self._room

    async def _read(self, work: Work[T]) -> T:
        """The result of ``work``; while the database is away it is waited for."""
        while True:
            try:
                return await self.events.database.run(work)
            except Unavailable:
                await pause(self.events.clock, _OWED)
