"""Writing the files of a save: all of them or none, whenever the process is killed.

Everything that can fail happens before the journal says ``commit``: looking at what is on the
disk, writing the new contents to temporary files beside the old ones, keeping the old ones as
the last version. What follows is renaming only. All of this blocks, and runs in threads.
"""

from __future__ import annotations

import errno
import os
import secrets
import shutil
import stat
from collections.abc import Collection, Iterable, Sequence
from contextlib import suppress
from pathlib import Path

import orjson
from attrs import evolve, frozen
from twisted.logger import Logger

from monrest.base.errors import Conflict, Forbidden, RestError, Unavailable
from monrest.objectconfig import targets
from monrest.objectconfig.journal import (
    Journal,
    JournalEntry,
    SaveRoom,
    SaveRunningError,
    put,
    sync,
)
from monrest.objectconfig.targets import TargetFile, digest, locate, obstacle, opened

log = Logger()

_MAY_NOT = frozenset({errno.EACCES, errno.EPERM, errno.EROFS})
_NO_ROOM = frozenset({errno.ENOSPC, errno.EDQUOT})


@frozen(kw_only=True)
class Write:
    """One file to write: the SHA-256 that it must have on disk, and its new content.

    None is a file that is not, or not any more, there.
    """

    path: str
    base_hash: str | None
    content: bytes | None


@frozen(kw_only=True)
class Writable:
    """Where may be written: below ``folders``, and ``files`` that are named one by one."""

    folders: tuple[str, ...]
    files: Collection[str] = ()


class ChangedOnDiskError(Conflict):
    """Files were changed on disk meanwhile; ``paths`` names them, and nothing was written."""

    def __init__(self, paths: Sequence[str]) -> None:
        super().__init__(
            "files were changed on disk",
            f"{', '.join(paths)}: changed on disk since the change was staged; nothing was "
            "written. Revert, or drop the changes in these files with refreshdata=1",
            extra={"files": list(paths)},
        )
        self.paths = tuple(paths)


def write(
    room: SaveRoom,
    writes: Sequence[Write],
    allowed: Writable,
    *,
    note: dict[str, object],
) -> tuple[str, ...]:
    """Write all files or none, and tell what of the old ones could not be kept.

    The caller has the lock of ``room``. ``note`` goes into the backup beside the old contents.
    Raises what ``check`` raises, ChangedOnDiskError, and Unavailable when the disk does not take
    it.
    """
    recover(room)
    found = check(writes, allowed)
    before = [_present(target) for target in found]
    stale = [
        one.path
        for one, present in zip(writes, before, strict=True)
        if digest(present and present[0]) != one.base_hash
    ]
    if stale:
        raise ChangedOnDiskError(stale)
    configured = {os.path.realpath(folder) for folder in allowed.folders}
    journal = _journal(writes, found, configured)
    try:
        room.write(journal)
        room.sync()
        warnings = _prepare(room, journal, writes, before, note)
        _check_again(journal)
        room.write(evolve(journal, state="commit"))
    except OSError as error:
        roll_back(room, journal)
        raise meaning(error) from None
    except RestError:
        roll_back(room, journal)
        raise
    try:
        room.sync()
        left = finish(room, journal)
    except OSError as error:
        log.failure("a save of object files was interrupted")
        raise Unavailable(
            "save was interrupted", f"{error.strerror}; the next save completes it"
        ) from None
    if left:
        raise Conflict(
            "files were changed on disk",
            f"{', '.join(left)}: changed on disk during the save and left as they are; "
            "the other files were written",
            extra={"files": list(left)},
        )
    return warnings


def check(writes: Iterable[Write], allowed: Writable) -> list[TargetFile]:
    """Find where the files are; Forbidden when one of them is not for us to write."""
    found = [locate(one.path, allowed.folders, allowed.files) for one in writes]
    if len({(target.folder, target.name) for target in found}) < len(found):
        raise Forbidden("cannot write file", "two of the files are the same one")
    if reasons := [reason for target in found if (reason := obstacle(target))]:
        raise Forbidden("cannot write file", "; ".join(reasons))
    return found


def _present(target: TargetFile) -> tuple[bytes, os.stat_result] | None:
    try:
        with opened(target.folder) as handle:
            return targets.read(handle, target.name)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise meaning(error) from None


