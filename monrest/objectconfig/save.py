"""Writing the files of a save: all of them or none, whenever the process is killed.

A save has two phases. While it prepares, everything that can fail happens: looking at what is on
the disk, writing the new contents to temporary files beside the old ones, keeping the old ones as
the last version; and the journal says how to take all that away again. From the moment the
journal says ``commit`` the new files are complete, what follows is renaming only, and the next
process that reads the journal, this one or another, finishes. Writing blocks, and runs in threads.

Rules: docs/spec/objectconfig.md, "Saving" and "Files that a save replaces".
"""

from __future__ import annotations

import errno
import fcntl
import grp
import hashlib
import os
import pwd
import secrets
import shutil
import stat
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any, Literal
from urllib.parse import quote

import cattrs
import orjson
from attrs import evolve, field, frozen
from twisted.logger import Logger

from monrest.base.concurrency import pause
from monrest.base.errors import Conflict, Forbidden, RestError, Unavailable

# Only inside the configured folders, also against links and names that lead elsewhere. A path is
# resolved once; after that its folder is opened component by component without following links,
# and everything happens relative to that open folder.

_COMPONENT = os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


@frozen(kw_only=True)
class TargetFile:
    """A file to write: ``path`` as users know it, and where it is without any links."""

    path: str
    folder: str
    name: str


def locate(path: str, folders: Iterable[str], files: Collection[str]) -> TargetFile:
    """Find the real place of ``path``; Forbidden when that is not for us to write.

    It is when it lies below one of ``folders`` or is one of ``files``. Those may be configured
    by links; nothing below them is followed.
    """
    if not path.startswith("/") or "\0" in path or os.path.normpath(path) != path:
        raise Forbidden("cannot write file", f"expected an absolute path without .., not {path!r}")
    for folder in folders:
        within = f"{folder.rstrip('/')}/"
        if path.startswith(within):
            real = Path(os.path.realpath(folder), path[len(within) :])
            return TargetFile(path=path, folder=str(real.parent), name=real.name)
    if path in files:
        named = Path(path)
        return TargetFile(path=path, folder=os.path.realpath(named.parent), name=named.name)
    raise Forbidden(
        "cannot write file", f"{path} is not inside the folders of the object configuration"
    )


@contextmanager
def opened(folder: str) -> Iterator[int]:
    """Open a folder whose path has no links; OSError when it is not there or has one."""
    handle = os.open("/", _COMPONENT)
    try:
        parts = Path(folder).parts[1:]
        for index, part in enumerate(parts):
            mode = _FOLDER if index == len(parts) - 1 else _COMPONENT
            handle, before = os.open(part, mode, dir_fd=handle), handle
            os.close(before)
        yield handle
    finally:
        os.close(handle)


def missing_folders(folder: str) -> list[str]:
    """Return the folders to make for ``folder``, outermost first."""
    missing: list[str] = []
    path = Path(folder)
    while not os.path.lexists(path):
        missing.append(str(path))
        path = path.parent
    return missing[::-1]


def read_file(handle: int, name: str) -> tuple[bytes, os.stat_result] | None:
    """Read a file in an open folder, with its state; None when there is none.

    Forbidden for anything but a regular file.
    """
    try:
        file = os.open(name, _FILE, dir_fd=handle)
    except FileNotFoundError:
        return None
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise Forbidden("cannot write file", f"{name} is a symbolic link") from None
        raise
    with os.fdopen(file, "rb") as stream:
        state = os.fstat(stream.fileno())
        if not stat.S_ISREG(state.st_mode):
            raise Forbidden("cannot write file", f"{name} is not a regular file")
        return stream.read(), state


def digest(data: bytes | None) -> str | None:
    """Return the SHA-256 of a content in hexadecimal digits; None stays None."""
    return None if data is None else hashlib.sha256(data).hexdigest()


