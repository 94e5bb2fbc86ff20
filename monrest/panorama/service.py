"""Scripted dashboards, which programs print, and the housekeeping of those that are stored.

Lines of comment at the beginning of a program name the owner and the groups that may see its
dashboard, so that nothing is run for other users (docs/spec/panorama.md, "Scripted dashboards").
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Collection, Iterable
from pathlib import Path
from typing import Any, ClassVar

import orjson
from attrs import define, field, frozen
from twisted.application.service import Service
from twisted.internet.defer import Deferred, DeferredList, DeferredSemaphore
from twisted.logger import Logger

from monrest.base import processes
from monrest.base.clock import WallClock
from monrest.base.concurrency import Periodic, Threads
from monrest.base.errors import BadRequest, Unavailable
from monrest.config import PanoramaConfig
from monrest.panorama import model as records
from monrest.panorama import store as statements
from monrest.panorama.model import Dashboard
from monrest.store.database import Database

SUFFIX = ".tab"

_HEADER = re.compile(rb"^[ \t]*#[ \t]*(title|user|groups)[ \t]*:[ \t]*(.*?)[ \t\r]*$", re.MULTILINE)
_HEADER_BYTES = 8192
_COMMENTS = re.compile(r'("(?:[^"\\]|\\.)*")|#[^\n]*', re.DOTALL)
_COMMAS = re.compile(r'("(?:[^"\\]|\\.)*")|,(?=\s*[\]}])', re.DOTALL)


@frozen(kw_only=True)
class Script:
    """A program that prints a dashboard; ``head`` is a record with what its comments say."""

    nr: str
    path: str
    changed: float
    head: dict[str, Any] = field(eq=False)


def scripts_in(folder: str) -> tuple[list[Script], list[str]]:
    """Find the programs of a folder, by name, and what is wrong with others; reads files.

    Raises OSError when the folder cannot be read.
    """
    scripts: list[Script] = []
    problems: list[str] = []
    for path in sorted(Path(folder).iterdir()):
        if path.suffix != SUFFIX or not records.is_nr(path.stem):
            continue
        try:
            status = path.stat()
            if not stat.S_ISREG(status.st_mode) or not os.access(path, os.X_OK):
                continue
            with path.open("rb") as file:
                head = header(file.read(_HEADER_BYTES))
        except OSError as error:
            problems.append(f"{path}: {error.strerror}")
        except BadRequest as error:
            problems.append(f"{path}: {error}")
        else:
            scripts.append(Script(nr=path.stem, path=str(path), changed=status.st_mtime, head=head))
    return scripts, problems


def header(text: bytes) -> dict[str, Any]:
    """Read the comments at the beginning of a file as a record; BadRequest for wrong groups."""
    values = {
        name.decode(): value.decode("utf-8", "replace") for name, value in _HEADER.findall(text)
    }
    settings: dict[str, Any] = {"title": values.get("title", "")}
    if values.get("groups"):
        groups = relaxed(values["groups"])
        pairs = groups.items() if isinstance(groups, dict) else ()
        settings["groups"] = [{name: right} for name, right in pairs] or groups or []
    return records.checked({"user": values.get("user", ""), "tab": {"xdata": settings}}, "")


def relaxed(text: str) -> Any:
    """Read JSON that may have comments and commas at the end of lists; BadRequest."""
    text = _COMMENTS.sub(lambda match: match[1] or "", text)
    text = _COMMAS.sub(lambda match: match[1] or "", text)
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError as error:
        raise BadRequest("no JSON", str(error)) from None


def dashboard_of(script: Script, output: bytes) -> Dashboard:
    """Take what a program printed; its comments decide whose it is. BadRequest."""
    given = relaxed(output.decode("utf-8", "replace"))
    if not isinstance(given, dict):
        raise BadRequest("no dashboard", "expected a JSON object")
    moment = given.get("ts")
    record = records.checked(given, "")
    head = script.head
    record["user"] = head["user"]
    settings = record["tab"]["xdata"]
    settings["groups"], settings["users"] = head["tab"]["xdata"]["groups"], []
    if head["tab"]["xdata"]["title"]:
        settings["title"] = head["tab"]["xdata"]["title"]
    if not isinstance(moment, (int, float)) or isinstance(moment, bool):
        moment = int(script.changed)
    return Dashboard(
        nr=script.nr,
        record=record,
        changed=moment,
        script=script.path,
    )


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
