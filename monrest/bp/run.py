"""Calculating many processes together: what is asked once for all of them, then one by one.

frontend-data.md, section 2.7.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import tzinfo
from typing import ClassVar

from attrs import define, evolve, field
from twisted.internet.defer import CancelledError
from twisted.internet.interfaces import IReactorTime
from twisted.logger import Logger

from monrest.bp import custom
from monrest.bp.calculate import Calculation, Options, add_needs, uses_extensions
from monrest.bp.filters import BUILT_IN
from monrest.bp.gather import Answers, gather
from monrest.bp.live import Needs
from monrest.bp.references import Key, references
from monrest.bp.results import Result
from monrest.bp.search import Moment
from monrest.bp.statements import Stored
from monrest.bp.states import DEFAULT_ORDER
from monrest.bp.tree import Known
from monrest.concurrency import Threads, sliced
from monrest.config.values import BpConfig
from monrest.errors import RestError
from monrest.sites.registry import Sites

_PATIENCE = 180.0
"""Seconds for which a process waits for a site that it was calculated from before."""
_EXTENSION_SECONDS = 30.0


class FailedError(RestError):
    """A calculation went wrong; the description says why."""


@define(eq=False, kw_only=True)
class Runner:
    """Calculates; ``variable`` is the custom variable with the number of a process.

    ``timer`` measures how long calculations take, in seconds. ``choose`` gives 0 to 3.
    """

    log: ClassVar[Logger] = Logger()

    clock: IReactorTime
    sites: Sites
    threads: Threads
    config: BpConfig
    zone: tzinfo
    variable: str
    timer: Callable[[], float]
    choose: Callable[[], int]
    _extensions: custom.Extensions = field(default=custom.EMPTY, init=False)
    _told: frozenset[str] = field(default=frozenset(), init=False)

    async def run(
        self, processes: Sequence[Stored], known: Mapping[int, Stored], *, strict: bool = False
    ) -> tuple[list[tuple[Stored, Result]], Answers]:
        """Give new results; processes whose site is away, or that fail, keep what they have."""
        began = self.timer()
        options = await self._options(processes)
        needs = Needs()
        for one in processes:
            add_needs(needs, one.definition, options)
        answers = await gather(self.sites.select(), needs, self.clock)
        asked = self.timer() - began
        away = frozenset(problem.site for problem in answers.problems)
        states = {one.id: (one.definition, one.result.nodes) for one in known.values()}
        done: list[tuple[Stored, Result]] = []
        for one in processes:
            if self._waits(one, away):
                continue
            began = self.timer()
            calculation = Calculation(
                number=one.id,
                definition=one.definition,
                before=one.result,
                live=answers.live,
                options=options,
                now=self.clock.seconds(),
                known=Known(states),
            )
            try:
                result = await self._result(calculation)
            except Exception as error:
                if isinstance(error, CancelledError):
                    raise
                self.log.failure("business process {nr} cannot be calculated", nr=one.nr)
                if strict:
                    reason = str(error) or type(error).__name__
                    raise FailedError("calculation failed", reason) from error
                continue
            states[one.id] = (one.definition, result.nodes)
            done.append((one, evolve(result, time=round(asked + self.timer() - began, 6))))
        return done, answers

    async def objects(self, process: Stored) -> set[Key]:
        """Give the hosts and services that a process refers to."""
        needs = Needs()
        add_needs(needs, process.definition, await self._options([process]), members=True)
        answers = await gather(self.sites.select(), needs, self.clock)
        moment = Moment(self.clock.seconds(), self.zone)
        return await sliced(references(process.definition, answers.live, moment), self.clock)

    def _waits(self, process: Stored, away: frozenset[str]) -> bool:
        """Whether a site that a process was calculated from is away, but not for long."""
        gone = sorted(away.intersection(process.result.affected_peers or ()))
        if not gone or self.clock.seconds() - process.result.last_check >= _PATIENCE:
            return False
        self.log.warn(
            "business process {nr} is not calculated: no answer from {sites}",
            nr=process.nr,
            sites=", ".join(gone),
        )
        return True

    async def _result(self, calculation: Calculation) -> Result:
        if not uses_extensions(calculation.definition, calculation.options):
            return await sliced(calculation.steps(), self.clock)
        # Code of others may take any time: not on the reactor, and not for ever.
        work = self.threads.run(lambda: _at_once(calculation))
        return await work.addTimeout(_EXTENSION_SECONDS, self.clock)

    async def _options(self, processes: Iterable[Stored]) -> Options:
        config = self.config
        folder, before = config.functions_dir, self._extensions
        if folder or before is not custom.EMPTY:
            self._extensions = await self.threads.run(lambda: custom.load(folder, before))
        self._tell(processes)
        return Options(
            variable=self.variable,
            choose=self.choose,
            default_filter=config.default_filter,
            order=config.default_state_order or DEFAULT_ORDER,
            flags=config.sync_downtime_ack_state > 0,
            zone=self.zone,
            extensions=self._extensions,
        )

    def _tell(self, processes: Iterable[Stored]) -> None:
        """Log what is wrong with files of functions, and filters that are missing; once each."""
        known = {*BUILT_IN, *self._extensions.filters}
        wrong = set(self._extensions.problems)
        wrong.update(f"no such filter: {one}" for one in {*self.config.default_filter} - known)
        for process in processes:
            used = {*process.definition.filter}
            used.update(*(node.filter for node in process.definition.nodes))
            wrong.update(
                f"business process {process.nr}: no such filter: {o}" for o in used - known
            )
        for text in sorted(wrong - self._told):
            self.log.warn("{text}", text=text)
        self._told = frozenset(wrong)


def _at_once(calculation: Calculation) -> Result:
    steps = calculation.steps()
    while True:
        try:
            next(steps)
        except StopIteration as end:
            result: Result = end.value
            return result
