"""All dashboards: those that are stored, those that programs print, and their housekeeping."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any, ClassVar

from attrs import define, field
from twisted.application.service import Service
from twisted.internet.defer import Deferred, DeferredList, DeferredSemaphore
from twisted.logger import Logger

from monrest.base import processes
from monrest.base.clock import WallClock
from monrest.base.concurrency import Periodic, Threads
from monrest.base.errors import BadRequest, Unavailable
from monrest.config import PanoramaConfig
from monrest.panorama import store as statements
from monrest.panorama.model import Dashboard
from monrest.panorama.scripted import Script, dashboard_of, scripts_in
from monrest.store.database import Database

_CLEAN = 3600.0
_AT_ONCE = 4
"""Programs that run at the same time, for all requests together."""


@define(eq=False)
class Panorama(Service):
    """``config`` may be replaced while it runs."""

    log: ClassVar[Logger] = Logger()

    reactor: Any
    wall: WallClock
    database: Database
    threads: Threads
    config: PanoramaConfig
    _places: DeferredSemaphore = field(factory=lambda: DeferredSemaphore(_AT_ONCE), init=False)
    _periodic: Periodic = field(init=False)

    def __attrs_post_init__(self) -> None:
        self._periodic = Periodic(
            self.reactor, _CLEAN, self.clean, "removing empty dashboards", now=False
        )

    async def scripts(self) -> list[Script]:
        """Find the programs; what is wrong with others is in the log.

        Raises Unavailable when the folder cannot be read.
        """
        folder = self.config.folder
        if not folder:
            return []
        try:
            scripts, problems = await self.threads.run(lambda: scripts_in(folder))
        except OSError as error:
            raise Unavailable(
                "cannot read the scripted dashboards", f"{folder}: {error.strerror}"
            ) from None
        for problem in problems:
            self.log.warn("a scripted dashboard is left out: {problem}", problem=problem)
        return scripts

    async def printed(
        self, scripts: Iterable[Script], user: str, groups: Collection[str]
    ) -> list[Dashboard]:
        """Run programs for ``user``; the log has the reason of one that fails."""
        waiting = [self._places.run(self._run, script, user, groups) for script in scripts]
        try:
            results = await DeferredList(waiting, consumeErrors=True)
        finally:
            for waiter in waiting:
                waiter.cancel()
        dashboards: list[Dashboard] = []
        done: bool
        dashboard: Any
        for done, dashboard in results:
            if not done:
                dashboard.raiseException()
            if dashboard is not None:
                dashboards.append(dashboard)
        return dashboards

    async def _run(self, script: Script, user: str, groups: Collection[str]) -> Dashboard | None:
        environment = {
            "DASHBOARD": script.nr,
            "DASHBOARD_FILE": script.path,
            "REMOTE_USER": user,
            "REMOTE_USER_GROUPS": ";".join(sorted(groups)),
        }
        ended = await processes.run(
            self.reactor, (script.path,), environment, self.config.script_timeout
        )
        reason = ended.reason() or ("it printed too much" if ended.dropped else "")
        if not reason:
            try:
                return await self.threads.run(lambda: dashboard_of(script, ended.out))
            except BadRequest as error:
                reason = str(error)
        self.log.warn(
            "the scripted dashboard {path} is left out: {reason}", path=script.path, reason=reason
        )
        return None

    async def clean(self) -> None:
        """Remove old dashboards without panels."""
        try:
            gone = await self.database.change(statements.clean(self.wall.now()))
        except Unavailable:
            return
        if gone:
            self.log.info("removed empty dashboards: {numbers}", numbers=", ".join(gone))

    def configure(self, config: PanoramaConfig) -> None:
        self.config = config

    def startService(self) -> None:
        super().startService()
        self._periodic.startService()

    def stopService(self) -> Deferred[None]:
        """Fire when no cleaning runs; before the database stops."""
        super().stopService()
        return self._periodic.stopService()
