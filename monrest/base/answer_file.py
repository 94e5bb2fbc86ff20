"""Files without a name: large answers of cores, and our own until their last byte is sent.

How much that is: docs/spec/memory.md. A file vanishes with the process.
"""

from __future__ import annotations

import os
import tempfile
import threading
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import IO

from attrs import define, field

from monrest.base.errors import ClientLeftError, Unavailable

MOST_STORED = 4 << 30
"""Bytes in all files."""


@define(eq=False)
class AnswerFiles:
    """Makes files in ``folder``, which have ``most`` bytes together; in any thread."""

    folder: Path
    most: int = MOST_STORED
    stored: int = field(default=0, init=False)
    _lock: threading.Lock = field(factory=threading.Lock, init=False)

    def begun(self) -> AnswerFile:
        """Make an empty file. Raises Unavailable."""
        try:
            content = tempfile.TemporaryFile(buffering=0, dir=self.folder)  # noqa: SIM115  it closes with the answer
        except OSError as error:
            raise _no_room(error) from None
        return AnswerFile(self, content)

    def made_of(self, pieces: Iterable[bytes], left: Callable[[], bool] = bool) -> AnswerFile:
        """Write ``pieces`` into a file.

        ``left`` says that the client has left, which is a ClientLeftError. Raises Unavailable
        when the disk is full, and what ``pieces`` raise.
        """
        file = self.begun()
        try:
            for piece in pieces:
                file.write(piece)
                if left():
                    raise ClientLeftError  # noqa: TRY301  the file is closed for all reasons alike
        except BaseException:
            file.close()
            raise
        return file

    def take(self, count: int) -> None:
        """Count bytes that are written, or given back when below 0; raises Unavailable."""
        with self._lock:
            if count > 0 and self.stored + count > self.most:
                raise _no_room(f"all answers have {self.most} bytes already")
            self.stored += count


@define(eq=False)
class AnswerFile:
    """A file of ``size`` bytes, in any thread; one that is closed ends the work on it."""

    files: AnswerFiles
    _content: IO[bytes]
    size: int = field(default=0, init=False)
    _lock: threading.Lock = field(factory=threading.Lock, init=False)

    def write(self, data: bytes) -> int:
        """Add ``data`` and return its position. Raises Unavailable, ClientLeftError when closed."""
        with self._lock:
            file, at = self._open(), self.size
            self.files.take(len(data))
            self.size += len(data)
            rest = memoryview(data)
            try:
                while rest:
                    rest = rest[os.pwrite(file, rest, self.size - len(rest)) :]
            except OSError as error:
                raise _no_room(error) from None
        return at

    def read(self, at: int, size: int) -> bytes:
        """Return the bytes at a place. Raises OSError, ClientLeftError when closed."""
        with self._lock:
            return os.pread(self._open(), size, at)

    def close(self) -> None:
        with self._lock:
            self.files.take(-self.size)
            self.size = 0
            self._content.close()

    def _open(self) -> int:
        if self._content.closed:
            raise ClientLeftError
        return self._content.fileno()

    def __del__(self) -> None:
        """Close what was made for a client that had left."""
        self.close()


def _no_room(reason: object) -> Unavailable:
    return Unavailable(
        "no room for large answers",
        f"the answer is too large for the disk, ask for fewer rows or later: {reason}",
        seconds=10,
    )