def obstacle(target: TargetFile) -> str:
    """The reason why a file cannot be written, or nothing. Nothing is changed."""
    missing = missing_folders(target.folder)
    place = str(Path(missing[0]).parent) if missing else target.folder
    try:
        with opened(place) as handle:
            if not _may(os.W_OK | os.X_OK, ".", handle):
                return f"folder {place} is not writable"
            if not missing:
                return _file_obstacle(target, handle)
    except OSError as error:
        return f"folder {place}: {_reason(error)}"
    return ""


def _file_obstacle(target: TargetFile, handle: int) -> str:
    try:
        state = os.stat(target.name, dir_fd=handle, follow_symlinks=False)
    except FileNotFoundError:
        return ""
    if stat.S_ISLNK(state.st_mode):
        return f"{target.path} is a symbolic link"
    if not stat.S_ISREG(state.st_mode):
        return f"{target.path} is not a regular file"
    if not _may(os.W_OK, target.name, handle):
        return f"{target.path} is not writable"
    folder = os.fstat(handle)
    if folder.st_mode & stat.S_ISVTX and os.geteuid() not in (0, state.st_uid, folder.st_uid):
        return f"{target.path} belongs to another user, in a folder where only that one replaces it"
    return ""


def _may(mode: int, name: str, handle: int) -> bool:
    return os.access(name, mode, dir_fd=handle, effective_ids=True)


