"""From the events of one webhook to the messages that wait for it in the database.

What was read and how far it was read are stored together, so that a kill loses nothing and
repeats nothing. Rules: docs/spec/webhooks.md, "Delivery".
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Protocol

from attrs import define, field
from twisted.internet.defer import CancelledError, Deferred
from twisted.internet.interfaces import IReactorTime
from twisted.logger import Logger

from monrest.base.clock import WallClock
from monrest.base.concurrency import Threads
from monrest.base.errors import RestError
from monrest.base.values import Identity
from monrest.events.filter import EventFilter, read_filter
from monrest.events.follower import EventListener, Follower, Who
from monrest.events.group import Gap, StreamEvent
from monrest.events.model import Cursor, read_cursor
from monrest.query.target import parameters
from monrest.store.duties import Duties, DutyLostError, Token
from monrest.webhooks import store as statements
from monrest.webhooks.bodies import JSON, BodyError, body_of
from monrest.webhooks.model import Webhook
from monrest.webhooks.signature import message_id
from monrest.webhooks.store import QueuedEvent

_MOST_READ = 2000
"""Events in memory; no more are read until they are stored."""

_BATCH = 100
_NOTE = 300.0
_OURS = 500


class EventSource(Protocol):
    """Where events come from."""

    async def check(self, wanted: EventFilter, who: Identity) -> None:
        """Raise BadRequest for a filter with columns that nothing has."""

    async def follow(
        self, wanted: EventFilter, who: Who, listener: EventListener, since: Cursor | None = None
    ) -> Follower:
        """Give events to ``listener``, those behind ``since`` first."""


def filter_of(text: str) -> EventFilter:
    """The filter that a text describes; BadRequest."""
    return read_filter(parameters(text.lstrip().lstrip("?").encode()))


def queued_events(hook: Webhook, events: Sequence[StreamEvent]) -> list[QueuedEvent]:
    """Make what is sent of events, which takes its time."""
    queued = []
    for stream_event in events:
        event, error, kind, body = stream_event.event, None, JSON, b""
        try:
            message = body_of(stream_event, hook)
            kind, body = message.content_type, message.data
        except BodyError as problem:
            error = str(problem)
        queued.append(
            QueuedEvent(
                message=message_id(hook.token, event.id),
                event=event.id,
                type=event.type,
                subject=f"{event.site}:{event.subject}",
                content_type=kind,
                body=body,
                cursor=stream_event.cursor,
                error=error,
            )
        )
    return queued


@define(eq=False, kw_only=True)
class Following:
    """Reads the events of a webhook as its owner, whom ``who`` gives.

    ``stored`` is called when something was stored, ``refused`` with the reason for which its owner
    gets no events. It is ``over`` when it was stopped or cannot go on; the service makes another
    one.
    """

    log: ClassVar[Logger] = Logger()

    hook: Webhook
    who: Who
    token: Token
    source: EventSource
    duties: Duties
    threads: Threads
    clock: IReactorTime
    wall: WallClock
    most: int
    stored: Callable[[], object]
    refused: Callable[[str], object]
    over: bool = field(init=False, default=False)
    _events: deque[StreamEvent] = field(init=False, factory=deque)
    _follower: Follower | None = field(init=False, default=None)
    _noted: float = field(init=False)
    _beginning: Deferred[None] | None = field(init=False, default=None)
    _busy: bool = field(init=False, default=False)
    _writing: Deferred[None] | None = field(init=False, default=None)

    def __attrs_post_init__(self) -> None:
        self._noted = self.clock.seconds()

    def start(self) -> None:
        self._beginning = Deferred.fromCoroutine(self.begin())
        self._beginning.addErrback(self._broken)

    async def begin(self) -> None:
        """Read on behind what was read last."""
        position = self.hook.position
        await self.follow(read_cursor(position, "position") if position else None)

    def wanted(self) -> EventFilter:
        return filter_of(str(self.hook.record["filter"]))

    async def follow(self, since: Cursor | None) -> None:
        """Follow behind ``since``; raises RestError."""
        follower = await self.source.follow(self.wanted(), self.who, self, since)
        follower.ended.addCallbacks(lambda _: self._leave(), self._broken)
        if self.over:
            follower.stop()
        else:
            self._follower = follower

    @property
    def paused(self) -> bool:
        """Whether there is no room for more events."""
        return self.over or len(self._events) >= _MOST_READ

    def serve(self, follower: Follower) -> None:
        """Take what all that follow the same get."""
        group = follower.group
        while follower.at < group.end and not self.paused:
            events = group.items(follower.at, _BATCH)
            follower.took(follower.at + len(events))
            self.take(events)

    def take(self, events: Sequence[StreamEvent]) -> None:
        """Take events, and store them as soon as those before them are."""
        if self.over:
            return
        self._events += events
        if not self._busy and self._events:
            self._busy = True
            self._writing = Deferred.fromCoroutine(self._write())
            self._writing.addErrback(self._broken)

    def miss(self, gap: Gap) -> None:
        """Read on without the events that are kept no more; read others again."""
        expected = gap.since == self.hook.position
        self.log.info(
            "webhook {number}: {count} events {what}",
            number=self.hook.number,
            count=gap.count,
            what="were removed before they were read" if expected else "are read again",
        )
        if not expected:
            self._leave()

    def beat(self, cursor: str) -> None:
        """Note now and then how far it is, so that a restart reads little again."""
        now = self.clock.seconds()
        if cursor and not self._busy and not self.over and now >= self._noted + _NOTE:
            self._noted, self._busy = now, True
            self._writing = Deferred.fromCoroutine(self._note(cursor))
            self._writing.addErrback(self._broken)

    async def _note(self, cursor: str) -> None:
        hook = self.hook
        try:
            work = statements.note_position(hook, cursor)
            await self.duties.change(self.token, work)
        finally:
            self._busy = False
        if self._events and not self.over:
            self.take([])

    async def _write(self) -> None:
        try:
            while self._events and not self.over:
                batch = [self._events[at] for at in range(min(_BATCH, len(self._events)))]
                kept = await self.keep(batch)
                if not kept:
                    self._leave()
                    return
                for _ in range(kept):
                    self._events.popleft()
                self.stored()
        finally:
            self._busy = False
        if self._follower is not None and not self.over:
            self._follower.resume()

    async def keep(self, events: Sequence[StreamEvent]) -> int:
        """Store what the first of these events mean; give how many, 0 where none can be."""
        hook = self.hook
        queued = await self.threads.run(lambda: queued_events(hook, events))
        now = self.wall.now()
        work = statements.queue(hook, queued, now, self.most)
        return await self.duties.change(self.token, work)

    def _broken(self, failure: Any) -> None:
        if self.over or failure.check(CancelledError):
            self._leave()
            return
        self._leave()
        if failure.check(RestError) and failure.value.code < _OURS:
            # The owner may not listen, or not to this: to try again is of no use.
            self.refused(str(failure.value))
        elif failure.check(RestError, DutyLostError):
            self.log.info(
                "webhook {number}: events are not read now: {reason}",
                number=self.hook.number,
                reason=str(failure.value),
            )
        else:
            self.log.failure("events of a webhook were not read", failure)

    def stop(self) -> None:
        """Read no more; what was read and not stored is read again by the next one."""
        if self.over:
            return
        self._leave()
        for work in (self._beginning, self._writing):
            if work is not None:
                work.cancel()

    def _leave(self) -> None:
        self.over = True
        follower, self._follower = self._follower, None
        if follower is not None:
            follower.stop()
