"""Limits of requests, and of the speed of clients.

The rules and numbers are those of docs/spec/http.md, "What a client may send" and "Slow clients".
"""

from __future__ import annotations

from collections.abc import Callable

from attrs import define, field
from twisted.internet.interfaces import IDelayedCall, IReactorTime

from monrest.base.errors import Unavailable

SMALL_BODY = 65536
"""Bytes of a body that any client may send; longer ones need credentials."""
RETRY_AFTER = 5
"""Seconds after which a client whose body had no room may try again."""
HEAD_SECONDS = 30.0
"""From the first byte of a request to the end of its head."""
BODY_LEAST, BODY_WINDOW = 15_000, 30.0
"""Bytes of a body that must arrive in this number of seconds, unless it ends before."""
READ_LEAST, READ_WINDOW = 30_000, 60.0
"""Bytes that a reader must accept in this number of seconds, while there are some for it."""
SUSPENDED = 1.0
"""A timer that is later than these seconds shows that the process or machine was suspended."""


def no_room() -> Unavailable:
    """The error for a body that has no room beside all others."""
    return Unavailable(
        "too many request bodies at once", "please try again in a moment", seconds=RETRY_AFTER
    )


@define(eq=False)
class Intake:
    """The room of ``most`` bytes for the bodies of all requests of the daemon, and their values.

    Each body counts until its request is answered.
    """

    most: int
    held: int = 0

    def take(self, count: int) -> bool:
        """Take room for ``count`` bytes; False if there is not enough."""
        if self.held + count > self.most:
            return False
        self.held += count
        return True

    def give_back(self, count: int) -> None:
        self.held -= count


@define(eq=False)
class Pace:
    """Notices that a number of bytes has grown by less than ``least`` in ``seconds``.

    It is checked between ``begin`` and ``end`` only, while the daemon waits for the client. A time
    in which the process was suspended does not count.
    """

    clock: IReactorTime
    least: int
    seconds: float
    _before: int = field(default=0, init=False)
    _timer: IDelayedCall | None = field(default=None, init=False)

    def begin(self, count: Callable[[], int], late: Callable[[], None]) -> None:
        """Watch ``count``, which never falls, and call ``late`` once when it grows too slowly."""
        self.end()
        self._before = count()
        self._timer = self.clock.callLater(self.seconds, self._look, count, late)

    def end(self) -> None:
        timer, self._timer = self._timer, None
        if timer is not None and timer.active():
            timer.cancel()

    def _look(self, count: Callable[[], int], late: Callable[[], None]) -> None:
        timer, self._timer = self._timer, None
        assert timer is not None
        stopped = self.clock.seconds() - timer.getTime() > SUSPENDED
        if count() - self._before < self.least and not stopped:
            late()
        else:
            self.begin(count, late)


def pace_of_reader(clock: IReactorTime) -> Pace:
    return Pace(clock, READ_LEAST, READ_WINDOW)
