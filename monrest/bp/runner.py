"""Calculating many processes together, and what of a result a user may see.

A calculation reads all objects, which are queried once for all processes. A reader gets its result
without the objects that the cores would not show them: of these nodes only the definition and the
summary of the whole process remain (docs/spec/bp.md, "Calculation" and "Who sees which node").
"""

from __future__ import annotations

from collections.abc import (
    Callable,
    Collection,
    Iterable,
    Mapping,
    Sequence,
)
from contextlib import suppress
from datetime import tzinfo
from typing import ClassVar

from attrs import define, evolve, field
from twisted.internet.defer import TimeoutError as TooLate
from twisted.internet.interfaces import IReactorTime
from twisted.logger import Logger

from monrest.base.clock import WallClock
from monrest.base.concurrency import Threads
from monrest.base.errors import RestError, SitesFailed
from monrest.base.values import SiteProblem
from monrest.bp import custom
from monrest.bp.calculation import (
    CalculationOptions,
    ProcessCalculation,
    add_needs,
)
from monrest.bp.core_rows import (
    Answers,
    CoreRows,
    Needs,
    ObjectName,
    ObjectPlace,
    TableVisibility,
    carriers,
    gather,
)
from monrest.bp.function import FUNCTIONS
from monrest.bp.model import ROOT, ProcessDefinition, StoredProcess
from monrest.bp.node_functions import BUILT_IN
from monrest.bp.node_state import DEFAULT_ORDER, PENDING, NodeState, ProcessResult
from monrest.config import BpConfig
from monrest.query.functions import Moment
from monrest.query.model import CoreFilter
from monrest.sites.registry import Sites
from monrest.sites.site import Site


def references(definition: ProcessDefinition, live: CoreRows, moment: Moment) -> set[ObjectName]:
    """All existing objects to which the nodes refer.

    ``live`` has what ``add_needs`` adds with members.
    """
    chosen = [
        node.function.objects.rows(live, moment)
        for node in definition.nodes
        if node.function.objects is not None
    ]
    return {(host, service) for rows in chosen for _, host, service in rows.places()}


NOT_VISIBLE = "not visible"

_HIDDEN = NodeState(status_text=NOT_VISIBLE, short_desc=NOT_VISIBLE)


def visible_nodes(
    definition: ProcessDefinition,
    everything: CoreRows,
    theirs: CoreRows,
    services: Collection[ObjectName],
    now: Moment,
) -> frozenset[str]:
    """Return the ids of the nodes visible to a user who gets ``theirs`` of the rows ``everything``.

    Both have what ``add_needs`` adds with members. ``services`` are the host and description of
    the services of this process that the user sees in the cores.
    """
    seen: set[str] = set()
    exported = {
        node.id
        for node in definition.exported
        if (definition.host_of(node), node.label) in services
    }
    for node in definition.order:
        objects, depends_on = node.function.objects, FUNCTIONS.get(node.function.name, "nothing")
        if node.id in exported or depends_on == "nothing":
            seen.add(node.id)
        elif depends_on == "children":
            if all(child.id in seen for child in definition.children(node)):
                seen.add(node.id)
        elif objects is not None:
            places = objects.rows(everything, now).places()
            if places and places == objects.rows(theirs, now).places():
                seen.add(node.id)
    return frozenset(seen)


def masked(process: StoredProcess, seen: Collection[str], sites: Collection[str]) -> StoredProcess:
    """The process without states of nodes that are not ``seen``, and without other ``sites``."""
    result, definition = process.result, process.definition
    states: Mapping[str, NodeState] = {
        node.id: result.node(node.id) if node.id in seen else _HIDDEN for node in definition.nodes
    }
    peers = result.affected_peers
    result = evolve(
        result,
        nodes=states,
        affected_peers=None if peers is None else tuple(peer for peer in peers if peer in sites),
        bp_backend=result.bp_backend if result.bp_backend in sites else None,
    )
    root = definition.by_id.get(ROOT)
    if root is not None and ROOT not in seen:
        result = evolve(result, status_text=NOT_VISIBLE)
        of_children = FUNCTIONS.get(root.function.name) == "children"
        if of_children and definition.children(root):
            # The state is that of many children, and not of the objects of the root.
            before = process.result.node(ROOT)
            hidden = _HIDDEN._replace(
                status=before.status, last_state_change=before.last_state_change
            )
            result = evolve(result, nodes={**states, ROOT: hidden})
        else:
            result = evolve(result, status=PENDING, last_state_change=0)
    return evolve(process, result=result)


