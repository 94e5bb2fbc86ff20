"""A report over the logs of all sites that have any of its objects (docs/spec/availability.md).

The log of every site is read once, slice by slice, and nothing is kept of it but the numbers. When
a time period holds is in the log where the core writes it there. Elsewhere it follows from the
definition, in the time zone of the server (docs/spec/availability.md, "Where the time goes").
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from datetime import date, datetime, timedelta, tzinfo
from functools import partial
from heapq import merge
from typing import Any, Protocol, TypeAlias

from attrs import define, field, frozen

from monrest.api.endpoint import Context
from monrest.availability import account as accounts
from monrest.availability import outages
from monrest.availability.account import (
    ALWAYS,
    HOST_WORDS,
    SERVICE_WORDS,
    Availability,
    Period,
    Rules,
)
from monrest.availability.chosen_objects import ChosenObjects, on_sites
from monrest.availability.outages import Outages
from monrest.availability.periods import Span
from monrest.availability.report_arguments import CURRENT, ReportArguments
from monrest.base.errors import BadRequest, all_sites_failed
from monrest.base.values import Progress, RestRequest, SiteProblem
from monrest.livestatus.core_errors import ProtocolError
from monrest.logs.ask import asked_in_time, wants_cache
from monrest.logs.cache import LogCache
from monrest.logs.line import DAY, Texts
from monrest.logs.source import CORES, LogSource, Wanted
from monrest.logs.state_events import LogEvent, ObjectKey, TimedLine, Watched, transition
from monrest.objectconfig.timeperiods import Anchor, DateRule, Timeperiod, TimeRanges
from monrest.query.limit import Limit
from monrest.query.model import Pushed
from monrest.sites.site import Site

Intervals: TypeAlias = list[tuple[int, int]]
"""Unix seconds from and until, in order, not touching each other."""

_EXCEPTIONS = (
    "exceptions_calendar_dates",
    "exceptions_month_date",
    "exceptions_month_day",
    "exceptions_month_week_day",
    "exceptions_week_day",
)
_COLUMNS = ("name", "days", "exclusions", *_EXCEPTIONS)
_MOST_DAYS = 40_000


class PeriodUnreadableError(Exception):
    """The site cannot say when the period holds; the message says why."""


async def period_of(
    source: LogSource, site: Site, name: str, since: int, span: Span, zone: tzinfo
) -> Period:
    """When the period ``name`` of a site holds during ``span``; no name is always.

    The log is read from ``since`` on. Raise PeriodUnreadableError and LivestatusError.
    """
    if not name:
        return ALWAYS
    await site.verdict()
    capabilities = site.capabilities
    assert capabilities is not None
    columns = tuple(column for column in _COLUMNS if capabilities.has("timeperiods", column))
    rows = await site.ask(Pushed(table="timeperiods", columns=columns))
    records = {str(row[0]): dict(zip(columns, row, strict=True)) for row in rows}
    if name not in records:
        raise PeriodUnreadableError("no such time period")
    wanted = Wanted(since=since, until=span.end, transitions=True)
    changes: list[tuple[int, bool]] = []
    async for lines in source.slices(site, wanted):
        transitions = (transition(time, message, name) for time, message in lines)
        changes += [change for change in transitions if change is not None]
    if changes:
        return Period(changes=sorted(changes, key=lambda change: change[0]))
    if "days" not in columns:
        raise PeriodUnreadableError("the core does not tell when the time period holds")
    if span.seconds > _MOST_DAYS * DAY:
        raise PeriodUnreadableError(f"expected at most {_MOST_DAYS} days")
    try:
        intervals = await site.memory.threads.run(lambda: _intervals(name, records, span, zone, {}))
    except (TypeError, ValueError, LookupError, AttributeError, OverflowError, OSError):
        raise ProtocolError("a time period of wrong types") from None
    definition = [(span.start, False)]
    for start, end in intervals:
        definition += [(start, True), (end, False)]
    return Period(changes=definition, logged=False)


def _intervals(
    name: str,
    records: Mapping[str, Mapping[str, Any]],
    span: Span,
    zone: tzinfo,
    resolved: dict[str, Intervals],
) -> Intervals:
    """When a period holds within a span, without the periods that it excludes.

    ``known`` are those that were looked at before.
    """
    if name not in records or name in resolved:
        return resolved.get(name, [])
    resolved[name] = []  # as which it counts for those that it excludes and that exclude it
    period = timeperiod_of(records[name])
    intervals: Intervals = []
    day = datetime.fromtimestamp(span.start, zone).date()
    last = datetime.fromtimestamp(span.end, zone).date()
    while day <= last:
        for start, end in sorted(period.ranges_on(day)):
            low, high = _moment(day, start, zone), _moment(day, end, zone)
            low, high = max(low, span.start), min(high, span.end)
            if high > low:
                if intervals and low <= intervals[-1][1]:
                    intervals[-1] = (intervals[-1][0], max(high, intervals[-1][1]))
                else:
                    intervals.append((low, high))
        day += timedelta(days=1)
    for other in period.exclude:
        intervals = _without(intervals, _intervals(other, records, span, zone, resolved))
    resolved[name] = intervals
    return intervals


def _moment(day: date, seconds: int, zone: tzinfo) -> int:
    """A time on the clock of a day, 24:00 included."""
    midnight = datetime(day.year, day.month, day.day, tzinfo=zone)
    return int((midnight + timedelta(seconds=seconds)).timestamp())


def _without(intervals: Intervals, away: Intervals) -> Intervals:
    left: Intervals = []
    first = 0
    for low, high in intervals:
        while first < len(away) and away[first][1] <= low:
            first += 1
        at = first
        while at < len(away) and away[at][0] < high:
            if away[at][0] > low:
                left.append((low, away[at][0]))
            low = max(low, away[at][1])
            at += 1
        if low < high:
            left.append((low, high))
    return left


def timeperiod_of(record: Mapping[str, Any]) -> Timeperiod:
    """The definition that a row of the timeperiods table holds."""
    rules: list[DateRule] = []
    for kind, column in enumerate(_EXCEPTIONS, start=1):
        for rule in record.get(column) or ():
            end = None if kind == 1 and not rule["emday"] else _anchor("e", kind, rule)
            skip = max(int(rule.get("skip_interval") or 0), 1)
            times = _ranges(rule["times"])
            rules.append(DateRule("", kind, _anchor("s", kind, rule), end, skip, times))
    return Timeperiod(
        name=str(record["name"]),
        alias="",
        days=tuple(_ranges(day) for day in record["days"]),
        rules=tuple(rules),
        exclude=tuple(map(str, record.get("exclusions") or ())),
    )


def _ranges(numbers: Sequence[Any]) -> TimeRanges:
    """Flat or paired seconds of the day."""
    flat: list[int] = []
    for number in numbers:
        flat += map(int, number) if isinstance(number, list) else (int(number),)
    return tuple(zip(flat[::2], flat[1::2], strict=True))


def _anchor(side: str, kind: int, rule: Mapping[str, Any]) -> Anchor:
    month = int(rule[f"{side}mon"]) + 1 if kind in (1, 2, 4) else 0
    if kind > 3:  # counted weekdays
        return Anchor(0, month, int(rule[f"{side}wday_offset"]), int(rule[f"{side}wday"]))
    year = int(rule[f"{side}year"]) if kind == 1 else 0
    return Anchor(year, month, int(rule[f"{side}mday"]))


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
