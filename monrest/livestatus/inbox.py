"""The answers to one question: small ones as rows at once, large ones as they came, in a file.

A large answer is parsed by the work that needs its rows, in a thread and a piece at a time
(docs/spec/memory.md).
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from typing import Protocol

from attrs import define, field

from monrest.base.answer_file import AnswerFile, AnswerFiles
from monrest.base.concurrency import Threads
from monrest.base.errors import BrokenRowsError, ClientLeftError
from monrest.base.room import RowRoom, Share
from monrest.base.values import Row
from monrest.livestatus.core_errors import LivestatusError

FREE = 1 << 20
"""Bytes of the answers of one question that become rows while they arrive."""

BATCH = 1 << 16
"""Bytes that are parsed at a time: no single call keeps the interpreter for long."""


class Parser(Protocol):
    """Makes rows of the bytes of one answer. Raises LivestatusError."""

    def feed(self, data: bytes) -> None:
        """Take the next bytes."""

    def taken(self) -> list[Row]:
        """The rows that are whole, each once."""

    def finish(self) -> list[Row]:
        """The rows that were not taken, after the last byte."""


@define(eq=False)
class AnswerMemory:
    """The memory of answers: rows have ``room``, large answers are in ``files``.

    ``threads`` parse what is in files. ``free`` bytes of each question become rows at once.
    """

    room: RowRoom
    files: AnswerFiles
    threads: Threads
    free: int = FREE

    def inbox(self, share: Share | None = None) -> Inbox:
        """Make the inbox of a question; its rows have their room in ``share`` or a new one."""
        return Inbox(self, self.room.share() if share is None else share, shared=share is not None)


@define(eq=False)
class Inbox:
    """The answers to one question, until ``let_go``.

    ``free`` bytes more become rows at once, ``size`` bytes are stored. ``shared``: there are other
    rows in the share.
    """

    memory: AnswerMemory
    share: Share
    shared: bool = field(default=False, kw_only=True)
    free: int = field(init=False)
    size: int = field(default=0, init=False)
    _file: AnswerFile | None = field(default=None, init=False)
    _admitted: int = field(default=0, init=False)
    _working: int = field(default=0, init=False)
    _ended: bool = field(default=False, init=False)

    def __attrs_post_init__(self) -> None:
        self.free = self.memory.free

    def write(self, data: bytes) -> int:
        """Store bytes; returns their place. Raises Unavailable."""
        if self._file is None:
            self._file = self.memory.files.begun()
        return self._file.write(data)

    def read(self, at: int, size: int) -> bytes:
        """Raises ClientLeftError when all was released."""
        assert self._file is not None
        return self._file.read(at, size)

    async def opened(
        self, answers: Sequence[tuple[StoredRows | None, list[Row]]]
    ) -> Sequence[list[Row] | LivestatusError]:
        """All rows of each site, those of ``answers`` first, or why there are none.

        Waits until there is room for them, which they have until ``let_go``.
        """
        if not self.size:
            return [rows for _, rows in answers]
        await self.admit()

        def parsed(left: Callable[[], bool]) -> list[list[Row] | LivestatusError]:
            parts: list[list[Row] | LivestatusError] = []
            for stored, rows in answers:
                try:
                    for batch in () if stored is None else stored.batches():
                        rows += batch
                        if left():
                            raise ClientLeftError
                    parts.append(rows)
                except BrokenRowsError as broken:
                    parts.append(broken.error)
            return parts

        self.begin_work()
        whole = await self.memory.threads.stoppable(parsed, self.end_work)
        if self._file is not None:
            self._file.close()
        return whole

    async def admit(self) -> None:
        """Wait for room for all rows that are stored.

        Raises BadRequest for more than there can be.
        """
        more = self.size - self._admitted
        if more > 0:
            await self.share.admit(more)
            self._admitted += more

    def begin_work(self) -> None:
        """Keep all of it until ``end_work``: a thread works on it."""
        self._working += 1

    def end_work(self) -> None:
        self._working -= 1
        if self._ended:
            self.let_go()

    def let_go(self) -> None:
        """Release room and file, once no thread works on them; other rows keep their room."""
        self._ended = True
        if self._working:
            return
        if not self.shared:
            self.share.release()
        if self._file is not None:
            self._file.close()


@define(eq=False)
class StoredRows:
    """The rows of one site in ``size`` stored bytes; none where its answer is small."""

    inbox: Inbox
    site: Hashable
    size: int = field(default=0, init=False)
    _places: list[tuple[int, int]] = field(factory=list, init=False)
    _parser: Callable[[], Parser] | None = field(default=None, init=False)

    def begin(self, length: int, parser: Callable[[], Parser]) -> bool:
        """Begin with an answer, which may be the second one; returns whether it is stored."""
        self.begin_as(parser)
        if length > self.inbox.free:
            return True
        self.inbox.free -= length
        return False

    def begin_as(self, parser: Callable[[], Parser]) -> None:
        """Begin with an answer that is stored in any case."""
        self.inbox.size -= self.size
        self._places, self.size, self._parser = [], 0, parser

    def add(self, data: bytes) -> None:
        """Store the next bytes. Raises Unavailable."""
        self.place(self.inbox.write(data), len(data))

    def place(self, at: int, size: int) -> None:
        """Note where the next bytes are."""
        self.size += size
        self.inbox.size += size
        if self._places and sum(self._places[-1]) == at:
            begin, before = self._places.pop()
            at, size = begin, before + size
        self._places.append((at, size))

    def batches(self) -> Iterator[list[Row]]:
        """The rows in their order, parsed when the caller wants them.

        Raises BrokenRowsError with the LivestatusError when the answer is none.
        """
        if not self.size:
            return
        assert self._parser is not None
        parser = self._parser()
        try:
            for at, size in self._places:
                for start in range(at, at + size, BATCH):
                    parser.feed(self.inbox.read(start, min(BATCH, at + size - start)))
                    if rows := parser.taken():
                        yield rows
            yield parser.finish()
        except LivestatusError as error:
            raise BrokenRowsError(self.site, error) from None
