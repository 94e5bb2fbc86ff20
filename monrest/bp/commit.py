"""What is done around saving a process: commands of one's own, and files with it.

``<nr>.tbp`` is the process as it is live, ``<nr>.tbp.bak`` as it was before, ``<nr>.tbp.edit`` as
it is going to be while the first command looks at it. The database is what counts: these files
are for commands and for people, and for those of this daemon only.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

import orjson
from attrs import define
from twisted.logger import Logger

from monrest.base.concurrency import Threads
from monrest.base.errors import Conflict, Unavailable
from monrest.config import BpConfig
from monrest.objectconfig import site_commands

_KINDS = ("", ".bak", ".edit")


@define(eq=False, kw_only=True)
class Commits:
    """``folder`` is made when it is needed; ``app`` is the word in names of variables."""

    log: ClassVar[Logger] = Logger()

    reactor: Any
    threads: Threads
    folder: Path

    async def before(
        self, config: BpConfig, app: str, number: int, document: Mapping[str, Any]
    ) -> None:
        """Ask ``pre_save_cmd``. Raises Conflict when it forbids the change."""
        path = self._path(number, ".edit")
        await self._put({path: document})
        try:
            output = await self._run(config.pre_save_cmd, app, "pre", number, path)
        finally:
            await self.threads.run(lambda: path.unlink(missing_ok=True))
        if output is not None:
            raise Conflict("the change was refused", f"bp.pre_save_cmd: {output}")

    async def after(
        self,
        config: BpConfig,
        app: str,
        number: int,
        old: Mapping[str, Any] | None,
        new: Mapping[str, Any],
    ) -> None:
        """Write the files of a saved process, of which ``old`` was live, and run the command."""
        path = self._path(number)
        files = {path: new} if old is None else {self._path(number, ".bak"): old, path: new}
        try:
            await self._put(files)
        except Unavailable as error:
            self.log.warn("{error}", error=str(error))
            return
        output = await self._run(config.post_save_cmd, app, "post", number, path)
        if output is not None:
            self.log.warn("bp.post_save_cmd failed: {output}", output=output)

    async def refreshed(self, config: BpConfig, app: str) -> None:
        """Run the command after a calculation of all processes."""
        output = await self._run(config.post_refresh_cmd, app)
        if output is not None:
            self.log.warn("bp.post_refresh_cmd failed: {output}", output=output)

    async def removed(self, number: int) -> None:
        def work() -> None:
            for kind in _KINDS:
                self._path(number, kind).unlink(missing_ok=True)

        await self.threads.run(work)

    def _path(self, number: int, kind: str = "") -> Path:
        return self.folder / f"{number}.tbp{kind}"

    async def _put(self, files: Mapping[Path, Mapping[str, Any]]) -> None:
        def work() -> None:
            self.folder.mkdir(mode=0o770, exist_ok=True)
            for path, document in files.items():
                new = path.with_name(f".{path.name}.{os.getpid()}.new")
                option = orjson.OPT_INDENT_2 | orjson.OPT_SORT_KEYS | orjson.OPT_APPEND_NEWLINE
                new.write_bytes(orjson.dumps(document, option=option))
                new.replace(path)

        try:
            await self.threads.run(work)
        except OSError as error:
            raise Unavailable(
                "cannot write files of business processes", f"{self.folder}: {error.strerror}"
            ) from None

    async def _run(
        self, command: str, app: str, stage: str = "", number: int = 0, path: Path | None = None
    ) -> str | None:
        """What a command wrote that failed; None when all is well."""
        if not command:
            return None
        given = {}
        if path is not None:
            given = {"BP_ID": str(number), "BP_FILE": str(path), "BP_STAGE": stage}
        variables = {f"{app.upper()}_{name}": value for name, value in given.items()}
        result = await site_commands.run(
            self.reactor, command, variables, site_commands.LONGEST_COMMAND
        )
        return result.output.strip() or f"status {result.status}" if result.failed else None
