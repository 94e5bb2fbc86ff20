"""Where events come from: a site that is watched, or the daemon (docs/spec/events.md)."""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncIterator, Sequence
from itertools import islice

from attrs import define, field
from twisted.internet.defer import Deferred, succeed

from monrest.events.model import Event, Place


@define(eq=False)
class Source:
    """The newest events of ``id`` in their order, for followers that come later or read slowly.

    ``place`` is behind the last event that was given out; of the time after ``begin`` all are
    remembered. Before the second ``settled`` nothing more will turn up, as far as is known.
    ``most`` events are remembered, and about ``most_bytes`` bytes of them.
    """

    id: str
    most: int = field(kw_only=True)
    most_bytes: int = field(kw_only=True)
    place: Place = field(init=False, factory=lambda: Place(0))
    begin: Place = field(init=False, factory=lambda: Place(0))
    settled: int = field(init=False, default=0)
    _events: deque[Event] = field(init=False, factory=deque)
    _size: int = field(init=False, default=0)
    _known: bool = field(init=False, default=False)
    _waiting: list[Deferred[None]] = field(init=False, factory=list)

    @property
    def known(self) -> bool:
        """Whether ``place`` is where it is now."""
        return self._known

    def ready(self) -> Deferred[None]:
        """Fire when it is known what comes from now on, or that the source cannot be asked."""
        if self._known:
            return succeed(None)
        one: Deferred[None] = Deferred(self._waiting.remove)
        self._waiting.append(one)
        return one

    def _let_go(self) -> None:
        """Fire what waits for ``ready``."""
        waiting, self._waiting = self._waiting, []
        for one in waiting:
            one.callback(None)

    def since(self, place: Place) -> list[Event]:
        """The events behind ``place``, as far as they are remembered."""
        events = self._events
        at = len(events)
        # From the end, because nearly all want the newest.
        while at and events[at - 1].place > place:
            at -= 1
        return list(islice(events, at, None))

    def _remember(self, events: Sequence[Event]) -> None:
        for event in events:
            self._events.append(event)
            self._size += event.size
        while len(self._events) > self.most or self._size > self.most_bytes:
            oldest = self._events.popleft()
            self.begin = oldest.place
            self._size -= oldest.size

    async def reach(self, place: Place) -> bool:
        """Remember from ``place`` on where that is not much; whether that is so."""
        return place >= self.begin

    def older(self, place: Place) -> AsyncIterator[list[Event]]:
        """Give the events behind ``place`` up to those that are remembered, some at a time.

        Raise LivestatusError or Unavailable where no more can be read now.
        """
        raise NotImplementedError
