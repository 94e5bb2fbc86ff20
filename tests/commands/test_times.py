"""What a time and a duration may be, row by row, on both sides of a clock change."""

from datetime import UTC, datetime, timedelta, timezone
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from monrest.commands.arguments import LATEST, duration, moment, spelled
from tests.table import each

BERLIN = ZoneInfo("Europe/Berlin")
NOW = int(datetime(2026, 10, 24, 15, 30, 45, tzinfo=BERLIN).timestamp())
"""A Saturday; in the night that follows, summer time ends."""


def at(text):
    return int(datetime.fromisoformat(text).replace(tzinfo=BERLIN).timestamp())


VALID = [
    ("1795000000", 1795000000),
    ("123456789", 123456789),
    ("  1795000000 ", 1795000000),
    ("0", NOW),
    ("3600", NOW + 3600),
    ("12345678", NOW + 12345678),
    ("+3600", NOW + 3600),
    ("-3600", NOW - 3600),
    (" 3600", NOW + 3600),
    ("+60m", NOW + 3600),
    ("-60m", NOW - 3600),
    (" 60m", NOW + 3600),
    ("   60m  ", NOW + 3600),
    ("+ 60m", NOW + 3600),
    ("now + 60m", NOW + 3600),
    ("now+60m", NOW + 3600),
    ("NOW + 60m", NOW + 3600),
    ("now - 90", NOW - 90),
    ("now + 1h - 10m", NOW + 3000),
    ("+1h + 30m", NOW + 5400),
    ("+1h +30m -10s", NOW + 5390),
    ("+1y", NOW + 365 * 86400),
    ("+2w", NOW + 14 * 86400),
    ("+3s", NOW + 3),
    ("1795000000 + 1h", 1795003600),
    ("today - 2d", at("2026-10-24") - 2 * 86400),
    ("tomorrow + 1d", at("2026-10-25") + 86400),
    ("lastmonday + 1d", at("2026-10-19") + 86400),
    ("2026-12-24 18:00", at("2026-12-24 18:00")),
    ("2026-12-24 18:00:30", at("2026-12-24 18:00:30")),
    ("2026-12-24T18:00:30", at("2026-12-24 18:00:30")),
    ("2026-7-4 08:15", at("2026-07-04 08:15")),
    ("12-24-2026 18:00:30", at("2026-12-24 18:00:30")),
    ("2026-12-24 18:00 - 1d", at("2026-12-24 18:00") - 86400),
    ("now", NOW),
    ("today", at("2026-10-24")),
    ("yesterday", at("2026-10-23")),
    ("tomorrow", at("2026-10-25")),
    ("lastmonday", at("2026-10-19")),
    ("thisweek", at("2026-10-19")),
    ("lastweek", at("2026-10-12")),
    ("nextweek", at("2026-10-26")),
    ("thismonth", at("2026-10-01")),
    ("lastmonth", at("2026-09-01")),
    ("nextmonth", at("2026-11-01")),
    ("thisyear", at("2026-01-01")),
    ("lastyear", at("2025-01-01")),
    ("nextyear", at("2027-01-01")),
    ("10:00", at("2026-10-24 10:00")),
    ("8:05", at("2026-10-24 08:05")),
    ("10:00:30", at("2026-10-24 10:00:30")),
    ("tomorrow 8:00", at("2026-10-25 08:00")),
    ("yesterday 23:59", at("2026-10-23 23:59")),
    ("Tomorrow 8:00 + 30m", at("2026-10-25 08:30")),
    ("2 hours ago", NOW - 7200),
    ("1 hour ago", NOW - 3600),
    ("45 minutes ago", NOW - 2700),
    ("3 days ago", NOW - 3 * 86400),
    ("1 week ago", NOW - 7 * 86400),
    ("10 seconds ago", NOW - 10),
    ("+1h30m", NOW + 5400),
    (" 1h30m", NOW + 5400),
    ("-1h30m", NOW - 5400),
    ("now + 1h30m", NOW + 5400),
    ("in 2 hours", NOW + 7200),
    ("in 1h30m", NOW + 5400),
    ("In 1 hour 30 minutes", NOW + 5400),
    ("1h30m ago", NOW - 5400),
    ("2026-12-24", at("2026-12-24")),
    ("2026-12-24 + 1h", at("2026-12-24 01:00")),
    ("2026-12-24T10:00:00Z", 1798106400),
    ("2026-12-24 10:00Z", 1798106400),
    ("2026-12-24T10:00:00.75Z", 1798106400),
    ("2026-12-24T10:00:00+01:00", 1798102800),
    ("2026-12-24T10:00:00 01:00", 1798102800),  # a plus sign that was decoded
    ("2026-12-24 10:00:00 +01:00", 1798102800),
    ("2026-12-24T10:00-0530", 1798126200),
    ("2026-12-24T10:00+01", 1798102800),
    ("2026-12-24T10:00:00Z + 1h", 1798110000),
    ("next monday", at("2026-10-26")),
    ("Next Monday 8:00", at("2026-10-26 08:00")),
    ("next saturday", at("2026-10-31")),
    ("last saturday", at("2026-10-17")),
    ("last fri 22:30", at("2026-10-23 22:30")),
    ("next sunday + 12h", at("2026-10-25 11:00")),  # it has 25 hours
    ("next week", at("2026-10-26")),
    ("last month", at("2026-09-01")),
    ("This Year", at("2026-01-01")),
]