def _journal(writes: Sequence[Write], found: Sequence[TargetFile], configured: set[str]) -> Journal:
    token = secrets.token_hex(8)
    entries = [
        JournalEntry(
            path=one.path,
            folder=target.folder,
            name=target.name,
            temporary=f".monrest-{token}-{number}",
            old=one.base_hash,
            new=digest(one.content),
            emptied=one.content is None and target.folder not in configured,
        )
        for number, (one, target) in enumerate(zip(writes, found, strict=True))
    ]
    made = dict.fromkeys(
        folder
        for entry in entries
        if entry.new is not None
        for folder in targets.missing_folders(entry.folder)
    )
    return Journal(
        state="prepare", backup=f"backup-{token}", entries=tuple(entries), made=tuple(made)
    )


def _prepare(
    room: SaveRoom,
    journal: Journal,
    writes: Sequence[Write],
    before: Sequence[tuple[bytes, os.stat_result] | None],
    note: dict[str, object],
) -> tuple[str, ...]:
    warnings: list[str] = []
    for folder in journal.made:
        with opened(str(Path(folder).parent)) as handle:
            os.mkdir(Path(folder).name, dir_fd=handle)
            os.fsync(handle)
    for entry, one, present in zip(journal.entries, writes, before, strict=True):
        if one.content is None:
            continue
        with opened(entry.folder) as handle:
            warnings += _write_beside(handle, entry, one.content, present and present[1])
            os.fsync(handle)
    backup = room.folder / journal.backup
    backup.mkdir(mode=0o700)
    kept: list[dict[str, object]] = []
    for number, (entry, present) in enumerate(zip(journal.entries, before, strict=True)):
        if present is not None:
            put(backup / str(number), present[0])
        kept.append({"path": entry.path, "file": None if present is None else str(number)})
    put(backup / "files.json", orjson.dumps({**note, "files": kept}))
    sync(backup)
    room.sync()
    return tuple(warnings)


def _write_beside(
    handle: int, entry: JournalEntry, content: bytes, state: os.stat_result | None
) -> list[str]:
    """Write a temporary file with the owner and rights of the one that it will replace.

    Gives what cannot be kept of them.
    """
    warnings: list[str] = []
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    mode = 0o666 if state is None else 0o600
    file = os.open(entry.temporary, flags, mode, dir_fd=handle)
    with os.fdopen(file, "wb") as stream:
        stream.write(content)
        stream.flush()
        if state is not None:
            warnings = _like(handle, entry, state, stream.fileno())
        os.fsync(stream.fileno())
    return warnings


def _like(handle: int, entry: JournalEntry, state: os.stat_result, file: int) -> list[str]:
    """Give a new file the owner, group, mode and attributes of the old one, as far as we may."""
    for wanted in ((state.st_uid, state.st_gid), (-1, state.st_gid)):
        with suppress(OSError):
            os.fchown(file, *wanted)
            break
    os.fchmod(file, stat.S_IMODE(state.st_mode))
    own = os.fstat(file)
    if reason := targets.lost_reader(entry.path, state, own.st_uid, own.st_gid):
        raise Forbidden("cannot write file", reason)
    warnings = [
        f"{entry.path}: {what} {name(was)} cannot be kept, it is {name(now)} now"
        for what, name, was, now in (
            ("owner", targets.user_name, state.st_uid, own.st_uid),
            ("group", targets.group_name, state.st_gid, own.st_gid),
        )
        if was != now
    ]
    if stat.S_IMODE(own.st_mode) != stat.S_IMODE(state.st_mode):
        was, now = (stat.S_IMODE(one.st_mode) for one in (state, own))
        warnings.append(f"{entry.path}: mode {was:o} cannot be kept, it is {now:o} now")
    old = os.open(entry.name, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=handle)
    try:
        for name in os.listxattr(old):
            try:
                os.setxattr(file, name, os.getxattr(old, name))
            except OSError as error:
                # What the system itself attaches, a security label for example, is not ours.
                if not name.startswith("security."):
                    warnings.append(f"{entry.path}: attribute {name} is lost: {error.strerror}")
    finally:
        os.close(old)
    return warnings


