"""Noticing that a server hangs, before the time is over that a transaction may take.

Who waits for a long statement has to wait; who waits for a server that answers nobody does not.
So while somebody waits the server is asked something that takes no time at all.
"""

from __future__ import annotations

from collections.abc import Callable

from attrs import define, field
from sqlalchemy import Connection, text
from twisted.internet.defer import CancelledError, Deferred
from twisted.internet.interfaces import IDelayedCall, IReactorTime

from monrest.store.door import Door, GivenUpError, TransactionAttempt

SUSPECT = 3.0
"""Seconds for which somebody waits before the server is asked."""

ANSWER = 4.0
"""Seconds that it has for the answer."""

_AGAIN = 1.0


def _alive(connection: Connection) -> None:
    connection.execute(text("SELECT 1"))


@define(eq=False)
class Pulse:
    """``door`` has a connection for this alone; ``hung`` is called when there is no answer.

    ``answers``: False from then on until the server answers again.
    """

    clock: IReactorTime
    door: Door
    hung: Callable[[], object]
    answers: bool = field(init=False, default=True)
    _waiting: int = field(init=False, default=0)
    _timer: IDelayedCall | None = field(init=False, default=None)
    _asking: Deferred[None] | None = field(init=False, default=None)
    _stopped: bool = field(init=False, default=False)

    def waits(self) -> None:
        """Note that somebody waits for the server."""
        self._waiting += 1
        self._later()

    def ended(self) -> None:
        """Note that somebody does not any more."""
        self._waiting -= 1
        if not self._waiting and self.answers:
            self._rest()

    def _later(self) -> None:
        wanted = self._waiting or not self.answers
        if wanted and not self._stopped and self._timer is None and self._asking is None:
            self._timer = self.clock.callLater(SUSPECT if self.answers else _AGAIN, self._ask)

    def _rest(self) -> None:
        timer, self._timer = self._timer, None
        if timer is not None and timer.active():
            timer.cancel()

    def _ask(self) -> None:
        self._timer = None
        self._asking = Deferred.fromCoroutine(self._asked())
        self._asking.addCallback(self._told)

    async def _asked(self) -> None:
        try:
            await self.door.attempt(
                TransactionAttempt(self.door.engine, _alive), self.clock, ANSWER
            )
        except CancelledError:
            return
        except GivenUpError:
            if self.answers:
                self.answers = False
                self.hung()
            return
        except Exception:  # noqa: BLE001  whatever it says, who waits is told as well
            self.answers = True
        else:
            self.answers = True

    def _told(self, _: None) -> None:
        self._asking = None
        self._later()

    def stop(self) -> None:
        self._stopped = True
        self._rest()
        if self._asking is not None:
            self._asking.cancel()
