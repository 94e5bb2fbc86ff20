"""What a client may send, and how slowly it may send and read.

The rules and numbers are those of docs/spec/http.md, "What a client may send" and "Slow clients".
"""

from __future__ import annotations

from collections.abc import Callable

from attrs import define, field
from twisted.internet.interfaces import IDelayedCall, IReactorTime

from monrest.base.errors import Unavailable

UNKNOWN = 65536
"""Bytes of a body that any client may send; for more a client has to be known."""
RETRY_AFTER = 5
"""Seconds after which a client may try again for whose body there was no room."""
HEAD_SECONDS = 30.0
"""From the first byte of a request to the end of its head."""
LEAST, WINDOW = 15_000, 30.0
"""Bytes of a body that have to come in so many seconds, unless it ends before."""
READ_LEAST, READ_WINDOW = 30_000, 60.0
"""Bytes that a reader has to take in so many seconds, as long as there are some for it."""
STOOD_STILL = 1.0
"""Seconds by which a timer is late when the process or its machine was stopped for a while."""


def no_room() -> Unavailable:
    """Make the error for a body that does not fit in beside all others."""
    return Unavailable(
        "too many request bodies at once", "please try again in a moment", seconds=RETRY_AFTER
    )


@define(eq=False)
class Intake:
    """The room of ``most`` bytes for the bodies of all requests of the daemon, and their values.

    Each counts until its request is answered.
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

    It is looked at between ``begin`` and ``end`` only, while the other side waits for the client.
    A time in which the process was stopped does not count.
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
        stopped = self.clock.seconds() - timer.getTime() > STOOD_STILL
        if count() - self._before < self.least and not stopped:
            late()
        else:
            self.begin(count, late)


def pace_of_reader(clock: IReactorTime) -> Pace:
    return Pace(clock, READ_LEAST, READ_WINDOW)