TRAPS = [
    "60m",
    "60m ",
    "+1M",
    "+1.5h",
    "now + 1.5h",
    "12-24-2026",
    "12-24-2026 18:00",
    "foobar",
    "now 60m",
    "now +",
    "now + ",
    "+",
    "-",
    "",
    " ",
    "+123456789",
    "-1795000000",
    "1700000000000",
    "9999999999999999999999",
    "2026-02-30 10:00",
    "2026-13-01 10:00",
    "2026-12-24 25:00",
    "2026-12-24 10:60",
    "2026-12-24 10:00:61",
    "25:00",
    "10:60",
    "today 8",
    "nextweek 8:00",
    "2 months ago",
    "in 2 months",
    "in two hours",
    "in -2 hours",
    "next someday",
    "this monday",
    "monday",
    "nextweek monday",
    "2026-12-24T10:00:00+15:00",
    "2026-12-24T10:00:00+01:60",
    "2026-12-24T25:00:00Z",
    "2026-12-24T10:00:00Zulu",
    "2026-12-24T",
    "2026-W52",
    "20261224T100000Z",
    "two hours ago",
    "-5 hours ago",
    "now + + 1h",
    "now ++1h",
    "now * 2",
    "now + 1h; DISABLE_NOTIFICATIONS",
    "now\n+ 1h",
    "\n60m",
    "now\n",
    "1795000000\n",
    "\t60m",
    "thi\u017fweek",
    "99999999y ago",
    "now - 99999999w",
    "now + 99999999y",
    "\uff10",
    "\uff11\uff17\uff19\uff15\uff10\uff10\uff10\uff10\uff10",
    "0x10",
    "1e9",
    "1_000",
    "now" + " " * 300,
]


@each(("text", "expected"), VALID)
def test_valid_times(text, expected):
    assert moment(text, NOW + 0.75, BERLIN) == expected


@each("text", TRAPS)
def test_times_that_may_mean_something_else_are_refused(text):
    assert moment(text, NOW, BERLIN) is None


def test_days_are_those_of_the_zone_when_summer_time_ends():
    # 2026-10-25 has 25 hours in Berlin.
    assert moment("tomorrow 8:00", NOW, BERLIN) - moment("tomorrow", NOW, BERLIN) == 9 * 3600
    assert moment("nextweek", NOW, BERLIN) - moment("tomorrow", NOW, BERLIN) == 25 * 3600
    assert moment("tomorrow + 1d", NOW, BERLIN) == moment("nextweek", NOW, BERLIN) - 3600


