"""Clients that listen to the same: an event is judged and written once for them.

What was judged waits in one list until all have got it; each knows how far it is
(docs/spec/events.md, "Many clients").
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from itertools import islice
from typing import Any, ClassVar, Protocol

from attrs import define, field, frozen
from twisted.internet.defer import CancelledError, Deferred
from twisted.internet.interfaces import IDelayedCall, IReactorTime
from twisted.logger import Logger
from twisted.python.failure import Failure

from monrest.base.concurrency import pause
from monrest.base.errors import RestError
from monrest.events.model import Cursor, Event
from monrest.events.selection import EventSelection

MOST_WAITING = 20_000
"""Events that wait for the slowest of a group; a client that is further behind has a gap."""

_BATCH = 50
"""Events that are judged before clients are served again."""

_CHUNK = 32_768
"""Bytes that are written to a client before it is seen whether it takes them."""

_MOST_CHUNKS = 64
"""Chunks that are kept for the next client that is as far behind, in one round."""

_BUDGET = 0.008
"""Seconds for which clients are served in one go."""


@frozen
class StreamEvent:
    """An event as a stream tells it: ``data`` are its columns, ``cursor`` goes on behind it."""

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


class GroupMember(Protocol):
    """A client of the group."""

    at: int
    """The number of the next event that it gets; -1 while it is not with the others."""

    def serve(self) -> None:
        """Take what there is, as far as there is room for it."""


Write = Callable[[StreamEvent], bytes]


@define(eq=False)
class ListenerGroup:
    """Judges events for all its ``members`` by one ``selection``."""

    log: ClassVar[Logger] = Logger()

    selection: EventSelection
    clock: IReactorTime
    room: Callable[[], int]
    """Gives how many bytes may wait."""
    number: int
    """The events up to there were judged, or happened before."""
    members: dict[GroupMember, None] = field(init=False, factory=dict)
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
    _round: deque[GroupMember] = field(init=False, factory=deque)
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
        """How far the members are that are not behind."""
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

    def serve_again(self, member: GroupMember) -> None:
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
