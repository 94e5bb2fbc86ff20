"""Large answers in files without a name, from the first byte made until the last one is sent.

How much that is: docs/spec/memory.md. A file vanishes with the process.
"""

from __future__ import annotations

import contextlib
import tempfile
import threading
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import IO

from attrs import define, field

from monrest.base.errors import ClientLeftError, Unavailable

MOST_STORED = 4 << 30
"""Bytes in all files."""

_BUFFER = 1 << 18


@define(eq=False)
class AnswerFiles:
    """Makes files in ``folder``, which has room for ``most`` bytes; in any thread."""

    folder: Path
    most: int = MOST_STORED
    stored: int = field(default=0, init=False)
    _lock: threading.RLock = field(factory=threading.RLock, init=False)

    def made_of(self, pieces: Iterable[bytes], left: Callable[[], bool] = bool) -> AnswerFile:
        """Write ``pieces`` into a file, which is at its beginning then.

        ``left`` says that nobody waits any more, which is a ClientLeftError. Raises Unavailable
        when the disk is full, and what ``pieces`` raise.
        """
        made = self.begun()
        try:
            for piece in pieces:
                made.write(piece)
                if left():
                    raise ClientLeftError  # noqa: TRY301  the file is closed for all reasons alike
            made.rewind()
        except BaseException:
            made.close()
            raise
        return made

    def begun(self) -> AnswerFile:
        """Make an empty file. Raises Unavailable."""
        try:
            content = tempfile.TemporaryFile(buffering=_BUFFER, dir=self.folder)  # noqa: SIM115  it closes with the answer
        except OSError as error:
            raise _no_room(error) from None
        return AnswerFile(self, content)

    def take(self, count: int) -> None:
        """Count bytes that are written, or given back when below 0; raises Unavailable."""
        with self._lock:
            if count > 0 and self.stored + count > self.most:
                raise _no_room(f"all answers have {self.most} bytes already")
            self.stored += count


@define(eq=False)
class AnswerFile:
    """An answer of ``size`` bytes."""

    files: AnswerFiles
    content: IO[bytes]
    size: int = field(default=0, init=False)

    def write(self, piece: bytes) -> None:
        """Add to the end. Raises Unavailable."""
        self.files.take(len(piece))
        self.size += len(piece)
        try:
            self.content.write(piece)
        except OSError as error:
            raise _no_room(error) from None

    def flush(self) -> None:
        """Write what is left. Raises Unavailable."""
        try:
            self.content.flush()
        except OSError as error:
            raise _no_room(error) from None

    def rewind(self) -> None:
        """Go to the beginning. Raises Unavailable."""
        self.flush()
        self.content.seek(0)

    def close(self) -> None:
        """Give its room back."""
        self.files.take(-self.size)
        self.size = 0
        # What is left in its buffer may not fit on the disk.
        with contextlib.suppress(OSError):
            self.content.close()

    def __del__(self) -> None:
        """Close what was made for a client that had left."""
        self.close()


def _no_room(reason: object) -> Unavailable:
    return Unavailable(
        "no room for large answers",
        f"the answer is too large for the disk, ask for fewer rows or later: {reason}",
        seconds=10,
    )
