"""From the events of one webhook to the messages that wait for it in the database.

What was read and how far it was read are stored together, so that a kill loses nothing and
repeats nothing. Rules: docs/spec/webhooks.md, "Delivery".
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from itertools import islice
from typing import ClassVar

from attrs import define, field
from twisted.internet.defer import CancelledError, Deferred
from twisted.internet.interfaces import IReactorTime
from twisted.logger import Logger
from twisted.python.failure import Failure

from monrest.base.clock import WallClock
from monrest.base.concurrency import Threads
from monrest.base.errors import RestError
from monrest.events.filter import EventFilter, read_filter
from monrest.events.followers import EventListener, Follower, Gap, StreamEvent, Who
from monrest.events.model import Cursor, read_cursor
from monrest.events.service import Events
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
class Following(EventListener):
    """Reads the events of a webhook as its owner, whom ``who`` returns.

    ``stored`` is called when something was stored, ``refused`` with the reason for which its owner
    gets no events. It is ``over`` when it was stopped or cannot continue; the service makes another
    one.
    """

    log: ClassVar[Logger] = Logger()

    hook: Webhook
    who: Who
    token: Token
    source: Events
    duties: Duties
    threads: Threads
    clock: IReactorTime
    wall: WallClock
    most: int
    stored: Callable[[], object]
    refused: Callable[[str], object]
    over: bool = field(init=False, default=False)
    _events: deque[StreamEvent] = field(init=False, factory=deque)
    _cursor: str = field(init=False, default="")
    """The cursor behind all events, to be stored."""
    _noted: float = field(init=False)
    _news: Deferred[None] | None = field(init=False, default=None)
    _failure: Failure | None = field(init=False, default=None)
    _running: Deferred[None] | None = field(init=False, default=None)

    def __attrs_post_init__(self) -> None:
        self._noted = self.clock.seconds()

    def start(self) -> None:
        self._running = Deferred.fromCoroutine(self._run())
        self._running.addErrback(self._broken)

    def stop(self) -> None:
        """Read no more; what was read and not stored is read again by the next one."""
        self.over = True
        if self._running is not None:
            self._running.cancel()

    def wanted(self) -> EventFilter:
        return filter_of(str(self.hook.record["filter"]))

    def since(self) -> Cursor | None:
        """Behind what was stored last."""
        position = self.hook.position
        return read_cursor(position, "position") if position else None

    async def _run(self) -> None:
        try:
            follower = await self.source.follow(self.wanted(), self.who, self, self.since())
            follower.ended.addBoth(self._ended)
            try:
                while not self.over:
                    await self._advance(follower)
            finally:
                follower.stop()
            if self._failure is not None:
                self._failure.raiseException()
        finally:
            self.over = True

    async def _advance(self, follower: Follower) -> None:
        """Store events, or how far it is, or wait for more."""
        if self._events:
            kept = await self._keep(tuple(islice(self._events, _BATCH)))
            if not kept:
                self.over = True
                return
            for _ in range(kept):
                self._events.popleft()
            self.stored()
            if not self._events:
                follower.resume()
        elif self._cursor:
            cursor, self._cursor, self._noted = self._cursor, "", self.clock.seconds()
            await self.duties.change(self.token, statements.note_position(self.hook, cursor))
        else:
            self._news = Deferred()
            await self._news

    def _wake(self) -> None:
        news, self._news = self._news, None
        if news is not None:
            news.callback(None)

    def _ended(self, result: Failure | None) -> None:
        self.over, self._failure = True, result
        self._wake()

    @property
    def paused(self) -> bool:
        """Whether there is no room for more events."""
        return self.over or len(self._events) >= _MOST_READ

    def take(self, events: Sequence[StreamEvent]) -> None:
        if not self.over:
            self._events += events
            self._cursor = ""
            self._wake()

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
            self.over = True
            self._wake()

    def beat(self, cursor: str) -> None:
        """Note now and then how far it is, so that a restart reads little again."""
        if cursor and self.clock.seconds() >= self._noted + _NOTE:
            self._cursor = cursor
            self._wake()

    async def _keep(self, events: Sequence[StreamEvent]) -> int:
        """Store messages of the first of these events; return their number, 0 where none can be."""
        queued = await self.threads.run(lambda: queued_events(self.hook, events))
        work = statements.queue(self.hook, queued, self.wall.now(), self.most)
        return await self.duties.change(self.token, work)

    def _broken(self, failure: Failure) -> None:
        error = failure.value
        if isinstance(error, CancelledError):
            return
        if isinstance(error, RestError) and error.code < _OURS:
            # The owner may not listen, or not to this: to try again is of no use.
            self.refused(str(error))
        elif isinstance(error, (RestError, DutyLostError)):
            self.log.info(
                "webhook {number}: events are not read now: {reason}",
                number=self.hook.number,
                reason=str(error),
            )
        else:
            self.log.failure("events of a webhook were not read", failure)
