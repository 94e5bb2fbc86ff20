"""Starting: what is read and kept at every start, and this program again in its own place."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, ClassVar

from attrs import define, field, frozen
from twisted.internet.defer import Deferred
from twisted.logger import Logger

from monrest.accounts.secret_key import SecretKeyError, read_or_create
from monrest.base.concurrency import Threads, pause
from monrest.config import Config, ConfigError, load
from monrest.jobs.service import Jobs
from monrest.web.api_site import ApiSite

AGAIN = 75
"""The exit status (EX_TEMPFAIL) that asks who watches this process to start it again."""

_INITIAL = Path("/proc/self/environ")


def read_again(path: str) -> tuple[Config, str]:
    """Read the configuration and the secret key as a start does; blocks."""
    config = load(path)
    return config, read_or_create(Path(config.auth.secret_key_file))


def _arguments() -> tuple[str, ...]:
    return (sys.executable, *sys.orig_argv[1:])


@frozen(kw_only=True)
class Restart:
    """How this process was started; made before anything of that is changed.

    The process keeps its number, so that a service manager sees no end. Where it listens on
    sockets that were passed to it, or has given up the rights it began with, it ends with the
    status ``AGAIN`` instead, and the service manager has to start it.
    """

    pidfile: str = ""
    arguments: tuple[str, ...] = field(factory=_arguments)
    folder: str = field(factory=os.getcwd)
    uid: int = field(factory=os.geteuid)
    passed: bool = field(factory=lambda: b"LISTEN_FDS" in initial())

    def remove_pidfile(self) -> None:
        """Take the file with the number of the process away, if there is one."""
        if self.pidfile:
            with suppress(OSError):
                Path(self.folder, self.pidfile).unlink()

    def __call__(self) -> None:
        """Become a new process, or end; never returns."""
        sys.stdout.flush()
        sys.stderr.flush()
        self.remove_pidfile()
        if not self.passed and os.geteuid() == self.uid:
            with suppress(OSError):
                os.chdir(self.folder)
                os.execv(self.arguments[0], self.arguments)  # noqa: S606  no shell: the same again
        os._exit(AGAIN)


def initial() -> Mapping[bytes, bytes]:
    """Give the environment with which the process began; what was removed since is still there."""
    try:
        raw = _INITIAL.read_bytes()
    except OSError:
        return os.environb
    pairs = (line.partition(b"=") for line in raw.split(b"\0") if line)
    return {name: value for name, _, value in pairs}


@define(eq=False, kw_only=True)
class Restarting:
    """The way of a running daemon to its restart.

    ``again`` makes the process begin anew after the reactor has stopped; None where it cannot.
    ``path`` is the configuration file. ``config`` and ``site`` give those in use.
    """

    log: ClassVar[Logger] = Logger()

    reactor: Any
    threads: Threads
    jobs: Callable[[], Jobs]
    again: Callable[[], None] | None
    path: str
    config: Callable[[], Config]
    site: Callable[[], ApiSite]
    _work: Deferred[None] | None = field(default=None, init=False)

    async def check(self) -> str:
        """Say what is in the way of a restart; nothing when it may begin."""
        if self.again is None:
            return "it cannot start itself again"
        try:
            await self.threads.run(lambda: read_again(self.path))
        except (ConfigError, SecretKeyError, OSError) as error:
            return f"its configuration cannot be used: {error}"
        return ""

    def begin(self) -> None:
        """Ask clients to leave, stop when the time for that is over, and begin anew."""
        self._work = Deferred.fromCoroutine(self._leave())
        self._work.addErrback(lambda failure: self.log.failure("no restart", failure))

    async def _leave(self) -> None:
        self.log.info("restarts: requests should go to other nodes")
        config = self.config()
        self.site().announce_end()
        await pause(self.reactor, config.cluster.restart_notice)
        await self.jobs().ended(config.server.drain_timeout)
        if self.reactor.running:
            self.reactor.addSystemEventTrigger("after", "shutdown", self.again)
            self.reactor.stop()
