"""Gathering the facts of nodes on a schedule, and operations on nodes with their results."""

from __future__ import annotations

import codecs
from collections.abc import Awaitable, Callable
from contextlib import suppress
from datetime import tzinfo
from functools import partial
from typing import Any, ClassVar

from attrs import define, field
from twisted.application.service import Service
from twisted.internet.defer import (
    CancelledError,
    Deferred,
    DeferredList,
    DeferredSemaphore,
    succeed,
)
from twisted.internet.task import LoopingCall
from twisted.logger import Logger

from monrest.base import processes
from monrest.base.clock import ClockSteps, WallClock
from monrest.base.concurrency import Periodic, Threads
from monrest.base.errors import BadRequest, Conflict, Unavailable
from monrest.base.schedule import between
from monrest.base.values import Progress
from monrest.config import ControlledNode, NodeControlConfig
from monrest.nodecontrol import store as statements
from monrest.nodecontrol.gather import Gatherer, LocalHost, ask_command
from monrest.nodecontrol.model import (
    FAILED,
    GATHER_KINDS,
    GatherError,
    GatherKind,
    Log,
    Node,
    outcome,
    steps,
)
from monrest.nodecontrol.store import StoredNodes
from monrest.sites.registry import Sites
from monrest.sites.site import Site
from monrest.store.database import Database, Work
from monrest.store.duties import Duties, DutyLostError, Token

DUTY = "nodecontrol"
_LOOK = 5.0
_LATEST = 3600.0
"""Seconds for which a scheduled time that was missed is still due."""
_SPARE = 30.0
"""Seconds after its time limit at which a gatherer counts as dead."""
_LOOK_ALIVE = 1.0
_CLAIM = 10.0
"""Seconds for which an operation may have no job yet."""
_LONGEST_ERROR = 2000
_LONGEST_OUTPUT = 200_000
_REMOTE = ("http", "https")


