"""The scheduler of recurring downtimes: every time that comes is told to the cores once.

It is the duty of one daemon of the database. A time that has come becomes a row, and who tells the
cores takes that row before. After a failure, or where somebody else was at it, the cores are asked
first what they have followed already. Rules: docs/spec/downtimes.md, "Once".
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import tzinfo
from typing import Any, ClassVar, Protocol

from attrs import define, field
from twisted.application.service import Service
from twisted.internet.defer import CancelledError, Deferred, DeferredList, DeferredSemaphore
from twisted.internet.interfaces import IReactorTime
from twisted.logger import Logger

from monrest.base.audit import audit
from monrest.base.clock import ClockSteps, WallClock
from monrest.base.concurrency import Periodic, ended
from monrest.base.errors import BadRequest, SitesFailed, Unavailable
from monrest.downtimes import cores
from monrest.downtimes import store as statements
from monrest.downtimes.cores import AUTHOR, Order, orders_of
from monrest.downtimes.model import Downtime
from monrest.downtimes.store import STORED, Occurrence
from monrest.sites.commands import SentToSite, send
from monrest.sites.registry import remembered_sites
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
"""Seconds for which a daemon that stops waits for cores; who comes next asks them what they got."""
_REFUSALS = 5
"""How often a core is told what it refuses."""


class HasSites(Protocol):
    """The configured sites."""

    @property
    def sites(self) -> tuple[Site, ...]:
        """All of them."""


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
    """``existing`` asks the cores for objects; ``zone``, whose clocks count, may be replaced."""

    log: ClassVar[Logger] = Logger()

    database: Database
    clock: IReactorTime
    wall: WallClock
    duties: Duties
    registry: HasSites
    existing: cores.Existing
    zone: tzinfo
    _planned: tuple[Token, tzinfo, int] | None = field(init=False, default=None)
    _steps: ClockSteps = field(init=False)
    _checked: dict[int, int] = field(init=False, factory=dict)
    _working: dict[tuple[int, int], Deferred[None]] = field(init=False, factory=dict)
    _again: dict[tuple[int, int], float] = field(init=False, factory=dict)
    _limit: DeferredSemaphore = field(init=False)
    _periodic: tuple[Periodic, ...] = field(init=False)

    def __attrs_post_init__(self) -> None:
        self._steps = ClockSteps(self.wall, self.clock)
        self._limit = DeferredSemaphore(_AT_ONCE)
        self._periodic = (
            Periodic(self.clock, _LOOK, self.look, "triggering downtimes"),
            Periodic(self.clock, _LOOK, self.check_new, "checking new recurring downtimes"),
            Periodic(self.clock, _CHECK, self.check_all, "checking recurring downtimes", now=False),
        )

    async def look(self) -> None:
        """Find what has come, and begin with all that is not done."""
        token = self.duties.held(DUTY)
        if token is None:
            return
        now = self.wall.now()
        try:
            planned = (token, self.zone, self._steps.look())
            if self._planned != planned:
                known = self._planned
                stepped = known is not None and known[2] != planned[2]
                since = self._steps.since() if stepped else now
                await self.duties.change(token, statements.plan_again(since, self.zone))
                self._planned = planned
            if await self.database.run(statements.is_due(now)):
                late = await self.duties.change(token, statements.plan(now, self.zone))
                self._missed(late)
            for one in await self.database.run(statements.unfinished):
                self._start(one, token)
        except (Unavailable, DutyLostError) as error:
            self.log.info("downtimes are not triggered now: {reason}", reason=str(error))

    def _missed(self, late: Mapping[int, int]) -> None:
        for number, times in late.items():
            self.log.warn(
                "recurring downtime {number}: {times} times were over before they were seen",
                number=number,
                times=times,
            )

    def _start(self, one: Occurrence, token: Token) -> None:
        key = (one.downtime.number, one.at)
        if key in self._working or self.clock.seconds() < self._again.get(key, 0.0):
            return
        work = self._limit.run(lambda: Deferred.fromCoroutine(self._trigger(one, token)))
        self._working[key] = work
        work.addErrback(self._broken, key)
        work.addCallback(self._ended, key)

    def _broken(self, failure: Any, key: tuple[int, int]) -> None:
        if not failure.check(CancelledError):
            self.log.failure("recurring downtime {key} failed", failure, key=key)
            self._again[key] = self.clock.seconds() + _LONGEST_PAUSE

    def _ended(self, _: None, key: tuple[int, int]) -> None:
        del self._working[key]

    async def _trigger(self, one: Occurrence, token: Token) -> None:
        """One try: take the row, tell the cores, write down what they said."""
        key = (one.downtime.number, one.at)
        if not self.running:
            return
        try:
            if not await self.duties.change(token, statements.begin(one, token.number)):
                return
            tried = _Round({site: list(keys) for site, keys in one.accepted.items()})
            if one.until > self.wall.now():
                await self._tell(one, token, tried)
            attempts = one.attempts + 1
            done = not tried.again or one.until <= self.wall.now()
            await self.duties.change(
                token,
                statements.note(
                    one, tried.accepted, _lines(tried.wrong), _lines(tried.problems), done=done
                ),
            )
        except (Unavailable, DutyLostError) as error:
            self.log.warn(
                "recurring downtime {number}: {reason}",
                number=one.downtime.number,
                reason=str(error),
            )
            self._again[key] = self.clock.seconds() + _PAUSE
            return
        if done:
            self._again.pop(key, None)
            self._told(one, tried)
        else:
            self._again[key] = self.clock.seconds() + min(_PAUSE * attempts, _LONGEST_PAUSE)

    def _told(self, one: Occurrence, tried: _Round) -> None:
        commands = sum(map(len, tried.accepted.values()))
        audit(
            AUTHOR,
            None,
            "recurring downtime",
            target=str(one.downtime.number),
            result="; ".join((*tried.wrong, *tried.problems)) or "ok",
            at=one.at,
            commands=commands,
            sites=",".join(sorted(tried.accepted)),
        )

    async def _tell(self, one: Occurrence, token: Token, tried: _Round) -> None:
        downtime = one.downtime
        sites, unknown = remembered_sites(downtime.sites, self.registry.sites)
        found = await cores.find_objects(self.existing, sites, cores.wanted(downtime), self.clock)
        tried.wrong += cores.check(downtime, sites, unknown, found)
        for site in sites:
            if site.id in found.problems:
                tried.problems.append(cores.line(f"{site.name}: {found.problems[site.id].reason}"))
                tried.again = True
        try:
            orders = orders_of(downtime, one.at)
        except BadRequest as error:
            tried.wrong.append(cores.line(str(error)))
            return
        waiting = [
            Deferred.fromCoroutine(self._one_site(site, left, one, token, tried))
            for site in sites
            if site.id not in found.problems
            and (left := _left(orders, site, found, tried.accepted))
        ]
        for good, result in await DeferredList(waiting, consumeErrors=True):
            if not good:
                raise result.value  # type: ignore[attr-defined]  # a Failure

    async def _one_site(
        self, site: Site, orders: Sequence[Order], one: Occurrence, token: Token, tried: _Round
    ) -> None:
        accepted = tried.accepted.setdefault(site.id, [])
        if one.attempts:
            try:
                known = await cores.in_effect(
                    site, orders, one.downtime, one.at, one.until, self.clock
                )
            except SitesFailed as error:
                tried.problems += [
                    cores.line(f"{problem.name}: {problem.reason}") for problem in error.problems
                ]
                tried.again = True
                return
            accepted += sorted(known)
            orders = [order for order in orders if order.key not in known]
        if not orders:
            return
        # The last look before something leaves: a paused daemon may have lost the duty.
        (sent,) = await send(
            [(site, tuple(order.command for order in orders))],
            self.clock,
            self.wall,
            lambda: self.duties.held(DUTY) == token,
        )
        self._note(sent, orders, one, accepted, tried)

    def _note(
        self,
        sent: SentToSite,
        orders: Sequence[Order],
        one: Occurrence,
        accepted: list[str],
        tried: _Round,
    ) -> None:
        for at, order in enumerate(orders):
            if at >= len(sent.lines):
                reason = sent.problem.reason if sent.problem is not None else "was not sent"
                tried.problems.append(cores.line(f"{sent.site.name}: {reason}"))
                tried.again = True
            elif at in sent.refused:
                tried.problems.append(
                    cores.line(f"{sent.site.name}: {order.target.name}: {sent.refused[at]}")
                )
                tried.again = tried.again or one.attempts + 1 < _REFUSALS
            elif at in sent.doubtful:
                tried.problems.append(cores.line(f"{sent.site.name}: {sent.doubtful[at]}"))
                tried.again = True
            else:
                accepted.append(order.key)

    async def check_all(self) -> None:
        """Look whether all that is named is there, and keep what is wrong in ``error``."""
        await self._check_some(lambda _: True)

    async def check_new(self) -> None:
        """Do that for what was written since the last time, so that its author sees it soon."""
        if self.duties.held(DUTY) is None:
            return
        try:
            versions = await self.database.run(statements.versions)
        except Unavailable:
            return
        new = {number for number, _ in versions.items() - self._checked.items()}
        if not new or await self._check_some(lambda one: one.number in new):
            self._checked = versions

    async def _check_some(self, wanted: Callable[[Downtime], bool]) -> bool:
        """Check those that are wanted; False if that could not be done."""
        token = self.duties.held(DUTY)
        if token is None:
            return False
        try:
            downtimes = await self.database.run(STORED.read())
            await self._check([one for one in downtimes if wanted(one)], token)
        except (Unavailable, DutyLostError) as error:
            self.log.info("recurring downtimes are not checked now: {reason}", reason=str(error))
            return False
        return True

    async def _check(self, downtimes: Sequence[Downtime], token: Token) -> None:
        sites = self.registry.sites
        targets = {target for one in downtimes for target in cores.wanted(one)}
        found = await cores.find_objects(self.existing, sites, targets, self.clock)
        for one in downtimes:
            own, unknown = remembered_sites(one.sites, sites)
            lines = cores.check(one, own, unknown, found)
            silent = any(site.id in found.problems for site in own)
            if lines or not silent:
                error = _lines(lines)
                if error != one.error:
                    await self.duties.change(token, statements.report(one, error))

    def configure(self, zone: tzinfo) -> None:
        self.zone = zone

    def startService(self) -> None:
        """Take part; the database and the duties must run."""
        super().startService()
        self.duties.want(DUTY)
        for one in self._periodic:
            one.startService()

    def stopService(self) -> Deferred[None]:
        """Fire when nothing runs any more; what was begun gets some seconds for its end."""
        super().stopService()
        return Deferred.fromCoroutine(self._stop())

    async def _stop(self) -> None:
        for one in self._periodic:
            await one.stopService()
        await ended(self._working.values(), self.clock, _PATIENCE)


def _lines(problems: Sequence[str]) -> str | None:
    return "\n".join(dict.fromkeys(problems)) or None


def _left(
    orders: Sequence[Order],
    site: Site,
    found: cores.FoundObjects,
    accepted: Mapping[str, Sequence[str]],
) -> list[Order]:
    """What a site has not been told yet."""
    known = set(accepted.get(site.id, ()))
    return [
        order for order in orders if site.id in found.on(order.target) and order.key not in known
    ]
