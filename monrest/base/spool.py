"""What answers hold while they are made and read: room in memory, and files beyond it.

How much that is: docs/spec/memory.md. Files have no name and vanish with the process.
"""

from __future__ import annotations

import os
import tempfile
from collections import deque
from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar, Self

from attrs import define, field
from twisted.application.service import Service
from twisted.internet.defer import Deferred, succeed
from twisted.internet.interfaces import IReactorFromThreads
from twisted.logger import Logger
from twisted.python.failure import Failure

from monrest.base.answer_file import MOST_STORED
from monrest.base.concurrency import Threads
from monrest.base.errors import BadRequest
from monrest.base.memory import MemoryBudget

FREE = 1 << 20
"""Bytes of one request that need no room."""
IN_MEMORY = 256 << 10
"""Bytes of a spool that need no file."""
_MOST_PARTS = 512
"""Chunks that are written at a time; the system takes 1024."""


# ---------------------------------------------------------------- room in memory


@define(eq=False)
class RowRoom:
    """Room for the rows of all requests, given in the order in which it was asked for.

    ``largest``: no request ever gets more than that.
    """

    reactor: IReactorFromThreads
    most: int = MemoryBudget().rows
    largest: int = MemoryBudget().largest
    free: int = FREE
    held: int = field(default=0, init=False)
    _waiting: deque[tuple[Share, int, Deferred[None]]] = field(factory=deque, init=False)

    def share(self) -> Share:
        """Make the share of one request, which is empty."""
        return Share(self, self.free)

    def turn(self) -> Share:
        """Make the share of a step of longer work, or of what the daemon does by itself.

        All of it needs room, which it is given in its turn however large it is: whoever asks has
        bounded it.
        """
        return Share(self, 0, limited=False)

    def configure(self, budget: MemoryBudget) -> None:
        """Go on with another budget; who has more keeps it."""
        self.most, self.largest = budget.rows, budget.largest
        self.give_back(0)

    def give_back(self, count: int) -> None:
        """Take ``count`` bytes back, and give them to whoever waits longest."""
        self.held -= count
        while self._waiting and self._may_take(*self._waiting[0][:2]):
            share, wanted, done = self._waiting.popleft()
            share._take(wanted)
            done.callback(None)

    def _may_take(self, share: Share, count: int) -> bool:
        # Whatever is larger than the room gets all of it, alone.
        if self.held == 0 or self.held + count <= self.most:
            return True
        # Two that have some would wait for each other: one at a time gets more than there is.
        return share.size > 0 and (self.held <= self.most or share.over)


