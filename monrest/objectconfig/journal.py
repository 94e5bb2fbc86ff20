"""What a save is about to do, on the disk before it does it, so that a kill leaves no half.

A save has two phases. While it prepares, everything new is in temporary files and the journal
says how to take them away again. From the moment the journal says ``commit`` the new files are
complete beside the old ones, and whoever comes next, this process or the next one, finishes.
"""

from __future__ import annotations

import fcntl
import os
import shutil
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Literal
from urllib.parse import quote

import cattrs
import orjson
from attrs import frozen

from monrest.base.errors import Conflict


@frozen(kw_only=True)
class JournalEntry:
    """One file of a save: where it is, and the SHA-256 it had and will have; None is no file.

    ``temporary`` is the name of the new content in the same folder; ``emptied``: its folder goes
    with it when nothing else is in there.
    """

    path: str
    folder: str
    name: str
    temporary: str
    old: str | None
    new: str | None
    emptied: bool = False


@frozen(kw_only=True)
class Journal:
    """A save that has begun and has not ended; ``backup`` is the folder of the last version."""

    state: Literal["prepare", "commit"]
    backup: str
    entries: tuple[JournalEntry, ...]
    made: tuple[str, ...] = ()


@frozen
class SaveRoom:
    """The folder in which a site's saves keep journal, lock and the last version."""

    folder: Path

    @classmethod
    def of(cls, var_dir: Path, site: str) -> SaveRoom:
        """Make the room of a site, if it is not there yet, for the daemon's eyes only."""
        folder = var_dir / "objectconfig" / f"site-{quote(site, safe='')}"
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        return cls(folder)

    @classmethod
    def all(cls, var_dir: Path) -> list[SaveRoom]:
        """Give the rooms of all sites that were ever saved."""
        return [cls(folder) for folder in sorted(var_dir.glob("objectconfig/site-*"))]

    @contextmanager
    def locked(self, shared: Sequence[str] = ()) -> Iterator[None]:
        """Keep every other save of the site out, in this and in other processes.

        ``shared`` are files or folders that a daemon with another state folder locks as well.
        Raises Conflict when somebody has the lock.
        """
        with ExitStack() as stack:
            handles = [os.open(self.folder / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)]
            stack.callback(os.close, handles[0])
            for path in shared:
                with suppress(OSError):
                    handles.append(os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK))
                    stack.callback(os.close, handles[-1])
            for handle in handles:
                try:
                    fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except BlockingIOError:
                    raise SaveRunningError from None
            yield

    def journal(self) -> Journal | None:
        """Read the journal of a save that was interrupted, if there is one.

        One that was not finished means nothing, and is taken away.
        """
        (self.folder / "journal.new").unlink(missing_ok=True)
        try:
            data = (self.folder / "journal").read_bytes()
        except FileNotFoundError:
            return None
        return cattrs.structure(orjson.loads(data), Journal)

    def write(self, journal: Journal) -> None:
        """Make this the journal: a reader finds it, or the one before it. See ``sync``."""
        put(self.folder / "journal.new", orjson.dumps(cattrs.unstructure(journal)))
        (self.folder / "journal.new").rename(self.folder / "journal")

    def sync(self) -> None:
        """Put the names of journal and backups on the disk, for power cuts."""
        sync(self.folder)

    def forget(self) -> None:
        """Take the journal away."""
        (self.folder / "journal").unlink(missing_ok=True)
        sync(self.folder)

    def keep(self, backup: str) -> None:
        """Make ``backup`` the only last version there is."""
        for folder in self.folder.glob("backup-*"):
            if folder.name != backup:
                shutil.rmtree(folder)


class SaveRunningError(Conflict):
    """Another save of the site is going on."""

    def __init__(self) -> None:
        super().__init__("another save is going on", "try again when it has ended")


def put(path: Path, data: bytes) -> None:
    """Write a file of our own, synced, for the daemon's eyes only."""
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    with os.fdopen(handle, "wb") as stream:
        stream.write(data)
        stream.flush()
        os.fsync(stream.fileno())


def sync(folder: Path) -> None:
    """Put the names in a folder on the disk."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
