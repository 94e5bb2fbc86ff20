"""The database without threads, which a test can take away, hold back and count."""

from twisted.internet.defer import Deferred, execute

from monrest.base.errors import Unavailable
from monrest.store.database import Database
from tests.fakes.store import InlineThreads

NOW = 1_700_000_000
"""Seconds since the epoch: what the clocks of tests show at first."""


class Store(Database):
    """The database, which can be ``down``, ``held`` (answers come with ``release``), and counts."""

    __slots__ = ("changes", "down", "held", "reads", "waiting")

    def __init__(self, url, clock):
        self.reads = self.changes = 0
        self.down = self.held = False
        self.waiting = []
        super().__init__(None, url, clock, threads=InlineThreads)

    def run(self, work):
        self.reads += 1
        return self._answer(super().run, work)

    def change(self, work):
        self.changes += 1
        return self._answer(super().change, work)

    def _answer(self, door, work):
        if self.down:
            return execute(refuse)
        done = door(work)
        if not self.held:
            return done
        late = Deferred()
        self.waiting.append((late, done))
        return late

    def release(self):
        """Let the results through that were held back; what they hold is as old as the call."""
        waiting, self.waiting, self.held = self.waiting, [], False
        for late, done in waiting:
            done.chainDeferred(late)


def refuse():
    raise Unavailable("cannot read", "no connection to the database")


def result(awaitable):
    """The value of what must be done by now; raises what it raised."""
    found = []
    deferred = awaitable if isinstance(awaitable, Deferred) else Deferred.fromCoroutine(awaitable)
    deferred.addBoth(found.append)
    assert found, "not done yet"
    return value_of(found)


def value_of(found):
    """What a list holds that was to take one result; raises it when it is a failure."""
    (value,) = found
    if hasattr(value, "raiseException"):
        value.raiseException()
    return value
