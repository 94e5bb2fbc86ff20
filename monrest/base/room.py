"""Room in memory for rows (docs/spec/memory.md, "The budget")."""

from __future__ import annotations

from collections import deque
from typing import Self

from attrs import define, field
from twisted.internet.defer import Deferred, succeed
from twisted.internet.interfaces import IReactorFromThreads

from monrest.base.errors import BadRequest
from monrest.base.memory import MemoryBudget


@define(eq=False)
class RowRoom:
    """Room for the rows of all requests, given in the order in which it was asked for.

    ``largest``: no request ever gets more than that.
    """

    reactor: IReactorFromThreads
    most: int = MemoryBudget().rows
    largest: int = MemoryBudget().largest
    held: int = field(default=0, init=False)
    _waiting: deque[tuple[Share, int, Deferred[None]]] = field(factory=deque, init=False)

    def share(self) -> Share:
        return Share(self)

    def turn(self) -> Share:
        """Make the share of a step of longer work, or of periodic work of the daemon.

        It gets its room in its turn however large that is: the step itself is bounded.
        """
        return Share(self, limited=False)

    def configure(self, budget: MemoryBudget) -> None:
        """Continue with another budget; a share that has more keeps it."""
        self.most, self.largest = budget.rows, budget.largest
        self.give_back(0)

    def give_back(self, count: int) -> None:
        """Take ``count`` bytes back, and give them to the share that waits longest."""
        self.held -= count
        while self._waiting and self._may_take(*self._waiting[0][:2]):
            share, wanted, done = self._waiting.popleft()
            share._take(wanted)
            done.callback(None)

    def _may_take(self, share: Share, count: int) -> bool:
        # A share that is larger than the room gets all of it, alone.
        if self.held == 0 or self.held + count <= self.most:
            return True
        # Two that have some would wait for each other: one at a time gets more than there is.
        return share.size > 0 and (self.held <= self.most or share.over)


@define(eq=False)
class Share:
    """The part of the room that one request has; it ends with the request's rows, or a ``with``.

    ``over``: it took more than there was.
    """

    room: RowRoom
    limited: bool = field(default=True, kw_only=True)
    size: int = field(default=0, init=False)
    over: bool = field(default=False, init=False)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()

    def admit(self, count: int) -> Deferred[None]:
        """Fire when this request has room for ``count`` bytes more; it may be cancelled.

        A share that has some already goes first. Raises BadRequest for more than there can be.
        """
        if self.limited and self.size + count > self.room.largest:
            raise BadRequest(
                "too many rows at once",
                f"the answers of the cores have {self.size + count} bytes and must be in memory "
                f"together for this, of which server.memory_limit allows {self.room.largest}: "
                "expected filters or fewer columns, or neither sort nor calculations over all rows",
            )
        waiting = self.room._waiting
        if (self.size or not waiting) and self.room._may_take(self, count):
            self._take(count)
            return succeed(None)
        done: Deferred[None] = Deferred(self._give_up)
        wanted = (self, count, done)
        if self.size:
            waiting.appendleft(wanted)
        else:
            waiting.append(wanted)
        return done

    def release(self) -> None:
        count, self.size, self.over = self.size, 0, False
        self.room.give_back(count)

    def _take(self, count: int) -> None:
        self.room.held += count
        self.size += count
        self.over = self.room.held > self.room.most

    def _give_up(self, done: Deferred[None]) -> None:
        waiting = [waiter for waiter in self.room._waiting if waiter[2] is not done]
        self.room._waiting = deque(waiting)
        self.room.give_back(0)

    def __del__(self) -> None:
        """Return what was not released: the rows are gone as well."""
        if self.size:
            # This may be in any thread.
            self.room.reactor.callFromThread(self.room.give_back, self.size)
