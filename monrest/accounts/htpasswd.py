"""The password file: its lines, and the kinds of hashes in them.

Pure but for reading the file. bcrypt, apr1 and {SHA} are what ``htpasswd`` writes, ``$5$`` and
``$6$`` what newer ones can.

Rules: docs/spec/accounts.md, "Passwords".
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Mapping
from typing import Any, TypeAlias

import bcrypt
from attrs import field, frozen

from monrest.base.clock import age_of_file

FileSignature: TypeAlias = tuple[int, int, int, int]
"""Device, inode, time of modification in nanoseconds and size of a file."""

LONGEST_PASSWORD = 1024
"""Characters; more than that is no password."""

_MOST_BYTES = 16 * 1024 * 1024
_WELL_FORMED = re.compile(
    r"\$2[aby]\$(?:0[4-9]|[12]\d|3[01])\$[./A-Za-z0-9]{53}|\{SHA\}[A-Za-z0-9+/]{27}="
)
_BCRYPT_READS = 72
_FRESH = 2.0
_CRYPTS = {
    "$apr1$": "apr_md5_crypt", "$5$": "sha256_crypt", "$6$": "sha512_crypt", "{SHA}": "ldap_sha1",
}  # fmt: skip


@frozen(kw_only=True)
class PasswordFile:
    """The contents of the file: names to hashes, and ``problems`` as (line, reason).

    ``signature`` shows whether the file has changed since; None when it was changed so
    recently that another change might not show.
    """

    hashes: Mapping[str, str] = field(factory=dict, repr=False)
    problems: tuple[tuple[int, str], ...] = ()
    signature: FileSignature | None = None


def signature(status: os.stat_result) -> FileSignature:
    return (status.st_dev, status.st_ino, status.st_mtime_ns, status.st_size)


def read(path: str) -> PasswordFile:
    """Read the file; OSError when that is not possible."""
    # A pipe in its place would block for ever.
    with os.fdopen(os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK), "rb") as file:
        status = os.fstat(file.fileno())
        if not stat.S_ISREG(status.st_mode):
            raise OSError("no regular file")
        content = file.read(_MOST_BYTES + 1)
    if len(content) > _MOST_BYTES:
        raise OSError(f"more than {_MOST_BYTES} bytes")
    hashes, problems = parse(content)
    fresh = abs(age_of_file(status)) < _FRESH
    return PasswordFile(
        hashes=hashes, problems=problems, signature=None if fresh else signature(status)
    )


def parse(content: bytes) -> tuple[dict[str, str], tuple[tuple[int, str], ...]]:
    """Read the lines ``name:hash``; the first one of a name counts, as with Apache.

    Reasons say nothing of what is in a line.
    """
    hashes: dict[str, str] = {}
    problems: list[tuple[int, str]] = []
    for number, raw in enumerate(content.removeprefix(b"\xef\xbb\xbf").split(b"\n"), 1):
        line = raw.strip()
        if not line or line.startswith(b"#"):
            continue
        try:
            name, colon, rest = line.decode("utf-8").partition(":")
        except UnicodeDecodeError:
            problems.append((number, "expected UTF-8"))
            continue
        hashed = rest.partition(":")[0].strip()
        if not colon or not name:
            problems.append((number, "expected name:hash"))
        elif not is_known(hashed):
            problems.append((number, "expected a hash of bcrypt, apr1, SHA, $5$ or $6$"))
        else:
            hashes.setdefault(name, hashed)
    return hashes, tuple(problems)


def is_known(hashed: str) -> bool:
    """Whether passwords can be compared with this hash."""
    if hashed.startswith(("$2", "{SHA}")):
        return _WELL_FORMED.fullmatch(hashed) is not None
    crypt = _crypt(hashed)
    if crypt is None:
        return False
    try:
        # Reading is enough: comparing takes its time, with each line of the file.
        return crypt.from_string(hashed).checksum is not None
    except (ValueError, TypeError):
        return False


def matches(password: str, hashed: str) -> bool:
    """Whether ``password`` is the one behind ``hashed``, which ``is_known``. Takes its time."""
    try:
        secret = password.encode("utf-8")
    except UnicodeEncodeError:
        return False
    if len(password) > LONGEST_PASSWORD or b"\0" in secret:
        return False
    if hashed.startswith("$2"):
        return bcrypt.checkpw(secret[:_BCRYPT_READS], hashed.encode("ascii"))
    crypt = _crypt(hashed)
    return crypt is not None and bool(crypt.verify(password, hashed))


def _crypt(hashed: str) -> Any:
    """The class for a kind of hashes; None for an unknown kind."""
    name = next((name for begin, name in _CRYPTS.items() if hashed.startswith(begin)), None)
    if name is None:
        return None
    # Most daemons have no password file, or one with hashes of bcrypt.
    from passlib import hash as crypts

    return getattr(crypts, name)