@define(eq=False)
class NodeControl(Service):
    """``config`` may be replaced while it runs; ``folder`` is the folder of the daemon's state.

    ``job_failure`` returns why the job with a number failed: empty for success, None while it runs.
    While this daemon is not ``surely_alive``, other daemons may end its jobs.
    """

    log: ClassVar[Logger] = Logger()

    reactor: Any
    wall: WallClock
    database: Database
    threads: Threads
    duties: Duties
    registry: Sites
    config: NodeControlConfig
    folder: str
    job_failure: Callable[[int], Awaitable[str | None]]
    surely_alive: Callable[[], bool]
    zone: tzinfo
    _token: Token | None = field(default=None, init=False)
    _since: dict[GatherKind, float] = field(factory=dict, init=False)
    _steps: ClockSteps = field(init=False)
    _periodic: Periodic = field(init=False)

    def __attrs_post_init__(self) -> None:
        self._steps = ClockSteps(self.wall, self.reactor)
        self._periodic = Periodic(self.reactor, _LOOK, self.look, "gathering facts of nodes")

    def settings(self, site: Site) -> ControlledNode | None:
        return next((node for node in self.config.nodes if node.site == site.id), None)

    def controls(self, site: Site) -> bool:
        """Whether a site has a node: local ones, those over HTTP, and those that are named."""
        return site.local or site.config.where().kind in _REMOTE or self.settings(site) is not None

    def gatherer(self, site: Site, host: LocalHost) -> Gatherer | None:
        """The gatherer of a node, which may be on this ``host``; None: the node has none."""
        settings = self.settings(site)
        if settings is not None and settings.gather:
            seconds = self.config.gather_timeout
            return partial(
                ask_command, self.reactor, self.threads, site.id, settings.gather, seconds
            )
        return partial(host.ask, lambda: bool(site.status)) if site.local else None

    def require_gatherer(self, site: Site, host: LocalHost | None = None) -> Gatherer:
        """The gatherer of a node; BadRequest for a node that cannot be asked."""
        gatherer = self.gatherer(site, host or self._host())
        if gatherer is None:
            raise BadRequest(
                "the node cannot be asked", f"nodecontrol.nodes: expected a gather of {site.id}"
            )
        return gatherer

    def _host(self) -> LocalHost:
        return LocalHost(
            reactor=self.reactor,
            threads=self.threads,
            folder=self.folder,
            seconds=self.config.gather_timeout,
        )

    async def stored(self) -> StoredNodes:
        """All nodes, without the operations of jobs and daemons that died."""
        stored = await self.database.run(statements.read)
        lost = [await self._end_lost(node) for node in stored.nodes.values() if node.operation]
        return await self.database.run(statements.read) if any(lost) else stored

    async def _end_lost(self, node: Node) -> bool:
        """End an operation whose job is over; False if it still runs."""
        now = self.wall.now()
        if node.job is None:
            problem = "the operation did not begin" if now - node.claimed > _CLAIM else None
        else:
            problem = await self.job_failure(node.job)
        if problem is None:
            return False
        if problem:
            name = node.operation.rpartition(":")[2]
            lost = Log(site=node.site, name=name, failed=FAILED, at=int(now), output=problem)
            await self.database.change(statements.note(lost))
        work = statements.release(
            node.site, node.job, now, problem[:_LONGEST_ERROR], claimed=node.claimed
        )
        return await self.database.change(work)

    async def output(self, site: Site, name: str) -> Log | None:
        return await self.database.run(statements.one_log(site.id, name))

    async def look(self) -> None:
        """Gather what is due, if that is this daemon's duty.

        Times before the start of this daemon are not due. A daemon that takes over gathers what is
        due, and does not wait for the former daemon, whose facts cannot be stored any more.
        """
        count = self._steps.count
        if self._steps.look() != count:
            # The last due time may have been one of a clock that was wrong.
            again = self._steps.since()
            self._since = {what: min(since, again) for what, since in self._since.items()}
        token = self.duties.held(DUTY) if self.config.enabled else None
        if token is None:
            self._token = None
            return
        due = {what: at for what in GATHER_KINDS if (at := self._due(what)) is not None}
        if not due:
            return
        try:
            nodes = (await self.stored()).nodes
        except Unavailable:
            return
        took_over, self._token = self._token != token, token
        self._since |= due
        places = DeferredSemaphore(self.config.parallel_tasks)
        host = self._host()
        waiting = []
        for site in self.registry.sites:
            if self.controls(site) and self.gatherer(site, host) is not None:
                node = nodes.get(site.id, Node(site=site.id))
                what = next((what for what, at in due.items() if node.asked(what) < at), None)
                if what is not None:
                    change = partial(self.duties.change, token)
                    waiting.append(
                        places.run(self._gather, site, what, host, change, alone=not took_over)
                    )
        done: bool
        result: Any
        try:
            for done, result in await DeferredList(waiting, consumeErrors=True):
                if done or result.check(Unavailable, Conflict, DutyLostError):
                    continue
                if result.check(CancelledError):
                    result.raiseException()  # the daemon stops
                self.log.failure("a node was not asked", result)
        finally:
            for waiter in waiting:
                waiter.cancel()

    def _due(self, what: GatherKind) -> int | None:
        """Return the newest due time that was not handled; None: there is none."""
        config, now = self.config, self.wall.now()
        text = config.gather_schedule if what == "facts" else config.runtime_schedule
        after = max(self._since[what], now - _LATEST)
        return next(iter(between([text], after, now, self.zone, 1)), None) if text else None

    async def gather(self, site: Site, what: GatherKind) -> str:
        """Gather facts and store them; return the reason of a failure, empty for success.

        Raise BadRequest for a node that cannot be asked, Conflict while it is being asked.
        """
        return await self._gather(site, what, self._host(), self.database.change)

    async def _gather(
        self,
        site: Site,
        what: GatherKind,
        host: LocalHost,
        change: Callable[[Work[Any]], Awaitable[Any]],
        *,
        alone: bool = True,
    ) -> str:
        gatherer = self.require_gatherer(site, host)
        now = self.wall.now()
        until = now + 4 * self.config.gather_timeout + _SPARE
        if not await change(statements.begin_gathering(site.id, now, until, alone=alone)):
            raise Conflict("facts of the node are being gathered", "try again later")
        data, problem = None, ""
        try:
            gathered = await gatherer(what)
            data, problem = gathered.data, gathered.problem
        except GatherError as error:
            problem = str(error)
        finally:
            with suppress(Unavailable, DutyLostError):
                await change(
                    statements.end_gathering(
                        site.id,
                        self.wall.now(),
                        data,
                        problem[:_LONGEST_ERROR],
                        facts=what == "facts",
                    )
                )
        if problem:
            self.log.warn("node {site}: {problem}", site=site.id, problem=problem)
        return problem

    async def claim(self, site: Site, operation: str) -> int:
        """Begin an operation, the only one until it is released; return the time of its begin.

        It has to be assigned within some seconds. BadRequest for one that cannot be done, Conflict
        during another one.
        """
        if not steps(self.settings(site), operation):
            raise BadRequest(
                "the operation cannot be done",
                f"nodecontrol.nodes: expected a command {operation} of {site.id}",
            )
        await self.stored()
        now = int(self.wall.now())
        if not await self.database.change(statements.claim(site.id, operation, now)):
            raise Conflict("another operation is running", "wait for its end, or cancel its job")
        return now

    async def assign(self, site: Site, job: int, claimed: int) -> None:
        """Store which job does the claimed operation; Conflict when that was too late."""
        if not await self.database.change(statements.assign(site.id, job, claimed)):
            raise Conflict("the operation did not begin", "it took too long to store its job")

    async def release(self, site: Site, claimed: int) -> None:
        work = statements.release(site.id, None, self.wall.now(), claimed=claimed)
        await self.database.change(work)

    async def perform(
        self, site: Site, operation: str, job: int, progress: Progress
    ) -> tuple[Log, ...]:
        """Do the operation of ``job``, and gather facts after it.

        Returns one log for each step, and ends at a step that failed. Conflict when other daemons
        considered this one dead.
        """
        todo = steps(self.settings(site), operation)
        done: list[Log] = []
        problem = ""
        try:
            for at, (name, command) in enumerate(todo):
                present = operation if name == operation else f"{operation}:{name}"
                if not await self.database.change(statements.step(site.id, job, present)):
                    problem = f"{operation}: given up by another daemon"
                    raise Conflict(
                        "the operation was given up", "other daemons considered this one dead"
                    )
                done.append(await self._step(site, name, command, _part(progress, at, len(todo))))
                if done[-1].failed == FAILED:
                    last = done[-1].output.strip().splitlines() or ["no output"]
                    problem = f"{name}: {last[-1]}"
                    break
        except CancelledError:
            problem = f"{operation}: canceled"
            raise
        finally:
            now = self.wall.now()
            release = statements.release(site.id, job, now, problem[:_LONGEST_ERROR])
            with suppress(Unavailable):  # the next reader ends the operation
                await self.database.change(release)
        if self.gatherer(site, self._host()) is not None:
            progress(_GATHERING, message="gathering facts")
            with suppress(Conflict):
                await self.gather(site, "facts")
        return tuple(done)

    async def _step(self, site: Site, name: str, command: str, progress: Progress) -> Log:
        decoder = codecs.getincrementaldecoder("utf-8")("replace")
        output = ""
        failed = FAILED
        given_up = False

        def on_output(data: bytes) -> None:
            nonlocal output
            output = (output + decoder.decode(data))[-_LONGEST_OUTPUT:]
            lines = output.rstrip().rpartition("\n")
            progress(0, message=f"{name}: {lines[2][-_LONGEST_LINE:]}")

        progress(0, message=name)
        running = processes.run(
            self.reactor,
            processes.shell(f"exec 2>&1\n{command}"),
            {"MON_NODE": site.id, "MON_OPERATION": name},
            self.config.command_timeout,
            on_output,
        )

        def look() -> None:
            nonlocal given_up
            if not self.surely_alive():
                given_up = True
                running.cancel()

        looking = LoopingCall(look)
        looking.clock = self.reactor
        looking.start(_LOOK_ALIVE)
        try:
            ended = await running
            failed = outcome(ended.status, output)
            if failed == FAILED and (ended.timed_out or ended.err):
                output += f"\n{ended.reason()}"
        except CancelledError:
            output += (
                "\nended: the daemon could not reach the database" if given_up else "\ncanceled"
            )
            if not given_up:
                raise
        finally:
            looking.stop()
            text = output.replace("\0", "\N{REPLACEMENT CHARACTER}")
            log = Log(site=site.id, name=name, failed=failed, at=int(self.wall.now()), output=text)
            with suppress(Unavailable):
                await self.database.change(statements.note(log))
        return log

    def configure(self, config: NodeControlConfig, zone: tzinfo) -> None:
        """Use other nodes and schedules; of a new schedule only future times are due."""
        times = (config.gather_schedule, config.runtime_schedule, zone)
        if times != (self.config.gather_schedule, self.config.runtime_schedule, self.zone):
            self._begin()
        self.config, self.zone = config, zone

    def _begin(self) -> None:
        self._since = dict.fromkeys(GATHER_KINDS, self.wall.now())

    def startService(self) -> None:
        """Take part in gathering."""
        super().startService()
        self._begin()
        self.duties.want(DUTY)
        self._periodic.startService()

    def stopService(self) -> Deferred[None]:
        """End what is being gathered; before the duties and the database stop."""
        if not self.running:
            return succeed(None)
        super().stopService()
        return self._periodic.stopService()


_GATHERING = 95.0
_LONGEST_LINE = 200


def _part(progress: Progress, at: int, count: int) -> Progress:
    """The progress of one of several steps."""

    def report(percent: float, remaining: float | None = None, message: str = "") -> None:
        progress(_GATHERING * (at + percent / 100) / count, remaining, message)

    return report