@define(eq=False)
class Share:
    """The part of the room that one request has; it ends with the request's rows, or a ``with``.

    ``free`` bytes more need no room. ``over``: it took more than there was.
    """

    room: RowRoom
    free: int
    limited: bool = field(default=True, kw_only=True)
    size: int = field(default=0, init=False)
    over: bool = field(default=False, init=False)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()

    def has_free(self, count: int) -> bool:
        """Whether ``count`` bytes more need no room."""
        return count <= self.free

    def grow(self, count: int) -> bool:
        """Take ``count`` bytes more if there is room and nobody waits for it."""
        if self.has_free(count):
            self.free -= count
            return True
        if self.room._waiting or self.room.held + count > self.room.most:
            return False
        self._take(count)
        return True

    def admit(self, count: int) -> Deferred[None]:
        """Fire when this request has room for ``count`` bytes more; it may be cancelled.

        Who has some already goes first. Raises BadRequest for more than there can ever be.
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
        """Give all of it back."""
        count, self.size, self.over = self.size, 0, False
        self.room.give_back(count)

    def _take(self, count: int) -> None:
        self.room.held += count
        self.size += count
        self.over = self.room.held > self.room.most

    def _give_up(self, done: Deferred[None]) -> None:
        waiting = [one for one in self.room._waiting if one[2] is not done]
        self.room._waiting = deque(waiting)
        self.room.give_back(0)

    def __del__(self) -> None:
        """Give back what nobody released: the rows have gone the same way."""
        if self.size:
            # This may be in any thread.
            self.room.reactor.callFromThread(self.room.give_back, self.size)


# ---------------------------------------------------------------- files


@define(eq=False)
class Spools(Service):
    """Makes spools whose files are in ``folder``; ``held`` and ``stored`` count all their bytes.

    ``full`` since a file could not be written, until one can be again.
    """

    log: ClassVar[Logger] = Logger()

    reactor: IReactorFromThreads
    folder: Path
    most_stored: int = MOST_STORED
    most_held: int = MemoryBudget().waiting
    held: int = field(default=0, init=False)
    stored: int = field(default=0, init=False)
    full: bool = field(default=False, init=False)
    threads: Threads = field(init=False)

    def __attrs_post_init__(self) -> None:
        self.threads = Threads(self.reactor, 1, "spool")

    def startService(self) -> None:
        """Make the folder and the thread that writes."""
        super().startService()
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.threads.startService()

    def stopService(self) -> Deferred[None]:
        """End the thread; fires when nothing is written any more."""
        super().stopService()
        return self.threads.stopService()

    def configure(self, budget: MemoryBudget) -> None:
        """Go on with another budget."""
        self.most_held = budget.waiting

    @property
    def in_memory(self) -> int:
        """Bytes of a spool that need no file: few where many spools have some."""
        return IN_MEMORY if self.held < self.most_held // 2 else 0

    @property
    def crowded(self) -> bool:
        """Whether more is in memory than should be, since the disk does not take it."""
        return self.full and self.held > self.most_held

    def give_back(self, held: int, file: int, stored: int) -> None:
        """Take back what a spool held, and close its file if it has one."""
        self.held -= held
        if file < 0:
            return
        self.stored -= stored
        # Giving a large file back to the system takes milliseconds.
        if self.running:
            self.threads.run(lambda: os.close(file))
        else:
            os.close(file)

    def failed(self, reason: object) -> None:
        """Note that a file could not be written."""
        if not self.full:
            self.log.warn(
                "no room for large answers in {folder}: {reason}",
                folder=str(self.folder),
                reason=reason,
            )
        self.full = True

    def succeeded(self) -> None:
        """Note that a file was written."""
        if self.full:
            self.log.info("large answers are stored again")
        self.full = False


@define(eq=False)
class Chunk:
    """Bytes in memory, or at a place in the file."""

    data: bytes | None
    size: int
    at: int = -1


@define(eq=False)
class Spool:
    """Bytes in chunks, given back in the order in which they came; beyond a size in a file.

    What cannot be written stays in memory. A thread writes; whoever takes reads what the system
    has at hand.
    """

    spools: Spools
    size: int = field(default=0, init=False)
    _chunks: deque[Chunk] = field(factory=deque, init=False)
    _fresh: list[Chunk] = field(factory=list, init=False)
    """Chunks that were not yet written, and shall be."""
    _fresh_size: int = field(default=0, init=False)
    _file: int = field(default=-1, init=False)
    _end: int = field(default=0, init=False)
    _writing: bool = field(default=False, init=False)
    _closed: bool = field(default=False, init=False)

    def add(self, data: bytes) -> Chunk:
        """Put ``data`` behind what is there."""
        chunk = Chunk(data, len(data))
        self._chunks.append(chunk)
        self.size += chunk.size
        self.spools.held += chunk.size
        if self.size > self.spools.in_memory:
            self._fresh.append(chunk)
            self._fresh_size += chunk.size
            if self._fresh_size > self.spools.in_memory:
                self._write()
        return chunk

    def read(self, chunk: Chunk) -> bytes:
        """Give what was added and not yet taken out, in any thread. Raises OSError."""
        data = chunk.data
        return _read(self._file, chunk.size, chunk.at) if data is None else data

    def take(self) -> bytes | None:
        """Take the first chunk out; None when nothing is left. Raises OSError."""
        if not self._chunks:
            return None
        chunk = self._chunks.popleft()
        self.size -= chunk.size
        data, chunk.data = chunk.data, b""
        if data is not None:
            self.spools.held -= chunk.size
            return data
        return _read(self._file, chunk.size, chunk.at)

    def close(self) -> None:
        """Let go of everything."""
        self._closed = True
        while self._chunks:
            chunk = self._chunks.popleft()
            if chunk.data is not None:
                self.spools.held -= chunk.size
                chunk.data = b""
        self._fresh.clear()
        self.size = 0
        if not self._writing:
            self._close_file()

    def __del__(self) -> None:
        """Close what nobody closed; this may be in any thread."""
        if self._closed:
            return
        held = sum(chunk.size for chunk in self._chunks if chunk.data is not None)
        if held or self._file >= 0:
            give_back = self.spools.give_back
            self.spools.reactor.callFromThread(give_back, held, self._file, self._end)

    # ---------------------------------------------------------------- writing

    def _write(self) -> None:
        """Let the thread write what is fresh, unless it is at that already."""
        spools = self.spools
        if self._writing or self._closed or not spools.running:
            return
        batch, self._fresh = self._fresh[:_MOST_PARTS], self._fresh[_MOST_PARTS:]
        batch = [chunk for chunk in batch if chunk.data]
        size = sum(chunk.size for chunk in batch)
        self._fresh_size = sum(chunk.size for chunk in self._fresh)
        if not batch:
            return
        if spools.stored + size > spools.most_stored:
            spools.failed(f"they have {spools.most_stored} bytes already")
            return
        self._writing = True
        spools.stored += size
        file, at = self._file, self._end
        self._end += size
        parts = [chunk.data for chunk in batch if chunk.data]
        folder = spools.folder
        done = spools.threads.run(lambda: _append(folder, file, at, parts))
        done.addCallbacks(
            self._written, self._not_written, callbackArgs=(batch, at), errbackArgs=(size,)
        )

    def _written(self, file: int, batch: list[Chunk], at: int) -> None:
        self._writing, self._file = False, file
        self.spools.succeeded()
        for chunk in batch:
            if chunk.data:
                chunk.at, chunk.data = at, None
                self.spools.held -= chunk.size
            at += chunk.size
        if self._closed:
            self._close_file()
        elif self._fresh_size > self.spools.in_memory:
            self._write()

    def _not_written(self, failure: Failure, size: int) -> None:
        failure.trap(OSError, RuntimeError)
        self._writing = False
        self._end -= size
        self.spools.stored -= size
        self.spools.failed(failure.value)
        if self._closed:
            self._close_file()

    def _close_file(self) -> None:
        file, self._file = self._file, -1
        self.spools.give_back(0, file, self._end)
        self._end = 0


def _append(folder: Path, file: int, at: int, parts: Sequence[bytes]) -> int:
    """Write ``parts`` at a place of the file, which is made if there is none; gives the file."""
    made = file < 0
    if made:
        file, name = tempfile.mkstemp(dir=folder)
        Path(name).unlink()
    try:
        written = os.pwritev(file, parts, at)
        if written < sum(map(len, parts)):
            rest = memoryview(b"".join(parts))[written:]
            while rest:
                count = os.pwrite(file, rest, at + written)
                written, rest = written + count, rest[count:]
    except OSError:
        if made:
            os.close(file)
        raise
    return file


def _read(file: int, size: int, at: int) -> bytes:
    data = os.pread(file, size, at)
    while len(data) < size:
        more = os.pread(file, size - len(data), at + len(data))
        if not more:
            raise OSError("the file of a spool ends too early")
        data += more
    return data