_PATIENCE = 180.0
"""Seconds for which a process waits for a site that it was calculated from before."""
_EXTENSION_SECONDS = 10.0
_MOST_HUNG = 2


class CalculationFailedError(RestError):
    """A calculation went wrong; the description says why."""


@define(eq=False, kw_only=True)
class Runner:
    """Calculates; ``variable`` is the custom variable with the number of a process.

    ``choose`` returns 0 to 3.
    """

    log: ClassVar[Logger] = Logger()

    clock: IReactorTime
    wall: WallClock
    sites: Sites
    threads: Threads
    config: BpConfig
    zone: tzinfo
    variable: str
    choose: Callable[[], int]
    _extensions: custom.Extensions = field(default=custom.EMPTY, init=False)
    _busy: set[int] = field(factory=set, init=False)
    _missing: dict[int, float] = field(factory=dict, init=False)
    _warned: frozenset[str] = field(default=frozenset(), init=False)

    def configure(self, config: BpConfig, variable: str, zone: tzinfo) -> None:
        self.config, self.variable, self.zone = config, variable, zone
        self.forget()

    async def run(
        self,
        processes: Sequence[StoredProcess],
        stored: Mapping[int, StoredProcess],
        *,
        strict: bool = False,
    ) -> tuple[list[tuple[StoredProcess, ProcessResult]], Answers]:
        """Return new results; processes whose site is away, or that fail, keep their old ones."""
        began = self.clock.seconds()
        options = await self._options(processes)
        needs = await self.threads.run(lambda: self._needs(processes))
        async with gather(self.sites.select(), needs, self.clock) as answers:
            away = frozenset(problem.site for problem in answers.problems)
            states = {
                process.id: (process.definition, process.result.nodes)
                for process in stored.values()
            }
            query_seconds = self.clock.seconds() - began
            batch = Batch(
                query_seconds=query_seconds, clock=self.clock, strict=strict, states=states
            )
            extended: list[tuple[StoredProcess, ProcessCalculation]] = []
            plain: list[tuple[StoredProcess, ProcessCalculation]] = []
            for process in processes:
                if self._waits_for_site(process, away):
                    continue
                calculation = ProcessCalculation(
                    number=process.id,
                    definition=process.definition,
                    before=process.result,
                    live=answers.live,
                    options=options,
                    now=self.wall.now(),
                    known=states,
                )
                (extended if self._is_extended(process) else plain).append((process, calculation))

            def work() -> None:
                for process, calculation in plain:
                    batch.calculate(process, calculation)

            await self.threads.run(work)
            for process, calculation in extended:
                await self._calculate_extended(batch, process, calculation)
        return list(batch.done), answers

    def forget(self) -> None:
        self._missing.clear()

    async def _calculate_extended(
        self, batch: Batch, process: StoredProcess, calculation: ProcessCalculation
    ) -> None:
        """Calculate a process with code of the operator: in a thread, and not for ever.

        Nothing can end such code. A call that hangs keeps its thread, so only few may hang.
        """
        if process.nr in self._busy or len(self._busy) >= _MOST_HUNG:
            batch.keep_old(process, "a function that was called before has not returned yet")
            return
        self._busy.add(process.nr)

        def work() -> None:
            try:
                batch.calculate(process, calculation)
            finally:
                self._busy.discard(process.nr)

        try:
            await self.threads.run(work).addTimeout(_EXTENSION_SECONDS, self.clock)
        except TooLate:
            batch.keep_old(process, f"not done within {_EXTENSION_SECONDS:g} s")

    async def objects(self, process: StoredProcess) -> set[ObjectName]:
        moment = Moment(self.wall.now(), self.zone)
        needs = self._needs([process], members=True)
        async with gather(self.sites.select(), needs, self.clock) as answers:
            live = answers.live
            return await self.threads.run(lambda: references(process.definition, live, moment))

    async def carriers(
        self, table: str, sites: Sequence[Site], seen: CoreFilter | None
    ) -> dict[ObjectPlace, str]:
        return await carriers(sites, table, self.variable, seen, self.clock)

    async def visible(
        self, processes: Sequence[StoredProcess], sites: Sequence[Site], rule: TableVisibility
    ) -> tuple[list[StoredProcess], tuple[SiteProblem, ...]]:
        """Return processes without what ``rule`` hides from a user of these ``sites``.

        The second value are the sites that could not answer what the user sees.
        """
        services: dict[str, set[ObjectName]] = {}
        with suppress(SitesFailed):  # then nothing is visible, and all sites are problems below
            carried = await self.carriers("services", sites, rule("services"))
            for (_, host, service), number in carried.items():
                services.setdefault(number, set()).add((host, service))
        needs = await self.threads.run(lambda: self._needs(processes, members=True))
        moment = Moment(self.wall.now(), self.zone)
        ids = frozenset(site.id for site in sites)
        async with (
            gather(self.sites.select(), needs, self.clock) as everything,
            gather(sites, needs, self.clock, rule=rule, share=everything.share) as theirs,
        ):
            rows = everything.live, theirs.live

            def work() -> list[StoredProcess]:
                due = []
                for process in processes:
                    exported = services.get(process.id, ())
                    seen = visible_nodes(process.definition, *rows, exported, moment)
                    due.append(masked(process, seen, ids))
                return due

            return await self.threads.run(work), theirs.problems

    def _needs(self, processes: Iterable[StoredProcess], *, members: bool = False) -> Needs:
        """The objects of these processes; ``members``: of groups all members."""
        needs = Needs()
        for process in processes:
            add_needs(needs, process.definition, self.config.default_filter, members=members)
        return needs

    def _waits_for_site(self, process: StoredProcess, away: frozenset[str]) -> bool:
        """Whether a site that a process was calculated from is away, but not for long."""
        gone = sorted(away.intersection(process.result.affected_peers or ()))
        if not gone:
            self._missing.pop(process.nr, None)
            return False
        now = self.clock.seconds()
        if now - self._missing.setdefault(process.nr, now) >= _PATIENCE:
            return False
        self.log.warn(
            "business process {nr} is not calculated: no answer from {sites}",
            nr=process.nr,
            sites=", ".join(gone),
        )
        return True

    def _is_extended(self, process: StoredProcess) -> bool:
        """Whether code of the operator takes part, which may take any time."""
        filters = {*self.config.default_filter, *process.definition.filters}
        return not filters.issubset(BUILT_IN) or any(
            node.function.name == "custom" for node in process.definition.nodes
        )

    async def _options(self, processes: Sequence[StoredProcess]) -> CalculationOptions:
        config = self.config
        folder, before = config.functions_dir, self._extensions
        if folder or before is not custom.EMPTY:
            self._extensions = await self.threads.run(lambda: custom.load(folder, before))
        self._warn(processes)
        return CalculationOptions(
            variable=self.variable,
            choose=self.choose,
            default_filter=config.default_filter,
            order=config.default_state_order or DEFAULT_ORDER,
            flags=config.sync_downtime_ack_state > 0,
            zone=self.zone,
            extensions=self._extensions,
        )

    def _warn(self, processes: Sequence[StoredProcess]) -> None:
        """Log each error in files of functions, and each missing filter, once."""
        filters = {*BUILT_IN, *self._extensions.filters}
        wrong = set(self._extensions.problems)
        wrong.update(f"no such filter: {name}" for name in {*self.config.default_filter} - filters)
        for process in processes:
            wrong.update(
                f"business process {process.nr}: no such filter: {name}"
                for name in process.definition.filters - filters
            )
        for text in sorted(wrong - self._warned):
            self.log.warn("{text}", text=text)
        self._warned = frozenset(wrong)


