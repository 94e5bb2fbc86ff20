"""Data that the processes of one daemon share beside the database: marks in memory, and messages.

A worker that keeps what it has read looks at a mark whenever it uses it. A worker that changes what
others may keep sets the mark before it answers, so a client that asks any worker after that answer
sees the change (docs/spec/workers.md, "What is shared").
"""

from __future__ import annotations

import mmap
from collections.abc import Callable
from typing import Any, ClassVar, Literal, TypeAlias, get_args

from attrs import define, field
from twisted.logger import Logger

Mark: TypeAlias = Literal["keys", "sessions", "users", "contacts", "cluster"]
"""Data that workers cache, and read again when one of them has changed them."""

MARKS: tuple[Mark, ...] = get_args(Mark)
_WIDTH = 8
_CARRIED, _BEGUN = len(MARKS), len(MARKS) + 1
"""After those of the marks: how many connections each worker has, and which one takes part."""
_ROWS = len(MARKS) + 2
_ABSENT = 2**63


def marks(count: int) -> memoryview:
    """Make the memory for the marks of ``count`` workers, shared with all that are forked later."""
    return memoryview(mmap.mmap(-1, _ROWS * count * _WIDTH)).cast("Q")


def ended(memory: memoryview, number: int, count: int) -> None:
    """Note that a worker has ended, so that the others leave it no connections."""
    memory[_CARRIED * count + number - 1] = _ABSENT


@define(eq=False)
class Workers:
    """The workers of a daemon as the one with ``number`` (from 1) of ``count`` knows them.

    ``send`` brings a message (a topic and values for JSON) to all others.
    """

    log: ClassVar[Logger] = Logger()

    count: int = 1
    number: int = 1
    send: Callable[[str, list[Any]], object] = lambda _topic, _values: None
    memory: memoryview = field(repr=False)
    _hearers: dict[str, Callable[..., object]] = field(factory=dict, init=False)

    @memory.default
    def _alone(self) -> memoryview:
        return memoryview(bytearray(_ROWS * self.count * _WIDTH)).cast("Q")

    def changed(self, mark: Mark) -> None:
        """Mark the data of ``mark`` as changed: all workers read them again."""
        # Each worker counts in a cell of its own: none overwrites what another one says.
        self.memory[MARKS.index(mark) * self.count + self.number - 1] += 1

    def state(self, mark: Mark) -> bytes:
        """Return what is another value after each ``changed``, by any worker."""
        begin = MARKS.index(mark) * self.count
        return self.memory[begin : begin + self.count].tobytes()

    def count_connections(self, connections: int) -> None:
        self.memory[_CARRIED * self.count + self.number - 1] = connections

    def lightest(self, more: int = 0) -> bool:
        """Whether no other worker has fewer, where this one's work counts as so many ``more``."""
        row = self.memory[_CARRIED * self.count : _BEGUN * self.count].tolist()
        own = row.pop(self.number - 1)
        return own + more <= min(row, default=_ABSENT)

    def begun(self) -> None:
        """Note that this worker knows all that it has to know, as does one that takes its place."""
        self.memory[_BEGUN * self.count + self.number - 1] = 1

    def all_begun(self) -> bool:
        """Whether all workers have begun since the daemon was started."""
        return all(self.memory[_BEGUN * self.count :])

    def tell(self, topic: str, *values: Any) -> None:
        """Send a message to all other workers, in order; a worker that dies may miss it."""
        if self.count > 1:
            self.send(topic, list(values))

    def hear(self, topic: str, hearer: Callable[..., object]) -> None:
        """Call ``hearer`` with the values that other workers send about a topic."""
        self._hearers[topic] = hearer

    def heard(self, topic: str, values: list[Any]) -> None:
        hearer = self._hearers.get(topic)
        try:
            if hearer is not None:
                hearer(*values)
        except Exception:  # noqa: BLE001  the next message may be for another part
            self.log.failure("{topic} of another worker was not taken", topic=topic)

    def share(self, whole: int) -> int:
        """Return this worker's part of what the machine may have ``whole``; at least one."""
        return max(1, whole // self.count + (self.number <= whole % self.count))
