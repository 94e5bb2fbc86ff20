"""Business processes: reading, changing and calculating them.

Processes and results are in the database, for all of its daemons; the daemon that has the duty
calculates them every few minutes. All of them are calculated together, with one query for each
table and site (docs/spec/bp.md, "Calculation").
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, tzinfo
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, TypeAlias

import orjson
from attrs import define, evolve, field
from twisted.application.service import Service
from twisted.internet.defer import Deferred, DeferredLock
from twisted.internet.interfaces import IReactorTime
from twisted.logger import Logger

from monrest.base.clock import WallClock
from monrest.base.concurrency import Periodic, Threads, shielded
from monrest.base.errors import Conflict, Unavailable
from monrest.base.values import SiteProblem
from monrest.bp import store as statements
from monrest.bp.core_objects import Exporter
from monrest.bp.core_rows import Answers
from monrest.bp.delivery import ResultDelivery
from monrest.bp.model import NEW_NAME, Calculated, StoredProcess, read
from monrest.bp.node_state import ProcessResult, stored
from monrest.bp.runner import CalculationFailedError, Runner
from monrest.bp.store import ProcessChange
from monrest.config import BpConfig
from monrest.objectconfig import site_commands
from monrest.sites.registry import Sites
from monrest.store.database import Database, Work
from monrest.store.documents import merged
from monrest.store.duties import Duties, DutyLostError, Token

DUTY = "business processes"

_WORKERS = 1
_LOOK = 1.0
"""Seconds between two checks for due work: a duty may come at any time."""


Refreshed: TypeAlias = tuple[StoredProcess, tuple[SiteProblem, ...]]
"""A process after a calculation, and the sites that did not answer."""


@define(eq=False, kw_only=True)
class BusinessProcesses(Service):
    """``config`` may be replaced by ``configure``; ``app`` is the word in names of variables.

    ``exporter`` writes objects into the configuration of a core. ``folder`` has the files of
    processes; it is made when it is needed. ``choose`` returns 0 to 3.
    """

    log: ClassVar[Logger] = Logger()

    database: Database
    clock: IReactorTime
    wall: WallClock
    sites: Sites
    threads: Threads
    config: BpConfig
    app: str
    duties: Duties
    exporter: Exporter
    folder: Path
    zone: tzinfo = UTC
    choose: Callable[[], int] = lambda: secrets.randbelow(4)
    _cached: dict[int, StoredProcess] = field(factory=dict, init=False)
    """All processes as they were read last, by number: those with another version or stamp are read
    again. To read 200 definitions of 50 nodes takes 0.24 s of processor time."""
    _lock: DeferredLock = field(factory=DeferredLock, init=False)
    _delivery: ResultDelivery = field(init=False)
    runner: Runner = field(init=False)
    _periodic: Periodic = field(init=False)
    _last: tuple[Token | None, float] = field(default=(None, 0.0), init=False)

    def __attrs_post_init__(self) -> None:
        self._delivery = ResultDelivery(self.clock, self.wall, self.threads)
        self.runner = Runner(
            clock=self.clock,
            wall=self.wall,
            sites=self.sites,
            threads=self.threads,
            config=self.config,
            zone=self.zone,
            variable=self.variable,
            choose=self.choose,
        )
        doing = "calculating business processes"
        self._periodic = Periodic(self.clock, _LOOK, self.look, doing)

    @property
    def variable(self) -> str:
        """The custom variable with the number of a process."""
        return f"{self.app.upper()}_BP_ID"

    def startService(self) -> None:
        """Begin to calculate regularly; the database and the sites must run."""
        super().startService()
        self.duties.want(DUTY)
        self._periodic.startService()

    def stopService(self) -> Deferred[None]:
        """Fires when no regular calculation runs any more."""
        super().stopService()
        self._last = (None, 0.0)
        return self._periodic.stopService()

    async def configure(self, config: BpConfig, app: str, zone: tzinfo) -> None:
        await self._periodic.stopService()
        self.config, self.app, self.zone = config, app, zone
        self.runner.configure(config, self.variable, zone)
        self._last = (None, 0.0)
        if self.running:
            self._periodic.startService()

    async def several(self) -> list[StoredProcess]:
        processes = await self._load()
        return sorted(processes.values(), key=lambda process: process.definition.name)

    async def get(self, number: int) -> StoredProcess | None:
        processes = await self.database.run(statements.several(dict(self._cached), number))
        self._cached.update(processes)
        return processes.get(number)

    async def _load(self) -> dict[int, StoredProcess]:
        processes = await self.database.run(statements.several(dict(self._cached)))
        self._cached = dict(processes)
        return processes

    async def statistics(self) -> dict[str, float]:
        """Return the figures ``business_process_…`` of ``/mon/stats``.

        Those of runs are absent before the first one.
        """
        return await self.database.run(statements.figures)

    async def create(self, document: Mapping[str, Any], start: int = 1) -> StoredProcess:
        """Make a draft under the first free number from ``start``.

        Raises BadRequest and Conflict for what is wrong, Unavailable.
        """
        check = await self.exporter.check(self.config)
        definition = read(document, name=NEW_NAME)
        check(definition)
        work = statements.create(definition, start, self.wall.now())
        number = await self.database.change(work)
        await self.export(number)
        return await self._after(number)

    async def replace(self, number: int, document: Mapping[str, Any]) -> StoredProcess | None:
        """Replace the definition of a process and make it live; None when there is no such process.

        Raises as ``create``.
        """
        return await shielded(self._change(number, lambda _: document))

    async def patch(self, number: int, document: Mapping[str, Any]) -> StoredProcess | None:
        """Merge into the definition and make it live, as ``replace``."""
        return await shielded(self._change(number, lambda before: patched(before, document)))

    async def _change(self, number: int, document: statements.MadeDocument) -> StoredProcess | None:
        expected: ProcessChange | None = None
        check = await self.exporter.check(self.config)
        while True:
            if self.config.pre_save_cmd:
                expected = await self.database.run(statements.preview(number, document, check))
                if expected is None:
                    return None
                await self._run_pre_save_cmd(number, expected.after)
            work = statements.change(number, document, self.wall.now(), check, expected)
            try:
                changed = await self.database.change(work)
                break
            except statements.ProcessOvertakenError:
                # Another request was faster: the command has not seen what this would store now.
                continue
        if changed is None:
            return None
        before, after = changed.before, changed.after
        await self._write_saved(number, before, after)
        await self.export(number)
        return await self._after(number)

    async def _after(self, number: int) -> StoredProcess:
        process = await self.get(number)
        if process is None:
            raise Unavailable("cannot read the business process", "it was removed meanwhile")
        return process

    async def delete(self, number: int) -> bool:
        if not await self.database.change(statements.remove(number)):
            return False
        self._cached.pop(number, None)

        def work() -> None:
            for kind in ("", ".bak", ".edit"):
                self._path(number, kind).unlink(missing_ok=True)

        await self.threads.run(work)
        await self.export()
        return True

    async def export(self, writer: int | None = None) -> None:
        """Write the objects of all live processes into the configuration of the core.

        Raises RestError when that fails, also for ``writer`` alone; what is stored stays.
        """
        await self.exporter.export(self.config, self.app, self.several, writer)

    async def look(self) -> None:
        """Calculate when the interval is over, or this daemon has got the duty."""
        token, (held, began) = self.duties.held(DUTY), self._last
        if token is None:
            self.runner.forget()
            return
        now, interval = self.clock.seconds(), 60.0 * self.config.refresh_interval
        if interval > 0 and (held != token or now - began >= interval):
            self._last = (token, now)
            await self.regularly()

    async def regularly(self) -> None:
        token = self.duties.held(DUTY)
        if token is None:
            return
        try:
            async with self._lock:
                await self._all(token)
        except (Unavailable, DutyLostError) as error:
            self.log.warn("business processes are not calculated: {error}", error=str(error))

    async def _all(self, token: Token) -> None:
        began = self.clock.seconds()
        processes = await self._load()
        live = [
            process for process in processes.values() if not process.draft and not process.broken
        ]
        if not live:
            self.runner.forget()
            return
        done, answers = await self.runner.run(live, processes)
        figures = {
            "business_process_duration_seconds": self.clock.seconds() - began,
            "business_process_last_update": self.wall.now(),
            "business_process_worker_total": float(_WORKERS),
        }
        # If another daemon has the duty by now, its results are newer, also for the core.
        await self._store(done, partial(self.duties.change, token), figures)
        await self._deliver(done, answers, lambda: self.duties.held(DUTY) == token)
        output = await self._run(self.config.post_refresh_cmd)
        if output is not None:
            self.log.warn("bp.post_refresh_cmd failed: {output}", output=output)

    # Files of processes are for commands and for people: ``<nr>.tbp`` is a process as it is live,
    # ``.tbp.bak`` as it was before, ``.tbp.edit`` as it is going to be while ``pre_save_cmd``
    # runs. The database counts; the files are those of this daemon only.

    async def _run_pre_save_cmd(self, number: int, document: Mapping[str, Any]) -> None:
        """Raises Conflict when the command refuses the change."""
        path = self._path(number, ".edit")
        await self._write_files({path: document})
        try:
            output = await self._run(self.config.pre_save_cmd, "pre", number, path)
        finally:
            await self.threads.run(lambda: path.unlink(missing_ok=True))
        if output is not None:
            raise Conflict("the change was refused", f"bp.pre_save_cmd: {output}")

    async def _write_saved(
        self, number: int, old: Mapping[str, Any] | None, new: Mapping[str, Any]
    ) -> None:
        """Write the files of a saved process, of which ``old`` was live, and run the command."""
        path = self._path(number)
        files = {path: new} if old is None else {self._path(number, ".bak"): old, path: new}
        try:
            await self._write_files(files)
        except Unavailable as error:
            self.log.warn("{error}", error=str(error))
            return
        output = await self._run(self.config.post_save_cmd, "post", number, path)
        if output is not None:
            self.log.warn("bp.post_save_cmd failed: {output}", output=output)

    def _path(self, number: int, kind: str = "") -> Path:
        return self.folder / f"{number}.tbp{kind}"

    async def _write_files(self, files: Mapping[Path, Mapping[str, Any]]) -> None:
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
        self, command: str, stage: str = "", number: int = 0, path: Path | None = None
    ) -> str | None:
        """The output of a command that failed; None for success."""
        if not command:
            return None
        given = {}
        if path is not None:
            given = {"BP_ID": str(number), "BP_FILE": str(path), "BP_STAGE": stage}
        variables = {f"{self.app.upper()}_{name}": value for name, value in given.items()}
        result = await site_commands.run(
            self.clock, command, variables, site_commands.LONGEST_COMMAND
        )
        return result.output.strip() or f"status {result.status}" if result.failed else None

    async def refresh(self, process: StoredProcess) -> Refreshed:
        """Calculate one process now and submit its results, but for those of a draft.

        Raises CalculationFailedError when it cannot be calculated, Unavailable.
        """
        if process.broken:
            raise CalculationFailedError("calculation failed", process.broken)
        return await shielded(self._refresh(process))

    async def _refresh(self, process: StoredProcess) -> Refreshed:
        async with self._lock:
            processes = await self._load()
            process = processes.get(process.nr, process)
            done, answers = await self.runner.run([process], processes, strict=True)
            await self._store(done, self.database.change)
            if not process.draft:
                await self._deliver(done, answers, lambda: True)
            return await self._after(process.nr), answers.problems

    async def _deliver(
        self,
        done: Sequence[tuple[StoredProcess, ProcessResult]],
        answers: Answers,
        allowed: Callable[[], bool],
    ) -> None:
        if done:
            await self._delivery.deliver(
                self.config, self.sites.sites, done, answers.live, self.app, allowed
            )

    async def _store(
        self,
        done: Sequence[tuple[StoredProcess, ProcessResult]],
        change: Callable[[Work[None]], Any],
        figures: Mapping[str, float] | None = None,
    ) -> None:
        rows = await self.threads.run(
            lambda: [
                Calculated(process.nr, process.version, stored(result)) for process, result in done
            ]
        )
        stamp = statements.new_stamp()
        await change(statements.store(rows, stamp, figures or {}))
        for process, result in done:
            # If it was changed meanwhile the stamp is another one and it is read again.
            self._cached[process.nr] = evolve(process, stamp=stamp, result=result)


def patched(before: Mapping[str, Any], patch: Mapping[str, Any]) -> Any:
    """Return a definition with a patch merged into it.

    Where the patch has a function without arguments of its own, the old ones go.
    """
    nodes = list(before.get("nodes") or ())
    given = patch.get("nodes")
    if isinstance(given, list):
        given = {str(at): node for at, node in enumerate(given)}
    for name, node in (given or {}).items() if isinstance(given, Mapping) else ():
        if (
            isinstance(node, Mapping)
            and node.get("function")
            and "function_args" not in node
            and name.isascii()
            and name.isdigit()
            and int(name[:9]) < len(nodes)
        ):
            at = int(name[:9])
            nodes[at] = {key: value for key, value in nodes[at].items() if key != "function_args"}
    return merged({**before, "nodes": nodes}, dict(patch))