@define(eq=False, kw_only=True)
class Batch:
    """Calculations of one run; ``query_seconds``: the duration of the queries before them."""

    log: ClassVar[Logger] = Logger()

    query_seconds: float
    clock: IReactorTime
    strict: bool
    states: dict[str, tuple[ProcessDefinition, Mapping[str, NodeState]]]
    done: list[tuple[StoredProcess, ProcessResult]] = field(factory=list, init=False)

    def calculate(self, process: StoredProcess, calculation: ProcessCalculation) -> None:
        began = self.clock.seconds()
        calculation.elapsed = lambda: round(self.query_seconds + self.clock.seconds() - began, 6)
        try:
            result = calculation.run()
        except Exception as error:
            if self.strict:
                reason = str(error) or type(error).__name__
                raise CalculationFailedError("calculation failed", reason) from error
            # The other processes are calculated nevertheless.
            self.log.failure("business process {nr} cannot be calculated", nr=process.nr)
            return
        self.states[process.id] = (process.definition, result.nodes)
        self.done.append((process, result))

    def keep_old(self, process: StoredProcess, reason: str) -> None:
        """Log that a process keeps its old result because code of the operator takes too long."""
        if self.strict:
            raise CalculationFailedError("calculation failed", reason)
        text = "business process {nr} is not calculated: {reason}"
        self.log.warn(text, nr=process.nr, reason=reason)