def _reason(error: OSError) -> str:
    # Opened without following, a link to a folder is no folder.
    if error.errno in (errno.ELOOP, errno.ENOTDIR):
        return "a symbolic link or a file is in the way"
    return error.strerror or str(error)


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
        """Make the room of a site, if it is not there yet; only the daemon may read it."""
        folder = var_dir / "objectconfig" / f"site-{quote(site, safe='')}"
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        return cls(folder)

    @classmethod
    def all(cls, var_dir: Path) -> list[SaveRoom]:
        """Return the rooms of all sites that were ever saved."""
        return [cls(folder) for folder in sorted(var_dir.glob("objectconfig/site-*"))]

    @contextmanager
    def locked(self, shared: Sequence[str] = ()) -> Iterator[None]:
        """Keep every other save of the site out, in this and in other processes.

        ``shared`` are files or folders that a daemon with another state folder locks as well.
        Raises Conflict when another save has the lock.
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


_PATIENCE = 30.0
_AGAIN = 0.1


async def lock(reactor: Any, stack: ExitStack, room: SaveRoom, shared: Sequence[str]) -> None:
    """Take the locks of other processes too; they have no queue, so ask again and again.

    ``stack`` releases them. Raises SaveRunningError after half a minute.
    """
    end = reactor.seconds() + _PATIENCE
    while True:
        try:
            stack.enter_context(room.locked(shared))
        except SaveRunningError:
            if reactor.seconds() + _AGAIN > end:
                raise
            await pause(reactor, _AGAIN)
        else:
            return


def put(path: Path, data: bytes) -> None:
    """Write a file of our own, synced; only the daemon may read it."""
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
    content: bytes | None = field(repr=False)


@frozen(kw_only=True)
class Writable:
    """The places that may be written: below ``folders``, and single ``files``."""

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
    """Write all files or none; returns a warning for each file whose owner could not be kept.

    The caller has the lock of ``room``. ``note`` goes into the backup beside the old contents.
    Raises what ``check`` raises, ChangedOnDiskError, and Unavailable when the disk does not take
    it.
    """
    recover(room)
    targets = check(writes, allowed)
    before = [_present(target) for target in targets]
    stale = [
        write.path
        for write, present in zip(writes, before, strict=True)
        if digest(present and present[0]) != write.base_hash
    ]
    if stale:
        raise ChangedOnDiskError(stale)
    configured = {os.path.realpath(folder) for folder in allowed.folders}
    journal = _journal(writes, targets, configured)
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
    targets = [locate(write.path, allowed.folders, allowed.files) for write in writes]
    if len({(target.folder, target.name) for target in targets}) < len(targets):
        raise Forbidden("cannot write file", "two of the files are the same one")
    if reasons := [reason for target in targets if (reason := obstacle(target))]:
        raise Forbidden("cannot write file", "; ".join(reasons))
    return targets


def _present(target: TargetFile) -> tuple[bytes, os.stat_result] | None:
    try:
        with opened(target.folder) as handle:
            return read_file(handle, target.name)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise meaning(error) from None


def _journal(
    writes: Sequence[Write], targets: Sequence[TargetFile], configured: set[str]
) -> Journal:
    token = secrets.token_hex(8)
    entries = [
        JournalEntry(
            path=write.path,
            folder=target.folder,
            name=target.name,
            temporary=f".monrest-{token}-{number}",
            old=write.base_hash,
            new=digest(write.content),
            emptied=write.content is None and target.folder not in configured,
        )
        for number, (write, target) in enumerate(zip(writes, targets, strict=True))
    ]
    folders = dict.fromkeys(
        folder
        for entry in entries
        if entry.new is not None
        for folder in missing_folders(entry.folder)
    )
    return Journal(
        state="prepare", backup=f"backup-{token}", entries=tuple(entries), made=tuple(folders)
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
    for entry, write, present in zip(journal.entries, writes, before, strict=True):
        if write.content is None:
            continue
        with opened(entry.folder) as handle:
            warning = _write_beside(handle, entry, write.content, present and present[1])
            if warning:
                warnings.append(warning)
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
) -> str:
    """Write a temporary file with the owner, group and mode of the one that it will replace.

    Returns a warning when its owner is another one. Raises Forbidden as ``_keep_access`` does.
    """
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    mode = 0o666 if state is None else 0o600
    file = os.open(entry.temporary, flags, mode, dir_fd=handle)
    with os.fdopen(file, "wb") as stream:
        stream.write(content)
        stream.flush()
        warning = _keep_access(entry.path, state, file) if state is not None else ""
        os.fsync(file)
    return warning


def _keep_access(path: str, state: os.stat_result, file: int) -> str:
    """Give a new file the owner, group and mode of the old one, whose state is given.

    Returns a warning when the owner cannot be kept. Raises Forbidden when group or mode cannot, and
    when the old owner could not read the file any more: a core that cannot read one of its files
    does not start.
    """
    for owner in (state.st_uid, -1):
        with suppress(OSError):
            os.fchown(file, owner, state.st_gid)
            break
    mode = stat.S_IMODE(state.st_mode)
    os.fchmod(file, mode)
    now = os.fstat(file)
    if now.st_gid != state.st_gid:
        group = _group_name(state.st_gid)
        raise Forbidden("cannot write file", f"{path}: group {group} cannot be kept")
    if stat.S_IMODE(now.st_mode) != mode:
        raise Forbidden("cannot write file", f"{path}: mode {mode:o} cannot be kept")
    if now.st_uid == state.st_uid:
        return ""
    lost = f"{path}: owner {_user_name(state.st_uid)} cannot be kept"
    if not _reads_as_member(state):
        raise Forbidden("cannot write file", f"{lost}, and could not read it")
    return f"{lost}, it is {_user_name(now.st_uid)} now"


def _reads_as_member(state: os.stat_result) -> bool:
    """Whether the owner of a file may read it without being its owner."""
    if state.st_uid == 0 or state.st_mode & stat.S_IROTH:
        return True
    try:
        user = pwd.getpwuid(state.st_uid)
    except KeyError:
        return False
    member = state.st_gid in os.getgrouplist(user.pw_name, user.pw_gid)
    return member and bool(state.st_mode & stat.S_IRGRP)


def _user_name(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)


def _group_name(gid: int) -> str:
    try:
        return grp.getgrgid(gid).gr_name
    except KeyError:
        return str(gid)


def _check_again(journal: Journal) -> None:
    """Preparing takes a while: a file may have been changed during it."""
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

    A file that was changed since is left alone; returns the paths of those.
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
        present = read_file(handle, entry.name)
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
    """The error of a save that an error of the system means."""
    where = f"{error.filename}: " if error.filename else ""
    reason = f"{where}{error.strerror or error}"
    if error.errno in _MAY_NOT:
        return Forbidden("cannot write file", reason)
    if error.errno in _NO_ROOM:
        return Unavailable("cannot save", f"no room on the disk: {reason}")
    return Unavailable("cannot save", reason)
