"""Time expressions, durations and dates as texts."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from math import isfinite
from zoneinfo import ZoneInfo

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from monrest.query.times import (
    UNITS,
    format_duration,
    format_time,
    parse_duration,
    parse_time,
)
from tests.table import each

NOW = 1_795_242_791  # a Saturday, 2026-11-21 06:33:11 UTC
BERLIN = ZoneInfo("Europe/Berlin")


@each(
    ("text", "expected"),
    [
        ("today", 1795219200),
        ("today-1d", 1795132800),
        ("yesterday", 1795132800),
        ("thisweek", 1794787200),
        ("lastweek-1d", 1794096000),
        ("thismonth", 1793491200),
        # Further words
        ("now", NOW),
        ("NOW", NOW),
        ("Today", 1795219200),
        ("YESTERDAY", 1795132800),
        ("tomorrow", 1795305600),
        ("lastmonday", 1794787200),
        ("nextweek", 1794787200 + 7 * 86400),
        ("lastmonth", 1790812800),
        ("nextmonth", 1796083200),
        ("thisyear", 1767225600),
        ("lastyear", 1735689600),
        ("nextyear", 1798761600),
        # Sums
        ("now-3600", NOW - 3600),
        ("today+1d", 1795305600),
        ("now + 60m", NOW + 3600),
        ("now-1h+30s", NOW - 3600 + 30),
        ("1d+today", 1795305600),
        ("now-1h30m", NOW - 5400),
        ("1795242791-1h", NOW - 3600),
        ("2026-11-20 10:00 + 1d", 1795255200),
        # Numbers are themselves
        ("0", 0),
        ("1795242791", NOW),
        ("-5", -5),
        ("5.25", 5.25),
        ("1e3", 1000.0),
        (" 60 ", 60),
        # a leading plus, combined units, dates
        ("-1h30m", NOW - 5400),
        ("2026-11-20", 1795132800),
        ("2026-11-20 10:00", 1795168800),
        ("2026-11-20T10:00:05", 1795168805),
        ("10:00", 1795255200),
        ("THISWEEK", 1794787200),
        ("in 2 hours", NOW + 7200),
        ("2 days ago", NOW - 2 * 86400),
        ("2026-11-20T10:00:05Z", 1795168805),
        ("2026-11-20T10:00:05+01:00", 1795165205),
        ("next monday", 1795392000),
        ("last monday", 1794787200),
    ],
)
def test_moments(text: str, expected: float) -> None:
    assert parse_time(text, float(NOW), UTC) == expected


@each(
    "text",
    [
        "", " ", "-10x", "-1M", "soon", "knowledge", "today!", "lastday", "thisday",
        "nextday", "thisfortnight", "now now", "now 1h", "now-", "-now", "now--1h",
        "+", "-", "1h+5m", "10+20", "-1.5h", "2026-13-01", "2026-02-30", "2026-11-20 25:00",
        "2026-11-20 10", "2026-11-20 10:0", "0000-01-01", "2026-11-20 10:00:05x", "20-11-2026",
        "13-40-2026 10:00:00", "inf", "nan", "0x10", "1_000", "\u0661", "9" * 400, "now" + "-1d" * 200,
    ],
)  # fmt: skip
def test_what_is_no_moment(text: str) -> None:
    assert parse_time(text, float(NOW), UTC) is None


def test_calendar_words_follow_the_zone() -> None:
    assert parse_time("today", NOW, BERLIN) == 1795219200 - 3600
    assert parse_time("2026-07-01 12:00", NOW, BERLIN) == 1782900000
    # It is Sunday in Auckland already when it is Saturday in UTC.
    assert parse_time("today", NOW + 43200, ZoneInfo("Pacific/Auckland")) == 1795258800


def test_days_have_their_own_length_but_sums_are_plain_seconds() -> None:
    # The clocks of Berlin went back on 2026-10-25.
    sunday = datetime(2026, 10, 25, 12, tzinfo=BERLIN).timestamp()
    midnight = datetime(2026, 10, 25, tzinfo=BERLIN).timestamp()
    assert parse_time("tomorrow", sunday, BERLIN) == midnight + 25 * 3600
    assert parse_time("today+1d", sunday, BERLIN) == midnight + 24 * 3600


def test_midnight_is_the_first_one_also_inside_the_hour_that_comes_twice() -> None:
    zone = ZoneInfo("America/Havana")  # goes back from 01:00 to 00:00
    first = datetime(2026, 11, 1, tzinfo=zone).timestamp()
    assert parse_time("today", first + 3600 + 60, zone) == first


def test_fractions_of_the_present_second_are_cut() -> None:
    assert parse_time("now", NOW + 0.75, UTC) == NOW
    assert parse_time("-10m", NOW + 0.75, UTC) == NOW - 600


def test_the_day_is_that_of_a_zone_where_it_is_still_yesterday() -> None:
    west = timezone(timedelta(hours=-12))
    midnight = datetime(2026, 11, 20, tzinfo=west).timestamp()
    assert parse_time("today", NOW, west) == midnight
    assert parse_time("tomorrow", NOW, west) == midnight + 86400


@pytest.mark.parametrize(
    ("now", "word", "expected"),
    [
        ((2026, 1, 31), "lastmonth", (2025, 12, 1)),
        ((2026, 12, 31), "nextmonth", (2027, 1, 1)),
        ((2026, 12, 1), "thismonth", (2026, 12, 1)),
        ((2024, 2, 29), "lastyear", (2023, 1, 1)),
        ((2024, 2, 29), "nextyear", (2025, 1, 1)),
        ((2026, 3, 1), "yesterday", (2026, 2, 28)),
        ((2026, 11, 22), "thisweek", (2026, 11, 16)),
        ((2026, 11, 23), "thisweek", (2026, 11, 23)),
        ((2026, 11, 23), "lastweek", (2026, 11, 16)),
        ((2027, 1, 1), "thisweek", (2026, 12, 28)),
    ],
)
def test_ends_of_periods(
    now: tuple[int, int, int], word: str, expected: tuple[int, int, int]
) -> None:
    moment = datetime(*now, 23, 59, 59, tzinfo=UTC).timestamp()
    assert parse_time(word, moment, UTC) == datetime(*expected, tzinfo=UTC).timestamp()


@each("digits", [12, 15, 18, 19, 20, 50, 150, 250, 5000])
@each("form", ["{}", "-{}", "{}y", "-{}y", "now+{}y", "now-{}", "{}-01-01"])
def test_numbers_beyond_all_clocks(form: str, digits: int) -> None:
    text = form.format("9" * digits)
    for found in (parse_time(text, NOW, UTC), parse_duration(text)):
        assert found is None or isfinite(found)


@pytest.mark.parametrize("milliseconds", [1, 9, 19, 29, 57, 258, 290, 570, 580, 999])
def test_milliseconds_are_not_cut_by_one(milliseconds: int) -> None:
    assert format_duration(milliseconds / 1000) == f"{milliseconds}ms"


@given(st.text(alphabet="now today-+0123456789ywdhms:T", max_size=40) | st.text(max_size=40))
def test_any_text_is_a_moment_or_none(text: str) -> None:
    result = parse_time(text, NOW, BERLIN)
    assert result is None or isinstance(result, int | float)


@given(st.integers(0, 10**12 - 1), st.sampled_from(sorted(UNITS)), st.sampled_from(["", "+", "-"]))
def test_spans_count_from_now(count: int, unit: str, sign: str) -> None:
    seconds = count * UNITS[unit] * (-1 if sign == "-" else 1)
    assert parse_time(f"{sign}{count}{unit}", NOW, UTC) == NOW + seconds
    assert parse_duration(f"{sign}{count}{unit}") == seconds
    assert parse_time(f"now + {count}{unit}", NOW, UTC) == NOW + abs(seconds)


@given(st.datetimes(datetime(1971, 1, 1), datetime(2100, 1, 1)))
def test_dates_mean_local_time(moment: datetime) -> None:
    expected = int(moment.replace(microsecond=0, tzinfo=BERLIN).timestamp())
    if moment.fold == 0:
        assert parse_time(f"{moment:%Y-%m-%d %H:%M:%S}", NOW, BERLIN) == expected
        assert parse_time(f"{moment:%m-%d-%Y %H:%M:%S}", NOW, BERLIN) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1m", 60), ("90", 90), ("0", 0), ("-90", -90), ("1.5", 1.5), ("1h30m", 5400),
        ("-1h30m", -5400), ("+2d", 172800), ("1.5h", 5400.0), ("-0.5m", -30.0), ("1w", 604800),
        ("1y", 31536000), (" 5s ", 5), ("250ms", 0.25),
    ],
)  # fmt: skip
def test_durations(text: str, expected: float) -> None:
    assert parse_duration(text) == pytest.approx(expected)


@pytest.mark.parametrize(
    "text", ["", "m", "1M", "1x", "1.5h30m", "now", "-", "1,5h", "9" * 500 + "d"]
)
def test_what_is_no_duration(text: str) -> None:
    assert parse_duration(text) is None


@each(
    ("seconds", "expected"),
    [
        (0, "0s"), (0.0001, "0s"), (0.0123, "12ms"), (0.9996, "999ms"), (5.25, "5.2s"),
        (9.99, "10.0s"), (12.5, "12s"), (60.5, "1m"), (90, "1m 30s"), (3600, "1h"),
        (3661, "1h 1m"), (86400, "1d"), (604800, "7d"), (31622461, "1y 1d"), (-90, "-1m 30s"),
        (86430, "1d 30s"),
        # In between
        (1, "1s"), (1.0, "1s"), (1.04, "1.0s"), (10.0, "10s"), (59.99, "59s"), (-0.0001, "0s"),
        (-0.5, "-500ms"), (-5.25, "-5.2s"), (90061, "1d 1h"), (31536000, "1y"),
        (float("inf"), "inf"),
    ],
)  # fmt: skip
def test_durations_as_text(seconds: float, expected: str) -> None:
    assert format_duration(seconds) == expected


@given(st.integers(0, 10**10))
def test_two_units_are_exact_up_to_the_smaller_one(seconds: int) -> None:
    text = format_duration(seconds)
    parts = text.split()
    assert len(parts) <= 2
    shown = sum(int(part[:-1]) * UNITS[part[-1]] for part in parts)
    assert shown <= seconds < shown + UNITS[parts[0][-1]]
    if len(parts) == 2:
        assert seconds - shown < UNITS[parts[1][-1]]
        assert parse_duration(text.replace(" ", "")) == shown


@each(
    ("seconds", "fmt", "zone", "expected"),
    [
        (0, None, UTC, "1970-01-01 00:00:00 UTC"),
        (NOW, None, UTC, "2026-11-21 06:33:11 UTC"),
        (NOW, None, BERLIN, "2026-11-21 07:33:11 CET"),
        (NOW, "%d.%m.%y", UTC, "21.11.26"),
        (NOW, "%H:%M:%S.%MILLI", UTC, "06:33:11.000"),
        (NOW + 0.25, "%MILLI", UTC, "250"),
        (NOW + 0.25, "%M%MILLI%M", UTC, "3325033"),
        (-0.75, "%H:%M:%S.%MILLI", UTC, "23:59:59.250"),
        (NOW, "%s", BERLIN, "1795242791"),
        (NOW, "%z", BERLIN, "+0100"),
        (NOW, "%a %A %b %B %j", UTC, "Sat Saturday Nov November 325"),
        (NOW, "%F %T %R %D", UTC, "2026-11-21 06:33:11 06:33 11/21/26"),
        (NOW, "%G-W%V-%u %e %-H", UTC, "2026-W47-6 21 6"),
        (NOW, "%I %p", BERLIN, "07 AM"),
        (NOW, "100%% %n%t|", UTC, "100% \n\t|"),
        (NOW, "%%Y", UTC, "%Y"),
        (NOW, "", UTC, ""),
        (NOW, "ü %Y\0\ud800😀", UTC, "ü 2026\0\ud800😀"),
        (NOW, "%Q %q %E %9999999d %", UTC, "%Q %q %E %9999999d %"),
        (1e20, None, UTC, "1e+20"),
        (-(10**12), "%Y", UTC, "-1000000000000"),
        (float("nan"), None, UTC, "nan"),
        (float("inf"), None, UTC, "inf"),
    ],
)
def test_dates_as_text(seconds: float, fmt: str | None, zone: ZoneInfo, expected: str) -> None:
    assert format_time(seconds, fmt, zone) == expected


@given(
    st.floats(), st.text(alphabet="%-_0^#EOaYmdHMSZzsMILnt \1é", max_size=20) | st.text(max_size=20)
)
@example(-62135596800.0, "%Y %c")
@example(253402300799.0, "%Y %Z")
def test_no_format_and_no_moment_is_too_much(seconds: float, fmt: str) -> None:
    assert isinstance(format_time(seconds, fmt, BERLIN), str)


@given(st.integers(0, 4_000_000_000))
def test_the_default_format_reads_back(seconds: int) -> None:
    text = format_time(seconds, None, UTC)
    assert parse_time(text.removesuffix(" UTC"), NOW, UTC) == seconds
