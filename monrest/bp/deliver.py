"""Giving results to a core: passive checks, and flags of nodes as downtimes.

Rules: docs/spec/bp.md, "Results".
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Sequence
from typing import ClassVar, TypeAlias

from attrs import define, field
from twisted.internet.interfaces import IReactorTime
from twisted.logger import Logger

from monrest.base.clock import WallClock
from monrest.base.concurrency import Threads, sliced
from monrest.base.errors import BadRequest
from monrest.base.values import Row
from monrest.bp.gather import ask
from monrest.bp.live import Layout, Live, Question
from monrest.bp.model import Definition
from monrest.bp.results import Result
from monrest.bp.spool import spool, spooled
from monrest.bp.submit import Present, presents, results, synchronised
from monrest.config import BpConfig
from monrest.livestatus.command import CoreCommand
from monrest.query.model import CoreFilter, Test
from monrest.sites.commands import send
from monrest.sites.site import Site

Done: TypeAlias = Sequence[tuple[Definition, Result, float]]
"""Processes, their results, and how many seconds the calculation before this one took."""


def sole(wanted: str, sites: Sequence[Site]) -> Site | None:
    """Give the site of this id, else the only one there is; None where there are several."""
    if wanted:
        return next((site for site in sites if site.id == wanted), None)
    return sites[0] if len(sites) == 1 else None


@define(eq=False)
class Delivery:
    """Sends to the one core that wants results; tells a failure when it begins and not again."""

    log: ClassVar[Logger] = Logger()

    clock: IReactorTime
    wall: WallClock
    threads: Threads
    _trouble: str = field(default="", init=False)

    async def deliver(
        self,
        config: BpConfig,
        sites: Sequence[Site],
        done: Done,
        live: Live,
        app: str,
        allowed: Callable[[], bool],
    ) -> None:
        """Send the results whose hosts a core has, and flags of nodes if that is wanted.

        What is not ``allowed`` when its turn comes is not sent.
        """
        site = sole(config.result_backend, sites)
        if config.spool_dir and not config.result_backend:
            await self._spool(config.spool_dir, done, live, app, allowed)
        elif site is not None:
            synchronise = config.sync_downtime_ack_state > 1
            await self._send(site, done, live, app, allowed, synchronise=synchronise)
        else:
            self._tell("results are not sent to a core: bp.result_backend names none")

    async def _spool(
        self, folder: str, done: Done, live: Live, app: str, allowed: Callable[[], bool]
    ) -> None:
        """Write all results into one file."""
        commands: list[CoreCommand] = []
        await sliced(_commands(done, live, "", commands), self.clock)
        if not commands or not allowed():
            return
        now = self.wall.now()
        try:
            await self.threads.run(lambda: spool(folder, spooled(commands, app, now)))
        except OSError as error:
            self._tell(f"results are not written: {folder}: {error.strerror}")
        else:
            self._trouble = ""

    async def _send(
        self,
        site: Site,
        done: Done,
        live: Live,
        app: str,
        allowed: Callable[[], bool],
        *,
        synchronise: bool,
    ) -> None:
        commands: list[CoreCommand] = []
        await sliced(_commands(done, live, site.id, commands), self.clock)
        if synchronise:
            present = await self._present(site, app)
            await sliced(self._flags(done, present, f"({app})", commands), self.clock)
        if not commands:
            return
        try:
            (sent,) = await send(((site, tuple(commands)),), self.clock, self.wall, allowed)
        except BadRequest as error:
            self._tell(f"results are not sent: {error}")
            return
        if sent.problem is not None:
            self._tell(f"results are not sent to {site.id}: {sent.problem.reason}")
        elif sent.refused:
            reason = next(iter(sent.refused.values()))
            self._tell(f"{site.id} refuses {len(sent.refused)} results: {reason}")
        else:
            self._trouble = ""

    async def _present(self, site: Site, app: str) -> dict[tuple[object, object], Present]:
        """Read what the services of nodes have of acknowledgements and of downtimes of ours."""
        ours = Test("author", "=", f"({app})")

        async def rows(table: str, columns: Layout, limit: CoreFilter | None) -> list[Row]:
            gathered = await ask((site,), Question(table, columns, limit), self.clock)
            return [row for answer in gathered.answers for row in answer.rows]

        names: Layout = (("host_name", "string"), ("service_description", "string"))
        return presents(
            await rows(
                "services",
                (("host_name", "string"), ("description", "string"), ("acknowledged", "int")),
                None,
            ),
            await rows("downtimes", (*names, ("id", "int"), ("end_time", "time")), ours),
            await rows("comments", names, ours),
        )

    def _flags(
        self,
        done: Done,
        present: dict[tuple[object, object], Present],
        author: str,
        commands: list[CoreCommand],
    ) -> Generator[None]:
        now = int(self.wall.now())
        for definition, result, _ in done:
            for node in definition.exported:
                known = present.get((definition.host_of(node), node.label))
                if known is not None:
                    state = result.node(node.id)
                    commands += synchronised(definition, node, state, known, author, now)
            yield

    def _tell(self, trouble: str) -> None:
        if trouble != self._trouble:
            self.log.warn("business processes: {trouble}", trouble=trouble)
            self._trouble = trouble


def _commands(done: Done, live: Live, site: str, commands: list[CoreCommand]) -> Generator[None]:
    for definition, result, duration in done:
        commands += _known(results(definition, result, duration), live, site)
        yield


def _known(found: Iterable[CoreCommand], live: Live, site: str) -> Iterable[CoreCommand]:
    """Leave out results for hosts that the core does not have: it would only complain.

    Without a ``site`` it is enough that any of them has it.
    """
    for one in found:
        places = live.places.get(one.fields[0], ())
        if site in places or (places and not site):
            yield one
