"""Giving results to a core: passive checks, and flags of nodes as downtimes and acknowledgements.

Rules: docs/spec/bp.md, "Results".
"""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import ClassVar, TypeAlias

from attrs import define, field, frozen
from twisted.internet.interfaces import IReactorTime
from twisted.logger import Logger

from monrest.base.clock import WallClock
from monrest.base.concurrency import Threads
from monrest.base.errors import BadRequest
from monrest.base.values import Row
from monrest.bp.core_rows import CoreQuestion, CoreRows, ask
from monrest.bp.model import ROOT, ProcessDefinition, ProcessNode, StoredProcess
from monrest.bp.node_state import PENDING, NodeState, ProcessResult
from monrest.config import BpConfig
from monrest.livestatus.command import CoreCommand
from monrest.query.model import CoreFilter, Test
from monrest.sites.commands import send
from monrest.sites.normalise import RowTypes
from monrest.sites.site import Site

DOWNTIME_SECONDS = 86400
RENEW_SECONDS = 1800
DOWNTIME_COMMENT = "automatic downtime, all child nodes are in downtime."
ACK_COMMENT = "automatic acknowledgment, all child nodes are acknowledged."

_LONGEST_OUTPUT = 8000
_CONTROL = re.compile(r"[\x00-\x1f\x7f\ud800-\udfff]")


def passive_checks(
    definition: ProcessDefinition, result: ProcessResult, duration: float
) -> Iterator[CoreCommand]:
    """Return the passive checks of one process; ``duration`` is that of the run before, in seconds.

    The host of the root is always up, its services have the states of their nodes.
    """
    for node in definition.exported:
        host = definition.host_of(node)
        state = result.node(node.id)
        text = result.status_text if node.id == ROOT else state.status_text or state.short_desc
        status = result.status if node.id == ROOT else state.status
        if node.id == ROOT:
            took = f"{duration:.3f}s"
            output = (
                f"OK - business process calculation of {len(definition.nodes)} nodes "
                f"complete in {took}|runtime={took}"
            )
            yield CoreCommand("PROCESS_HOST_CHECK_RESULT", (host, "0", output), "output")
        fields = (host, node.label, str(0 if status == PENDING else status), output_of(text))
        yield CoreCommand("PROCESS_SERVICE_CHECK_RESULT", fields, "output")


def output_of(text: str) -> str:
    r"""Return a text as plugin output in one line, newlines as the characters ``\n``."""
    kept = text[:_LONGEST_OUTPUT].rstrip("\n")
    return "\\n".join(_CONTROL.sub(" ", part) for part in kept.split("\n"))


@frozen
class Present:
    """The service of a node in a core: downtimes of ours as (id, end), acknowledged."""

    downtimes: tuple[tuple[int, float], ...] = ()
    acknowledged: bool = False
    ours: bool = False
    """Whether the acknowledgement is one of ours."""


def synchronised(
    definition: ProcessDefinition,
    node: ProcessNode,
    state: NodeState,
    present: Present,
    author: str,
    now: int,
) -> Iterator[CoreCommand]:
    host, label = definition.host_of(node), node.label
    if state.scheduled_downtime_depth:
        ends = [end for _, end in present.downtimes]
        if not ends or max(ends) - now <= RENEW_SECONDS:
            end = str(now + DOWNTIME_SECONDS)
            fields = (host, label, str(now), end, "1", "0", str(DOWNTIME_SECONDS), author)
            yield CoreCommand("SCHEDULE_SVC_DOWNTIME", (*fields, DOWNTIME_COMMENT), "text")
    else:
        for number, _ in present.downtimes:
            yield CoreCommand("DEL_SVC_DOWNTIME", (str(number),))
    if state.acknowledged and not present.acknowledged:
        manner = ("1", "1", "0")
        acknowledge = (host, label, *manner, author, ACK_COMMENT)
        yield CoreCommand("ACKNOWLEDGE_SVC_PROBLEM", acknowledge, "text")
    elif not state.acknowledged and present.ours:
        yield CoreCommand("REMOVE_SVC_ACKNOWLEDGEMENT", (host, label))


def presents(
    services: Iterable[Sequence[object]],
    downtimes: Iterable[Sequence[object]],
    comments: Iterable[Sequence[object]],
) -> dict[tuple[object, object], Present]:
    """Put together rows of one core, by host and service.

    ``services`` are (host, service, acknowledged), ``downtimes`` (host, service, id, end) and
    ``comments`` (host, service) of ours.
    """
    ends: dict[tuple[object, object], list[tuple[int, float]]] = {}
    for host, service, number, end in downtimes:
        if isinstance(number, (int, float)) and isinstance(end, (int, float)):
            ends.setdefault((host, service), []).append((int(number), float(end)))
    ours = {(host, service) for host, service in comments}
    return {
        (host, service): Present(
            tuple(ends.get((host, service), ())),
            bool(acknowledged),
            bool(acknowledged) and (host, service) in ours,
        )
        for host, service, acknowledged in services
    }


_HOST = "PROCESS_HOST_CHECK_RESULT"
_MODE = 0o660


def spooled(commands: Iterable[CoreCommand], app: str, now: float) -> Iterator[str]:
    yield "### Passive Check Result File ###"
    yield f"### written by {app} ###"
    yield f"file_time={int(now)}"
    for command in commands:
        yield ""
        names = ("host_name",) if command.name == _HOST else ("host_name", "service_description")
        *objects, code, output = command.fields
        yield from (f"{name}={value}" for name, value in zip(names, objects, strict=True))
        yield from (
            "check_type=1",
            "check_options=0",
            "scheduled_check=0",
            "latency=0.000000",
            f"start_time={now:.6f}",
            f"finish_time={now:.6f}",
            "early_timeout=0",
            "exited_ok=1",
            f"return_code={code}",
            f"output={output}",
        )


