"""Availability and outages of objects, whole and by parts of the time, as a report.

Rules: docs/spec/reports.md, "Availability of an object".
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from datetime import date, datetime, timedelta, tzinfo
from typing import Any

from attrs import define, evolve, frozen

from monrest.api.visibility import CONFIGURATION
from monrest.availability.account import (
    NODATA,
    NOTRUNNING,
    OUTSIDE,
    Availability,
    Times,
    words_of,
)
from monrest.availability.chosen_objects import Scope, choose
from monrest.availability.outages import Outage, Outages
from monrest.availability.periods import Span
from monrest.availability.report import AccountRecord, AccountReport, answer_of
from monrest.availability.report_arguments import ObjectKinds, ReportArguments, asked
from monrest.base.errors import BadRequest
from monrest.logs.state_events import LogEvent, ObjectKey
from monrest.query.column_names import Visibility
from monrest.reports import picture
from monrest.reports.builder import ReportBuilder
from monrest.reports.sheet import Head, Note, Sheet
from monrest.rows.columns import HOSTS, SERVICES


@frozen(kw_only=True)
class Figures:
    """Seconds; ``percent`` is None where there is neither available nor unavailable time."""

    available: int
    unavailable: int
    downtime: int
    unknown: int

    @property
    def percent(self) -> float | None:
        """Available of all time of which a state is known."""
        total = self.available + self.unavailable
        return 100 * self.available / total if total else None


@frozen(kw_only=True)
class Measured:
    """An object over the whole report and over each part of it; ``name`` as the report says it.

    ``parts`` are percentages as ``Figures.percent``, one for each part.
    """

    key: ObjectKey
    host: str
    service: str
    whole: Figures
    parts: Sequence[float | None]
    outages: Sequence[Outage]

    @property
    def name(self) -> str:
        return f"{self.host} · {self.service}" if self.key[1] else self.host

    @property
    def level(self) -> float:
        """Its percentage where levels are compared: nothing known counts as 100."""
        percent = self.whole.percent
        return 100.0 if percent is None else percent


def figures(key: ObjectKey, times: Times, unavailable: Collection[str]) -> Figures:
    """Sum up the times of an object; time in downtimes is judged by ``<state>_downtime``."""
    good = bad = downtime = 0
    for state, word in enumerate(words_of(key)):
        planned = times.scheduled[state]
        normal = times.seconds[state] - planned
        downtime += planned
        if word in unavailable:
            bad += normal
        else:
            good += normal
        if f"{word}_downtime" in unavailable:
            bad += planned
        else:
            good += planned
    unknown = sum(times.seconds[state] for state in (NODATA, NOTRUNNING, OUTSIDE))
    return Figures(available=good, unavailable=bad, downtime=downtime, unknown=unknown)


def average(values: Iterable[float | None]) -> float | None:
    numbers = [value for value in values if value is not None]
    return sum(numbers) / len(numbers) if numbers else None


# The parts of a time by which a report is broken down: days, weeks, months.

_MOST_PARTS = 400
_MOST_NUMBERS = 1_000_000
"""Parts of all objects together, each of which takes 112 bytes: the days of a month of 32,000."""


@frozen
class TimePart:
    """One part; ``label`` is short enough for a chart."""

    label: str
    start: int
    end: int


def parts_of(span: Span, breakdown: str, zone: tzinfo, first_weekday: int) -> list[TimePart]:
    """The parts of ``span``, of which the first and the last may be cut off; none of an empty one.

    BadRequest when there would be too many of them.
    """
    starts = [span.start]
    day = _first(datetime.fromtimestamp(span.start, zone).date(), breakdown, first_weekday)
    while True:
        day = _next(day, breakdown)
        moment = int(datetime(day.year, day.month, day.day, tzinfo=zone).timestamp())
        if moment >= span.end:
            break
        if moment > span.start:
            starts.append(moment)
        if len(starts) > _MOST_PARTS:
            raise BadRequest(
                "invalid params.breakdown",
                f"params.breakdown: expected at most {_MOST_PARTS} parts, which {breakdown} exceed",
            )
    if not span.seconds:
        return []
    ends = [*starts[1:], span.end]
    return [
        TimePart(_label(start, breakdown, zone), start, end)
        for start, end in zip(starts, ends, strict=True)
    ]


def require_room(objects: int, parts: int, breakdown: str) -> None:
    """Raise BadRequest for more numbers than the memory should hold."""
    if objects * parts > _MOST_NUMBERS:
        raise BadRequest(
            "report is too long",
            f"params.breakdown: expected at most {_MOST_NUMBERS} numbers, got {parts} {breakdown} "
            f"of each of {objects} objects",
        )


def _first(day: date, breakdown: str, first_weekday: int) -> date:
    if breakdown == "months":
        return day.replace(day=1)
    if breakdown == "weeks":
        return day - timedelta(days=(day.isoweekday() - first_weekday) % 7)
    return day


def _next(day: date, breakdown: str) -> date:
    if breakdown == "months":
        return (day + timedelta(days=31)).replace(day=1)
    return day + timedelta(days=7 if breakdown == "weeks" else 1)


def _label(start: int, breakdown: str, zone: tzinfo) -> str:
    day = datetime.fromtimestamp(start, zone)
    if breakdown == "months":
        return day.strftime("%Y-%m")
    if breakdown == "weeks":
        year, week, _ = day.isocalendar()
        return f"{year}-W{week:02}"
    return day.strftime("%m-%d")


_A_PAGE = 12
"""Rows that a page of the parameters ``max_worst_pages`` and ``max_outages_pages`` has."""
_MOST_CHARTS = 50
_MOST_OUTAGES = 5000
_MOST_COLUMNS = 62
"""Parts of the time that have a column each: the days of two months, the weeks of a year."""


def sheet_of_availability(
    builder: ReportBuilder, objects: Sequence[Measured], parts: Sequence[TimePart]
) -> Sheet:
    """The service level of all objects, the worst of them, and their outages."""
    level = builder.settings.details_max_level
    if objects:
        _over_time(builder, objects, parts)
        _worst(builder, objects)
        _overview(builder, objects)
        details = [item for item in objects if level < 0 or item.level < level]
        if details and 1 < len(parts) <= _MOST_COLUMNS:
            _details(builder, details, parts)
        _outages(builder, objects)
    return _sheet(builder, objects, parts)


def sheet_of_outages(
    builder: ReportBuilder, objects: Sequence[Measured], parts: Sequence[TimePart]
) -> Sheet:
    below = [item for item in objects if item.level < builder.settings.sla]
    if below:
        _over_time(builder, below, parts)
        _overview(builder, below)
    if objects:
        _outages(builder, below)
    return _sheet(builder, objects, parts)


def _sheet(builder: ReportBuilder, objects: Sequence[Measured], parts: Sequence[TimePart]) -> Sheet:
    if not objects:
        builder.parts.append(Note(builder.say("No object was found.")))
    sla = builder.settings.sla
    below = sum(item.level < sla for item in objects)
    mean = builder.spelling.percent(average(item.whole.percent for item in objects))
    return builder.sheet(
        _data(builder, objects, parts),
        ("Target", f"{sla:g} %"),
        ("Average", mean),
        ("Below target", f"{below} / {len(objects)}"),
        worst=min((item.level for item in objects), default=100.0),
    )


def _over_time(
    builder: ReportBuilder, objects: Sequence[Measured], parts: Sequence[TimePart]
) -> None:
    how, settings = builder.spelling, builder.settings
    points = []
    for at, part in enumerate(parts):
        value = average(item.parts[at] for item in objects)
        points.append((part.label, value, f"{part.label}: {how.percent(value)}"))
    title = how.say("Availability over time")
    builder.parts.append(picture.columns(title, points, settings.sla, settings.graph_min_sla))


def _worst(builder: ReportBuilder, objects: Sequence[Measured]) -> None:
    how, settings = builder.spelling, builder.settings
    measured = [item for item in objects if item.whole.percent is not None]
    pages = settings.max_worst_pages if settings.max_worst_pages >= 0 else _MOST_CHARTS
    ranked = sorted(measured, key=lambda item: item.level)[: min(pages, _MOST_CHARTS) * _A_PAGE]
    for at in range(0, len(ranked), _A_PAGE):
        rows = [
            (item.name, item.level, how.percent(item.whole.percent))
            for item in ranked[at : at + _A_PAGE]
        ]
        title = how.say("Lowest availability") + (f" ({at // _A_PAGE + 1})" if at else "")
        builder.parts.append(picture.bars(title, rows, settings.sla, settings.graph_min_sla))


def _names(objects: Sequence[Measured]) -> tuple[Head, ...]:
    """The columns that say which object a row is about: of services only where there are some."""
    services = any(item.key[1] for item in objects)
    return (Head("Host", weight=1.2), *((Head("Service", weight=1.4),) * services))


def _overview(builder: ReportBuilder, objects: Sequence[Measured]) -> None:
    level, names = builder.settings.overview_max_level, _names(objects)
    heads = (
        *names,
        Head(f"{builder.say('Availability')} %", "percent"),
        Head("Available", "duration"),
        Head("Unavailable", "duration"),
        Head("In downtime", "duration"),
        Head("Unknown time", "duration"),
        Head("Outages", "number"),
    )
    rows = [
        (
            *(item.host, item.service)[: len(names)],
            item.whole.percent,
            item.whole.available,
            item.whole.unavailable,
            item.whole.downtime,
            item.whole.unknown,
            len(item.outages),
        )
        for item in objects
        if level < 0 or item.level < level
    ]
    builder.table("Overview", heads, rows, low=builder.settings.sla)


def _details(
    builder: ReportBuilder, objects: Sequence[Measured], parts: Sequence[TimePart]
) -> None:
    names = _names(objects)
    heads = (*names, *(Head(part.label, "percent") for part in parts))
    rows = [(*(item.host, item.service)[: len(names)], *item.parts) for item in objects]
    title = f"{builder.say('Details')} (%)"
    builder.table(title, heads, rows, low=builder.settings.sla, lead=len(names))


def _outages(builder: ReportBuilder, objects: Sequence[Measured]) -> None:
    pages, names = builder.settings.max_outages_pages, _names(objects)
    if pages == 0:
        return
    most = _MOST_OUTAGES if pages < 0 else min(pages * _A_PAGE, _MOST_OUTAGES)
    heads = (
        *names,
        Head("State", "state"),
        Head("From", "time"),
        Head("Until", "time"),
        Head("Duration", "duration"),
        Head("Output", weight=2.0),
    )
    rows = [
        (
            *(item.host, item.service)[: len(names)],
            words_of(item.key)[outage.state],
            outage.start,
            outage.end,
            outage.end - outage.start,
            outage.output,
        )
        for item in objects
        for outage in item.outages
    ]
    builder.table("Outages", heads, rows[:most], empty="There were no outages.")
    builder.left_out(len(rows) - most)


def _data(
    builder: ReportBuilder, objects: Sequence[Measured], parts: Sequence[TimePart]
) -> dict[str, Any]:
    """The data of ``attach_json``: numbers and names as they are, not as they look."""

    def names(measured: Measured) -> dict[str, str]:
        return {
            "host": measured.key[0],
            **({"service": measured.key[1]} if measured.key[1] else {}),
        }

    span = builder.span
    return {
        "start": span.start if span else None,
        "end": span.end if span else None,
        "sla": builder.settings.sla,
        "availability": [
            {
                **names(item),
                "percent": item.whole.percent,
                "time_available": item.whole.available,
                "time_unavailable": item.whole.unavailable,
                "time_downtime": item.whole.downtime,
                "time_unknown": item.whole.unknown,
                "breakdown": [
                    {"start": part.start, "end": part.end, "percent": percent}
                    for part, percent in zip(parts, item.parts, strict=True)
                ],
            }
            for item in objects
        ],
        "outages": [
            {
                **names(item),
                "class": words_of(item.key)[outage.state],
                "start": outage.start,
                "end": outage.end,
                "duration": outage.end - outage.start,
                "plugin_output": outage.output,
            }
            for item in objects
            for outage in item.outages
        ],
    }


_KINDS: dict[str, ObjectKinds] = {"Hosts": "hosts", "Services": "services", "Both": "both"}
_OTHER_NAMES = {
    "hostalias": "alias",
    "hostdisplayname": "display_name",
    "servicedisplayname": "display_name",
    "hostcustom": "custom_variables",
    "servicecustom": "custom_variables",
}


async def availability_or_outages(builder: ReportBuilder, *, outages: bool) -> Sheet:
    """Account for the objects that are chosen, as the endpoints of availability do."""
    context, settings, zone = builder.context, builder.settings, builder.spelling.zone
    span = builder.choose_span()
    weekday = context.config.display.first_day_of_week
    parts = parts_of(span, settings.breakdown, zone, weekday)
    wanted = _arguments(builder, span)
    chosen = await choose(builder.cache, context, builder.request, Scope(), wanted)
    builder.missing(chosen.problems.values())
    require_room(sum(map(len, chosen.states.values())), len(parts), settings.breakdown)
    report = _account(settings.unavailable, [part.start for part in parts])
    account = await answer_of(builder.cache, context, builder.request, zone, report, wanted, chosen)
    builder.missing(account.problems)
    hosts, services = await other_names(builder)

    def measured(row: AccountRecord) -> Measured:
        key: ObjectKey = row["key"]
        return Measured(
            key=key,
            host=hosts.get(key[0]) or key[0],
            service=services.get(key) or key[1],
            whole=figures(key, row["whole"], settings.unavailable),
            # The times of the parts are freed, object by object.
            parts=[
                figures(key, Times(*pair), settings.unavailable).percent
                for pair in row.pop("parts")
            ],
            outages=row["outages"][::-1],
        )

    def work() -> Sheet:
        objects = [measured(row) for row in account.records]
        make = sheet_of_outages if outages else sheet_of_availability
        return make(builder, objects, parts)

    return await context.threads.run(work)


def _arguments(builder: ReportBuilder, span: Span) -> ReportArguments:
    settings = builder.settings
    kind = _KINDS[settings.filter_type]
    arguments = asked(
        (
            *settings.rules.items(),
            ("type", kind),
            ("start", str(span.start)),
            ("end", str(span.end)),
            ("rpttimeperiod", settings.period),
        ),
        kind=kind,
        fields=frozenset(),
        now=builder.now,
        zone=builder.spelling.zone,
        first_weekday=builder.context.config.display.first_day_of_week,
    )
    # Numbers of few digits would be offsets from now.
    return evolve(
        arguments, span=span, since=max(0, span.start - (arguments.span.start - arguments.since)),
        objects=builder.trees(),
    )  # fmt: skip


@define(eq=False)
class _Accounts:
    """Availability, whole and by parts, and outages, in one pass."""

    availability: Availability
    outages: Outages

    def take(self, event: LogEvent) -> None:
        self.availability.take(event)
        self.outages.take(event)


def _account(unavailable: Collection[str], bounds: Sequence[int]) -> AccountReport:
    planned = any(column.endswith("_downtime") for column in unavailable)

    def records(accounts: _Accounts, key: ObjectKey, _: Any) -> Iterable[AccountRecord]:
        row: AccountRecord = {
            "host": key[0],
            "key": key,
            "whole": accounts.availability.times(key),
            "parts": accounts.availability.parts(key),
            "outages": accounts.outages.of(key),
        }
        if key[1]:
            row["service"] = key[1]
        return (row,)

    return AccountReport(
        account=lambda keys, rules, _: _Accounts(
            Availability(keys, rules, bounds), Outages(keys, rules, planned)
        ),
        records=records,
        outages=True,
    )


async def other_names(builder: ReportBuilder) -> tuple[dict[str, str], dict[ObjectKey, str]]:
    """The labels of hosts and services, where ``hostnameformat`` or the like names a column."""
    settings, config = builder.settings, builder.context.config
    exposed = tuple(config.display.expose_custom_variables)
    visible = Visibility(exposed, builder.request.identity.may(CONFIGURATION)).visible
    for variable, name in (
        (settings.host_variable, "hostnameformat_cust"),
        (settings.service_variable, "servicenameformat_cust"),
    ):
        if variable and not visible(variable):
            raise BadRequest(
                f"invalid params.{name}",
                f"params.{name}: expected a custom variable that "
                "display.expose_custom_variables has",
            )
    hosts: dict[str, str] = {}
    services: dict[ObjectKey, str] = {}
    column = _OTHER_NAMES.get(settings.host_names)
    if column:
        rows, _ = await builder.rows(HOSTS, f"name,{column}")
        for name, value in rows:
            hosts.setdefault(name, _name(value, settings.host_variable))
    column = _OTHER_NAMES.get(settings.service_names)
    if column and settings.filter_type != "Hosts":
        rows, _ = await builder.rows(SERVICES, f"host_name,description,{column}")
        for host, name, value in rows:
            services.setdefault((host, name), _name(value, settings.service_variable))
    return hosts, services


def _name(value: Any, variable: str) -> str:
    if not variable:
        return str(value or "")
    variables = value if isinstance(value, dict) else {}
    return next(
        (
            str(variable_value)
            for name, variable_value in variables.items()
            if str(name).upper() == variable
        ),
        "",
    )
