"""Starting: what is read and kept at every start, and this program again in its own place."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import ClassVar

from attrs import define, field, frozen
from twisted.internet.defer import Deferred
from twisted.logger import Logger

from monrest.accounts.secret_key import SecretKeyError, read_or_create
from monrest.api.family import Common
from monrest.base.audit import audit
from monrest.base.concurrency import pause
from monrest.config import Config, ConfigError, load
from monrest.config.sections import fixed_while_running
from monrest.jobs.service import Jobs
from monrest.web.api_site import ApiSite

AGAIN = 75
"""The exit status (EX_TEMPFAIL) that asks the service manager to start this process again."""

DAEMON = "(daemon)"
"""The user of a reload in the audit log."""

_INITIAL = Path("/proc/self/environ")


def read_again(path: str, old: Config | None = None) -> tuple[Config, str]:
    """Read the configuration and the secret key as a start does; blocks.

    ``old`` is the configuration of a running daemon. Raises ConfigError.
    """
    config = load(path)
    if old is not None and (problems := fixed_while_running(old, config)):
        raise ConfigError(problems)
    try:
        return config, read_or_create(Path(config.auth.secret_key_file))
    except (SecretKeyError, OSError) as error:
        raise ConfigError([f"auth.secret_key_file: {error}"]) from None


def refuse_reload(log: Logger, path: str, error: ConfigError) -> None:
    """Report a configuration that was read again and cannot be used."""
    for problem in error.problems:
        log.warn("configuration not read again: {problem}", problem=problem)
    log.warn("the old configuration stays in force")
    audit(DAEMON, None, "configuration reload", target=path, result="refused")


def _arguments() -> tuple[str, ...]:
    return (sys.executable, *sys.orig_argv[1:])


@frozen(kw_only=True)
class Restart:
    """The way in which this process was started; read before any of it is changed.

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
    """The environment with which the process began; what was removed since is still there."""
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
    ``site`` returns what serves HTTP.
    """

    log: ClassVar[Logger] = Logger()

    common: Common
    again: Callable[[], None] | None
    site: Callable[[], ApiSite]
    _work: Deferred[None] | None = field(default=None, init=False)

    async def check(self) -> str:
        """The reason against a restart; empty when it may begin."""
        if self.again is None:
            return "it cannot start itself again"
        try:
            await self.common.threads.run(lambda: read_again(self.common.path))
        except ConfigError as error:
            return f"its configuration cannot be used: {error}"
        return ""

    def begin(self) -> None:
        """Ask clients to leave, stop when the time for that is over, and begin anew."""
        self._work = Deferred.fromCoroutine(self._leave())
        self._work.addErrback(lambda failure: self.log.failure("no restart", failure))

    async def _leave(self) -> None:
        self.log.info("restarts: requests should go to other nodes")
        config, reactor = self.common.config, self.common.reactor
        self.site().announce_end()
        await pause(reactor, config.cluster.restart_notice)
        await self.common.the(Jobs).ended(config.server.drain_timeout)
        if reactor.running:
            reactor.addSystemEventTrigger("after", "shutdown", self.again)
            reactor.stop()