def spool(folder: str, lines: Iterable[str]) -> Path:
    """Write a file that a core takes from ``folder``, and the empty one that says it is complete.

    Blocks. Raises OSError.
    """
    handle, name = tempfile.mkstemp(prefix="c", suffix="", dir=folder)
    path = Path(folder, name)
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as stream:
            stream.writelines(f"{line}\n" for line in lines)
        path.chmod(_MODE)
        path.with_name(f"{path.name}.ok").touch(_MODE)
    except OSError:
        path.unlink(missing_ok=True)
        raise
    return path


DoneProcesses: TypeAlias = Sequence[tuple[StoredProcess, ProcessResult]]
"""Processes as they were before, and their new results."""


def sole(wanted: str, sites: Sequence[Site]) -> Site | None:
    """Return the site of this id, else the only one there is; None where there are several."""
    if wanted:
        return next((site for site in sites if site.id == wanted), None)
    return sites[0] if len(sites) == 1 else None


@define(eq=False)
class ResultDelivery:
    """Sends to the one core that wants results; logs a failure when it begins and not again."""

    log: ClassVar[Logger] = Logger()

    clock: IReactorTime
    wall: WallClock
    threads: Threads
    _trouble: str = field(default="", init=False)

    async def deliver(
        self,
        config: BpConfig,
        sites: Sequence[Site],
        done: DoneProcesses,
        live: CoreRows,
        app: str,
        allowed: Callable[[], bool],
    ) -> None:
        """Send the results whose hosts a core has, and flags of nodes if that is wanted.

        What is not ``allowed`` when its turn comes is not sent.
        """
        folder = "" if config.result_backend else config.spool_dir
        site = None if folder else sole(config.result_backend, sites)
        if site is None and not folder:
            self._warn("results are not sent to a core: bp.result_backend names none")
            return
        core = site.id if site else ""
        commands = await self.threads.run(lambda: _commands(done, live, core))
        if site is not None and config.sync_downtime_ack_state > 1:
            present = await self._present(site, app)
            now = int(self.wall.now())
            commands += await self.threads.run(lambda: _flags(done, present, f"({app})", now))
        if not commands:
            return
        if site is not None:
            self._warn(await self._send(site, commands, allowed))
        elif allowed():
            self._warn(await self._spool(folder, commands, app))

    async def _spool(self, folder: str, commands: Sequence[CoreCommand], app: str) -> str:
        """Write all results into one file; return the error, empty for success."""
        now = self.wall.now()
        try:
            await self.threads.run(lambda: spool(folder, spooled(commands, app, now)))
        except OSError as error:
            return f"results are not written: {folder}: {error.strerror}"
        return ""

    async def _send(
        self, site: Site, commands: Sequence[CoreCommand], allowed: Callable[[], bool]
    ) -> str:
        """Send all results to one core; return the error, empty for success."""
        try:
            (sent,) = await send(((site, tuple(commands)),), self.clock, self.wall, allowed)
        except BadRequest as error:
            return f"results are not sent: {error}"
        if sent.problem is not None:
            return f"results are not sent to {site.id}: {sent.problem.reason}"
        if sent.refused:
            reason = next(iter(sent.refused.values()))
            return f"{site.id} refuses {len(sent.refused)} results: {reason}"
        return ""

    async def _present(self, site: Site, app: str) -> dict[tuple[object, object], Present]:
        ours = Test("author", "=", f"({app})")

        async def rows(table: str, columns: RowTypes, limit: CoreFilter | None) -> list[Row]:
            gathered = await ask((site,), CoreQuestion(table, columns, limit), self.clock)
            return [row for answer in gathered.answers for row in answer.rows]

        names: RowTypes = (("host_name", "string"), ("service_description", "string"))
        return presents(
            await rows(
                "services",
                (("host_name", "string"), ("description", "string"), ("acknowledged", "int")),
                None,
            ),
            await rows("downtimes", (*names, ("id", "int"), ("end_time", "time")), ours),
            await rows("comments", names, ours),
        )

    def _warn(self, trouble: str) -> None:
        if trouble and trouble != self._trouble:
            self.log.warn("business processes: {trouble}", trouble=trouble)
        self._trouble = trouble


def _commands(done: DoneProcesses, live: CoreRows, site: str) -> list[CoreCommand]:
    """The results, but for hosts that the core does not have: it would only complain.

    Without a ``site`` it is enough that any of them has the host.
    """
    commands: list[CoreCommand] = []
    for process, result in done:
        for passive_check in passive_checks(process.definition, result, process.result.time):
            sites = live.sites_of.get(passive_check.fields[0], ())
            if site in sites or (sites and not site):
                commands.append(passive_check)
    return commands


def _flags(
    done: DoneProcesses,
    present: Mapping[tuple[object, object], Present],
    author: str,
    now: int,
) -> list[CoreCommand]:
    commands: list[CoreCommand] = []
    for process, result in done:
        definition = process.definition
        for node in definition.exported:
            shown_state = present.get((definition.host_of(node), node.label))
            if shown_state is not None:
                state = result.node(node.id)
                commands += synchronised(definition, node, state, shown_state, author, now)
    return commands
