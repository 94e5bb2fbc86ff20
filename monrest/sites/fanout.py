"""Asking many sites at the same time; those that fail are reported beside the others' rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from typing import TypeAlias

from attrs import evolve, frozen
from twisted.internet.defer import Deferred, FirstError, gatherResults
from twisted.internet.interfaces import IReactorTime

from monrest.base.errors import BadRequest, BrokenRowsError, all_sites_failed
from monrest.base.room import Share
from monrest.base.values import Capabilities, Progress, Row, SiteProblem, no_progress
from monrest.livestatus.core_errors import LivestatusError
from monrest.livestatus.inbox import Inbox, StoredRows
from monrest.livestatus.pool import CoreRequest
from monrest.query.model import Pushed
from monrest.sites.asking import prepare
from monrest.sites.normalise import RowTypes
from monrest.sites.site import Site
from monrest.sites.transport import PartialRows

PlanSite: TypeAlias = Callable[[Site, Capabilities], Pushed | None]
"""The plan for one site; None when its core has no such table or column."""

Asks: TypeAlias = dict[tuple[int, str], tuple[Pushed, CoreRequest]]
"""Requests that are ready to be sent, by the identity of the question and the kind of core."""


@frozen
class SiteAnswer:
    """The rows of one site, what it was asked and how many seconds that took.

    ``rows`` are of the common layout, or as the core sent them (``asked.columns``, then one value
    per Stats line) without a layout and for Stats. A large answer is ``stored``.
    """

    site: Site
    rows: list[Row]
    asked: Pushed
    capabilities: Capabilities
    seconds: float
    stored: StoredRows | None = None

    def batches(self) -> Iterator[list[Row]]:
        """All rows, of which only some are in memory at a time. Raises BrokenRowsError."""
        yield self.rows
        if self.stored is not None:
            yield from self.stored.batches()


@frozen
class Gathered:
    """All answers and all problems, both in the order of the sites; ``seconds`` in total.

    A site of another instance that answers in part has both. ``share`` is the room that the rows
    have until it goes.
    """

    answers: tuple[SiteAnswer, ...]
    problems: tuple[SiteProblem, ...]
    seconds: float
    share: Share | None = None


async def fan_out(
    sites: Sequence[Site],
    plan: PlanSite,
    layout: RowTypes | None,
    clock: IReactorTime,
    progress: Progress = no_progress,
    inbox: Inbox | None = None,
    asks: Asks | None = None,
    shared: bool = False,
    share: Share | None = None,
) -> Gathered:
    """Ask all ``sites`` at once, each within its own time-out.

    A site that is down costs nothing. Raise BadRequest when there is no site, SitesFailed
    (SitesTimedOut when every one of them timed out) when no site could answer, and what ``plan``
    raises. Cancelling ends the queries that are still running. ``progress`` is called for each
    site. ``inbox`` takes large answers as they come, which are not among the rows that are
    returned. Without one all rows are returned, once there is room for them; that is in
    ``share``, which a caller that asks again before the rows are gone has to give: it would wait
    for room that they have. ``asks`` are known of the time before, and those of this time are
    added. ``shared``: equal queries of other requests that are under way may answer.
    """
    require_sites(sites)
    own = sites[0].memory.inbox(share) if inbox is None else inbox
    asking = _Asking(plan, layout, clock, own, {} if asks is None else asks, shared, sites)
    began, count = clock.seconds(), 0

    def report() -> None:
        text = f"{count} of {len(sites)} sites have answered"
        progress(100 * count / len(sites), message=text)

    async def outcome(site: Site) -> tuple[SiteAnswer | None, SiteProblem | None]:
        nonlocal count
        answer = problem = None
        try:
            answer = await asking.answer(site)
            if answer is not None and type(answer.rows) is PartialRows:
                problem = site.incomplete()
        except LivestatusError as error:
            problem = site.problem(error)
        count += 1
        report()
        return answer, problem

    report()
    running: list[Deferred[tuple[SiteAnswer | None, SiteProblem | None]]] = []
    try:
        if len(sites) == 1:  # most requests of small installations: waiting for a list costs 40 µs
            outcomes = [await outcome(sites[0])]
        else:
            running = [Deferred.fromCoroutine(outcome(site)) for site in sites]
            outcomes = await gatherResults(running, consumeErrors=True)
        answers = tuple(answer for answer, _ in outcomes if answer is not None)
        problems = tuple(problem for _, problem in outcomes if problem is not None)
        if len(problems) == len(sites) and not answers:
            raise all_sites_failed(problems)  # noqa: TRY301  what was asked for ends for all alike
        gathered = Gathered(answers, problems, clock.seconds() - began)
        if inbox is None:
            gathered = evolve(await _opened(gathered, own), share=own.share)
    except BaseException as error:
        for deferred in running:
            deferred.cancel()
        if inbox is None:
            own.let_go()
        if isinstance(error, FirstError):
            error.subFailure.raiseException()
        raise
    return gathered


async def _opened(gathered: Gathered, inbox: Inbox) -> Gathered:
    """The same with all rows in memory, once there is room for them."""
    if not inbox.size:
        return gathered
    answers = []
    opened = await inbox.opened([(answer.stored, answer.rows) for answer in gathered.answers])
    for answer, rows in zip(gathered.answers, opened, strict=True):
        if isinstance(rows, LivestatusError):
            gathered = without(gathered, BrokenRowsError(answer.site, rows))
        else:
            answers.append(evolve(answer, rows=rows))
    return evolve(gathered, answers=tuple(answers))


def without(gathered: Gathered, broken: BrokenRowsError) -> Gathered:
    """The same without a site whose rows are none, which is a problem of it.

    Raises SitesFailed when no other site has answered.
    """
    answers = tuple(answer for answer in gathered.answers if answer.site is not broken.site)
    problems = (*gathered.problems, broken.site.broken(broken.error))
    if not answers:
        raise all_sites_failed(problems)
    return evolve(gathered, answers=answers, problems=problems)


def require_sites(sites: Sequence[Site]) -> None:
    """Raise BadRequest when there is no site to ask."""
    if not sites:
        raise BadRequest(
            "no backend selected",
            "backends: the configuration has no [[sites]] that this user may see",
        )


@frozen(eq=False)
class _Asking:
    """The common parts of one question to all sites."""

    plan: PlanSite
    layout: RowTypes | None
    clock: IReactorTime
    inbox: Inbox
    asks: Asks
    shared: bool
    sites: Sequence[Site]

    @cached_property
    def among(self) -> str:
        return " ".join(site.id for site in self.sites)

    async def answer(self, site: Site) -> SiteAnswer | None:
        """The answer of one site; None when ``plan`` has nothing to ask it."""
        breaker = site.breaker
        if breaker.error is not None:
            raise breaker.error.anew()
        if not breaker.ready:
            await site.verdict()
        capabilities = site.capabilities
        assert capabilities is not None
        pushed = self.plan(site, capabilities)
        if pushed is None:
            return None
        # Looking up a big value by its hash for each of a hundred sites costs more than asking.
        key = (id(pushed), capabilities.key)
        asked = self.asks.get(key)
        if asked is None:
            asked = self.asks[key] = (pushed, prepare(pushed, capabilities, self.layout))
        ask = asked[1]
        joint = ask.key_at is not None and pushed.limit is not None and not ask.log
        stored = StoredRows(self.inbox, site)
        ask = ask.with_rows_in(stored, self.among if joint else "")
        sent = self.clock.seconds()
        rows = await site.query(ask, shared=self.shared)
        seconds = self.clock.seconds() - sent
        return SiteAnswer(site, rows, pushed, capabilities, seconds, stored)