def _check_again(journal: Journal) -> None:
    """Preparing takes a while: somebody may have changed a file during it."""
    stale = [entry.path for entry in journal.entries if _hash_of(entry) != entry.old]
    if stale:
        raise ChangedOnDiskError(stale)


def _hash_of(entry: JournalEntry) -> str | None:
    present = _present(TargetFile(path=entry.path, folder=entry.folder, name=entry.name))
    return digest(present and present[0])


def roll_back(room: SaveRoom, journal: Journal) -> None:
    """Take away what a save prepared; the files themselves were never touched."""
    for entry in journal.entries:
        with suppress(FileNotFoundError), opened(entry.folder) as handle:
            os.unlink(entry.temporary, dir_fd=handle)
    for folder in reversed(journal.made):
        with suppress(OSError), opened(str(Path(folder).parent)) as handle:
            os.rmdir(Path(folder).name, dir_fd=handle)
    with suppress(FileNotFoundError):
        shutil.rmtree(room.folder / journal.backup)
    room.forget()


def finish(room: SaveRoom, journal: Journal) -> tuple[str, ...]:
    """Put what was prepared in its place, as much as is not there yet; may be done again.

    A file that somebody else changed since is left alone; gives the paths of those.
    """
    left = []
    for entry in journal.entries:
        try:
            with opened(entry.folder) as handle:
                if not _replace(handle, entry):
                    left.append(entry.path)
        except (FileNotFoundError, NotADirectoryError):
            if entry.new is not None:
                left.append(entry.path)
    for folder in {entry.folder for entry in journal.entries}:
        with suppress(FileNotFoundError):
            sync(Path(folder))
    for folder in {entry.folder for entry in journal.entries if entry.emptied}:
        with suppress(OSError), opened(str(Path(folder).parent)) as handle:
            os.rmdir(Path(folder).name, dir_fd=handle)
            os.fsync(handle)
    room.keep(journal.backup)
    room.forget()
    return tuple(left)


def _replace(handle: int, entry: JournalEntry) -> bool:
    """Put one file in its place; False when what is there now is neither the old nor the new."""
    try:
        present = targets.read(handle, entry.name)
    except Forbidden:
        return False
    current = digest(present and present[0])
    if current == entry.old and entry.new is None:
        with suppress(FileNotFoundError):
            os.unlink(entry.name, dir_fd=handle)
        return True
    if current == entry.old:
        try:
            os.rename(entry.temporary, entry.name, src_dir_fd=handle, dst_dir_fd=handle)
        except FileNotFoundError:
            return False
        return True
    with suppress(FileNotFoundError):
        os.unlink(entry.temporary, dir_fd=handle)
    return current == entry.new


def recover(room: SaveRoom) -> None:
    """End a save that was interrupted, forwards or backwards; the caller has the lock.

    Raises Unavailable or Forbidden when that cannot be done yet.
    """
    try:
        journal = room.journal()
        if journal is None:
            return
        paths = ", ".join(entry.path for entry in journal.entries)
        if journal.state == "prepare":
            roll_back(room, journal)
            log.warn("an interrupted save was taken back: {paths}", paths=paths)
            return
        left = finish(room, journal)
    except OSError as error:
        raise meaning(error) from error
    log.warn("an interrupted save was completed: {paths}", paths=paths)
    if left:
        text = "left as they are, since they were changed after the save: {paths}"
        log.warn(text, paths=", ".join(left))


def recover_all(var_dir: Path) -> None:
    """End all interrupted saves but those that another process is busy with; at the start."""
    for room in SaveRoom.all(var_dir):
        try:
            with room.locked():
                recover(room)
        except SaveRunningError:
            continue
        except (OSError, RestError):
            log.failure("an interrupted save cannot be completed yet")


def meaning(error: OSError) -> RestError:
    """Say what an error of the system means for a save."""
    where = f"{error.filename}: " if error.filename else ""
    reason = f"{where}{error.strerror or error}"
    if error.errno in _MAY_NOT:
        return Forbidden("cannot write file", reason)
    if error.errno in _NO_ROOM:
        return Unavailable("cannot save", f"no room on the disk: {reason}")
    return Unavailable("cannot save", reason)
