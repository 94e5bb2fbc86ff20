"""When a time period of a core holds, for reports that are limited to one.

The log has it where the core writes it there. Elsewhere it follows from the definition, in the
time zone of the server.

Rules: docs/spec/availability.md, "Where the time goes".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date, datetime, timedelta, tzinfo
from typing import Any, TypeAlias

from monrest.availability.account import ALWAYS, Period
from monrest.availability.periods import Span
from monrest.livestatus.core_errors import ProtocolError
from monrest.logs.line import DAY
from monrest.logs.source import LogSource, Wanted
from monrest.logs.state_events import transition
from monrest.objectconfig.timeperiods import Anchor, DateRule, Timeperiod, TimeRanges
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
