"""Where a save may write: inside the configured folders, whatever links and names try.

A path is resolved once; after that its folder is opened component by component without
following links, and everything happens relative to that open folder.
"""

from __future__ import annotations

import errno
import grp
import hashlib
import os
import pwd
import stat
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from attrs import frozen

from monrest.base.errors import Forbidden

_COMPONENT = os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


@frozen(kw_only=True)
class TargetFile:
    """A file to write: ``path`` as people know it, and where it is without any links."""

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
    """Give the folders to make for ``folder``, outermost first."""
    missing: list[str] = []
    path = Path(folder)
    while not os.path.lexists(path):
        missing.append(str(path))
        path = path.parent
    return missing[::-1]


def read(handle: int, name: str) -> tuple[bytes, os.stat_result] | None:
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
    """Give the SHA-256 of a content in hexadecimal digits; None stays None."""
    return None if data is None else hashlib.sha256(data).hexdigest()


def obstacle(target: TargetFile) -> str:
    """Say why a file cannot be written, or nothing. Nothing is changed."""
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
    owners = (state.st_uid, folder.st_uid)
    if folder.st_mode & stat.S_ISVTX and os.geteuid() not in owners and not _able(_FOWNER):
        return f"{target.path} belongs to another user, in a folder where only that one replaces it"
    return lost_reader(target.path, state, *_kept(state, folder))


# -------------------------------------------------------------------- owner and group

_CHOWN = 0
_FOWNER = 3
"""Numbers of capabilities of Linux."""


def lost_reader(path: str, state: os.stat_result, uid: int, gid: int) -> str:
    """Say who could read a file and cannot when it belongs to ``uid`` and ``gid``, or nothing.

    ``state`` is that of the file as it is; its mode is kept. A core that cannot read one of its
    files does not start again.
    """
    mode = state.st_mode
    if mode & stat.S_IROTH:
        return ""
    if gid != state.st_gid and mode & stat.S_IRGRP:
        return f"{path}: group {group_name(state.st_gid)} cannot be kept, and could not read it"
    if uid != state.st_uid and state.st_uid and mode & stat.S_IRUSR:
        name = user_name(state.st_uid)
        if not mode & stat.S_IRGRP or gid not in _groups_of(state.st_uid):
            return f"{path}: owner {name} cannot be kept, and could not read it"
    return ""


def _kept(state: os.stat_result, folder: os.stat_result) -> tuple[int, int]:
    """The owner and group that a new file can have in a folder in the place of an old one."""
    if _able(_CHOWN):
        return state.st_uid, state.st_gid
    given = folder.st_gid if folder.st_mode & stat.S_ISGID else os.getegid()
    mine = (given, os.getegid(), *os.getgroups())
    return os.geteuid(), state.st_gid if state.st_gid in mine else given


def _able(capability: int) -> bool:
    try:
        lines = Path("/proc/self/status").read_bytes().splitlines()
        effective = next(line for line in lines if line.startswith(b"CapEff:"))
        return bool(int(effective.split()[1], 16) >> capability & 1)
    except (OSError, StopIteration, ValueError):
        return os.geteuid() == 0


def _groups_of(uid: int) -> Collection[int]:
    try:
        user = pwd.getpwuid(uid)
    except KeyError:
        return ()
    return os.getgrouplist(user.pw_name, user.pw_gid)


def user_name(uid: int) -> str:
    """Give the name of a user, or the number without one."""
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)


def group_name(gid: int) -> str:
    """Give the name of a group, or the number without one."""
    try:
        return grp.getgrgid(gid).gr_name
    except KeyError:
        return str(gid)


def _may(mode: int, name: str, handle: int) -> bool:
    return os.access(name, mode, dir_fd=handle, effective_ids=True)


def _reason(error: OSError) -> str:
    # Opened without following, a link to a folder is no folder.
    if error.errno in (errno.ELOOP, errno.ENOTDIR):
        return "a symbolic link or a file is in the way"
    return error.strerror or str(error)
