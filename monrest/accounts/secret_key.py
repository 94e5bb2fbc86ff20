"""The secret key: one line in a file that only the daemon may read.

Rules: docs/spec/accounts.md, "Keys".
"""

from __future__ import annotations

import os
import secrets
from pathlib import Path

_KEY_BYTES = 32
_SUFFIX = "_1"
_LONGEST_SECRET = 4096


class SecretKeyError(Exception):
    """The key file cannot be used; the text names the file and says why."""


def read_or_create(path: Path) -> str:
    """Return the key in ``path``; write a new one, mode 0600, when the file is missing or empty.

    Blocks; called before the reactor turns. Raises SecretKeyError.
    """
    try:
        key = _read(path)
        if key:
            return key
        if path.exists():
            return _fill(path, os.O_WRONLY | os.O_NOFOLLOW)
        return _fill(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
    except FileExistsError:
        raise SecretKeyError(f"{path}: appeared while it was being created, start again") from None
    except OSError as error:
        raise SecretKeyError(f"{path}: {error.strerror}") from None


def _read(path: Path) -> str:
    try:
        with path.open("rb") as file:
            raw = file.read(_LONGEST_SECRET)
    except FileNotFoundError:
        return ""
    key = raw.strip().decode("ascii", "replace")
    if key and not is_key(key):
        raise SecretKeyError(f"{path}: expected one line of letters, digits and underscores")
    return key


def _fill(path: Path, flags: int) -> str:
    key = secrets.token_hex(_KEY_BYTES) + _SUFFIX
    descriptor = os.open(path, flags | os.O_CLOEXEC, 0o600)
    try:
        os.fchmod(descriptor, 0o600)
        os.write(descriptor, f"{key}\n".encode())
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
    directory = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)
    return key


def is_key(text: str) -> bool:
    """Whether ``text`` has the form of a key: ASCII letters, digits and underscores."""
    return text.isascii() and text.replace("_", "a").isalnum()
