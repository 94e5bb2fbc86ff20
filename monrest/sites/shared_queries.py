"""Queries of one site that are equal and under way at the same moment are sent once.

Fifty people who watch the same dashboard ask the same. What is equal to the byte holds the same
user and the same filters, so that nobody sees what he or she may not.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from attrs import define, field
from twisted.internet.defer import CancelledError, Deferred
from twisted.python.failure import Failure

from monrest.base.values import Row
from monrest.livestatus.framing import Transform
from monrest.livestatus.pool import CoreRequest

MOST_ROWS = 1000
"""Rows of an answer that is copied; whoever waits for a larger one asks for itself."""
MOST_LARGE = 200

Send: TypeAlias = Callable[[], Deferred[list[Row]]]
_Key: TypeAlias = tuple[bytes, Transform | None]


@define(eq=False)
class _Follower:
    """Someone who waits for the answer to the query of another one."""

    ask: CoreRequest
    send: Send
    done: Deferred[list[Row]] = field(init=False)
    running: Deferred[list[Row]] | None = field(default=None, init=False)

    def __attrs_post_init__(self) -> None:
        self.done = Deferred(self._cancel)

    def finish(self, result: list[Row] | Failure) -> None:
        """Give what came of a query of its own."""
        if not self.done.called:
            self.done.callback(result)

    def _cancel(self, _: Deferred[list[Row]]) -> None:
        if self.running is not None:
            self.running.cancel()


@define(eq=False)
class SharedQueries:
    """The queries of one site that others may wait for as well."""

    _open: dict[_Key, list[_Follower]] = field(factory=dict, init=False)
    _large: set[_Key] = field(factory=set, init=False)
    """What had a large answer before: nobody waits for that of another one."""

    def ask(self, ask: CoreRequest, send: Send) -> Deferred[list[Row]]:
        """Give the rows that ``send`` gives, or those of an equal query that is under way."""
        key = (ask.request, ask.transform)
        followers = self._open.get(key)
        if followers is not None:
            follower = _Follower(ask, send)
            followers.append(follower)
            return follower.done
        if key in self._large:
            return send()
        followers = self._open[key] = []
        return send().addBoth(self._ended, ask, key, followers)

    def forget(self) -> None:
        """Let nobody wait any more for what was asked before: a command has changed something."""
        self._open = {}

    def _ended(
        self,
        result: list[Row] | Failure,
        ask: CoreRequest,
        key: _Key,
        followers: list[_Follower],
    ) -> list[Row] | Failure:
        if self._open.get(key) is followers:
            del self._open[key]
        followers = [one for one in followers if not one.done.called]
        if not followers:
            return result
        if isinstance(result, Failure):
            if result.check(CancelledError):
                self._ask_anew(followers)
            else:
                for one in followers:
                    one.done.errback(Failure(result.value))
        elif len(result) > MOST_ROWS or (ask.packed is not None and ask.packed.packs):
            if len(self._large) >= MOST_LARGE:
                self._large.clear()
            self._large.add(key)
            self._ask_anew(followers)
        else:
            # Who asked first may change its rows.
            copies = [type(result)(map(list, result)) for _ in followers]
            for one, rows in zip(followers, copies, strict=True):
                one.done.callback(rows)
        return result

    def _ask_anew(self, followers: list[_Follower]) -> None:
        for one in followers:
            one.running = self.ask(one.ask, one.send)
            one.running.addBoth(one.finish)
