"""The parts of a time by which a report is broken down: days, weeks, months. Pure."""

from __future__ import annotations

from datetime import date, datetime, timedelta, tzinfo

from attrs import frozen

from monrest.availability.periods import Span
from monrest.base.errors import BadRequest

_MOST = 400
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
        if len(starts) > _MOST:
            raise BadRequest(
                "invalid params.breakdown",
                f"params.breakdown: expected at most {_MOST} parts, which {breakdown} exceed",
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
    """The first day of the part that a day is in."""
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
