"""The scheduler of recurring downtimes: the cores get each occurrence once.

It is the duty of one daemon of the database. A time that has come becomes a row, which the daemon
takes before it sends anything. After a failure, or where another daemon had the row, the cores are
asked first what they have followed already. Rules: docs/spec/downtimes.md, "Once".
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import tzinfo
from functools import partial
from typing import ClassVar

from attrs import define, field
from twisted.application.service import Service
from twisted.internet.defer import Deferred, DeferredSemaphore
from twisted.internet.interfaces import IReactorTime
from twisted.logger import Logger

from monrest.api.recurring import Scheduler
from monrest.base.audit import audit
from monrest.base.clock import WallClock
from monrest.base.concurrency import Periodic, together
from monrest.base.errors import BadRequest, SitesFailed, Unavailable
from monrest.downtimes import cores
from monrest.downtimes import store as statements
from monrest.downtimes.cores import AUTHOR, Order, orders_of
from monrest.downtimes.model import Downtime, Occurrence
from monrest.downtimes.store import STORED
from monrest.sites.commands import send
from monrest.sites.registry import Sites, remembered_sites
from monrest.sites.site import Site
from monrest.store.database import Database
from monrest.store.duties import Duties, DutyLostError, Token

DUTY = "recurring downtimes"
_LOOK = 5.0
_CHECK = 600.0
_AT_ONCE = 20
_PAUSE = 10.0
_LONGEST_PAUSE = 60.0
_PATIENCE = 4.0
"""Seconds for which a daemon that stops waits for cores; the next one asks them what they got."""
_REFUSALS = 5
"""The number of tries of a command that a core refuses."""


@define(eq=False)
class _Round:
    """One try at an occurrence: what each site has accepted, and what went wrong.

    ``wrong`` is what a check finds as well; ``again``: another try may help.
    """

    accepted: dict[str, list[str]]
    wrong: list[str] = field(factory=list)
    problems: list[str] = field(factory=list)
    again: bool = False


@define(eq=False, kw_only=True)
class RecurringDowntimes(Service):
    """``zone`` is that of the schedules."""

    log: ClassVar[Logger] = Logger()

    database: Database
    clock: IReactorTime
    wall: WallClock
    duties: Duties
    registry: Sites
    zone: tzinfo
    _checked: dict[int, int] = field(init=False, factory=dict)
    _check_all_at: float = field(init=False, default=0.0)
    _scheduler: Scheduler[Downtime] = field(init=False)
    _limit: DeferredSemaphore = field(init=False)
    _periodic: tuple[Periodic, ...] = field(init=False)

    def __attrs_post_init__(self) -> None:
        self._scheduler = Scheduler(
            log=self.log,
            word="recurring downtime",
            duty=DUTY,
            records=STORED,
            database=self.database,
            clock=self.clock,
            wall=self.wall,
            duties=self.duties,
        )
        self._limit = DeferredSemaphore(_AT_ONCE)
        self._periodic = (
            Periodic(self.clock, _LOOK, self.look, "triggering downtimes"),
            Periodic(self.clock, _LOOK, self.check, "checking recurring downtimes"),
        )

    async def look(self) -> None:
        """Find what has come, and begin with all that is not done."""
        if (token := self.duties.held(DUTY)) is None:
            return
        try:
            late = await self._scheduler.plan(token, self.zone)
            for number, times in late.items():
                self.log.warn(
                    "recurring downtime {number}: {times} times were over before they were seen",
                    number=number,
                    times=times,
                )
            for occurrence in await self.database.run(statements.unfinished):
                key = (occurrence.downtime.number, occurrence.at)
                if self._scheduler.may_start(key):
                    begin = partial(self._begin, occurrence, token)
                    self._scheduler.start(key, occurrence.downtime.number, begin)
        except (Unavailable, DutyLostError) as error:
            self.log.info("downtimes are not triggered now: {reason}", reason=str(error))

    def _begin(self, occurrence: Occurrence, token: Token) -> Deferred[float | None]:
        return self._limit.run(lambda: Deferred.fromCoroutine(self._trigger(occurrence, token)))

    async def _trigger(self, occurrence: Occurrence, token: Token) -> float | None:
        """One try: take the row, send the commands, store what the cores answered.

        Returns the seconds until the next try, None where there is none.
        """
        if not self.running:
            return None
        if not await self.duties.change(token, statements.begin(occurrence, token.number)):
            return None
        tried = _Round({site: list(keys) for site, keys in occurrence.accepted.items()})
        if occurrence.until > self.wall.now():
            await self._send(occurrence, token, tried)
        attempts = occurrence.attempts + 1
        done = not tried.again or occurrence.until <= self.wall.now()
        await self.duties.change(
            token,
            statements.note(
                occurrence, tried.accepted, _lines(tried.wrong), _lines(tried.problems), done=done
            ),
        )
        if not done:
            return min(_PAUSE * attempts, _LONGEST_PAUSE)
        audit(
            AUTHOR,
            None,
            "recurring downtime",
            target=str(occurrence.downtime.number),
            result="; ".join((*tried.wrong, *tried.problems)) or "ok",
            at=occurrence.at,
            commands=sum(map(len, tried.accepted.values())),
            sites=",".join(sorted(tried.accepted)),
        )
        return None

    async def _send(self, occurrence: Occurrence, token: Token, tried: _Round) -> None:
        downtime = occurrence.downtime
        sites, unknown = remembered_sites(downtime.sites, self.registry.sites)
        objects = await cores.find_objects(sites, cores.wanted(downtime), self.clock)
        tried.wrong += cores.check(downtime, sites, unknown, objects)
        for site in sites:
            if site.id in objects.problems:
                tried.problems.append(
                    cores.line(f"{site.name}: {objects.problems[site.id].reason}")
                )
                tried.again = True
        try:
            orders = orders_of(downtime, occurrence.at)
        except BadRequest as error:
            tried.wrong.append(cores.line(str(error)))
            return
        waiting = []
        for site in sites:
            accepted = tried.accepted.get(site.id, ())
            left = [
                order
                for order in orders
                if site.id in objects.on(order.target) and order.key not in accepted
            ]
            if left and site.id not in objects.problems:
                waiting.append(self._send_to_site(site, left, occurrence, token, tried))
        await together(waiting)

    async def _send_to_site(
        self,
        site: Site,
        orders: Sequence[Order],
        occurrence: Occurrence,
        token: Token,
        tried: _Round,
    ) -> None:
        accepted = tried.accepted.setdefault(site.id, [])
        if occurrence.attempts:
            try:
                effects = await cores.in_effect(
                    site, orders, occurrence.downtime, occurrence.at, occurrence.until, self.clock
                )
            except SitesFailed as error:
                tried.problems += [
                    cores.line(f"{problem.name}: {problem.reason}") for problem in error.problems
                ]
                tried.again = True
                return
            accepted += sorted(effects)
            orders = [order for order in orders if order.key not in effects]
        if not orders:
            return
        # The last look before something leaves: a paused daemon may have lost the duty.
        (sent,) = await send(
            [(site, tuple(order.command for order in orders))],
            self.clock,
            self.wall,
            lambda: self.duties.held(DUTY) == token,
        )
        for at, order in enumerate(orders):
            if at >= len(sent.lines):
                reason = sent.problem.reason if sent.problem is not None else "was not sent"
                tried.problems.append(cores.line(f"{site.name}: {reason}"))
                tried.again = True
            elif at in sent.refused:
                tried.problems.append(
                    cores.line(f"{site.name}: {order.target.name}: {sent.refused[at]}")
                )
                tried.again = tried.again or occurrence.attempts + 1 < _REFUSALS
            elif at in sent.doubtful:
                tried.problems.append(cores.line(f"{site.name}: {sent.doubtful[at]}"))
                tried.again = True
            else:
                accepted.append(order.key)

    async def check(self) -> None:
        """Look for the objects of all from time to time, and of what was written since then soon.

        What is wrong is stored in ``error``.
        """
        token = self.duties.held(DUTY)
        if token is None:
            return
        if self.clock.seconds() >= self._check_all_at:
            self._checked, self._check_all_at = {}, self.clock.seconds() + _CHECK
        try:
            versions = await self.database.run(statements.versions)
            new = {number for number, _ in versions.items() - self._checked.items()}
            downtimes = await self.database.run(statements.several()) if new else []
            downtimes = [downtime for downtime in downtimes if downtime.number in new]
            sites = self.registry.sites
            targets = {target for downtime in downtimes for target in cores.wanted(downtime)}
            objects = await cores.find_objects(sites, targets, self.clock)
            for downtime in downtimes:
                own, unknown = remembered_sites(downtime.sites, sites)
                lines = cores.check(downtime, own, unknown, objects)
                silent = any(site.id in objects.problems for site in own)
                error = _lines(lines)
                if (lines or not silent) and error != downtime.error:
                    await self.duties.change(token, statements.report(downtime, error))
        except (Unavailable, DutyLostError) as error:
            self.log.info("recurring downtimes are not checked now: {reason}", reason=str(error))
        else:
            self._checked = versions

    def configure(self, zone: tzinfo) -> None:
        self.zone = zone

    def startService(self) -> None:
        """Take part; the database and the duties must run."""
        super().startService()
        self.duties.want(DUTY)
        for task in self._periodic:
            task.startService()

    def stopService(self) -> Deferred[None]:
        """Fire when nothing runs any more; commands on their way get some seconds."""
        super().stopService()
        return Deferred.fromCoroutine(self._stop())

    async def _stop(self) -> None:
        for task in self._periodic:
            await task.stopService()
        await self._scheduler.stop(_PATIENCE)


def _lines(problems: Sequence[str]) -> str | None:
    return "\n".join(dict.fromkeys(problems)) or None
