"""From what was found in logs and cores to the sheet of a report. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from datetime import date, datetime, timedelta, tzinfo
from typing import Any

from attrs import frozen

from monrest.availability.account import (
    HOST_WORDS,
    NODATA,
    NOTRUNNING,
    OUTSIDE,
    SERVICE_WORDS,
    Times,
    words_of,
)
from monrest.availability.outages import Outage
from monrest.availability.periods import Span
from monrest.base.errors import BadRequest
from monrest.logs.state_events import ObjectKey
from monrest.reports import picture
from monrest.reports.model import Report
from monrest.reports.settings import ReportSettings
from monrest.reports.sheet import Grid, Head, Note, Sheet, SheetPart, Spelling

# How available an object was, by what counts as unavailable.
#
# Rules: docs/spec/reports.md, "Availability of an object".


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
        known = self.available + self.unavailable
        return 100 * self.available / known if known else None


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
        """Host and service."""
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
    """The mean of the percentages that are known."""
    known = [one for one in values if one is not None]
    return sum(known) / len(known) if known else None


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
_EVENTS_A_PAGE, _EVENT_PAGES = 22, 100
MOST_EVENTS = _EVENTS_A_PAGE * _EVENT_PAGES
_MOST_OUTAGES = 5000
_MOST_COLUMNS = 62
"""Parts of the time that have a column each: the days of two months, the weeks of a year."""


@frozen(kw_only=True)
class Frame:
    """What stands on every report; ``failed`` are sites that did not answer, with reasons."""

    report: Report
    settings: ReportSettings
    spelling: Spelling
    now: float
    span: Span | None = None
    sites: Sequence[str] = ()
    failed: Sequence[str] = ()

    def facts(self, *more: tuple[str, str]) -> tuple[tuple[str, str], ...]:
        """The lines at the top, with those of this kind of report in the middle."""
        how, say = self.spelling, self.spelling.say
        found = []
        text = str(self.report.record["desc"]).strip()
        if text and text != "Description":
            found.append((say("Description"), text))
        if self.span is not None:
            times = f"{how.time(self.span.start)} - {how.time(self.span.end)}"
            found.append((say("Period"), times))
        if self.settings.period:
            found.append((say("Time period"), self.settings.period))
        found += [(say(label), value) for label, value in more]
        if self.sites:
            found.append((say("Sites"), ", ".join(self.sites)))
        found.append((say("Created"), how.time(self.now)))
        return tuple(found)

    def warnings(self) -> list[SheetPart]:
        """What must not be overlooked."""
        if not self.failed:
            return []
        text = f"{self.spelling.say('Sites that did not answer')}: {'; '.join(self.failed)}"
        return [Note(text, bad=True)]


def _names(say: Any, *, services: bool) -> tuple[Head, ...]:
    return (Head(say("Host"), weight=1.2), *((Head(say("Service"), weight=1.4),) * services))


def _named(one: Measured, *, services: bool) -> tuple[str, ...]:
    return (one.host, one.service) if services else (one.host,)


def availability(frame: Frame, found: Sequence[Measured], parts: Sequence[TimePart]) -> Sheet:
    """The service level of all objects, the worst of them, and their outages."""
    settings, say = frame.settings, frame.spelling.say
    whole: list[SheetPart] = frame.warnings()
    if found:
        whole.append(_over_time(frame, found, parts))
        whole += _worst(frame, found)
        whole.append(_overview(frame, found))
        details = [
            one
            for one in found
            if settings.details_max_level < 0 or one.level < settings.details_max_level
        ]
        if details and 1 < len(parts) <= _MOST_COLUMNS:
            whole.append(_details(frame, details, parts))
        whole += _outages(frame, found)
    else:
        whole.append(Note(say("No object was found.")))
    return _sheet(frame, "availability", found, parts, whole)


def outages(frame: Frame, found: Sequence[Measured], parts: Sequence[TimePart]) -> Sheet:
    """The outages of those objects that are below the target."""
    below = [one for one in found if one.level < frame.settings.sla]
    whole: list[SheetPart] = frame.warnings()
    if not found:
        whole.append(Note(frame.spelling.say("No object was found.")))
    else:
        if below:
            whole.append(_over_time(frame, below, parts))
            whole.append(_overview(frame, below))
        whole += _outages(frame, below)
    return _sheet(frame, "outages", found, parts, whole)


def _sheet(
    frame: Frame,
    kind: str,
    found: Sequence[Measured],
    parts: Sequence[TimePart],
    whole: Iterable[SheetPart],
) -> Sheet:
    how, sla = frame.spelling, frame.settings.sla
    below = sum(one.level < sla for one in found)
    return Sheet(
        title=frame.report.name,
        kind=kind,
        facts=frame.facts(
            ("Target", f"{sla:g} %"),
            ("Average", how.percent(average(one.whole.percent for one in found))),
            ("Below target", f"{below} / {len(found)}"),
        ),
        parts=tuple(whole),
        spelling=how,
        worst=min((one.level for one in found), default=100.0),
        data=_data(frame, found, parts),
    )


def _over_time(
    frame: Frame, found: Sequence[Measured], parts: Sequence[TimePart]
) -> picture.Picture:
    how = frame.spelling
    points = []
    for at, part in enumerate(parts):
        value = average(one.parts[at] for one in found)
        points.append((part.label, value, f"{part.label}: {how.percent(value)}"))
    settings = frame.settings
    return picture.columns(
        how.say("Availability over time"), points, settings.sla, settings.graph_min_sla
    )


def _worst(frame: Frame, found: Sequence[Measured]) -> list[SheetPart]:
    how, settings = frame.spelling, frame.settings
    pages = settings.max_worst_pages
    ranked = sorted(
        (one for one in found if one.whole.percent is not None), key=lambda one: one.level
    )
    if pages >= 0:
        ranked = ranked[: pages * _A_PAGE]
    drawn: list[SheetPart] = []
    for at in range(0, min(len(ranked), 50 * _A_PAGE), _A_PAGE):
        rows = [
            (one.name, one.level, how.percent(one.whole.percent))
            for one in ranked[at : at + _A_PAGE]
        ]
        title = how.say("Lowest availability")
        title = f"{title} ({at // _A_PAGE + 1})" if at else title
        drawn.append(picture.bars(title, rows, settings.sla, settings.graph_min_sla))
    return drawn


def _overview(frame: Frame, found: Sequence[Measured]) -> Grid:
    settings, say = frame.settings, frame.spelling.say
    level = settings.overview_max_level
    shown = [one for one in found if level < 0 or one.level < level]
    services = any(one.key[1] for one in found)
    return Grid(
        title=say("Overview"),
        heads=(
            *_names(say, services=services),
            Head(f"{say('Availability')} %", "percent"),
            Head(say("Available"), "duration"),
            Head(say("Unavailable"), "duration"),
            Head(say("In downtime"), "duration"),
            Head(say("Unknown time"), "duration"),
            Head(say("Outages"), "number"),
        ),
        rows=[
            (
                *_named(one, services=services),
                one.whole.percent,
                one.whole.available,
                one.whole.unavailable,
                one.whole.downtime,
                one.whole.unknown,
                len(one.outages),
            )
            for one in shown
        ],
        low=settings.sla,
        empty=say("There is nothing to show."),
    )


def _details(frame: Frame, found: Sequence[Measured], parts: Sequence[TimePart]) -> Grid:
    say = frame.spelling.say
    services = any(one.key[1] for one in found)
    return Grid(
        title=f"{say('Details')} (%)",
        heads=(
            *_names(say, services=services),
            *(Head(part.label, "percent") for part in parts),
        ),
        rows=[(*_named(one, services=services), *one.parts) for one in found],
        low=frame.settings.sla,
        empty=say("There is nothing to show."),
        lead=1 + services,
    )


def _outages(frame: Frame, found: Sequence[Measured]) -> list[SheetPart]:
    settings, say = frame.settings, frame.spelling.say
    pages = settings.max_outages_pages
    if pages == 0:
        return []
    most = _MOST_OUTAGES if pages < 0 else min(pages * _A_PAGE, _MOST_OUTAGES)
    services = any(one.key[1] for one in found)
    rows: list[tuple[Any, ...]] = []
    for one in found:
        words = SERVICE_WORDS if one.key[1] else HOST_WORDS
        rows += [
            (
                *_named(one, services=services),
                words[outage.state],
                outage.start,
                outage.end,
                outage.end - outage.start,
                outage.output,
            )
            for outage in one.outages
        ]
    grid = Grid(
        title=say("Outages"),
        heads=(
            *_names(say, services=services),
            Head(say("State"), "state"),
            Head(say("From"), "time"),
            Head(say("Until"), "time"),
            Head(say("Duration"), "duration"),
            Head(say("Output"), weight=2.0),
        ),
        rows=rows[:most],
        empty=say("There were no outages."),
    )
    return [grid, *_left_out(frame, len(rows) - most)]


def _left_out(frame: Frame, count: int) -> list[SheetPart]:
    if count <= 0:
        return []
    return [Note(f"{count} {frame.spelling.say('more rows are left out')}")]


def _data(frame: Frame, found: Sequence[Measured], parts: Sequence[TimePart]) -> dict[str, Any]:
    """What ``attach_json`` attaches: numbers and names as they are, not as they look."""

    def names(one: Measured) -> dict[str, str]:
        return {"host": one.key[0], **({"service": one.key[1]} if one.key[1] else {})}

    span = frame.span
    return {
        "start": span.start if span else None,
        "end": span.end if span else None,
        "sla": frame.settings.sla,
        "availability": [
            {
                **names(one),
                "percent": one.whole.percent,
                "time_available": one.whole.available,
                "time_unavailable": one.whole.unavailable,
                "time_downtime": one.whole.downtime,
                "time_unknown": one.whole.unknown,
                "breakdown": [
                    {"start": part.start, "end": part.end, "percent": percent}
                    for part, percent in zip(parts, one.parts, strict=True)
                ],
            }
            for one in found
        ],
        "outages": [
            {
                **names(one),
                "class": (SERVICE_WORDS if one.key[1] else HOST_WORDS)[outage.state],
                "start": outage.start,
                "end": outage.end,
                "duration": outage.end - outage.start,
                "plugin_output": outage.output,
            }
            for one in found
            for outage in one.outages
        ],
    }


def events(frame: Frame, lines: Sequence[tuple[int, str, str]], *, more: bool) -> Sheet:
    """Log lines: time, type, text; ``more``: there are others, which are not shown."""
    say = frame.spelling.say
    kinds = Counter(kind for _, kind, _ in lines)
    whole: list[SheetPart] = frame.warnings()
    if kinds:
        whole.append(
            Grid(
                title=say("Overview"),
                heads=(Head(say("Event")), Head(say("Number"), "number")),
                rows=[(kind or say("Message"), number) for kind, number in kinds.most_common()],
            )
        )
    whole.append(
        Grid(
            title=say("Event log"),
            heads=(
                Head(say("Time"), "time"), Head(say("Event"), weight=1.0),
                Head(say("Message"), weight=4.0),
            ),
            rows=lines,
            empty=say("There is nothing to show."),
        )
    )  # fmt: skip
    if more:
        whole.append(Note(f"… {say('more rows are left out')}"))
    return Sheet(
        title=frame.report.name,
        kind="events",
        facts=frame.facts(),
        parts=tuple(whole),
        spelling=frame.spelling,
        data={"events": [{"time": time, "type": kind, "text": text} for time, kind, text in lines]},
    )
