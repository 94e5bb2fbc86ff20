"""A report over the logs of all sites that have any of its objects (docs/spec/availability.md).

The log of every site is read once, slice by slice, and nothing is kept of it but the numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from datetime import datetime, tzinfo
from functools import partial
from heapq import merge
from typing import Any, Protocol, TypeAlias

from attrs import define, field, frozen

from monrest.api.endpoint import Context
from monrest.availability import account as accounts
from monrest.availability import outages
from monrest.availability.account import HOST_WORDS, SERVICE_WORDS, Availability, Rules
from monrest.availability.chosen_objects import ChosenObjects, on_sites
from monrest.availability.outages import Outages
from monrest.availability.period import PeriodUnreadableError, period_of
from monrest.availability.report_arguments import CURRENT, ReportArguments
from monrest.base.errors import BadRequest, all_sites_failed
from monrest.base.values import Progress, RestRequest, SiteProblem
from monrest.logs.ask import asked_in_time, wants_cache
from monrest.logs.cache import LogCache
from monrest.logs.line import Texts
from monrest.logs.source import CORES, LogSource, Wanted
from monrest.logs.state_events import LogEvent, ObjectKey, TimedLine, Watched
from monrest.query.limit import Limit
from monrest.sites.site import Site

_OF_LINE, _OF_OBJECT = 10, 100
"""Values of rows that take as long as a line of the log, and as a step for one object."""

AccountRecord: TypeAlias = dict[str, Any]


class Account(Protocol):
    """Follows a log, an event after the other."""

    def take(self, event: LogEvent) -> None:
        """Count one event; times do not go back."""


@frozen(kw_only=True)
class AccountReport:
    """How a kind of report is made: its account of a log, and the records of an object.

    ``outages``: it has outages, whose texts are those of their latest lines.
    """

    account: Callable[[Sequence[ObjectKey], Rules, ReportArguments], Account]
    records: Callable[[Any, ObjectKey, Rules], Iterable[AccountRecord]]
    outages: bool = False


def _availability(account: Availability, key: ObjectKey, rules: Rules) -> Iterable[AccountRecord]:
    row: AccountRecord = {"host": key[0], **accounts.row(key, account.times(key), rules.span)}
    if key[1]:
        row["service"] = key[1]
    return (row,)


AVAILABILITY = AccountReport(
    account=lambda keys, rules, _: Availability(keys, rules), records=_availability
)
OUTAGE = AccountReport(
    account=lambda keys, rules, asked: Outages(keys, rules, asked.with_downtimes),
    records=lambda account, key, _: [outages.row(key, outage) for outage in account.of(key)],
    outages=True,
)


def _initial(asked: ReportArguments, states: Mapping[ObjectKey, int]) -> dict[ObjectKey, int]:
    """The states to assume; of a present state that no host can have nothing is known."""
    initial = {}
    for key, present in states.items():
        assumed = asked.assumed_service if key[1] else asked.assumed_host
        state = present if assumed == CURRENT else assumed
        if state is not None and 0 <= state < len(SERVICE_WORDS if key[1] else HOST_WORDS):
            initial[key] = int(state)
    return initial


async def _of_site(
    context: Context,
    source: LogSource,
    reading: LogProgress,
    report: AccountReport,
    asked: ReportArguments,
    site: Site,
    states: Mapping[ObjectKey, int],
) -> list[AccountRecord]:
    """All records of one site; raise LivestatusError and PeriodUnreadableError."""
    span = asked.span
    period = await period_of(source, site, asked.period, asked.since, span, reading.zone)

    def begun(_: Limit) -> tuple[Rules, list[ObjectKey], Watched, Account]:
        rules = Rules(
            span=span,
            soft=asked.soft,
            not_running=asked.not_running,
            period=period,
            initial=_initial(asked, states),
        )
        # Hosts first, then services, each in the order of their names.
        keys = sorted(states, key=lambda key: (bool(key[1]), key))
        watched = Watched(keys=frozenset(keys), program=asked.not_running)
        return rules, keys, watched, report.account(keys, rules, asked)

    rules, keys, watched, account = await context.compute(begun, len(states) * _OF_OBJECT)

    def take(lines: Sequence[TimedLine], _: Limit) -> None:
        for time, message in lines:
            event = watched.event(time, message)
            if event is not None:
                account.take(event)

    texts: Texts = "none"
    if report.outages:
        # An outage has the text of its latest line. It ends where a time period does, too.
        texts = "all" if asked.period else "latest"
    wanted = Wanted(
        since=asked.since,
        until=span.end,
        hosts=any(not service for _, service in keys),
        services=any(service for _, service in keys),
        names=frozenset(watched.hosts),
        program=asked.not_running,
        texts=texts,
    )
    if span.seconds:
        async for lines in source.slices(site, wanted):
            await context.compute(partial(take, lines), len(lines) * _OF_LINE)
            reading.reached(site, lines[-1][0])
    reading.done(site)

    def records(_: Limit) -> list[AccountRecord]:
        return [record for key in keys for record in report.records(account, key, rules)]

    return await context.compute(records, len(keys) * _OF_OBJECT)


@frozen
class AccountAnswer:
    """The records of all sites in the order of the answer, and the sites without any."""

    records: list[AccountRecord]
    problems: tuple[SiteProblem, ...]
    seconds: float


def _place(record: AccountRecord) -> tuple[bool, str, str]:
    return "service" in record, record["host"], record.get("service", "")


async def answer_of(
    cache: LogCache,
    context: Context,
    request: RestRequest,
    zone: tzinfo,
    report: AccountReport,
    asked: ReportArguments,
    chosen: ChosenObjects,
) -> AccountAnswer:
    """Ask all sites at once; raise SitesFailed when none of those with objects answered."""
    began = context.clock.seconds()
    states = on_sites(context, chosen)
    sites = [site for site, _ in states]
    source = cache.source() if wants_cache(request) else CORES
    reading = LogProgress(
        progress=request.progress,
        sites=sites,
        since=asked.since,
        until=asked.span.end,
        zone=zone,
    )
    of = {site.id: mine for site, mine in states}

    async def ask(site: Site) -> list[AccountRecord] | PeriodUnreadableError:
        try:
            return await _of_site(context, source, reading, report, asked, site, of[site.id])
        except PeriodUnreadableError as error:
            return error

    parts: list[list[AccountRecord]] = []
    problems = dict(chosen.problems)
    unknown: list[str] = []
    for site, outcome in await asked_in_time(context, request, sites, ask):
        if isinstance(outcome, PeriodUnreadableError):
            unknown.append(str(outcome))
            problems[site.id] = SiteProblem(site.id, site.name, str(outcome))
        elif isinstance(outcome, SiteProblem):
            problems[site.id] = outcome
        else:
            parts.append(outcome)
    failed = tuple(problems.values())
    if sites and not parts:
        if len(unknown) == len(sites):
            reasons = ", ".join(dict.fromkeys(unknown))
            raise BadRequest("error during request", f"rpttimeperiod: {reasons}: {asked.period}")
        raise all_sites_failed(failed)
    count = sum(map(len, parts))
    # Hosts of all sites, then services; of equal objects those of the first site first.
    records = await context.compute(lambda _: list(merge(*parts, key=_place)), count * _OF_LINE)
    return AccountAnswer(records, failed, context.clock.seconds() - began)


@define(eq=False, kw_only=True)
class LogProgress:
    """The logs of ``sites`` are read from ``since`` to ``until``, which is what takes its time."""

    progress: Progress
    sites: Collection[Site]
    since: int
    until: int
    zone: tzinfo
    _shares: dict[str, float] = field(init=False, factory=dict)

    def reached(self, site: Site, time: int) -> None:
        whole = self.until - self.since
        share = (time - self.since) / whole if whole > 0 else 1.0
        self._shares[site.id] = min(max(share, 0.0), 1.0)
        percent = 100 * sum(self._shares.values()) / len(self.sites)
        day = datetime.fromtimestamp(min(time, self.until), self.zone).date()
        self.progress(percent, message=f"reading the log of {site.id}: {day}")

    def done(self, site: Site) -> None:
        self.reached(site, self.until)
