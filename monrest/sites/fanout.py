"""Asking many sites at the same time; those that fail are reported beside the others' rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from typing import Any, TypeAlias

from attrs import define, evolve, field, frozen
from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IReactorTime
from twisted.python.failure import Failure

from monrest.base.errors import BadRequest, BrokenRowsError, all_sites_failed
from monrest.base.room import Share
from monrest.base.values import Capabilities, Progress, Row, SiteProblem, nobody_follows
from monrest.livestatus.core_errors import LivestatusError
from monrest.livestatus.inbox import Inbox, StoredRows
from monrest.livestatus.pool import CoreRequest
from monrest.query.model import Pushed
from monrest.sites.asking import prepare
from monrest.sites.normalise import RowTypes
from monrest.sites.site import Site
from monrest.sites.transport import PartialRows

PlanSite: TypeAlias = Callable[[Site, Capabilities], Pushed | None]
"""What to ask one site; None when its core has nothing to say, such as no such table."""


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
    progress: Progress = nobody_follows,
    inbox: Inbox | None = None,
    asks: dict[tuple[int, str], tuple[Pushed, CoreRequest]] | None = None,
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
    gathering = _Gathering(
        *(sites, plan, layout, clock, progress, own),
        asks={} if asks is None else asks,
        shared=shared,
    )
    if inbox is not None:
        return await gathering.start()
    try:
        gathered = await gathering.start()
        if own.size:
            opened = await own.opened([(answer.stored, answer.rows) for answer in gathered.answers])
            answers = []
            for answer, rows in zip(gathered.answers, opened, strict=True):
                if isinstance(rows, LivestatusError):
                    gathered = without(gathered, BrokenRowsError(answer.site, rows))
                else:
                    answers.append(evolve(answer, rows=rows))
            gathered = evolve(gathered, answers=tuple(answers))
    except BaseException:
        own.let_go()
        raise
    return evolve(gathered, share=own.share)


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


@define(eq=False)
class _Gathering:
    sites: Sequence[Site]
    plan: PlanSite
    layout: RowTypes | None
    clock: IReactorTime
    progress: Progress
    inbox: Inbox
    done: Deferred[Gathered] = field(init=False)
    answers: dict[int, SiteAnswer] = field(init=False, factory=dict)
    problems: dict[int, SiteProblem] = field(init=False, factory=dict)
    open: dict[int, Deferred[Any]] = field(init=False, factory=dict)
    asks: dict[tuple[int, str], tuple[Pushed, CoreRequest]] = field(kw_only=True)
    shared: bool = field(kw_only=True)
    over: int = field(init=False, default=0)
    began: float = field(init=False, default=0.0)
    ended: bool = field(init=False, default=False)

    @cached_property
    def among(self) -> str:
        return " ".join(site.id for site in self.sites)

    def start(self) -> Deferred[Gathered]:
        self.done = Deferred(self._cancel)
        self.began = self.clock.seconds()
        for at, site in enumerate(self.sites):
            if self.ended:
                break
            error = site.breaker.error
            if error is not None:
                self.problems[at] = site.problem(error)
                self.over += 1
            elif site.breaker.ready:
                self._ask(None, at, site)
            else:
                waiting = site.verdict()
                self.open[at] = waiting
                waiting.addCallbacks(
                    self._ask, self._failed, callbackArgs=(at, site), errbackArgs=(at, site)
                )
        self._finish()
        return self.done

    def _ask(self, _: None, at: int, site: Site) -> None:
        self.open.pop(at, None)
        try:
            capabilities = site.capabilities
            assert capabilities is not None
            pushed = self.plan(site, capabilities)
            if pushed is None:
                self._finish(1)
                return
            # Looking up a big value by its hash for each of a hundred sites costs more than asking.
            key = (id(pushed), capabilities.key)
            asked = self.asks.get(key)
            if asked is None:
                asked = self.asks[key] = (pushed, prepare(pushed, capabilities, self.layout))
        except Exception:  # noqa: BLE001  the whole request fails with it
            self._break(Failure())
            return
        ask = asked[1]
        joint = ask.key_at is not None and pushed.limit is not None and not ask.log
        stored = StoredRows(self.inbox, site)
        ask = ask.with_rows_in(stored, self.among if joint else "")
        sent = self.clock.seconds()
        running = site.query(ask, shared=self.shared)
        self.open[at] = running
        running.addCallbacks(
            self._answered,
            self._failed,
            callbackArgs=(at, site, pushed, capabilities, stored, sent),
            errbackArgs=(at, site),
        )

    def _answered(
        self,
        rows: list[Row],
        at: int,
        site: Site,
        pushed: Pushed,
        capabilities: Capabilities,
        stored: StoredRows,
        sent: float,
    ) -> None:
        seconds = self.clock.seconds() - sent
        self.answers[at] = SiteAnswer(site, rows, pushed, capabilities, seconds, stored)
        if type(rows) is PartialRows:
            self.problems[at] = site.incomplete()
        self.open.pop(at, None)
        self._finish(1)

    def _failed(self, failure: Failure, at: int, site: Site) -> None:
        self.open.pop(at, None)
        error = failure.value
        if self.ended:
            return
        if isinstance(error, LivestatusError):
            self.problems[at] = site.problem(error)
            self._finish(1)
        else:
            self._break(failure)

    def _finish(self, over: int = 0) -> None:
        """So many more sites have answered or failed."""
        self.over += over
        count, total = self.over, len(self.sites)
        if self.ended or (count < total and self.progress is nobody_follows):
            return
        if self.progress is not nobody_follows:
            self.progress(100 * count / total, message=f"{count} of {total} sites have answered")
        if count < total:
            return
        self.ended = True
        problems = tuple(map(self.problems.__getitem__, sorted(self.problems)))
        if len(problems) == len(self.sites) and not self.answers:
            self.done.errback(all_sites_failed(problems))
            return
        answers = tuple(map(self.answers.__getitem__, sorted(self.answers)))
        self.done.callback(Gathered(answers, problems, self.clock.seconds() - self.began))

    def _break(self, failure: Failure) -> None:
        """Fail as a whole and cancel what is still running."""
        if not self.ended:
            self._cancel(self.done)
            self.done.errback(failure)

    def _cancel(self, _: Deferred[Gathered]) -> None:
        self.ended = True
        running = list(self.open.values())
        self.open.clear()
        for deferred in running:
            deferred.cancel()