def test_days_are_those_of_the_zone_when_summer_time_begins():
    # 2027-03-28 has 23 hours in Berlin.
    day_before = at("2027-03-27 12:00")
    assert moment("tomorrow 8:00", day_before, BERLIN) == at("2027-03-28 00:00") + 7 * 3600
    # Half past two does not exist: it is meant as before the change.
    assert moment("tomorrow 2:30", day_before, BERLIN) == at("2027-03-28 00:00") + 9000


def test_the_zone_decides_about_dates_and_not_about_numbers():
    text = "2026-12-24 18:00"
    assert moment(text, NOW, UTC) - moment(text, NOW, BERLIN) == 3600
    assert moment("+60m", NOW, UTC) == moment("+60m", NOW, BERLIN)


@given(st.text(max_size=30) | st.from_regex(r"[0-9 +\-:a-zT]{0,25}", fullmatch=True))
def test_any_text_is_a_time_of_the_calendar_or_none(text):
    found = moment(text, NOW, BERLIN)
    assert found is None or (isinstance(found, int) and 0 <= found <= LATEST)


@given(
    st.lists(
        st.tuples(st.sampled_from("+-"), st.integers(0, 9999), st.sampled_from(["", *"wdhms"])),
        min_size=1,
        max_size=5,
    )
)
def test_sums_are_sums(steps):
    units = {"": 1, "w": 604800, "d": 86400, "h": 3600, "m": 60, "s": 1}
    text = "1795000000" + "".join(f" {sign} {count}{unit}" for sign, count, unit in steps)
    total = 1795000000 + sum(
        (1 if sign == "+" else -1) * count * units[unit] for sign, count, unit in steps
    )
    assert moment(text, NOW, UTC) == (total if 0 <= total <= LATEST else None)


@each(
    ("text", "seconds"),
    [
        ("0", 0),
        ("90", 90),
        (" 90 ", 90),
        ("-90", -90),
        ("5m", 300),
        ("-5m", -300),
        ("2h", 7200),
        ("1d", 86400),
        ("1w", 604800),
        ("1y", 31536000),
        ("30s", 30),
        ("1.5h", 5400),
        ("0.5m", 30),
        ("2.0", 2),
        ("0.1h", 360),
        ("1.1h", 3960),
        ("1h30m", 5400),
        ("5 m", 300),
        ("5min", 300),
        ("+5m", 300),
    ],
)
def test_valid_durations(text, seconds):
    assert duration(text) == seconds


@pytest.mark.parametrize(
    "text",
    [
        "",
        "h",
        "1M",
        "--5",
        "0.3s",
        "1.5",
        "1e3",
        "250ms",
        "nan",
        "\u0663",
    ],
)
def test_other_durations_are_refused(text):
    assert duration(text) is None


def test_durations_are_spelled_with_every_unit():
    assert spelled(0) == "0d 0h 0m 0s"
    assert spelled(93784) == "1d 2h 3m 4s"


@given(
    st.datetimes(min_value=datetime(1971, 1, 1), max_value=datetime(2100, 1, 1)),
    st.integers(-14 * 60, 14 * 60),
    st.sampled_from(["T", " "]),
)
def test_dates_with_an_offset_mean_the_same_in_every_zone(when, minutes, joint):
    when = when.replace(microsecond=0, tzinfo=timezone(timedelta(minutes=minutes)))
    text = when.isoformat(sep=joint)
    assert moment(text, NOW, BERLIN) == moment(text, NOW, UTC) == int(when.timestamp())


@given(st.datetimes(min_value=datetime(1971, 1, 1), max_value=datetime(2100, 1, 1)))
def test_dates_without_one_are_those_of_the_zone(when):
    when = when.replace(microsecond=0)
    text = when.isoformat()
    assert moment(text, NOW, BERLIN) == int(when.replace(tzinfo=BERLIN).timestamp())
    assert moment(text, NOW, UTC) == int(when.replace(tzinfo=UTC).timestamp())
