"""Credentials that were looked up in the database a moment ago, by their hash.

Rules: docs/spec/accounts.md, "While the database is away". How old something is counts from the
moment at which the database was asked: what another daemon revoked before that is known.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Generic, TypeVar

from attrs import define, field, frozen
from twisted.internet.defer import TimeoutError as TooLate
from twisted.internet.interfaces import IReactorTime

from monrest.base.concurrency import Shared
from monrest.base.errors import Unavailable
from monrest.base.workers import Mark, Workers

V = TypeVar("V")

_MISS_KEPT = 1.0
_MOST_KEPT = 4096
_MOST_MISSES = 1024
_PATIENCE = 2.0
"""Seconds for which a request waits for a database that hangs, where it can do without."""
_RETRY = 1.0
_IN_A_MESSAGE = 200
"""Hashes, so that a message is short enough for the line between workers."""


@frozen
class _Kept(Generic[V]):
    value: V
    asked: float
    state: bytes


@define(eq=False)
class Remembered(Generic[V]):
    """``look_up`` reads one value from the database: None for none, Unavailable without an answer.

    What was read is good for ``fresh`` seconds, so that most requests cost no query; or until one
    of the ``workers`` sets the ``mark``, because it has revoked something. They tell each other
    what that was: it is not good for one more request, even while the database is away.
    """

    clock: IReactorTime
    look_up: Callable[[str], Awaitable[V | None]]
    fresh: float
    workers: Workers
    mark: Mark
    _kept: dict[str, _Kept[V]] = field(factory=dict, init=False, repr=False)
    _misses: dict[str, float] = field(factory=dict, init=False, repr=False)
    _reading: dict[str, Shared[V | None]] = field(factory=dict, init=False, repr=False)
    _removals: int = field(default=0, init=False)
    _away: float = field(default=0.0, init=False)

    def __attrs_post_init__(self) -> None:
        self.workers.hear(f"revoked {self.mark}", self._let_go)

    async def find(self, hashed: str, grace: float, *, anew: bool = False) -> tuple[V, bool] | None:
        """Give what belongs to a hash and whether that is sure; None when there is nothing.

        Without an answer of the database it is what the database said at most ``grace`` seconds
        ago, and not sure. ``anew``: what is kept is not fresh enough. Raises Unavailable when
        nothing recent is known.
        """
        now = self.clock.seconds()
        kept = self._kept.get(hashed)
        if (
            kept is not None
            and now < kept.asked + self.fresh
            and kept.state == self.workers.state(self.mark)
            and not anew
        ):
            return kept.value, True
        if now < self._misses.get(hashed, 0.0):
            return None
        if now < self._away and (doubtful := self._at_most(hashed, grace)) is not None:
            return doubtful
        waiter = self._read(hashed).wait()
        if self._at_most(hashed, grace) is not None:
            waiter.addTimeout(_PATIENCE, self.clock)
        try:
            value = await waiter
        except (TooLate, Unavailable) as error:
            # It may have been revoked here meanwhile, and then it is not kept any more.
            doubtful = self._at_most(hashed, grace)
            if doubtful is not None:
                self._away = self.clock.seconds() + _RETRY
                return doubtful
            if isinstance(error, Unavailable):
                raise
            raise Unavailable("cannot read", "the database did not answer in time") from None
        return None if value is None else (value, True)

    def _at_most(self, hashed: str, seconds: float) -> tuple[V, bool] | None:
        """Give what the database said of a hash at most ``seconds`` ago."""
        kept = self._kept.get(hashed)
        if kept is None or self.clock.seconds() >= kept.asked + seconds:
            return None
        return kept.value, False

    def _read(self, hashed: str) -> Shared[V | None]:
        reading = self._reading.get(hashed)
        if reading is None:
            reading = self._reading[hashed] = Shared()
            reading.run(self._asked(hashed), lambda: self._reading.pop(hashed, None))
        return reading

    async def _asked(self, hashed: str) -> V | None:
        while True:
            removals, begun = self._removals, self.clock.seconds()
            state = self.workers.state(self.mark)
            value = await self.look_up(hashed)
            if value is None:
                self._kept.pop(hashed, None)
                _make_room(self._misses, _MOST_MISSES)
                self._misses[hashed] = begun + _MISS_KEPT
                return None
            # Else it may have been revoked after it was read.
            if removals == self._removals and state == self.workers.state(self.mark):
                _make_room(self._kept, _MOST_KEPT)
                self._kept[hashed] = _Kept(value, begun, state)
                return value

    def made(self, hashed: str) -> None:
        """Note that something new has this hash."""
        self._misses.pop(hashed, None)

    def forget(self, *hashes: str) -> None:
        """Note that these are revoked; what is being read just now does not count any more."""
        self.workers.changed(self.mark)
        for at in range(0, len(hashes), _IN_A_MESSAGE):
            self.workers.tell(f"revoked {self.mark}", *hashes[at : at + _IN_A_MESSAGE])
        self._let_go(*hashes)

    def _let_go(self, *hashes: str) -> None:
        self._removals += 1
        for hashed in hashes:
            self._kept.pop(hashed, None)


def _make_room(kept: dict[str, Any], most: int) -> None:
    while len(kept) >= most:
        del kept[next(iter(kept))]
