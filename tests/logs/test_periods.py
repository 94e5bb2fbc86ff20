"""Named ranges: their bounds, clock changes, several zones."""

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from monrest.availability.periods import NAMED, SUNDAY, Span, UnknownPeriodError, named
from tests.table import each

BERLIN = ZoneInfo("Europe/Berlin")
NOW = 1711879200
"""2024-03-31 12:00 in Berlin: a Sunday, ten hours after the clock went forward."""


@each(
    ("name", "start", "end"),
    [
        ("today", 1711839600, 1711879200),
        ("thisweek", 1711321200, 1711879200),
        ("lastweek", 1710716400, 1711321200),
        ("thismonth", 1709247600, 1711879200),
        ("lastmonth", 1706742000, 1709247600),
        ("last1month", 1706742000, 1709247600),
        ("last3months", 1701385200, 1709247600),
        ("last3month", 1701385200, 1709247600),
        ("last12months", 1677625200, 1709247600),
        ("thisyear", 1704063600, 1711879200),
        ("lastyear", 1672527600, 1704063600),
        ("last24hours", NOW - 86400, NOW),
        ("last7days", NOW - 604800, NOW),
        ("last31days", NOW - 2678400, NOW),
    ],
)
def test_numbers_of_the_page(name, start, end):
    assert named(name, NOW, BERLIN) == Span(start, end)


def local(text, zone=BERLIN):
    return int(datetime.fromisoformat(text).replace(tzinfo=zone).timestamp())


@each(
    ("now", "name", "start", "end", "hours"),
    [
        ("2024-04-01 00:30", "yesterday", "2024-03-31", "2024-04-01", 23),
        ("2024-04-01 00:30", "lastweek", "2024-03-25", "2024-04-01", 7 * 24 - 1),
        ("2024-10-28 09:00", "yesterday", "2024-10-27", "2024-10-28", 25),
        ("2024-10-28 09:00", "lastweek", "2024-10-21", "2024-10-28", 7 * 24 + 1),
        ("2024-04-02 00:30", "lastmonth", "2024-03-01", "2024-04-01", 31 * 24 - 1),
        ("2024-01-01 00:00", "yesterday", "2023-12-31", "2024-01-01", 24),
        ("2024-01-01 00:00", "lastyear", "2023-01-01", "2024-01-01", 365 * 24),
    ],
)
def test_clock_changes(now, name, start, end, hours):
    span = named(name, local(now), BERLIN)
    assert span == Span(local(start), local(end))
    assert span.seconds == hours * 3600


def test_yesterday_of_the_page():
    assert named("yesterday", local("2024-04-01 00:30"), BERLIN) == Span(1711839600, 1711922400)


@each(
    ("now", "first", "start"),
    [
        ("2024-01-07 12:00", SUNDAY, "2024-01-07"),
        ("2024-01-06 12:00", SUNDAY, "2023-12-31"),
        ("2024-01-08 12:00", SUNDAY, "2024-01-07"),
        ("2024-01-07 12:00", 1, "2024-01-01"),
        ("2024-01-08 00:00", 1, "2024-01-08"),
    ],
)
def test_first_day_of_the_week(now, first, start):
    assert named("thisweek", local(now), BERLIN, first).start == local(start)
    assert named("lastweek", local(now), BERLIN, first).end == local(start)


@each(
    ("zone", "now", "start"),
    [
        # Midnight itself does not exist on this day in Beirut and (once) in São Paulo.
        ("Asia/Beirut", "2024-03-31 12:00", "2024-03-30T22:00+00:00"),
        ("America/Sao_Paulo", "2018-11-04 12:00", "2018-11-04T03:00+00:00"),
        # Midnight comes twice in Havana.
        ("America/Havana", "2024-11-03 12:00", "2024-11-03T04:00+00:00"),
        ("Australia/Lord_Howe", "2024-04-07 12:00", "2024-04-06T13:00+00:00"),
        ("Asia/Kathmandu", "2024-04-07 12:00", "2024-04-06T18:15+00:00"),
        ("UTC", "2024-04-07 12:00", "2024-04-07T00:00+00:00"),
    ],
)
def test_today_elsewhere(zone, now, start):
    found = named("today", local(now, ZoneInfo(zone)), ZoneInfo(zone))
    assert datetime.fromtimestamp(found.start, UTC) == datetime.fromisoformat(start)


@each(
    "name",
    [
        *("", "Today", "TODAY", " today", "custom", "lastday", "last0months", "last00month"),
        *("last-1months", "last1.5months", "last99999months", "last9999months", "last\u0661months"),
        *("lastmonths", "last3monthss", "24h", "last3months\n"),
    ],
)
def test_other_names(name):
    with pytest.raises(UnknownPeriodError, match="expected"):
        named(name, NOW, BERLIN)


@given(
    st.sampled_from(sorted([*NAMED, "last2months", "last18months"])),
    st.datetimes(datetime(1990, 1, 1), datetime(2037, 1, 1)),
    st.sampled_from(["UTC", "Europe/Berlin", "America/Sao_Paulo", "Asia/Kolkata", "Pacific/Apia"]),
    st.sampled_from([0, 1]),
)
def test_ranges_are_in_order_and_complete(name, moment, zone, first):
    now = int(moment.replace(tzinfo=UTC).timestamp())
    span = named(name, now, ZoneInfo(zone), first)
    assert 0 <= span.start <= span.end <= now
    if name.startswith("this") or name in ("today", "last24hours", "last7days", "last31days"):
        assert span.end == now
    if name == "yesterday":
        assert span.end == named("today", now, ZoneInfo(zone), first).start
        assert timedelta(hours=22) < timedelta(seconds=span.seconds) < timedelta(hours=26) or (
            zone == "Pacific/Apia"  # which left out the 30th of December 2011
        )
    if name in ("lastweek", "lastmonth", "lastyear"):
        now_name = name.replace("last", "this")
        assert span.end == named(now_name, now, ZoneInfo(zone), first).start
