"""Passwords, checked against the password file (docs/spec/accounts.md, "Passwords").

Comparing takes long on purpose, so it is done in threads, two at a time, and results are good
for 30 s. What is remembered is a keyed hash of the password, by a key that this process made.
"""

from __future__ import annotations

import hashlib
import secrets
from pathlib import Path
from typing import ClassVar

from attrs import define, evolve, field
from twisted.internet.defer import DeferredLock, DeferredSemaphore
from twisted.internet.interfaces import IReactorTime
from twisted.logger import Logger

from monrest.accounts import htpasswd
from monrest.accounts.htpasswd import LONGEST_PASSWORD, PasswordFile
from monrest.base.concurrency import Shared, Threads
from monrest.base.errors import TooManyRequests, Unavailable

REMEMBERED_FOR = 30.0
"""Seconds for which a result is good, unless the file changes."""

_LOOK_AGAIN = 1.0
_AT_ONCE = 2
_MOST_WAITING = 200
_MOST_REMEMBERED = 4096
_MOST_LINES_NAMED = 20


@define(eq=False)
class Passwords:
    """The password file of ``auth.htpasswd_file``; an empty ``path``: there is none."""

    log: ClassVar[Logger] = Logger()

    path: str
    threads: Threads
    clock: IReactorTime
    _file: PasswordFile = field(init=False, factory=PasswordFile)
    _looked: float | None = field(init=False, default=None)
    _lock: DeferredLock = field(init=False, factory=DeferredLock)
    _lost: str = field(init=False, default="")
    _warned: tuple[tuple[int, str], ...] = field(init=False, default=())
    _places: DeferredSemaphore = field(init=False)
    _secret: bytes = field(init=False, repr=False)
    _running: dict[bytes, Shared[bool]] = field(init=False, factory=dict, repr=False)
    _results: dict[bytes, tuple[bool, float]] = field(init=False, factory=dict, repr=False)

    def __attrs_post_init__(self) -> None:
        self._places = DeferredSemaphore(_AT_ONCE)
        self._secret = secrets.token_bytes(32)

    @property
    def configured(self) -> bool:
        return bool(self.path)

    async def check(self, user: str, password: str) -> bool:
        """Whether ``password`` is that of ``user``; a user who does not exist takes as long.

        Raises Unavailable when the file cannot be read and TooManyRequests when too many checks
        are waiting.
        """
        await self._look()
        key = self._key(user, password)
        right, until = self._results.get(key, (False, 0.0))
        if self.clock.seconds() < until:
            return right
        running = self._running.get(key)
        if running is None:
            if len(self._places.waiting) >= _MOST_WAITING:
                raise TooManyRequests("too many logins at once", "try again in a moment", 1.0)
            # A client that leaves must not free a place while its check still takes a thread.
            running = self._running[key] = Shared()
            running.run(self._in_turn(key, user, password), lambda: self._running.pop(key, None))
        return await running.wait()

    async def knows(self, user: str) -> bool:
        """Whether the file has a usable line for ``user``; Unavailable as with ``check``."""
        return await self.hash_of(user) is not None

    async def hash_of(self, user: str) -> str | None:
        """Return what the file has of ``user``, else None; Unavailable as with ``check``."""
        if not self.path:
            return None
        await self._look()
        return self._file.hashes.get(user)

    async def names(self) -> tuple[str, ...]:
        """Return all names of the file; Unavailable when it cannot be read."""
        if not self.path:
            return ()
        await self._look()
        return tuple(self._file.hashes)

    async def _in_turn(self, key: bytes, user: str, password: str) -> bool:
        await self._places.acquire()
        try:
            file = self._file
            right = await self.threads.run(lambda: self._compared(file, user, password))
            if file.hashes is self._file.hashes:
                while len(self._results) >= _MOST_REMEMBERED:
                    del self._results[next(iter(self._results))]
                self._results[key] = (right, self.clock.seconds() + REMEMBERED_FOR)
            return right
        finally:
            self._places.release()

    def _compared(self, file: PasswordFile, user: str, password: str) -> bool:
        """Compare in a thread, with the hash of another user for one who is not there.

        Hashes of one file may take different times. An unknown name always gets the same one of
        them, so that the times of unknown names are spread as those of known ones.
        """
        hashed = file.hashes.get(user)
        if hashed is not None:
            return htpasswd.matches(password, hashed)
        if file.hashes:
            names = sorted(file.hashes)
            at = int.from_bytes(self._key(user, "")[:8]) % len(names)
            htpasswd.matches(password, file.hashes[names[at]])
        return False

    def _key(self, user: str, password: str) -> bytes:
        # Only as much as a password can have: the rest of a long one makes no difference.
        text = f"{user}\0{password[: LONGEST_PASSWORD + 1]}".encode("utf-8", "surrogatepass")
        return hashlib.blake2b(text, key=self._secret, digest_size=32).digest()

    async def _look(self) -> None:
        """Read the file if it has changed; looks at it once a second at most.

        Without the file no user gets in, because a user who was deleted with it must stay out.
        """
        await self._lock.acquire()
        try:
            if self._looked is None or self.clock.seconds() >= self._looked + _LOOK_AGAIN:
                await self._read()
        finally:
            self._lock.release()
        if self._lost:
            raise Unavailable("cannot check passwords", "the password file cannot be read")

    async def _read(self) -> None:
        path, old = self.path, self._file
        try:
            file = await self.threads.run(lambda: _changed(path, old))
        except OSError as error:
            self._looked = self.clock.seconds()
            self._results.clear()
            self._file = PasswordFile()
            reason = error.strerror or str(error)
            if reason != self._lost:
                self.log.warn("auth.htpasswd_file: {path}: {reason}", path=path, reason=reason)
            self._lost = reason
            return
        self._looked = self.clock.seconds()
        if self._lost:
            self._lost = ""
            self.log.info("auth.htpasswd_file: {path}: can be read again", path=path)
        if file is old:
            return
        if file.hashes == old.hashes:
            file = evolve(file, hashes=old.hashes)
        else:
            self._results.clear()
        self._file = file
        if file.problems and file.problems != self._warned:
            for number, reason in file.problems[:_MOST_LINES_NAMED]:
                self.log.warn(
                    "auth.htpasswd_file: {path}: line {number} is left out: {reason}",
                    path=path,
                    number=number,
                    reason=reason,
                )
        self._warned = file.problems


def _changed(path: str, old: PasswordFile) -> PasswordFile:
    """Return ``old`` if it is still what the file says; OSError when that is unknown."""
    if old.signature is not None and htpasswd.signature(Path(path).stat()) == old.signature:
        return old
    return htpasswd.read(path)
