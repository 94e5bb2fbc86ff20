"""Files that an import writes: whole or not at all, for their owner alone, never over others."""

from __future__ import annotations

import os
import secrets
from pathlib import Path

from attrs import frozen

_MODE = 0o600
_FOLDER_MODE = 0o700


class NewFileError(Exception):
    """A file cannot be written; the text names it."""


@frozen
class NewFile:
    """A file that is to be there; ``name`` says what it is."""

    name: str
    path: Path
    content: bytes

    def present(self) -> bytes | None:
        """The content of what is there, None for nothing; NewFileError where that is no file."""
        try:
            with self.path.open("rb") as file:
                return file.read(len(self.content) + 1)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise NewFileError(f"{self.path}: {error.strerror}") from None

    def write(self, owner: tuple[int, int] | None) -> None:
        """Write it, for ``owner`` if one is given; NewFileError."""
        made = self.path.with_name(f".{self.path.name}.{secrets.token_hex(8)}")
        try:
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW
            with os.fdopen(os.open(made, flags, _MODE), "wb") as file:
                os.fchmod(file.fileno(), _MODE)
                if owner is not None:
                    os.fchown(file.fileno(), *owner)
                file.write(self.content)
                file.flush()
                os.fsync(file.fileno())
            # Unlike a rename, a link does not replace what somebody else wrote meanwhile.
            os.link(made, self.path)
            _sync(self.path.parent)
        except OSError as error:
            raise NewFileError(f"{self.path}: {error.strerror}") from None
        finally:
            made.unlink(missing_ok=True)


def make_folder(path: Path) -> None:
    """Make a folder for its owner alone unless it is there; NewFileError."""
    try:
        if not path.is_dir():
            path.mkdir(_FOLDER_MODE)
            _sync(path.parent)
    except OSError as error:
        raise NewFileError(f"{path}: {error.strerror}") from None


def owner_of(folder: Path) -> tuple[int, int] | None:
    """Whose new files of root are: the owner of the folder; None for everybody else."""
    if os.geteuid() != 0 or not folder.is_dir():
        return None
    status = folder.stat()
    return status.st_uid, status.st_gid


def _sync(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
